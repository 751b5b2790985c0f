"""The tables of `bleuprint compare`; None instead of a table in which nothing would differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.report.grid import NONE, Column, Grid, Row
from bleuprint.report.revision import Revision
from bleuprint.report.system_results import SIGNIFICANT, paired_t
from bleuprint.runtime.fingerprint import of_settings
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.significance import PValues, paired_tests
from bleuprint.tracking.cell_results import CellResults
from bleuprint.training.history import Curves

_SHORT = 12
# The stages whose code decides translations and scores: dvc.lock has the sums of their code.
_STAGES = {"average": "averaging", "translate": "translating", "score": "scoring"}
_CODE = ("src/", "stages/")
# Fewer validations are too far apart for the number of tokens to a loss.
_VALIDATIONS = 5


@dataclass(frozen=True)
class Side:
    """A system of a revision."""

    system: str
    revision: Revision

    def __str__(self) -> str:
        return f"{self.system}@{self.revision.name}" if self.revision.name else self.system

    def results(self, corpus: str, seed: int) -> CellResults:
        return self.revision.results(Cell(self.system, corpus, seed))


@dataclass(frozen=True)
class Pair:
    """Two sides, and the corpora (or one `corpus`) and seeds that both have."""

    first: Side
    second: Side
    corpus: str | None = None

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.first, self.second

    @property
    def corpora(self) -> list[str]:
        if self.corpus is not None:
            for side in self.sides:
                side.revision.settings.corpus(self.corpus)
            return [self.corpus]
        return self._common("corpora")

    @property
    def seeds(self) -> list[int]:
        return self._common("seeds")

    def seeds_of(self, side: Side) -> list[int]:
        """The seeds that are compared: those in common, or if there are none, all of the side."""
        return self.seeds or list(side.revision.settings.seeds)

    def cells(self, side: Side) -> list[Cell]:
        """All cells of a side that are compared."""
        seeds = self.seeds_of(side)
        return [Cell(side.system, corpus, seed) for corpus in self.corpora for seed in seeds]

    def runs(self, corpus: str) -> list[list[CellResults]]:
        """The results of each side on a corpus, by seed."""
        return [[side.results(corpus, seed) for seed in self.seeds_of(side)] for side in self.sides]

    def columns(self, *labels: str, more: Sequence[str] = ()) -> tuple[Column, ...]:
        """Columns of text, one of numbers for each side, and more of numbers."""
        heads = *map(str, self.sides), *more
        return (*(Column(label, left=True) for label in labels), *map(Column, heads))

    def _common(self, name: str) -> list[Any]:
        first, second = (getattr(side.revision.settings, name) for side in self.sides)
        return [value for value in first if value in second]


# Texts by the leading cells of their row.
_Texts = Mapping[tuple[str, ...], str]


def settings(pair: Pair) -> Grid | None:
    """The settings that differ, by dotted key: the system's, the corpora's and the seeds."""
    return _differing(pair.columns("setting"), *(_settings(side, pair) for side in pair.sides))


def fingerprints(pair: Pair) -> Grid | None:
    """Shortened SHA-256 of code and data that differ, and sacreBLEU's signatures."""
    first, second = (_fingerprints(side, pair) for side in pair.sides)
    # fingerprints that one side lacks cannot be compared
    apart = {key: _apart(first[key], second[key]) for key in first if key in second}
    sides = ({key: texts[side] for key, texts in apart.items()} for side in (0, 1))
    return _differing(pair.columns("corpus", "fingerprint"), *sides)


def data(pair: Pair) -> Grid | None:
    """The counts of pairs that differ: out of each stage, and dropped and changed by each rule."""
    columns = pair.columns("corpus", "set", "stage", "pairs")
    return _differing(columns, *(_counts(side, pair) for side in pair.sides))


def training(pair: Pair) -> Grid | None:
    """Updates, tokens, loss and BLEU of trainings that differ; means over the common seeds."""
    rows: list[Row] = []
    for corpus in pair.corpora if pair.seeds else ():
        sides = pair.runs(corpus)
        first, second = (
            [
                (t.updates, t.target_tokens, t.data, run.curves)
                for run in side
                if (t := run.training)
            ]
            for side in sides
        )
        if first != second:
            rows += [Row((corpus, *cells)) for cells in _training_rows(sides)]
    return Grid(pair.columns("corpus", "training"), tuple(rows)) if rows else None


def scores(pair: Pair) -> Iterator[str | Grid]:
    """BLEU and chrF2 on each test set that both have, and the p-value of the difference in BLEU."""
    rows: list[Row] = []
    reasons: list[str] = []
    for corpus in pair.corpora:
        runs = pair.runs(corpus)
        for test in (test for test in runs[0][0].scores if test in runs[1][0].scores):
            reason = not_comparable(runs, test) if pair.seeds else "no seed in common"
            rows += _score_rows(runs, test, tested=not reason)
            if reason:
                reasons.append(f"{corpus}, {test}: no p: {reason}")
    if not rows:
        yield "Scores: no test set in common"
        return
    columns = pair.columns("corpus", "test set", "score", more=("difference", "p"))
    yield Grid(columns, tuple(rows))
    yield from reasons
    if len(pair.seeds) > 1:
        seeds = ", ".join(map(str, pair.seeds))
        yield f"scores: means over the seeds {seeds}; p: paired t-test over them"
    elif pair.seeds:
        yield f"scores: of seed {pair.seeds[0]}; p: paired bootstrap over the lines of the test set"
    else:
        yield "scores: means over each side's own seeds"


def same_scores(pair: Pair) -> bool:
    """Whether both have the same seeds and test sets, with the same scores."""
    runs = [[[run.scores for run in side] for side in pair.runs(corpus)] for corpus in pair.corpora]
    return bool(pair.seeds) and all(first == second for first, second in runs)


def not_comparable(runs: Sequence[Sequence[CellResults]], test: str) -> str:
    """Why the scores of two sides are not of the same lines; empty if they are."""
    every = [run.scores_of(test) for side in runs for run in side]
    if len({scores["references"] for scores in every}) > 1:
        return "the references of the test set are not the same"
    if len({scores["sources"] for scores in every}) > 1:
        return "the sources of the test set are not the same"
    return ""


def paired(runs: Sequence[CellResults], test: str) -> PValues:
    """The paired tests of the second against the first."""
    (references, first), (_, second) = (run.lines(test) for run in runs)
    return paired_tests({"0": first, "1": second}, references, runs[0].texts.target)["1"]


def _differing(columns: tuple[Column, ...], first: _Texts, second: _Texts) -> Grid | None:
    rows = tuple(
        Row((*key, first.get(key, NONE), second.get(key, NONE)))
        for key in dict.fromkeys((*first, *second))
        if first.get(key) != second.get(key)
    )
    return Grid(columns, rows) if rows else None


def _settings(side: Side, pair: Pair) -> _Texts:
    """As in params.yaml; of a corpus that the other side lacks, only its name."""
    document = side.revision.document
    corpora: dict[str, Any] = {} if pair.corpus else dict.fromkeys(document["corpora"], "there")
    for name in pair.corpora:
        # license and citation change no result
        corpora[name] = {**document["corpora"][name], "license_and_citation": None}
    every = {**document["systems"][side.system], "corpora": corpora, "seeds": document["seeds"]}
    return {(key,): value for key, value in dotted(every).items()}


def _fingerprints(side: Side, pair: Pair) -> _Texts:
    """SHA-256 of code and data, and sacreBLEU's signatures, of the first seed on each corpus."""
    prints = dict[tuple[str, ...], str]()
    for corpus in pair.corpora:
        run = side.results(corpus, pair.seeds_of(side)[0])
        prints[corpus, "code of the training"] = run.training.code
        prints[corpus, "binary corpus"] = run.training.data
        for stage, label in _STAGES.items():
            locked = side.revision.lock.get(f"{stage}@{side.system}-{corpus}-{run.cell.seed}", {})
            # code is named by folders and by modules; all other dependencies are data
            sums = {dep["path"]: dep.get("md5") for dep in locked.get("deps", ())}
            if code := {path: md5 for path, md5 in sums.items() if path.startswith(_CODE)}:
                prints[corpus, f"code of {label}"] = of_settings(code)
        for test, of_test in run.scores.items():
            prints[corpus, f"signature of BLEU, {test}"] = of_test["bleu"]["signature"]
    return prints


def _apart(first: str, second: str) -> tuple[str, str]:
    """SHA-256 shortened; of signatures (a:1|b:2) the parts that differ."""
    a, b = first.split("|"), second.split("|")
    if len(a) == 1:
        return first[:_SHORT], second[:_SHORT]
    return (
        "|".join(part for part in a if part not in b) or NONE,
        "|".join(part for part in b if part not in a) or NONE,
    )


def _counts(side: Side, pair: Pair) -> _Texts:
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


def _training_rows(sides: Sequence[Sequence[CellResults]]) -> Iterator[tuple[str, str, str]]:
    trainings = [[run.training for run in side] for side in sides]
    yield _means("updates", ",.0f", [[t.updates for t in side] for side in trainings])
    yield _means("target tokens", ",.0f", [[t.target_tokens for t in side] for side in trainings])
    validations = [[_validations(run.curves) for run in side] for side in sides]
    if not any(table.empty for side in validations for table in side):
        # losses of different subwords cannot be compared
        same = len({t.data for side in trainings for t in side}) == 1
        yield from _quality_rows(validations, "loss", -1, ".3f", same)
        yield from _quality_rows(validations, "BLEU", 1, ".1f", True)


def _validations(curves: Curves | None) -> pd.DataFrame:
    """The validations of a training; tokens are interpolated between the points of the curve."""
    curves = curves or Curves((), ())
    table = pd.DataFrame(curves.validation, columns=["update", "loss", "bleu"])
    table = table.rename(columns={"bleu": "BLEU"})
    updates = [0, *(point.update for point in curves.training)]
    tokens = [0, *(point.tokens for point in curves.training)]
    return table.assign(tokens=np.interp(table["update"], updates, tokens))


def _quality_rows(
    sides: Sequence[Sequence[pd.DataFrame]], label: str, sign: int, form: str, comparable: bool
) -> Iterator[tuple[str, str, str]]:
    """The last and best validation, and the tokens to the worse of both sides' best.

    `sign` is 1 if more is better, otherwise -1.
    """
    best = [[sign * float((sign * table[label]).max()) for table in side] for side in sides]
    last = [[float(table[label].iloc[-1]) for table in side] for side in sides]
    yield _means(f"final validation {label}", form, last)
    yield _means(f"best validation {label}", form, best)
    if comparable and all(len(table) >= _VALIDATIONS for side in sides for table in side):
        goal = sign * min(sign * fmean(side) for side in best)
        tokens = [
            [float(table.tokens[sign * table[label] >= sign * goal].min()) for table in side]
            for side in sides
        ]
        yield _means(f"tokens to reach {label} {goal:{form}}, at most", ",.0f", tokens)


def _means(label: str, form: str, sides: Sequence[Sequence[float]]) -> tuple[str, str, str]:
    """Means over seeds; none if a seed has no value, since the others are the better ones."""
    means = [fmean(side) for side in sides]
    first, second = (NONE if np.isnan(mean) else format(mean, form) for mean in means)
    return label, first, second


def _score_rows(runs: Sequence[Sequence[CellResults]], test: str, tested: bool) -> Iterator[Row]:
    for metric, label in (("bleu", "BLEU"), ("chrf", "chrF2")):
        first, second = (
            [run.scores_of(test)[metric]["score"] for run in side]  # type: ignore[literal-required]
            for side in runs
        )
        means = [
            f"{fmean(side):.1f}" + (f" ± {stdev(side):.1f}" if len(side) > 1 else "")
            for side in (first, second)
        ]
        shown = NONE
        if label == "BLEU" and tested:
            several = len(first) > 1
            p = (
                paired_t([b - a for a, b in zip(first, second, strict=True)])
                if several
                else paired([side[0] for side in runs], test).bootstrap
            )
            shown = f"{p:.3f}{' n.s.' if p >= SIGNIFICANT else ''}"
        difference = f"{fmean(second) - fmean(first):+.1f}"
        yield Row((runs[0][0].cell.corpus, test, label, *means, difference, shown))
