"""The tables of `bleuprint compare`; None instead of a table in which nothing would differ."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from bleuprint.config.paths import Cell
from bleuprint.corpus.steps.ledger import read_ledgers
from bleuprint.report.grid import NONE, Column, Grid, Row
from bleuprint.report.revision import Revision
from bleuprint.report.system_results import SIGNIFICANT, paired_t
from bleuprint.runtime.fingerprint import of_settings
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.score import SetScores
from bleuprint.scoring.significance import PValues, paired_tests
from bleuprint.tracking.cell_results import CellResults
from bleuprint.training.history import Curves, Validation

_SHORT = 12
# The stages whose code decides translations and scores: dvc.lock has the sums of their code.
_STAGES = {"average": "averaging", "translate": "translating", "score": "scoring"}
_CODE = ("src/", "stages/")
# With fewer validations, they are too far apart to say when a loss was reached.
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
    rows = []
    for corpus in pair.corpora:
        first, second = (
            _prints(side, runs[0]) for side, runs in zip(pair.sides, pair.runs(corpus), strict=True)
        )
        # a sum that one side lacks is not known to differ
        for label in (label for label in first if label in second):
            if first[label] != second[label]:
                rows.append(Row((corpus, label, *_apart(first[label], second[label]))))
    return Grid(pair.columns("corpus", "fingerprint"), tuple(rows)) if rows else None


def data(pair: Pair) -> Grid | None:
    """The counts of pairs that differ: out of each stage, and dropped and changed by each rule."""
    return _differing(
        pair.columns("corpus", "set", "stage", "pairs"),
        *(_counts(side, pair) for side in pair.sides),
    )


def training(pair: Pair) -> Grid | None:
    """Updates, tokens, loss and BLEU of trainings that differ; means over the common seeds."""
    rows: list[Row] = []
    for corpus in pair.corpora if pair.seeds else ():
        sides = [[_Training.of(run) for run in side] for side in pair.runs(corpus)]
        if sides[0] != sides[1]:
            rows += [Row((corpus, *cells)) for cells in _training_rows(sides)]
    return Grid(pair.columns("corpus", "training"), tuple(rows)) if rows else None


def scores(pair: Pair) -> Iterator[str | Grid]:
    """BLEU and chrF2 on each test set that both have, and the p-value of the difference in BLEU."""
    rows: list[Row] = []
    reasons: list[str] = []
    for corpus in pair.corpora:
        runs = pair.runs(corpus)
        for test in (test for test in runs[0][0].scores if test in runs[1][0].scores):
            of_test = [[run.scores_of(test) for run in side] for side in runs]
            reason = not_comparable(of_test) if pair.seeds else "no seed in common"
            p = None if reason else _p_value(runs, of_test, test)
            rows += _score_rows(corpus, test, of_test, p)
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


def not_comparable(of_test: Sequence[Sequence[SetScores]]) -> str:
    """Why the scores of two sides are not of the same lines; empty if they are."""
    every = [scores for side in of_test for scores in side]
    if len({scores["references"] for scores in every}) > 1:
        return "the references of the test set are not the same"
    if len({scores["sources"] for scores in every}) > 1:
        return "the sources of the test set are not the same"
    return ""


def _differing(columns: tuple[Column, ...], first: _Texts, second: _Texts) -> Grid | None:
    rows = tuple(
        Row((*key, first.get(key, NONE), second.get(key, NONE)))
        for key in dict.fromkeys((*first, *second))
        if first.get(key) != second.get(key)
    )
    return Grid(columns, rows) if rows else None


def _settings(side: Side, pair: Pair) -> _Texts:
    """As params.yaml has them; of a corpus that the other side lacks, its name alone."""
    document = side.revision.document
    corpora: dict[str, Any] = {} if pair.corpus else dict.fromkeys(document["corpora"], "there")
    for name in pair.corpora:
        # license and citation change no result
        corpora[name] = {**document["corpora"][name], "license_and_citation": None}
    every = {**document["systems"][side.system], "corpora": corpora, "seeds": document["seeds"]}
    return {(key,): value for key, value in dotted(every).items()}


def _prints(side: Side, run: CellResults) -> dict[str, str]:
    """Sums of code and data, and sacreBLEU's signatures, by their labels."""
    prints = {"code of the training": run.training.code, "binary corpus": run.training.data}
    for stage, label in _STAGES.items():
        cell = run.cell
        locked = side.revision.lock.get(f"{stage}@{cell.system}-{cell.corpus}-{cell.seed}", {})
        # code is named by folders and by modules; all other dependencies are data
        sums = {dep["path"]: dep.get("md5") for dep in locked.get("deps", ())}
        if code := {path: md5 for path, md5 in sums.items() if path.startswith(_CODE)}:
            prints[f"code of {label}"] = of_settings(code)
    for test, of_test in run.scores.items():
        prints[f"signature of BLEU, {test}"] = of_test["bleu"]["signature"]
    return prints


def _apart(first: str, second: str) -> tuple[str, str]:
    """Sums shortened; of signatures (a:1|b:2) the parts that differ."""
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
            for name, account in sets.items():
                for verb, by_rule in (("dropped", account.dropped), ("changed", account.changed)):
                    for rule, count in by_rule.items():
                        if count:
                            counts[corpus, name, stage, f"{verb} by {rule}"] = f"{count:,}"
                counts[corpus, name, stage, "out"] = f"{account.pairs_out:,}"
    return counts


@dataclass(frozen=True)
class _Training:
    """A training: its updates, target tokens, binary corpus and curves."""

    updates: int
    tokens: int
    data: str
    curves: Curves

    @classmethod
    def of(cls, run: CellResults) -> "_Training":
        facts, curves = run.training, run.curves or Curves((), ())
        return cls(facts.updates, facts.target_tokens, facts.data, curves)

    def tokens_at(self, update: int) -> float:
        """The tokens read up to an update; linear between two points of the curve."""
        points = self.curves.training
        updates, tokens = ([0, *(getattr(p, n) for p in points)] for n in ("update", "tokens"))
        return float(np.interp(update, updates, tokens))

    def tokens_to(self, reached: Callable[[Validation], bool]) -> float | None:
        """The tokens read at the first validation for which `reached` holds."""
        updates = (point.update for point in self.curves.validation if reached(point))
        update = next(updates, None)
        return None if update is None else self.tokens_at(update)


_Value = Callable[[_Training], float | None]


def _training_rows(sides: Sequence[Sequence[_Training]]) -> Iterator[tuple[str, str, str]]:
    every = [training for side in sides for training in side]
    yield _means("updates", ",.0f", sides, attrgetter("updates"))
    yield _means("target tokens", ",.0f", sides, attrgetter("tokens"))
    if all(training.curves.validation for training in every):
        # losses of different subwords cannot be compared
        same = len({training.data for training in every}) == 1
        yield from _quality_rows(sides, "loss", min, max, ".3f", same)
        yield from _quality_rows(sides, "BLEU", max, min, ".1f", True)


def _quality_rows(
    sides: Sequence[Sequence[_Training]],
    label: str,
    best: Callable[..., float],
    worst: Callable[..., float],
    form: str,
    comparable: bool,
) -> Iterator[tuple[str, str, str]]:
    """The last and best validation, and the tokens to the worse of both sides' best."""
    read: Callable[[Validation], float] = attrgetter(label.lower())

    def best_of(training: _Training) -> float:
        return best(map(read, training.curves.validation))

    yield _means(
        f"final validation {label}", form, sides, lambda one: read(one.curves.validation[-1])
    )
    yield _means(f"best validation {label}", form, sides, best_of)
    if comparable and all(len(t.curves.validation) >= _VALIDATIONS for side in sides for t in side):
        goal = worst(statistics.mean(map(best_of, side)) for side in sides)
        yield _means(
            f"tokens to reach {label} {goal:{form}}, at most",
            ",.0f",
            sides,
            lambda one: one.tokens_to(lambda point: best(read(point), goal) == read(point)),
        )


def _means(
    label: str, form: str, sides: Sequence[Sequence[_Training]], value: _Value
) -> tuple[str, str, str]:
    """Means over seeds; none if a seed has no value, since the others are the better ones."""
    shown = []
    for side in sides:
        values = [found for training in side if (found := value(training)) is not None]
        shown.append(format(statistics.mean(values), form) if len(values) == len(side) else NONE)
    return label, shown[0], shown[1]


def _p_value(
    runs: Sequence[Sequence[CellResults]], of_test: Sequence[Sequence[SetScores]], test: str
) -> float:
    """The p-value of the difference in BLEU: paired over the seeds, or over the lines of one."""
    first, second = ([scores["bleu"]["score"] for scores in side] for side in of_test)
    if len(first) > 1:
        return paired_t([b - a for a, b in zip(first, second, strict=True)])
    return paired([side[0] for side in runs], test).bootstrap


def paired(runs: Sequence[CellResults], test: str) -> PValues:
    """The paired tests of the second against the first."""
    (references, first), (_, second) = (run.lines(test) for run in runs)
    return paired_tests({"0": first, "1": second}, references, runs[0].texts.target)["1"]


def _score_rows(
    corpus: str, test: str, of_test: Sequence[Sequence[SetScores]], p: float | None
) -> Iterator[Row]:
    values: list[list[float]]
    for label, values in (
        ("BLEU", [[scores["bleu"]["score"] for scores in side] for side in of_test]),
        ("chrF2", [[scores["chrf"]["score"] for scores in side] for side in of_test]),
    ):
        first, second = map(statistics.mean, values)
        shown = [
            f"{statistics.mean(side):.1f}"
            + (f" ± {statistics.stdev(side):.1f}" if len(side) > 1 else "")
            for side in values
        ]
        tested = NONE
        if label == "BLEU" and p is not None:
            tested = f"{p:.3f}{' n.s.' if p >= SIGNIFICANT else ''}"
        yield Row((corpus, test, label, *shown, f"{second - first:+.1f}", tested))
