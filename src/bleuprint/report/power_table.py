"""Power: the differences in BLEU that test sets and seeds show, and what a difference takes."""

import math
from collections.abc import Iterator

import pandas as pd

from bleuprint.report.grid import Column, Grid, Number, Row
from bleuprint.report.system_results import PLACE
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.power import (
    MOST,
    POWER,
    detectable,
    detectable_over_seeds,
    lines_needed,
    seeds_needed,
)

_TEXTS = ("System", "Corpus", "Test set", "Baseline")
_BY_LINES = ("Standard error", "Detectable", "Lines", "Lines needed")
_BY_SEEDS = ("Deviation", "Detectable", "Seeds needed")
_UNKNOWN = (
    "–: unknown where the standard error or the deviation is 0, as of translations that are "
    "identical to the baseline's, or if both systems have no BLEU."
)


def power(records: pd.DataFrame, difference: float | None = None) -> pd.DataFrame:
    """A row for each system with a baseline, on each test set.

    Columns: difference, standard_error (over lines, the mean over seeds), detectable, lines,
    lines_needed; of several seeds, but not for rows from outside, their number, deviation (of the
    difference), detectable_by_seeds, seeds_needed. What is needed is for `difference`, or without
    it for the one that was measured. NaN where nothing varies: see `_UNKNOWN`.
    """
    known = records.standard_error.notna()
    alike = ["corpus", "test", "seed"]
    baseline = records[records.baseline.isna()].set_index(alike).bleu.rename("of_baseline")
    rows = []
    for place, seeds in records[known].groupby(PLACE, sort=False):
        first, error = seeds.iloc[0], float(seeds.standard_error.mean())
        sought = first.difference if difference is None else difference
        row = {
            **dict(zip(PLACE, place, strict=True)),
            "baseline": first.baseline,
            "difference": first.difference,
            "standard_error": error,
            "detectable": detectable(error) if error else math.nan,
            "lines": int(first.lines),
            "lines_needed": lines_needed(first.lines, error, sought) if error else math.nan,
        }
        if len(seeds) > 1 and pd.isna(first.outside):
            joined = seeds.join(baseline, on=alike)
            deviation = float((joined.bleu - joined.of_baseline).std())
            row["seeds"] = len(seeds)
            row["deviation"] = deviation
            shown = detectable_over_seeds(len(seeds), deviation) if deviation else math.nan
            row["detectable_by_seeds"] = shown
            row["seeds_needed"] = seeds_needed(sought, deviation) if deviation else math.nan
        rows.append(row)
    return pd.DataFrame(rows)


def parts(records: pd.DataFrame, difference: float | None = None) -> Iterator[str | Grid]:
    """The table and how to read it, for the terminal; raises UserError if it would be empty."""
    table = power(records, difference)
    if table.empty:
        if records.baseline.isna().all():
            raise UserError("power is that of a difference from a baseline: there is one system")
        raise UserError("the report, of an earlier version, has no standard errors; run: dvc repro")
    several = "seeds" in table
    rows = []
    for row in table.itertuples():
        cells = [_signed(row.difference), *map(_bleu, (row.standard_error, row.detectable))]
        cells += [_whole(row.lines), Number.of(row.lines_needed, _whole)]
        if several:
            cells += [_bleu(row.deviation), _bleu(row.detectable_by_seeds)]
            cells.append(Number.of(row.seeds_needed, _whole))
        rows.append(Row((row.system, row.corpus, row.test, row.baseline, *cells)))
    columns = [*(Column(head, left=True) for head in _TEXTS), Column("Difference")]
    columns += [Column(head, "by lines" if several else "") for head in _BY_LINES]
    columns += [Column(head, "by seeds") for head in (_BY_SEEDS if several else ())]
    yield Grid(tuple(columns), tuple(rows))
    sought = "the measured difference" if difference is None else f"a difference of {difference:g}"
    yield (
        f"BLEU. Detectable: a true difference of this size is found in {POWER:.0%} of test sets of "
        "as many lines, by a two-sided test at 0.05 (normal approximation, with the standard error "
        f"of the paired bootstrap). Needed: for {sought}."
    )
    if (table.filter(["standard_error", "deviation"]) == 0).any(axis=None):
        yield _UNKNOWN
    if several:
        yield (
            f"By seeds: the same of the paired t-test over {table.seeds.max():.0f} seeds, whose "
            "deviation is itself uncertain when seeds are few."
        )


def summary(records: pd.DataFrame) -> str:
    """The differences that the test sets, and the seeds, show; empty if that is not known."""
    table = power(records)
    known = table.dropna(subset="detectable") if len(table) else table
    places: dict[str, list[str]] = {}
    for (corpus, test), of in known.groupby(["corpus", "test"], sort=False) if len(known) else ():
        text = f"{_range(of.detectable)} BLEU on {of.lines.max():,} sentences"
        if "seeds" in of and of.detectable_by_seeds.notna().any():
            text += f" and {_range(of.detectable_by_seeds)} over {of.seeds.max():.0f} seeds"
        places.setdefault(text, []).append(f"{corpus}, {test}")
    if not places:
        return ""
    needed = "; ".join(
        text if len(places) == 1 else f"{text} ({'; '.join(of_text)})"
        for text, of_text in places.items()
    )
    return (
        f"To be found significant in {POWER:.0%} of such experiments, a difference from the "
        f"baseline has to be {needed}. Smaller ones take more sentences or seeds: bleuprint table "
        "--power says how many."
    )


def _range(values: pd.Series) -> str:
    low, high = (f"{value:.1f}" for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def _bleu(value: float) -> Number:
    return Number.of(value, "{:.2f}".format)


def _signed(value: float) -> Number:
    return Number(f"{value:+z.2f}", value)


def _whole(value: float) -> Number:
    if value > MOST:
        return Number(f"> {MOST:,}", value)
    return Number(f"{value:,.0f}", value)
