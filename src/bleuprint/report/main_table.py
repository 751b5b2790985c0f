"""The table: systems down the side, corpora across the top, BLEU and training cost in the cells.

Every renderer takes the same grid, and a grid is filled by name (system, corpus, test set), so
that the order of the records decides the order of rows and columns and nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.report import cost_columns
from bleuprint.report.grid import Column, Grid, Row, latex, markdown
from bleuprint.report.published import literature
from bleuprint.report.published.literature import Literature
from bleuprint.report.records import Record
from bleuprint.report.system_results import SIGNIFICANT, Difference, Score, Standing, standings
from bleuprint.tracking.timings import Timing, Training

REPORTS = Path("reports")
NONE = cost_columns.NONE
METRICS = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
_COUNTED, _BY_TIME = _COSTS = "FLOPs, counted", "FLOPs, by time"
_DIFFERENCE = "difference"

_Metric = Literal["bleu", "chrf", "ter"]


@dataclass(frozen=True)
class _Key:
    """What a column shows of a corpus: scores on a test set, or `other`.

    That is the difference from the baseline there, or one of `_COSTS` of the training.
    """

    corpus: str
    pair: str
    test: str = ""
    other: str = ""


def scores(
    records: Sequence[Record],
    metric: _Metric = "bleu",
    timings: Mapping[Cell, Timing] | None = None,
    published: Sequence[Published] = (),
) -> Grid:
    """The scores of every system on every test set, the best of each marked.

    With BLEU come the difference from the baseline, what training cost, both ways (by time from
    `timings`), and published numbers.
    """
    found = {(one.system, one.corpus, one.test): one for one in standings(records)}
    keys = list(_keys(records, metric))
    columns = [Column("System", left=True), *(_column(key, keys, metric) for key in keys)]
    rows = list(_published(keys, literature.rows(records, published))) if metric == "bleu" else []
    baselines = {one.difference.baseline for one in found.values() if one.difference}
    best = {key: _best(list(found.values()), key, metric) for key in keys}
    for system in dict.fromkeys(record.system for record in records):
        name = f"{system} (baseline)" if system in baselines else system
        cells = []
        for key in keys:
            if key.other in _COSTS:
                of_cell = [r for r in records if (r.system, r.corpus) == (system, key.corpus)]
                cells.append(_cost(of_cell, key.other, timings))
            else:
                standing = found[system, key.corpus, key.test]
                shown = _difference(standing.difference) if key.other else _score(standing, metric)
                cells.append(shown)
        marked = frozenset(i for i, key in enumerate(keys, 1) if system in best[key])
        rows.append(Row((name, *cells), best=marked))
    return Grid(tuple(columns), tuple(rows))


def costs(records: Sequence[Record], timings: Mapping[Cell, Timing]) -> Grid:
    """What each training cost: counted on the left, measured on the right; means over seeds."""
    columns = [Column("System", left=True), Column("Corpus", left=True)]
    columns += [Column(label, "counted") for label in cost_columns.COUNTED]
    columns += [
        Column(label, "measured", label in cost_columns.TEXTS) for label in cost_columns.MEASURED
    ]
    rows = []
    for system, corpus in dict.fromkeys((record.system, record.corpus) for record in records):
        of_row = [r for r in records if (r.system, r.corpus) == (system, corpus)]
        measured = cost_columns.measured(_trained(of_row, timings))
        rows.append(Row((system, corpus, *cost_columns.counted(of_row), *measured)))
    return Grid(tuple(columns), tuple(rows))


def parts(
    records: Sequence[Record], timings: Mapping[Cell, Timing], published: Sequence[Published] = ()
) -> Iterator[str | Grid]:
    """All of it for the terminal, and where to look next."""
    yield scores(records, timings=timings, published=published)
    yield costs(records, timings)
    yield ""
    yield from notes(records, published)
    yield ""
    page = REPORTS / "index.html"  # which is in no fresh clone
    there = "everything, on one page" if page.exists() else "not there yet: dvc repro"
    yield f"More: {page} ({there}), {REPORTS / 'table.md'},"
    yield f"{REPORTS / 'results.json'} (every number with what stands behind it), and the runs"
    yield "side by side in MLflow: make ui"


def notes(records: Sequence[Record], published: Sequence[Published] = ()) -> list[str]:
    """What a reader must know to read the scores, a sentence or two each."""
    seeds = list(dict.fromkeys(record.seed for record in records))
    lines = [
        "BLEU is sacreBLEU's, cased, on detokenised text. FLOPs of training are counted from the "
        "shapes of the matrices; by time they are the paper's seconds x devices x sustained FLOPS."
    ]
    if len(seeds) > 1:
        lines.append(
            f"Mean ± standard deviation over the seeds {', '.join(map(str, seeds))}; "
            "the interval of each seed's score is in table.csv."
        )
    else:
        lines.append(
            "In brackets the 95 % interval: mean and half width over 1,000 bootstrap resamples."
        )
    differences = [one.difference for one in standings(records) if one.difference]
    for baseline in dict.fromkeys(one.baseline for one in differences):
        lines += _of_differences(baseline, len(seeds))
    if len(by_engine := _by_engine(records)) > 1:
        made = "; ".join(f"{engine}: {', '.join(names)}" for engine, names in by_engine.items())
        lines.append(f"Not all systems translated with the same engine and precision. {made}.")
    return [*lines, *literature.notes(literature.rows(records, published))]


def _of_differences(baseline: str, seeds: int) -> list[str]:
    what = f"Difference: BLEU minus that of {baseline}"
    if seeds > 1:
        tested = f"{what}, the mean over seeds; p: paired t-test across the {seeds} seeds."
    else:
        tested = (
            f"{what}; p: paired bootstrap over the lines of the test set. Where approximate "
            "randomisation says otherwise, its p follows; both are in table.csv."
        )
    return [
        tested,
        f"†: p below {SIGNIFICANT}; ‡: still so after Holm's correction for the systems of the "
        f"column; n.s.: not significant (p of {SIGNIFICANT} or more).",
    ]


def _keys(records: Sequence[Record], metric: _Metric) -> Iterator[_Key]:
    several = len({record.system for record in records}) > 1
    for corpus, pair in dict.fromkeys((record.corpus, record.pair) for record in records):
        for test in dict.fromkeys(record.test for record in records if record.corpus == corpus):
            yield _Key(corpus, pair, test)
            if metric == "bleu" and several:
                yield _Key(corpus, pair, test, _DIFFERENCE)
        if metric == "bleu":
            for cost in _COSTS:
                yield _Key(corpus, pair, other=cost)


def _column(key: _Key, keys: Sequence[_Key], metric: _Metric) -> Column:
    group = key.corpus if key.pair in key.corpus else f"{key.corpus} ({key.pair})"
    label = key.other or METRICS[metric]
    several = len({other.test for other in keys if other.corpus == key.corpus and other.test}) > 1
    return Column(
        f"{label} {key.test}" if several and key.test else label,
        group,
        follows=key.other == _DIFFERENCE,
    )


def _best(found: Sequence[Standing], key: _Key, metric: _Metric) -> set[str]:
    """The systems that none is better than, where there are several."""
    of_column = [one for one in found if (one.corpus, one.test) == (key.corpus, key.test)]
    if key.other or len(of_column) < 2:
        return set()
    means = {one.system: _of(one, metric).mean for one in of_column}
    best = min(means.values()) if metric == "ter" else max(means.values())
    return {system for system, mean in means.items() if mean == best}


def _published(keys: Sequence[_Key], found: Sequence[Literature]) -> Iterator[Row]:
    for row in found:
        cells = []
        for key in keys:
            shown = NONE
            if key.test and not key.other:
                shown = row.bleu.get((key.corpus, key.test), NONE)
            elif key.other == _BY_TIME:
                shown = row.flops.get(key.corpus, NONE)
            cells.append(shown)
        yield Row((f"{row.name} (published)", *cells), published=True)


def _cost(seeds: Sequence[Record], cost: str, timings: Mapping[Cell, Timing] | None) -> str:
    if cost == _COUNTED:
        return cost_columns.counted_flops(seeds)
    return cost_columns.flops_by_time(_trained(seeds, timings or {}))


def _trained(records: Sequence[Record], timings: Mapping[Cell, Timing]) -> list[Training]:
    """What was measured of the trainings behind the records, each once."""
    of_cells = (timings.get(cell) for cell in dict.fromkeys(record.cell for record in records))
    return [one.training for one in of_cells if one is not None and one.training is not None]


def _of(standing: Standing, metric: _Metric) -> Score:
    return {"bleu": standing.bleu, "chrf": standing.chrf, "ter": standing.ter}[metric]


def _score(standing: Standing, metric: _Metric) -> str:
    score = _of(standing, metric)
    if score.deviation is not None:
        return f"{score.mean:.1f} ± {score.deviation:.1f}"
    return f"{score.mean:.1f} [{score.low:.1f}, {score.high:.1f}]"


def _difference(difference: Difference | None) -> str:
    """+0.8† p=0.012, or +0.1 n.s. p=0.340; the baseline has none."""
    if difference is None:
        return NONE
    text = f"{difference.bleu:+.1f}{difference.mark or ' n.s.'} p={difference.p:.3f}"
    second = difference.randomisation
    if second is None or (second < SIGNIFICANT) == difference.significant:
        return text
    return f"{text} (randomisation {second:.3f})"


def _by_engine(records: Sequence[Record]) -> dict[str, list[str]]:
    """The systems by what searched for their translations, and with which numbers."""
    systems: dict[str, list[str]] = {}
    for record in records:
        names = systems.setdefault(f"{record.decode['engine']} {record.decode['precision']}", [])
        if record.system not in names:
            names.append(record.system)
    return systems


def summary(
    settings: Settings, records: Sequence[Record], timings: Mapping[Cell, Timing]
) -> tuple[str, str]:
    """The scores as Markdown, and the notes to them."""
    published = settings.published
    grid = scores(records, timings=timings, published=published)
    return markdown(grid), bullets(notes(records, published))


def tex(settings: Settings, records: Sequence[Record], timings: Mapping[Cell, Timing]) -> str:
    """The scores and the training cost as two LaTeX tables."""
    experiment, published = settings.experiment, settings.published
    grid = scores(records, timings=timings, published=published)
    caption = f"Results of {experiment}. {' '.join(notes(records, published))}"
    return (
        "% Needs \\usepackage{booktabs}.\n"
        + latex(grid, f"{caption} Bold: the best of ours.")
        + "\n"
        + latex(costs(records, timings), f"Training cost of {experiment}.")
    )


def bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
