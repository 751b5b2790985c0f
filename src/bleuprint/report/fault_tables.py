"""Tables of faults of translations that need no reference to be seen, and tests between systems."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.report.frame import marked
from bleuprint.report.grid import NONE, Column, Grid, Number, Row
from bleuprint.report.system_results import PLACE, holm, largest_p, p_text
from bleuprint.scoring.output_faults import ANY, NAMES, paired_p, wilson
from bleuprint.scoring.significance import SIGNIFICANT
from bleuprint.tracking.cell_results import CellResults, ScoredTranslations

# Differences that the terminal shows, those with the smallest p.
_SHOWN = 6
TESTED = [*PLACE, "name"]


def lines_of_faults(runs: Sequence[ScoredTranslations], test: str) -> dict[str, list[list[int]]]:
    """The lines with each fault, by seed; empty if a seed was scored by an earlier version."""
    faults = [run.scores_of(test).get("faults") for run in runs]
    if not all(faults):
        return {}
    by_name: dict[str, list[list[int]]] = {}
    for of_seed in faults:
        for fault in of_seed or ():
            by_name.setdefault(fault["name"], []).append(fault["lines"])
    return by_name


def fault_counts(
    runs: Mapping[Cell, ScoredTranslations],
) -> dict[tuple[Cell, str], list[dict[str, Any]]]:
    """The faults of each cell on each test set, for its record.

    name; count of lines, with its interval (low, high), among `of` lines; references, the lines
    whose reference has the fault; and p against the first system of the corpus, None of itself. p
    is over all seeds; of a row from outside the largest of those against each.
    """
    seeds: dict[tuple[str, str], list[ScoredTranslations]] = {}
    for (system, corpus, _), run in runs.items():
        seeds.setdefault((corpus, system), []).append(run)
    baselines = dict(reversed(seeds))
    counts = {}
    for (corpus, system), of_system in seeds.items():
        baseline = seeds[corpus, baselines[corpus]]
        for test in of_system[0].tests:
            expected, found = (lines_of_faults(each, test) for each in (baseline, of_system))
            tested = system != baselines[corpus]
            trained = isinstance(of_system[0], CellResults)
            p = {
                name: faults_p(expected[name], found[name], trained)
                for name in found
                if name in expected
            }
            for run in of_system:
                if faults := run.scores_of(test).get("faults"):
                    counts[run.cell, test] = [
                        _count(fault, p.get(fault["name"]) if tested else None) for fault in faults
                    ]
    return counts


def faults_p(
    first: Sequence[Sequence[int]], second: Sequence[Sequence[int]], trained: bool
) -> float:
    """The p-value of a difference between the lines with a fault, by seed, of two systems.

    Unless both were `trained` here, one has the same lines for each seed: see `largest_p`.
    """
    if trained:
        return paired_p(first, second)
    seeds = list(zip(first, second, strict=True))
    return largest_p([len(b) - len(a) for a, b in seeds], [paired_p([a], [b]) for a, b in seeds])


def _count(fault: Any, p: float | None) -> dict[str, Any]:
    count = len(fault["lines"])
    low, high = wilson(count, fault["of"])
    numbers = {"count": count, "low": low, "high": high, "of": fault["of"]}
    return {"name": fault["name"], **numbers, "references": fault["references"], "p": p}


def counts(records: pd.DataFrame, group: str = "") -> Grid | None:
    """The lines with each fault that occurs; None for records of an earlier version."""
    faults = _faults(marked(records))
    if faults is None:
        return None
    occurs = faults[(faults["count"] > 0) | (faults.references > 0)].name
    shown = [name for name in NAMES if name == ANY or name in set(occurs)]
    rows = []
    for column, of_test in faults.groupby(["corpus", "test"], sort=False):
        references = of_test.drop_duplicates("name").set_index("name").references
        cells = [Number.of(references.get(name, float("nan")), "{:,.0f}".format) for name in shown]
        rows.append(Row(("(references)", *column, *cells)))
        for system, of_system in of_test.groupby("system", sort=False):
            seeds = dict(list(of_system.groupby("name", sort=False)))
            cells = [_cell(seeds[name]) if name in seeds else Number(NONE, None) for name in shown]
            rows.append(Row((str(system), *column, *cells)))
    heads = [Column(head, left=True) for head in ("System", "Corpus", "Test set")]
    return Grid((*heads, *(Column(name, group) for name in shown)), tuple(rows))


def findings(records: pd.DataFrame, most: int | None = None) -> list[str]:
    """The significant differences from the baseline, a sentence each, by p."""
    faults = _faults(marked(records))
    if faults is None:
        return []
    means = faults.groupby(TESTED, sort=False).agg({"count": "mean", "p": "first", "mark": "first"})
    different = means[means.p < SIGNIFICANT].sort_values("p", kind="stable")
    baselines = records.dropna(subset="baseline").groupby("corpus").baseline.first()
    sentences = []
    for (system, corpus, test, name), found in different.iterrows():
        baseline = baselines[corpus]
        other = means.loc[(baseline, corpus, test, name), "count"]
        times = f", {found['count'] / other:.1f} times as many" if other else ""
        sentences.append(
            f"{corpus}, {test}: {system} has {found['count']:.3g} lines with {name!r}, {baseline} "
            f"{other:.3g}{times}: {p_text(found.p)}{found.mark}"
        )
    if most is not None and len(sentences) > most:
        return [*sentences[:most], f"and {len(sentences) - most} more, in table.md"]
    return sentences


def parts(records: pd.DataFrame) -> Iterator[str | Grid]:
    """What the terminal shows: the counts, and the differences."""
    table = counts(records, "lines with a fault that their reference does not have")
    if table is not None:
        yield table
        yield from findings(records, _SHOWN)
        yield "Faults that need no reference to be seen, with 95 % intervals: docs/scoring.md"
        yield ""


def _faults(records: pd.DataFrame) -> pd.DataFrame | None:
    """A row for each fault of each record, with its mark; None if a record has none."""
    if records.faults.isna().any():
        return None
    table = records[[*PLACE, "faults"]].explode("faults").reset_index(drop=True)
    faults = table[PLACE].join(pd.DataFrame(list(table.faults)))
    return with_marks(faults)


def with_marks(found: pd.DataFrame) -> pd.DataFrame:
    """The rows with `mark`, by p: Holm's correction is over all systems and names of a test set."""
    found["p"] = found.p.astype(float)
    tested = found.dropna(subset="p").drop_duplicates(TESTED)
    corrected = tested.groupby(["corpus", "test"]).p.transform(holm)
    marks = [
        "‡" if holms < SIGNIFICANT else "†" if p < SIGNIFICANT else ""
        for p, holms in zip(tested.p, corrected, strict=True)
    ]
    tested = tested[TESTED].assign(mark=pd.Series(marks, tested.index, dtype=object))
    return found.merge(tested, on=TESTED, how="left").fillna({"mark": ""})


def _cell(seeds: pd.DataFrame) -> Number:
    first, mean = seeds.iloc[0], float(seeds["count"].mean())
    if len(seeds) > 1:
        return Number(f"{mean:.1f} ± {seeds['count'].std():.1f}{first['mark']}", mean)
    return Number(f"{mean:.0f} [{first.low:.0f}, {first.high:.0f}]{first['mark']}", mean)
