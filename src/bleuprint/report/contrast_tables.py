"""Tables of contrastive tests: the pairs that each system tells apart, by phenomenon."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.contrast.record import CONTRAST, TestOutcomes, read_outcomes
from bleuprint.report.fault_tables import TESTED, with_marks
from bleuprint.report.grid import NONE, Column, Grid, Number, Row
from bleuprint.report.system_results import PLACE, p_text
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.metrics import DIGITS
from bleuprint.scoring.output_faults import paired_p
from bleuprint.scoring.significance import SIGNIFICANT
from bleuprint.tracking.cell_results import CellResults

# Differences that the terminal shows, those with the smallest p.
_SHOWN = 6
_Z = NormalDist().inv_cdf(0.975)


def contrast_counts(
    runs: Mapping[Cell, CellResults],
) -> dict[tuple[Cell, str], list[dict[str, Any]]]:
    """The outcomes of each cell on each test set, for its record; none of an earlier version.

    name; the pairs that are told apart (`correct`) with their interval (`low`, `high`), `of` how
    many pairs; and p against the first system of the corpus, None of itself. p is over all seeds.
    """
    read = {cell: _outcomes(run) for cell, run in runs.items()}
    if any(found is None for found in read.values()):
        return {}
    seeds: dict[tuple[str, str], list[Cell]] = {}
    for cell in runs:
        seeds.setdefault((cell.corpus, cell.system), []).append(cell)
    baselines = dict(reversed(seeds))
    counts = {}
    for (corpus, system), cells in seeds.items():
        baseline = seeds[corpus, baselines[corpus]]
        for test in runs[cells[0]].tests:
            sides = [[(read[cell] or {})[test] for cell in each] for each in (baseline, cells)]
            _check_pairs(sides, runs[cells[0]], test)
            p = _paired(*sides) if system != baselines[corpus] else {}
            for cell, found in zip(cells, sides[1], strict=True):
                counts[cell, test] = [
                    _count(each, p.get(each["name"])) for each in found["phenomena"]
                ]
    return counts


def _outcomes(run: CellResults) -> dict[str, TestOutcomes] | None:
    found = read_outcomes(path := run.path / CONTRAST, run.training.fingerprint)
    if found is not None and (missing := [test for test in run.tests if test not in found]):
        raise UserError(f"{path}: no test set {missing[0]!r} for {run.cell}; run: dvc repro")
    return found


def _check_pairs(sides: Sequence[Sequence[TestOutcomes]], run: CellResults, test: str) -> None:
    if len({found["sha256"] for side in sides for found in side}) > 1:
        raise UserError(
            f"{run.path / CONTRAST}: tested on other pairs of {test} than other systems or seeds; "
            "run: dvc repro"
        )


def _paired(baseline: Sequence[TestOutcomes], system: Sequence[TestOutcomes]) -> dict[str, float]:
    """p by phenomenon; each side by seed."""
    failed = [
        [{each["name"]: each["failed"] for each in found["phenomena"]} for found in side]
        for side in (baseline, system)
    ]
    return {
        name: paired_p(*([seed[name] for seed in side] for side in failed)) for name in failed[0][0]
    }


def _count(outcome: Any, p: float | None) -> dict[str, Any]:
    of, correct = outcome["pairs"], outcome["pairs"] - len(outcome["failed"])
    low, high = (round(of * end, DIGITS) for end in wilson_interval(correct / of, of))
    return {"name": outcome["name"], "correct": correct, "low": low, "high": high, "of": of, "p": p}


def wilson_interval(share: float, of: int) -> tuple[float, float]:
    """The 95 % interval of a share of `of` trials (Wilson 1927); it may be a mean over seeds."""
    squared = _Z * _Z
    center = (share + squared / (2 * of)) / (1 + squared / of)
    spread = math.sqrt(share * (1 - share) / of + squared / (4 * of * of))
    half = _Z * spread / (1 + squared / of)
    return max(0.0, center - half), min(1.0, center + half)


def means(records: pd.DataFrame) -> pd.DataFrame | None:
    """A row for each system, corpus, test set and phenomenon: share (a mean), of, p, mark.

    None for records of an earlier version, or if no test set has a pair.
    """
    if records.contrast.isna().any():
        return None
    table = records[[*PLACE, "contrast"]].explode("contrast").dropna().reset_index(drop=True)
    if table.empty:
        return None
    found = with_marks(table[PLACE].join(pd.DataFrame(list(table.contrast))))
    found["share"] = found.correct / found.of
    groups = found.groupby(TESTED, sort=False)
    rows: pd.DataFrame = groups.agg(
        {"share": "mean", "of": "first", "p": "first", "mark": "first"}
    ).reset_index()
    return rows


def accuracies(records: pd.DataFrame, group: str = "") -> Grid | None:
    """The percentage of pairs told apart by each system; None as `means`."""
    rows_of = means(records)
    if rows_of is None:
        return None
    shown, rows = list(rows_of.name.unique()), []
    for column, of_test in rows_of.groupby(["corpus", "test"], sort=False):
        for system, of_system in of_test.groupby("system", sort=False):
            cells = {each.name: _cell(each) for each in of_system.itertuples(index=False)}
            texts = (cells.get(name, Number(NONE, None)) for name in shown)
            rows.append(Row((str(system), *column, *texts)))
    heads = [Column(head, left=True) for head in ("System", "Corpus", "Test set")]
    return Grid((*heads, *(Column(name, group) for name in shown)), tuple(rows))


def findings(records: pd.DataFrame, most: int | None = None) -> list[str]:
    """The significant differences from the baseline, a sentence each, by p."""
    rows = means(records)
    if rows is None:
        return []
    baselines = records.dropna(subset="baseline").groupby("corpus").baseline.first()
    shares = rows.set_index(TESTED).share
    sentences = []
    for each in rows[rows.p < SIGNIFICANT].sort_values("p", kind="stable").itertuples():
        baseline = baselines[each.corpus]
        other = shares[(baseline, each.corpus, each.test, each.name)]
        sentences.append(
            f"{each.corpus}, {each.test}: {each.system} tells {100 * each.share:.3g} % of the "
            f"pairs of {each.name!r} apart, {baseline} {100 * other:.3g} %: "
            f"{p_text(each.p)}{each.mark}"
        )
    if most is not None and len(sentences) > most:
        return [*sentences[:most], f"and {len(sentences) - most} more, in table.md"]
    return sentences


def parts(records: pd.DataFrame) -> Iterator[str | Grid]:
    """What the terminal shows: the accuracies, and the differences."""
    table = accuracies(records, "accuracy of contrastive tests, %")
    if table is not None:
        yield table
        yield from findings(records, _SHOWN)
        yield "Pairs whose right translation is more probable than a wrong one: docs/scoring.md"
        yield ""


def _cell(row: Any) -> Number:
    low, high = (100 * end for end in wilson_interval(row.share, row.of))
    return Number(f"{100 * row.share:.0f} [{low:.0f}, {high:.0f}]{row.mark}", row.share)
