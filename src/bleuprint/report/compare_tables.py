"""The tables of `bleuprint compare`; None instead of a table in which nothing would differ."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, stdev

import pandas as pd

from bleuprint.cells.results import Results
from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.report.grid import NONE, Grid, Row
from bleuprint.report.pair import Pair, PairedTests, Side
from bleuprint.report.paired import Compared
from bleuprint.report.system_results import agreement
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.human_agreement import AGREE, AGREEMENT
from bleuprint.scoring.measure import Measured
from bleuprint.scoring.significance import SIGNIFICANT

_SHORT = 12
# The figures of a training, and how they are shown.
_FIGURES = {
    "updates": ",.0f",
    "target tokens": ",.0f",
    "final validation loss": ".3f",
    "best validation loss": ".3f",
    "final validation BLEU": ".1f",
    "best validation BLEU": ".1f",
}
# Texts by the leading cells of their row.
_Texts = Mapping[tuple[str, ...], str]


def differing(pair: Pair, part: str) -> Grid | None:
    """The rows of one of PARTS in which the sides differ."""
    heads, texts = PARTS[part]
    first, second = (texts(side, pair) for side in pair.sides)
    rows = tuple(
        Row((*key, first.get(key, NONE), second.get(key, NONE)))
        for key in dict.fromkeys((*first, *second))
        if first.get(key) != second.get(key)
    )
    return Grid(pair.columns(*heads), rows) if rows else None


def scores(pair: Pair) -> Iterator[str | Grid]:
    """Scores and faults on each test set that both have, with tests of their differences."""
    rows: list[Row] = []
    reasons: list[str] = []
    for runs in pair.tests():
        every = runs.compared().items()
        of_lines = [of for (_, group), of in every if not group and _occurs(of)]
        rows += (_score_row(runs, of) for of in of_lines)
        if reason := runs.not_comparable:
            reasons.append(f"{', '.join(runs.place)}: no p: {reason}")
    if not rows:
        yield "Scores: no test set in common"
        return
    yield Grid(
        pair.columns("corpus", "test set", "score", more=("difference", "p", AGREE)), tuple(rows)
    )
    yield "faults: lines that have one that their reference does not have"
    yield from reasons
    if any(row.cells[-1] != NONE for row in rows):
        yield AGREEMENT
    if len(pair.seeds) > 1:
        seeds = ", ".join(map(str, pair.seeds))
        yield f"scores: means over the seeds {seeds}; p: paired t-test over them"
        if pair.of_others:
            yield "for external translations, the largest of the p over lines against each seed"
    else:
        yield (
            f"scores: of seed {pair.seeds[0]}; p: paired bootstrap over the lines of the test set, "
            "of faults approximate randomization"
        )


def same_scores(pair: Pair) -> bool:
    """Whether both have the same test sets with the same scores."""
    runs = [[[run.scores for run in side] for side in pair.runs(corpus)] for corpus in pair.corpora]
    return all(first == second for first, second in runs)


def _settings(side: Side, pair: Pair) -> _Texts:
    """The settings by dotted key: the system's, the corpora's and the seeds."""
    settings = side.revision.settings
    corpora = {name: settings.corpus(name).deciding() for name in pair.corpora}
    others = dotted({"corpora": corpora, "seeds": settings.seeds})
    rows = {corpus: row for corpus in pair.corpora if (row := side.outside(corpus))}
    own = dotted({"outside": rows} if rows else {})
    if not pair.of_others:
        own = settings.dotted(side.system)
    every = {**own, **others}
    return {(key,): value for key, value in every.items()}


def _fingerprints(side: Side, pair: Pair) -> _Texts:
    """SHA-256 of code and data, and sacreBLEU's signatures, of the first seed on each corpus."""
    prints = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        run = side.results(corpus, pair.seeds[0])
        if not run.row and not pair.of_others:
            prints[corpus, "code of the training"] = run.training.code[:_SHORT]
            prints[corpus, "binary corpus"] = run.training.data[:_SHORT]
        for test in run.scores:
            signature = run.measures(test)["bleu", ""]["signature"]
            prints[corpus, f"signature of BLEU, {test}"] = signature
    return prints


def _counts(side: Side, pair: Pair) -> _Texts:
    """Pairs out of each stage, and dropped and changed by each rule."""
    counts = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        for stage, sets in read_ledgers(corpus, side.revision.root).items():
            for name, of_set in sets.items():
                for verb, by_rule in (("dropped", of_set.dropped), ("changed", of_set.changed)):
                    for rule, count in by_rule.items():
                        if count:
                            counts[corpus, name, stage, f"{verb} by {rule}"] = f"{count:,}"
                counts[corpus, name, stage, "out"] = f"{of_set.pairs_out:,}"
    return counts


def _trainings(side: Side, pair: Pair) -> _Texts:
    """Updates, tokens, validation loss and BLEU; means over the seeds."""
    texts = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        runs = [side.results(corpus, seed) for seed in pair.seeds]
        known = [_figures(run) for run in runs if not run.row]
        means = pd.DataFrame(known, columns=list(_FIGURES)).mean()
        for label, mean in means.items():
            texts[corpus, str(label)] = format(mean, _FIGURES[str(label)])
    return texts


def _figures(run: Results) -> tuple[float, ...]:
    """The figures of a training, whose curves `Revision.fetch` found."""
    assert run.curves is not None
    loss, bleu = (
        [getattr(each, name) for each in run.curves.validation] for name in ("loss", "bleu")
    )
    updates, tokens = run.training.updates, run.training.target_tokens
    return updates, tokens, loss[-1], min(loss), bleu[-1], max(bleu)


def _occurs(of: Compared) -> bool:
    """Whether a measure is shown: a fault if any line has it."""
    return of.measure.kind == "score" or any(e["value"] for e in (*of.first, *of.second))


def _score_row(runs: PairedTests, of: Compared) -> Row:
    """A measure of both sides; without p if they are not comparable."""
    sides = zip((of.first, of.second), (runs.first, runs.second), strict=True)
    means = (_mean(side[:1] if run[0].row else side, of.measure.digits) for side, run in sides)
    shown = agree = NONE
    if (p := of.p) is not None:
        shown = f"{p:.3f}{' n.s.' if p >= SIGNIFICANT else ''}"
        if p < SIGNIFICANT:
            signature = of.first[0]["signature"]
            agree = agreement(of.measure.key, signature, of.difference, runs.target) or NONE
    return Row((*runs.place, of.measure.label, *means, f"{of.difference:+z.1f}", shown, agree))


def _mean(side: Sequence[Measured], digits: int) -> str:
    values = [each["value"] for each in side]
    if len(values) > 1:
        return f"{fmean(values):.1f} ± {stdev(values):.1f}"
    return f"{values[0]:.{digits}f}"


# The heads of the texts of a part, and what makes these for a side.
PARTS: dict[str, tuple[tuple[str, ...], Callable[[Side, Pair], _Texts]]] = {
    "Settings": (("setting",), _settings),
    "Fingerprints": (("corpus", "fingerprint"), _fingerprints),
    "Data": (("corpus", "set", "stage", "pairs"), _counts),
    "Training": (("corpus", "training"), _trainings),
}


def parts(pair: Pair) -> list[str]:
    """The parts that both sides have: external translations have no training."""
    return [part for part in PARTS if part != "Training" or not pair.of_others]
