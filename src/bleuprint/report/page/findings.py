"""The findings in plain sentences: the best system on each test set, and what its test says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report.page.advice import LINES
from bleuprint.report.paired import p_text, paired_t
from bleuprint.report.system_results import Difference, SystemResult, by_test
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


def best_systems(results: Sequence[SystemResult]) -> Iterator[Finding]:
    """The best system on each test set, and whether it is better than the baseline."""
    tests = by_test(results)
    corpora = [corpus for corpus, _ in tests]
    for (corpus, test), of_test in tests.items():
        place = corpus if corpora.count(corpus) == 1 else f"{corpus}, {test}"
        yield _finding(place, sorted(of_test, key=lambda result: -result.bleu.mean))


def _finding(place: str, ranked: Sequence[SystemResult]) -> Finding:
    best, tested, texts = ranked[0], ranked[0].difference, list[str]()
    if len(ranked) == 1:
        title = f"{best.name} is the only system on {place}"
        texts.append("To see what a setting does, add a system that differs in it.")
    elif tested:
        sure = tested.mark == "‡" and not tested.disagreement
        better = f"better than the baseline {tested.baseline}"
        title = f"{best.name} is {better} on {place}"
        if not sure:
            title = f"{best.name} is best on {place}, but perhaps not {better}"
        texts.append(f"It is {tested.value:.1f} BLEU above it: {_verdict(tested)}")
    else:
        title = f"No system is better than the baseline {best.name} on {place}"
    if len(ranked) > 1 and (ranked[1].difference or not tested):
        texts.append(_second(best, ranked[1]))
    if (lines := int(best.first.lines)) < LINES:
        texts.append(f"With {counted(lines, 'sentence')}, this is weak evidence.")
    return Finding(title, " ".join(texts), "scores")


def _second(best: SystemResult, second: SystemResult) -> str:
    """How far the second system is behind."""
    text = f"Second is {second.name}, {best.bleu.mean - second.bleu.mean:.1f} below"
    if second.difference and not best.difference:
        return f"{text}: {_verdict(second.difference)}"
    pairs = zip(best.values(), second.values(), strict=True)
    deltas = [first - other for first, other in pairs]
    if len(deltas) == 1:
        return f"{text}; that is not tested (with one seed, only the baseline's are)."
    p = paired_t(deltas)
    verdict = "significant" if p < SIGNIFICANT else "not significant, it may be chance"
    return f"{text}: {verdict} ({p_text(p)}, not corrected for choosing the two by their scores)."


def _verdict(tested: Difference) -> str:
    text = _VERDICTS[tested.mark, not tested.disagreement].format(
        p=p_text(tested.p), corrected=p_text(tested.corrected), other=tested.disagreement
    )
    if tested.significant and tested.agreement:
        text += (
            " Where two systems differ so much, people prefer the better one in "
            f"{tested.agreement_text} of all cases (an estimate)."
        )
    return text
