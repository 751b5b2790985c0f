"""The tables of `bleuprint compare`; None instead of a table in which nothing would differ."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean, stdev

import pandas as pd

from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.report.fault_tables import faults_p, lines_of_faults
from bleuprint.report.grid import NONE, Grid, Row
from bleuprint.report.pair import Pair, Side
from bleuprint.report.paired_runs import PairedRuns, PairedScores
from bleuprint.report.system_results import p_text
from bleuprint.rules.letters import SCRIPTS
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.human_agreement import AGREE, AGREEMENT, agreement_text, human_agreement
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.significance import SIGNIFICANT
from bleuprint.tracking.cell_results import CellResults

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
    """The scores on each test set that both have, with tests of their differences."""
    rows: list[Row] = []
    reasons: list[str] = []
    for runs in pair.paired_runs():
        rows += (score_row(runs, scores) for scores in runs.scores())
        if reason := runs.not_comparable:
            reasons.append(f"{runs.corpus}, {runs.test}: no p: {reason}")
    if not rows:
        yield "Scores: no test set in common"
        return
    yield Grid(
        pair.columns("corpus", "test set", "score", more=("difference", "p", AGREE)), tuple(rows)
    )
    yield from reasons
    if len(reasons) < len(rows) / len(METRICS):
        yield AGREEMENT
    if len(pair.seeds) > 1:
        seeds = ", ".join(map(str, pair.seeds))
        yield f"scores: means over the seeds {seeds}; p: paired t-test over them"
        if pair.of_others:
            yield "for external translations, the largest of the bootstraps against each seed"
    else:
        yield f"scores: of seed {pair.seeds[0]}; p: paired bootstrap over the lines of the test set"


def faults(pair: Pair) -> Grid | None:
    """The lines with each fault that a side has, on test sets of the same lines; means over seeds.

    None if there are none, or if a side was scored by an earlier version.
    """
    rows = []
    for runs in pair.paired_runs():
        if runs.not_comparable:
            continue
        first, second = (lines_of_faults(side, runs.test) for side in (runs.first, runs.second))
        for name in (name for name in first if name in second):
            sides = first[name], second[name]
            if any(chain.from_iterable(sides)):
                form = ".1f" if len(pair.seeds) > 1 else ".0f"
                counts = (format(fmean(map(len, side)), form) for side in sides)
                p = faults_p(*sides, trained=all(runs.trained))
                mark = " n.s." if p >= SIGNIFICANT else ""
                rows.append(Row((runs.corpus, runs.test, name, *counts, f"{p_text(p)}{mark}")))
    heads = pair.columns("corpus", "test set", "fault", more=("p",))
    return Grid(heads, tuple(rows)) if rows else None


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
        if isinstance(run, CellResults) and not pair.of_others:
            prints[corpus, "code of the training"] = run.training.code[:_SHORT]
            prints[corpus, "binary corpus"] = run.training.data[:_SHORT]
        for test, of_test in run.scores.items():
            prints[corpus, f"signature of BLEU, {test}"] = of_test["bleu"]["signature"]
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
        known = [_figures(run) for run in runs if isinstance(run, CellResults)]
        means = pd.DataFrame(known, columns=list(_FIGURES)).mean()
        for label, mean in means.items():
            texts[corpus, str(label)] = format(mean, _FIGURES[str(label)])
    return texts


def _figures(run: CellResults) -> tuple[float, ...]:
    """The figures of a training, whose curves `Revision.fetch` found."""
    assert run.curves is not None
    loss, bleu = (
        [getattr(each, name) for each in run.curves.validation] for name in ("loss", "bleu")
    )
    updates, tokens = run.training.updates, run.training.target_tokens
    return updates, tokens, loss[-1], min(loss), bleu[-1], max(bleu)


def score_row(runs: PairedRuns, scores: PairedScores) -> Row:
    """A metric of both sides; without p if they are not comparable."""
    means = (
        _mean(side if trained else side[:1])
        for side, trained in zip((scores.first, scores.second), runs.trained, strict=True)
    )
    shown = agree = NONE
    delta = fmean(scores.deltas)
    if not runs.not_comparable:
        p = scores.p
        shown = f"{p:.3f}{' n.s.' if p >= SIGNIFICANT else ''}"
        per_cent = human_agreement(scores.scale, delta)
        natural = runs.target in SCRIPTS  # and not symbols to be copied
        if per_cent is not None and natural and p < SIGNIFICANT:
            agree = agreement_text(scores.scale, per_cent)
    return Row((runs.corpus, runs.test, scores.label, *means, f"{delta:+z.1f}", shown, agree))


def _mean(scores: Sequence[float]) -> str:
    deviation = f" ± {stdev(scores):.1f}" if len(scores) > 1 else ""
    return f"{fmean(scores):.1f}{deviation}"


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
