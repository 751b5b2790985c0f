"""What differs between two systems, and what that did: to data, curves and scores.

Each part gives a table for the terminal, or nothing where nothing differs.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.paths import Cell, ledger
from bleuprint.report.cost_columns import NONE
from bleuprint.report.grid import Column, Grid, Row
from bleuprint.report.records import scored_lines, scores_of
from bleuprint.report.revision import LEDGERS, Revision
from bleuprint.report.system_results import SIGNIFICANT, paired_t
from bleuprint.runtime.files import read_object
from bleuprint.runtime.fingerprint import of_settings
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.significance import paired_tests

_SHORT = 12
_PRINTS = {"code": "code of the training", "data": "binary corpus"}
# The stages whose code decides translations and scores, too: DVC knows its sums.
_STAGES = {"average": "averaging", "translate": "translating", "score": "scoring"}
# With fewer validations they are too far apart to tell when a loss was reached.
_VALIDATIONS = 5


@dataclass(frozen=True)
class Side:
    """A system of a revision."""

    system: str
    revision: Revision

    def __str__(self) -> str:
        return f"{self.system}@{self.revision.name}" if self.revision.name else self.system

    def cell(self, corpus: str, seed: int) -> Cell:
        return Cell(self.system, corpus, seed)

    def read(self, cell: Cell, name: str, keys: Sequence[str]) -> dict[str, Any]:
        return read_object(self.revision.root / cell.results / name, keys)


@dataclass(frozen=True)
class Pair:
    """Two sides, and the corpora and seeds that both have."""

    first: Side
    second: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.first, self.second

    @property
    def corpora(self) -> list[str]:
        return self._common("corpora")

    @property
    def seeds(self) -> list[int]:
        return self._common("seeds")

    def seeds_of(self, side: Side) -> list[int]:
        """The seeds that are compared: those in common, or if there are none, all of the side."""
        return self.seeds or list(side.revision.settings.seeds)

    def cells(self, side: Side) -> list[Cell]:
        """All that is compared of a side."""
        return [side.cell(name, seed) for name in self.corpora for seed in self.seeds_of(side)]

    def columns(self, *labels: str, more: Sequence[str] = ()) -> tuple[Column, ...]:
        """Columns of text, one for each side, and others of numbers."""
        heads = *map(str, self.sides), *more
        return (*(Column(label, left=True) for label in labels), *map(Column, heads))

    def _common(self, what: str) -> list[Any]:
        first, second = (getattr(side.revision.settings, what) for side in self.sides)
        return [one for one in first if one in second]


def settings(pair: Pair) -> Grid | None:
    """The settings that differ, by dotted key: the system's, the corpora's and the seeds."""
    first, second = (_settings(side, pair) for side in pair.sides)
    keys = [key for key in dict.fromkeys((*first, *second)) if first.get(key) != second.get(key)]
    rows = [Row((key, first.get(key, NONE), second.get(key, NONE))) for key in keys]
    return _grid(pair.columns("setting"), rows)


def fingerprints(pair: Pair) -> Grid | None:
    """What differs of code and data, by shortened sums, and of how scores were computed."""
    rows = []
    for corpus in pair.corpora:
        first, second = (
            _prints(side, side.cell(corpus, pair.seeds_of(side)[0])) for side in pair.sides
        )
        for label in first:
            # what one side does not know is not known to differ
            if first[label] != second.get(label, first[label]):
                rows.append(Row((corpus, label, *_apart(first[label], second[label]))))
    return _grid(pair.columns("corpus", "fingerprint"), rows)


def funnel(pair: Pair) -> Grid | None:
    """The counts of pairs that differ: out of each stage, and dropped and changed by each rule."""
    rows = []
    for corpus in pair.corpora:
        first, second = (_counts(corpus, side.revision.root) for side in pair.sides)
        for key in dict.fromkeys((*first, *second)):
            one, other = first.get(key), second.get(key)
            if one != other:
                shown = (NONE if count is None else f"{count:,}" for count in (one, other))
                rows.append(Row((corpus, *key, *shown)))
    return _grid(pair.columns("corpus", "set", "stage", "pairs"), rows)


def curves(pair: Pair) -> Grid | None:
    """Where the trainings got, and how soon, if not alike; means over the seeds that both have."""
    rows: list[Row] = []
    for corpus in pair.corpora if pair.seeds else ():
        found = [
            [_curve(side, side.cell(corpus, seed)) for seed in pair.seeds] for side in pair.sides
        ]
        if found[0] == found[1]:
            continue
        rows += [Row((corpus, *cells)) for cells in _curve_rows(*found)]
    return _grid(pair.columns("corpus", "training"), rows)


def scores(pair: Pair) -> Iterator[str | Grid]:
    """BLEU and chrF2 on each test set that both have, and whether BLEU differs by chance."""
    rows: list[Row] = []
    reasons: list[str] = []
    for corpus in pair.corpora:
        first, second = (_tests(side, corpus, pair.seeds_of(side)) for side in pair.sides)
        for test in (name for name in first if name in second):
            p, reason = _p_value(pair, corpus, test)
            rows += _score_rows(corpus, test, first[test], second[test], p)
            if reason:
                reasons.append(f"{corpus}, {test}: no p: {reason}")
    grid = _grid(pair.columns("corpus", "test set", "score", more=("difference", "p")), rows)
    if grid is None:
        yield "Scores: no test set in common"
        return
    yield grid
    yield from reasons
    if len(pair.seeds) > 1:
        seeds = ", ".join(map(str, pair.seeds))
        yield f"scores: means over the seeds {seeds}; p: paired t-test over them"
    elif pair.seeds:
        yield f"scores: of seed {pair.seeds[0]}; p: paired bootstrap over the lines of the test set"
    else:
        yield "scores: means over each side's own seeds"


def same_scores(pair: Pair) -> bool:
    """Whether both have the same test sets and seeds, and of each the same scores."""
    return bool(pair.seeds) and all(
        _tests(pair.first, corpus, pair.seeds) == _tests(pair.second, corpus, pair.seeds)
        for corpus in pair.corpora
    )


def _settings(side: Side, pair: Pair) -> dict[str, str]:
    """As params.yaml has them; of a corpus that the other side lacks, no more than that."""
    document = side.revision.document
    corpora: dict[str, Any] = dict.fromkeys(document["corpora"], "there")
    for name in pair.corpora:
        # where a corpus comes from is told, and changes no result
        corpora[name] = {
            k: v for k, v in document["corpora"][name].items() if k != "license_and_citation"
        }
    every = {**document["systems"][side.system], "corpora": corpora, "seeds": document["seeds"]}
    return dotted(every)


def _prints(side: Side, cell: Cell) -> dict[str, str]:
    """Sums of code and data by what they are of, and sacreBLEU's signatures by test set."""
    made = side.read(cell, "training.json", tuple(_PRINTS))
    found = {label: str(made[name]) for name, label in _PRINTS.items()}
    for stage, label in _STAGES.items():
        run = side.revision.lock.get(f"{stage}@{cell.system}-{cell.corpus}-{cell.seed}", {})
        sums = {one["path"]: one.get("md5") for one in run.get("deps", ())}
        if code := {path: of for path, of in sums.items() if path.endswith(".py")}:
            found[f"code of {label}"] = of_settings(code)
    for test in side.read(cell, "scores.json", ()):
        scores = scores_of(cell, test, side.revision.root)
        found[f"signature of BLEU, {test}"] = scores["bleu"]["signature"]
    return found


def _apart(first: str, second: str) -> tuple[str, str]:
    """Sums shortened; of signatures (a:1|b:2) the parts that differ."""
    parts = [text.split("|") for text in (first, second)]
    if len(parts[0]) == 1:
        return first[:_SHORT], second[:_SHORT]
    one, other = parts
    return (
        "|".join(part for part in one if part not in other) or NONE,
        "|".join(part for part in other if part not in one) or NONE,
    )


def _counts(corpus: str, root: Path) -> dict[tuple[str, str, str], int]:
    found = {}
    for stage in LEDGERS:
        sets = read_object(root / ledger(corpus, stage), ("sets",))["sets"]
        for name, account in sets.items():
            for what in ("dropped", "changed"):
                for rule, count in account[what].items():
                    if count:
                        found[name, stage, f"{what} by {rule}"] = count
            found[name, stage, "out"] = account["pairs_out"]
    return found


@dataclass(frozen=True)
class _Curve:
    """A training: validation points (tokens read, loss, BLEU), updates and tokens in all."""

    points: Sequence[tuple[float, float, float]]
    updates: int
    tokens: int
    data: str


def _curve(side: Side, cell: Cell) -> _Curve:
    made = side.read(cell, "training.json", ("updates", "target_tokens", "data"))
    read = side.read(cell, "curves.json", ("training", "validation"))
    points = [
        (_tokens(read["training"], one["update"]), one["loss"], one["bleu"])
        for one in read["validation"]
        if one["loss"] is not None and one["bleu"] is not None  # as older versions could write
    ]
    return _Curve(points, made["updates"], made["target_tokens"], made["data"])


def _tokens(points: Sequence[Mapping[str, Any]], update: int) -> float:
    """The tokens read up to an update: between two points of the curve, in proportion."""
    before = {"update": 0, "tokens": 0}
    for point in points:
        if point["update"] >= update:
            share = (update - before["update"]) / (point["update"] - before["update"])
            return float(before["tokens"] + share * (point["tokens"] - before["tokens"]))
        before = {"update": point["update"], "tokens": point["tokens"]}
    return float(before["tokens"])


def _curve_rows(
    first: Sequence[_Curve], second: Sequence[_Curve]
) -> Iterator[tuple[str, str, str]]:
    both = first, second

    def row(label: str, form: str, values: Sequence[Sequence[float]]) -> tuple[str, str, str]:
        one, other = (format(statistics.mean(v), form) if v else NONE for v in values)
        return label, one, other

    yield row("updates", ",.0f", [[curve.updates for curve in side] for side in both])
    yield row("target tokens", ",.0f", [[curve.tokens for curve in side] for side in both])
    if not all(curve.points for side in both for curve in side):
        return
    for index, name, best, form in ((1, "loss", min, ".3f"), (2, "BLEU", max, ".1f")):
        values = [[[point[index] for point in curve.points] for curve in side] for side in both]
        yield row(f"final validation {name}", form, [[one[-1] for one in side] for side in values])
        bests = [[best(one) for one in side] for side in values]
        yield row(f"best validation {name}", form, bests)
        if index == 1 and {c.data for c in first} != {c.data for c in second}:
            continue  # of other units: the losses are not comparable
        if any(len(curve.points) < _VALIDATIONS for side in both for curve in side):
            continue
        goals = [statistics.mean(side) for side in bests]
        goal = max(goals) if best is min else min(goals)
        reached = [[_reaching(one, index, goal, best is min) for one in side] for side in both]
        yield row(
            f"tokens to reach {name} {goal:{form}}, at most", ",.0f", list(map(_all, reached))
        )


def _all(values: Sequence[float | None]) -> list[float]:
    """The values if all are there, and else none: a mean of some would be of the better ones."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _reaching(curve: _Curve, index: int, goal: float, low: bool) -> float | None:
    """The tokens at the first validation that is as good as `goal`: it may have been so before."""
    for point in curve.points:
        if point[index] <= goal if low else point[index] >= goal:
            return point[0]
    return None


def _tests(side: Side, corpus: str, seeds: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    """What scores.json holds of each test set, for each seed."""
    read = [side.read(side.cell(corpus, seed), "scores.json", ()) for seed in seeds]
    return {
        test: [scores_of(side.cell(corpus, seed), test, side.revision.root) for seed in seeds]
        for test in read[0]
    }


def _p_value(pair: Pair, corpus: str, test: str) -> tuple[float | None, str]:
    """The p-value of the difference in BLEU; or None, and why there is none."""
    if not pair.seeds:
        return None, "no seed in common"
    found = [
        [scores_of(side.cell(corpus, seed), test, side.revision.root) for seed in pair.seeds]
        for side in pair.sides
    ]
    if len({one["references"] for side in found for one in side}) > 1:
        return None, "the references of the test set are not the same"
    if len({one["sources"] for side in found for one in side}) > 1:
        return None, "the sources of the test set are not the same"
    if len(pair.seeds) > 1:
        first, second = ([one["bleu"]["score"] for one in side] for side in found)
        return paired_t([b - a for a, b in zip(first, second, strict=True)]), ""
    lines = {
        str(number): scored_lines(
            side.revision.settings, side.cell(corpus, pair.seeds[0]), test, side.revision.root
        )
        for number, side in enumerate(pair.sides)
    }
    language = pair.first.revision.settings.corpus(corpus).target
    translations = {name: made for name, (_, made) in lines.items()}
    return paired_tests(translations, lines["0"][0], language)["1"].bootstrap, ""


def _score_rows(
    corpus: str,
    test: str,
    first: Sequence[Mapping[str, Any]],
    second: Sequence[Mapping[str, Any]],
    p: float | None,
) -> Iterator[Row]:
    for metric, label in (("bleu", "BLEU"), ("chrf", "chrF2")):
        values = [[one[metric]["score"] for one in side] for side in (first, second)]
        means = [statistics.mean(side) for side in values]
        shown = [
            f"{mean:.1f} ± {statistics.stdev(side):.1f}" if len(side) > 1 else f"{mean:.1f}"
            for mean, side in zip(means, values, strict=True)
        ]
        tested = NONE
        if metric == "bleu" and p is not None:
            tested = f"{p:.3f}{' n.s.' if p >= SIGNIFICANT else ''}"
        yield Row((corpus, test, label, *shown, f"{means[1] - means[0]:+.1f}", tested))


def _grid(columns: tuple[Column, ...], rows: Sequence[Row]) -> Grid | None:
    return Grid(columns, tuple(rows)) if rows else None
