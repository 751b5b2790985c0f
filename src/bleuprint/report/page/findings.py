"""The findings in plain sentences: one for all test sets that have the same outcome."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report.page.advice import LINES
from bleuprint.report.system_results import Difference, SystemResult, p_text, paired_t
from bleuprint.runtime.html import counted
from bleuprint.scoring.significance import SIGNIFICANT

# What the tests of a difference say, by Difference.mark and whether the second test agrees.
_VERDICTS = {
    ("‡", True): "significant ({p}). Chance does not explain it: you can report it.",
    ("†", True): (
        "significant when tested alone ({p}), but not when corrected for the number of systems "
        "tested ({corrected}). Confirm it with more seeds or test sentences."
    ),
    ("‡", False): (
        "significant by one test ({p}), not by the other ({other}). Count the two as equal."
    ),
    ("", True): "not significant ({p}). It may be chance: count the two as equal.",
    ("", False): "not significant ({p}; by {other}, it is). Count the two as equal.",
}
_VERDICTS["†", False] = _VERDICTS["‡", False]


@dataclass(frozen=True)
class Finding:
    """A sentence or a few, and the anchor of the section that has more, if any."""

    title: str
    text: str
    anchor: str = ""


@dataclass(frozen=True)
class Ranking:
    """The best and the second system on a test set, `place`.

    `behind` is the second's mean BLEU below the best's; `p` tests that over seeds, None with one.
    """

    place: str
    best: SystemResult
    second: SystemResult | None = None
    behind: float = 0.0
    p: float | None = None

    @property
    def tested(self) -> Difference | None:
        """That of the best from the baseline; if this is the best, that of the second from it."""
        return self.best.difference or (self.second.difference if self.second else None)

    @property
    def outcome(self) -> tuple[object, ...]:
        """What test sets must have in common to share one finding."""
        tested = self.tested
        verdict = (tested.baseline, tested.mark, bool(tested.disagreement)) if tested else ()
        return self.best.name, self.best.difference is None, verdict, bool(self.second)


def rankings(results: Sequence[SystemResult]) -> Iterator[Ranking]:
    columns = dict.fromkeys((result.corpus, result.test) for result in results)
    corpora = [corpus for corpus, _ in columns]
    for corpus, test in columns:
        place = corpus if corpora.count(corpus) == 1 else f"{corpus}, {test}"
        ranked = [result for result in results if (result.corpus, result.test) == (corpus, test)]
        ranked.sort(key=lambda result: -result.bleu.mean)
        best, *others = ranked
        if not others:
            yield Ranking(place, best)
            continue
        by_seed = best.seeds.bleu.to_numpy() - others[0].seeds.bleu.to_numpy()
        p = paired_t(by_seed) if len(by_seed) > 1 else None
        yield Ranking(place, best, others[0], best.bleu.mean - others[0].bleu.mean, p)


def best_systems(results: Sequence[SystemResult]) -> Iterator[Finding]:
    """The best system, and whether it is better than the baseline."""
    ranked = list(rankings(results))
    groups: dict[tuple[object, ...], list[Ranking]] = {}
    for ranking in ranked:
        groups.setdefault(ranking.outcome, []).append(ranking)
    for group in groups.values():
        yield _finding(group, _where(group, ranked))


def _where(group: Sequence[Ranking], every: Sequence[Ranking]) -> str:
    if 1 < len(group) == len(every):
        return "on both test sets" if len(group) == 2 else f"on all {len(group)} test sets"
    return f"on {'; '.join(ranking.place for ranking in group)}"


def _finding(group: Sequence[Ranking], where: str) -> Finding:
    first = group[0]
    best, tested = first.best, [each.tested for each in group if each.tested]
    if first.second is None:
        title = f"{best.name} is the only system {where}"
        text = "To see what a setting does, add a system that differs in it."
    elif best.difference and tested:
        sure = tested[0].mark == "‡" and not tested[0].disagreement
        better = f"better than the baseline {best.difference.baseline}"
        title = f"{best.name} is {better} {where}"
        if not sure:
            title = f"{best.name} is best {where}, but perhaps not {better}"
        text = f"It is {_span([each.value for each in tested])} BLEU above it: {_verdict(tested)}"
    else:
        title = f"No system is better than the baseline {best.name} {where}"
        text = ""
    few = [lines for each in group if (lines := int(each.best.first.lines)) < LINES]
    weak = f"With {counted(min(few), 'sentence')}, this is weak evidence." if few else ""
    return Finding(title, " ".join(filter(None, (text, *_seconds(group), weak))), "scores")


def _seconds(group: Sequence[Ranking]) -> Iterator[str]:
    """How far the second systems are behind, but for the baseline."""
    alike: dict[tuple[str, bool | None], list[Ranking]] = {}
    for each in group:
        if each.second and (each.second.difference or not each.best.difference):
            sure = None if each.p is None else each.p < SIGNIFICANT
            alike.setdefault((each.second.name, sure), []).append(each)
    for (name, sure), rankings in alike.items():
        where = f" {_where(rankings, group)}" if len(alike) > 1 else ""
        text = f"Second{where} is {name}, {_span([each.behind for each in rankings])} below"
        tested = [e.second.difference for e in rankings if e.second and e.second.difference]
        if tested and not rankings[0].best.difference:
            yield f"{text}: {_verdict(tested)}"
        elif sure is None:
            yield f"{text}; that is not tested (with one seed, only the baseline's are)."
        else:
            p = _ps([each.p for each in rankings if each.p is not None])
            verdict = "significant" if sure else "not significant, it may be chance"
            yield f"{text}: {verdict} ({p}, not corrected for choosing the two by their scores)."


def _verdict(tested: Sequence[Difference]) -> str:
    """Of differences with one outcome."""
    first = tested[0]
    text = _VERDICTS[first.mark, not first.disagreement].format(
        p=_ps([each.p for each in tested]),
        corrected=_ps([each.corrected for each in tested]),
        other=first.disagreement,
    )
    known = {each.agreement or 0.0: each.agreement_text for each in tested if each.agreement}
    if first.significant and known:
        shares = known[min(known)]
        if known[max(known)] != shares:
            shares = f"{shares} to {known[max(known)]}"
        text += f" Where two systems differ so much, people prefer the better one in {shares} of "
        text += "all cases (an estimate)."
    return text


def _ps(values: Sequence[float]) -> str:
    low, high = p_text(min(values)), p_text(max(values))
    return low if low == high else f"{low} to {high.removeprefix('p=')}"


def _span(values: Sequence[float]) -> str:
    low, high = (f"{value:.1f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
