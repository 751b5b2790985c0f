"""The table: systems down the side, corpora across the top, BLEU and training cost in the cells.

Every renderer takes the same grid, and a grid is filled by name (system, corpus, test set), so
that the order of the records decides the order of rows and columns and nothing else.
"""

import csv
import io
import re
import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from bleuprint import costcolumns, literature
from bleuprint.errors import run
from bleuprint.layout import Cell
from bleuprint.results import Record, Timing, Training, load, timing

REPORTS = Path("reports")
SIGNIFICANT = 0.05
NONE = costcolumns.NONE
METRICS = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
_DECODE = ("engine", "precision", "beam", "alpha", "penalty")
_COUNTED, _BY_TIME = _COSTS = "FLOPs, counted", "FLOPs, by time"


@dataclass(frozen=True)
class Column:
    """A column's head: `label` below `group`, which adjacent columns share."""

    label: str
    group: str = ""
    left: bool = False


@dataclass(frozen=True)
class Row:
    cells: tuple[str, ...]
    published: bool = False


@dataclass(frozen=True)
class Grid:
    """A table of text, ready to be rendered."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class _Key:
    """What a column shows: scores on a test set of a corpus, or one of `_COSTS` of its training."""

    corpus: str
    pair: str
    test: str | None
    cost: str = ""


def scores(
    records: Sequence[Record],
    metric: Literal["bleu", "chrf", "ter"] = "bleu",
    timings: Mapping[Cell, Timing] | None = None,
) -> Grid:
    """The scores of every system on every test set; with BLEU also what training cost, both ways.

    Costs by time come from `timings`.
    """
    keys = list(_keys(records, with_cost=metric == "bleu"))
    columns = [Column("System", left=True), *(_column(key, keys, metric) for key in keys)]
    rows = list(_published(keys)) if metric == "bleu" else []
    for system in dict.fromkeys(record.system for record in records):
        of_system = [record for record in records if record.system == system]
        name = f"{system} (baseline)" if system in _baselines(records) else system
        cells = []
        for key in keys:
            seeds = [r for r in of_system if r.corpus == key.corpus and key.test in (r.test, None)]
            cells.append(_cost(seeds, key.cost, timings) if key.cost else _score(seeds, metric))
        rows.append(Row((name, *cells)))
    return Grid(tuple(columns), tuple(rows))


def costs(records: Sequence[Record], timings: Mapping[Cell, Timing]) -> Grid:
    """What each training cost: counted on the left, measured on the right; means over seeds."""
    columns = [Column("System", left=True), Column("Corpus", left=True)]
    columns += [Column(label, "counted") for label in costcolumns.COUNTED]
    columns += [
        Column(label, "measured", label in costcolumns.TEXTS) for label in costcolumns.MEASURED
    ]
    rows = []
    for system, corpus in dict.fromkeys((record.system, record.corpus) for record in records):
        of_row = [r for r in records if (r.system, r.corpus) == (system, corpus)]
        measured = costcolumns.measured(_trained(of_row, timings))
        rows.append(Row((system, corpus, *costcolumns.counted(of_row), *measured)))
    return Grid(tuple(columns), tuple(rows))


def notes(records: Sequence[Record]) -> list[str]:
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
    for baseline in _baselines(records):
        of_seed = f" on the translations of seed {seeds[0]}" if len(seeds) > 1 else ""
        lines.append(
            f"p: paired bootstrap of the difference in BLEU from {baseline}{of_seed}; "
            f"n.s.: not significant (p of {SIGNIFICANT} or more). Where approximate randomisation "
            "says otherwise, its p follows; both are in table.csv."
        )
    if len(by_engine := _by_engine(records)) > 1:
        made = "; ".join(f"{engine}: {', '.join(names)}" for engine, names in by_engine.items())
        lines.append(f"Not all systems translated with the same engine and precision. {made}.")
    if any(row.published for row in scores(records).rows):
        lines.append(f"Published: {literature.SOURCE}; {literature.HOW_SCORED}")
    return lines


def markdown(grid: Grid) -> str:
    """The grid as a Markdown table, aligned for reading as text."""
    head = [" ".join(filter(None, (column.group, column.label))) for column in grid.columns]
    lines = [head, *(row.cells for row in grid.rows)]
    lines = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    widths = [max(3, *map(len, cells)) for cells in zip(*lines, strict=True)]
    rule = [
        ":" + "-" * (width - 1) if column.left else "-" * (width - 1) + ":"
        for column, width in zip(grid.columns, widths, strict=True)
    ]
    padded = [_pad(line, grid.columns, widths) for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in [padded[0], rule, *padded[1:]])


def latex(grid: Grid, caption: str) -> str:
    """The grid as a LaTeX table; needs the package booktabs."""
    layout = "".join("l" if column.left else "r" for column in grid.columns)
    heads, rules = [], []
    for group, start, end in _groups(grid.columns):
        if group:
            heads.append(f"\\multicolumn{{{end - start}}}{{c}}{{{_tex(group)}}}")
            rules.append(f"\\cmidrule(lr){{{start + 1}-{end}}}")
        else:
            heads += [""] * (end - start)
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_tex(caption)}}}",
        f"\\begin{{tabular}}{{{layout}}}",
        "\\toprule",
        f"{' & '.join(heads)} \\\\",
        " ".join(rules),
        f"{' & '.join(_tex(column.label) for column in grid.columns)} \\\\",
        "\\midrule",
    ]
    for above, row in zip((None, *grid.rows), grid.rows, strict=False):
        if above is not None and above.published and not row.published:
            lines.append("\\midrule")
        lines.append(f"{' & '.join(map(_tex, row.cells))} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}", ""])


def plain(grid: Grid, width: int) -> str:
    """The grid for a terminal `width` characters wide; what does not fit goes below, in blocks.

    Columns outside any group lead every block; a group is kept together where it fits.
    """
    leading = [index for index, column in enumerate(grid.columns) if not column.group]
    blocks = [leading]
    for group, start, end in _groups(grid.columns):
        for index in range(start, end) if group else ():
            wanted = range(start, end) if index == start else [index]
            too_wide = len(_block(grid, [*blocks[-1], *wanted])[2]) > width
            if too_wide and blocks[-1] != leading:
                blocks.append(leading)
            blocks[-1] = [*blocks[-1], index]
    return "\n".join("".join(f"{line}\n" for line in _block(grid, block)) for block in blocks)


def csv_text(records: Sequence[Record], timings: Mapping[Cell, Timing]) -> str:
    """One row for each system x corpus x seed x test set, every figure in full."""
    rows = [_flat(record, timings[record.cell]) for record in records]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def main() -> None:
    """Print the table that the report stage has written, and where to look next."""
    records = load(REPORTS / "results.json")
    width = shutil.get_terminal_size((120, 24)).columns
    timings = {record.cell: timing(record.cell) for record in records}
    print(plain(scores(records, timings=timings), width))
    print(plain(costs(records, timings), width))
    print("\n".join(notes(records)))
    print(f"\nMore: {REPORTS / 'table.md'} (the whole report), {REPORTS / 'results.json'} (every")
    print("number with what stands behind it), and the runs side by side in MLflow: make ui")


def _keys(records: Sequence[Record], with_cost: bool) -> Iterator[_Key]:
    for corpus, pair in dict.fromkeys((record.corpus, record.pair) for record in records):
        for test in dict.fromkeys(record.test for record in records if record.corpus == corpus):
            yield _Key(corpus, pair, test)
        if with_cost:
            for cost in _COSTS:
                yield _Key(corpus, pair, None, cost)


def _column(key: _Key, keys: Sequence[_Key], metric: str) -> Column:
    group = key.corpus if key.pair in key.corpus else f"{key.corpus} ({key.pair})"
    if key.cost:
        return Column(key.cost, group)
    several = sum(1 for other in keys if other.corpus == key.corpus and other.test) > 1
    return Column(f"{METRICS[metric]} {key.test}" if several else METRICS[metric], group)


def _published(keys: Sequence[_Key]) -> Iterator[Row]:
    shown = {k.corpus for k in keys if k.test and literature.reports_on(k.corpus, k.test)}
    for row in literature.TABLE_2:
        cells = []
        for key in keys:
            values = {literature.TEST: row.bleu, _BY_TIME: row.flops}.get(key.test or key.cost, {})
            cells.append(values.get(key.pair, NONE) if key.corpus in shown else NONE)
        if set(cells) != {NONE}:
            yield Row((f"{row.system} (published)", *cells), published=True)


def _cost(seeds: Sequence[Record], cost: str, timings: Mapping[Cell, Timing] | None) -> str:
    if cost == _COUNTED:
        return costcolumns.counted_flops(seeds)
    return costcolumns.flops_by_time(_trained(seeds, timings or {}))


def _trained(records: Sequence[Record], timings: Mapping[Cell, Timing]) -> list[Training]:
    """What was measured of the trainings behind the records, each once."""
    of_cells = (timings.get(cell) for cell in dict.fromkeys(record.cell for record in records))
    return [one.training for one in of_cells if one is not None and one.training is not None]


def _score(seeds: Sequence[Record], metric: str) -> str:
    values = [getattr(record, metric) for record in seeds]
    mean = statistics.mean(value.score for value in values)
    if len(values) > 1:
        text = f"{mean:.1f} ± {statistics.stdev(value.score for value in values):.1f}"
    else:
        text = f"{mean:.1f} [{values[0].low:.1f}, {values[0].high:.1f}]"
    paired = seeds[0].paired if metric == "bleu" else None
    if paired is None:
        return text
    first, second = paired.p_values.bootstrap, paired.p_values.randomisation
    text += f" p={first:.3f}{' n.s.' if first >= SIGNIFICANT else ''}"
    agree = (first < SIGNIFICANT) == (second < SIGNIFICANT)
    return text if agree else f"{text} (randomisation {second:.3f})"


def _baselines(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(r.paired.baseline for r in records if r.paired is not None))


def _by_engine(records: Sequence[Record]) -> dict[str, list[str]]:
    """The systems by what searched for their translations, and with which numbers."""
    systems: dict[str, list[str]] = {}
    for record in records:
        names = systems.setdefault(f"{record.decode['engine']} {record.decode['precision']}", [])
        if record.system not in names:
            names.append(record.system)
    return systems


def _pad(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if column.left else cell.rjust(width)
        for cell, column, width in zip(cells, columns, widths, strict=True)
    ]


def _groups(columns: Sequence[Column]) -> Iterator[tuple[str, int, int]]:
    """Runs of columns of the same group: its name, the first column and the one behind."""
    start = 0
    for end in range(1, len(columns) + 1):
        if end == len(columns) or columns[end].group != columns[start].group:
            yield columns[start].group, start, end
            start = end


def _block(grid: Grid, indices: Sequence[int]) -> list[str]:
    """Some columns of the grid as lines: groups, labels, a rule as wide as the block, rows."""
    columns = [grid.columns[index] for index in indices]
    body = [[row.cells[index] for index in indices] for row in grid.rows]
    labels = [column.label for column in columns]
    widths = [max(map(len, cells)) for cells in zip(labels, *body, strict=True)]
    groups = []
    for group, start, end in _groups(columns):
        space = sum(widths[start:end]) + 2 * (end - start - 1)
        widths[start] += max(0, len(group) - space)
        groups.append(group.center(max(space, len(group))))
    lines = ["  ".join(_pad(cells, columns, widths)).rstrip() for cells in (labels, *body)]
    rule = "  ".join("-" * width for width in widths)
    return ["  ".join(groups).rstrip(), lines[0], rule, *lines[1:]]


_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "±": r"$\pm$",
    "–": "--",
    **{character: f"\\{character}" for character in "&%$#_"},
}


def _tex(text: str) -> str:
    return re.sub("|".join(map(re.escape, _TEX)), lambda match: _TEX[match[0]], text)


def _flat(record: Record, measured: Timing) -> dict[str, object]:
    """A record and its timing on one level; missing values stay empty."""
    bleu, chrf, ter = record.bleu, record.chrf, record.ter
    paired, training = record.paired, measured.training
    return {
        "system": record.system,
        "corpus": record.corpus,
        "source": record.source,
        "target": record.target,
        "seed": record.seed,
        "test": record.test,
        "lines": record.lines,
        "bleu": bleu.score,
        "bleu_low": bleu.low,
        "bleu_high": bleu.high,
        "chrf2": chrf.score,
        "chrf2_low": chrf.low,
        "chrf2_high": chrf.high,
        "ter": ter.score,
        "ter_low": ter.low,
        "ter_high": ter.high,
        "hypothesis_length": record.length.hypothesis,
        "reference_length": record.length.reference,
        "length_ratio": record.length.ratio,
        "baseline": paired and paired.baseline,
        "p_bootstrap": paired and paired.p_values.bootstrap,
        "p_randomisation": paired and paired.p_values.randomisation,
        "parameters": record.parameters,
        "updates": record.updates,
        "source_tokens": record.source_tokens,
        "target_tokens": record.target_tokens,
        "training_flops": record.training_flops,
        **{name: record.decode[name] for name in _DECODE},
        "train_seconds": training and training.seconds,
        "train_tokens_per_second": training and training.tokens_per_second,
        "device": training and training.device,
        "processes": training and training.processes,
        "threads": training and training.threads,
        "commit": training and training.commit,
        "devices": training and training.devices,
        "sustained_flops": training and training.sustained_flops,
        "sustained_from": training and training.sustained_from,
        "training_flops_by_time": training and training.flops_by_time,
        "peak_flops": training and training.peak_flops,
        "peak_from": training and training.peak_from,
        "mfu": training and training.mfu,
        "translate_seconds": measured.translate_seconds,
        "bleu_signature": bleu.signature,
        "chrf2_signature": chrf.signature,
        "ter_signature": ter.signature,
        **{f"{name}_sha256": value for name, value in asdict(record.fingerprints).items()},
        **{f"{name}_sha256": value for name, value in asdict(record.data).items()},
    }


if __name__ == "__main__":
    run(main)
