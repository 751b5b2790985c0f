"""The tables of `bleuprint compare`; None instead of a table in which nothing would differ."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.report.comet_scores import comet_columns, one_model, paired_comet
from bleuprint.report.fault_tables import lines_of_faults
from bleuprint.report.grid import NONE, Column, Grid, Row
from bleuprint.report.revision import Revision
from bleuprint.report.system_results import p_text, paired_t
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.human_agreement import AGREE, AGREEMENT, agreement_text, human_agreement
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.output_faults import paired_p
from bleuprint.scoring.significance import SIGNIFICANT, PairedTest, paired_tests
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


@dataclass(frozen=True)
class Side:
    """A system of a revision."""

    system: str
    revision: Revision

    def __str__(self) -> str:
        return f"{self.system}@{self.revision.name}" if self.revision.name else self.system

    def results(self, corpus: str, seed: int) -> CellResults:
        return self.revision.results(Cell(self.system, corpus, seed))


class Pair:
    """Two sides, and the corpora (or one `corpus`) and seeds that both have.

    Raises UserError if there are none, or if one of the sides has no such system or corpus.
    """

    def __init__(self, first: Side, second: Side, corpus: str | None = None) -> None:
        self.first, self.second = self.sides = first, second
        for side in self.sides:
            side.revision.settings.system(side.system)
        if first == second:
            raise UserError(f"{first}: compared with itself")
        self.seeds: list[int] = self._common("seeds")
        if corpus is None:
            self.corpora: list[str] = self._common("corpora")
        else:
            for side in self.sides:
                side.revision.settings.system_on(side.system, corpus)
            self.corpora = [corpus]

    def _common(self, name: str) -> list[Any]:
        first, second = (getattr(side.revision.settings, name) for side in self.sides)
        common = [value for value in first if value in second]
        if name == "corpora":
            rows = [side.revision.settings.system(side.system) for side in self.sides]
            common = [corpus for corpus in common if all(row.on(corpus) for row in rows)]
        if not common:
            raise UserError(f"{self.first} and {self.second}: no {name} in common")
        return common

    def cells(self, side: Side) -> list[Cell]:
        """All cells of a side that are compared."""
        return [Cell(side.system, *place) for place in product(self.corpora, self.seeds)]

    def runs(self, corpus: str) -> list[list[CellResults]]:
        """The results of each side on a corpus, by seed."""
        return [[side.results(corpus, seed) for seed in self.seeds] for side in self.sides]

    def columns(self, *labels: str, more: Sequence[str] = ()) -> tuple[Column, ...]:
        """Columns of text, one of numbers for each side, and more of numbers."""
        heads = *map(str, self.sides), *more
        return (*(Column(label, left=True) for label in labels), *map(Column, heads))


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
    for corpus in pair.corpora:
        runs = pair.runs(corpus)
        for test in (test for test in runs[0][0].scores if test in runs[1][0].scores):
            reason = not_comparable(runs, test)
            rows += _score_rows(runs, test, tested=not reason)
            if reason:
                reasons.append(f"{corpus}, {test}: no p: {reason}")
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
    else:
        yield f"scores: of seed {pair.seeds[0]}; p: paired bootstrap over the lines of the test set"


def faults(pair: Pair) -> Grid | None:
    """The lines with each fault that a side has, on test sets of the same lines; means over seeds.

    None if there are none, or if a side was scored by an earlier version.
    """
    rows = []
    for corpus in pair.corpora:
        runs = pair.runs(corpus)
        for test in (test for test in runs[0][0].scores if test in runs[1][0].scores):
            if not_comparable(runs, test):
                continue
            first, second = (lines_of_faults(side, test) for side in runs)
            for name in (name for name in first if name in second):
                sides = first[name], second[name]
                if any(chain.from_iterable(chain(*sides))):
                    form = ".1f" if len(pair.seeds) > 1 else ".0f"
                    counts = (format(fmean(map(len, side)), form) for side in sides)
                    p = paired_p(*sides)
                    mark = " n.s." if p >= SIGNIFICANT else ""
                    rows.append(Row((corpus, test, name, *counts, f"{p_text(p)}{mark}")))
    heads = pair.columns("corpus", "test set", "fault", more=("p",))
    return Grid(heads, tuple(rows)) if rows else None


def same_scores(pair: Pair) -> bool:
    """Whether both have the same test sets with the same scores."""
    runs = [[[run.scores for run in side] for side in pair.runs(corpus)] for corpus in pair.corpora]
    return all(first == second for first, second in runs)


def not_comparable(runs: Sequence[Sequence[CellResults]], test: str) -> str:
    """Why the scores of two sides are not of the same lines; empty if they are."""
    every = [run.scores_of(test) for side in runs for run in side]
    for name in ("references", "sources"):
        if len({scores[name] for scores in every}) > 1:
            return f"the {name} of the test set are not the same"
    return ""


def paired(runs: Sequence[CellResults], test: str) -> dict[str, PairedTest]:
    """The paired tests of the second against the first."""
    (references, first), (_, second) = (run.lines(test) for run in runs)
    return paired_tests({"0": first, "1": second}, references, runs[0].texts.target)["1"]


def _settings(side: Side, pair: Pair) -> _Texts:
    """The settings by dotted key: the system's, the corpora's and the seeds."""
    settings = side.revision.settings
    corpora = {name: settings.corpus(name).deciding() for name in pair.corpora}
    others = dotted({"corpora": corpora, "seeds": settings.seeds})
    every = {**settings.system(side.system).dotted(), **others}
    return {(key,): value for key, value in every.items()}


def _fingerprints(side: Side, pair: Pair) -> _Texts:
    """SHA-256 of code and data, and sacreBLEU's signatures, of the first seed on each corpus."""
    prints = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        run = side.results(corpus, pair.seeds[0])
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
        means = pd.DataFrame(map(_figures, runs), columns=list(_FIGURES)).mean()
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


def _score_rows(runs: Sequence[Sequence[CellResults]], test: str, tested: bool) -> Iterator[Row]:
    first_seeds = [side[0] for side in runs]
    one_seed = tested and len(runs[0]) == 1
    tests = paired(first_seeds, test) if one_seed else {}
    for metric, label in METRICS.items():
        of_sides = [[run.scores_of(test).get(metric) for run in side] for side in runs]
        if not all(map(all, of_sides)):  # chrF2++ in scores.json of an earlier version
            continue
        scores = [[each["score"] for each in side] for side in of_sides]  # type: ignore[index]
        p = tests[metric].bootstrap if one_seed else None
        yield _score_row(runs, test, label, scores, p, tested)
    if model := one_model(chain(*runs), test):
        points = [[comet_columns(run, test)["comet"] for run in side] for side in runs]
        p = paired_comet(first_seeds[1], first_seeds[0], test).bootstrap if one_seed else None
        yield _score_row(runs, test, "COMET", points, p, tested, scale=model)


def _score_row(
    runs: Sequence[Sequence[CellResults]],
    test: str,
    label: str,
    scores: Sequence[Sequence[float]],
    p: float | None,
    tested: bool,
    scale: str = "",
) -> Row:
    """A metric of both sides; `p` is that of the t-test over seeds if there is none of lines."""
    first, second = scores
    deltas = [b - a for a, b in zip(first, second, strict=True)]
    shown = agree = NONE
    if tested:
        p = paired_t(deltas) if p is None else p
        shown = f"{p:.3f}{' n.s.' if p >= SIGNIFICANT else ''}"
        if (per_cent := human_agreement(scale or label, fmean(deltas))) is not None:
            agree = agreement_text(scale or label, per_cent)
    cells = _mean(first), _mean(second), f"{fmean(deltas):+z.1f}", shown, agree
    return Row((runs[0][0].cell.corpus, test, label, *cells))


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
