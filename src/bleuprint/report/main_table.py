"""The table: systems down the side, corpora across the top, scores and costs in the cells."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.report import notes
from bleuprint.report.cost_columns import COUNTED, MEASURED
from bleuprint.report.frame import Records, trained
from bleuprint.report.grid import NONE, Column, Grid, Number, Row, latex
from bleuprint.report.notes import OTHERWISE
from bleuprint.report.published import literature
from bleuprint.report.system_results import OUTSIDE, SystemResult, by_test, system_results
from bleuprint.report.task import tasks_of
from bleuprint.scoring.bleu_variants import VARIANTS
from bleuprint.scoring.human_agreement import AGREE
from bleuprint.scoring.measures import MEASURES

BY_TIME = "FLOPs, by time"
Costs = Mapping[str, Callable[[pd.DataFrame], str]]
COSTS: Costs = {"FLOPs": COUNTED["FLOPs"]}


class _Filled(NamedTuple):
    """A column with its cells by row; `best`: the systems with the best score."""

    column: Column
    cells: Mapping[str, str]
    best: Sequence[str] = ()


def scores(
    records: Records,
    metrics: Sequence[str] = ("bleu",),
    costs: Costs = COSTS,
    published: Sequence[Published] = (),
    alone: Sequence[str] = (),
) -> Grid:
    """The scores of every system on every test set, the best of each marked, and `costs`.

    With each come the differences from the baseline, but for metrics that stand `alone`; with BLEU
    published numbers.
    """
    numbers = literature.rows(records.cells, published)[: None if "bleu" in metrics else 0]
    results, filled = system_results(records), list[_Filled]()
    for task in dict.fromkeys(tasks_of(records.cells).values()):
        printed = numbers[numbers.corpus.isin(task.corpora)]
        of_results = [result for result in results if result.task == task]
        filled += _score_columns(task.heading, of_results, metrics, printed, alone)
        filled += _cost_columns(task.heading, of_results, costs, printed)
    kinds = dict.fromkeys(_names(numbers), "published")
    kinds |= {result.label: "outside" if result.outside else "" for result in results}
    kinds |= {each.difference.baseline: "baseline" for each in results if each.difference}
    heads = Column("System", left=True), *(each.column for each in filled)
    return Grid(heads, tuple(_row(name, kind, filled) for name, kind in kinds.items()))


def costs(records: Records, shown: Collection[str] = (*COUNTED, *MEASURED)) -> Grid:
    """The cost of each training: counted on the left, measured on the right; means over seeds.

    `shown`: the labels of columns.
    """
    groups = {"counted": COUNTED, "measured": MEASURED}
    cells = {(group, label): of[label] for group, of in groups.items() for label in of}
    cells = {(group, label): cell for (group, label), cell in cells.items() if label in shown}
    columns = [Column("System", left=True), Column("Corpus", left=True)]
    columns += [Column(label, group, left=label == "Device") for group, label in cells]
    trainings = trained(records.cells).drop_duplicates(Cell._fields)
    rows = [
        Row((*place, *(cell(seeds) for cell in cells.values())))
        for place, seeds in trainings.groupby(["system", "corpus"], sort=False)
    ]
    return Grid(tuple(columns), tuple(rows))


def by_test_set(
    records: Records,
    metrics: Sequence[str] = ("bleu",),
    costs: Costs = COSTS,
    published: Sequence[Published] = (),
) -> dict[str, Grid]:
    """The scores as a table for each test set of a task, by the names of both."""
    found, cells = dict[str, Grid](), records.cells
    for task in dict.fromkeys(tasks_of(cells).values()):
        of_task = cells.corpus.isin(task.corpora)
        for test in cells[of_task].test.unique():
            grid = scores(records.where(of_task & (cells.test == test)), metrics, costs, published)
            columns = tuple(replace(column, group="") for column in grid.columns)
            found[f"{task.heading}, {test}"] = replace(grid, columns=columns)
    return found


def tex(settings: Settings, records: Records, root: Path = Path()) -> str:
    """The scores and the training cost as two LaTeX tables."""
    experiment, published = settings.experiment, settings.published
    caption = f"Results of {experiment}. {' '.join(notes.notes(records, published, root))}"
    of = "those scored here" if records.cells.outside.notna().any() else "ours"
    table = latex(scores(records, published=published), f"{caption} Bold: the best of {of}.")
    cost = latex(costs(records, COUNTED), f"Training cost of {experiment}.")
    return f"% Needs \\usepackage{{booktabs,graphicx}}.\n{table}\n{cost}"


def _score_columns(
    group: str,
    results: Sequence[SystemResult],
    metrics: Sequence[str],
    numbers: pd.DataFrame,
    alone: Sequence[str],
) -> Iterator[_Filled]:
    """The columns of each test set of a task."""
    tests = by_test(results)
    for (_, test), column in tests.items():
        end = f" {test}" if len(tests) > 1 else ""
        for metric in metrics:
            scores = {each.label: score for each in column if (score := each.score(metric))}
            if not scores:  # COMET without a model
                continue
            cells = {name: Number(score, score.mean) for name, score in scores.items()}
            if metric == "bleu":
                printed = numbers[numbers.test == test]
                default = printed.scored == "sacrebleu"
                cells |= _printed(printed[default], "bleu")
                yield from _as_published(column, printed[~default], group, end)
            means = {name: score.mean for name, score in scores.items()}
            label = f"{MEASURES[metric].label}{end}"
            yield _Filled(Column(label, group), cells, best(metric, means))
            if metric not in alone:
                yield from _difference_columns(column, metric, group, end)


def best(metric: str, means: Mapping[str, float]) -> list[str]:
    """The systems with the best of several scores in a measure."""
    top = (min if MEASURES[metric].lower_is_better else max)(means.values(), default=0.0)
    return [name for name, mean in means.items() if mean == top and len(means) > 1]


def _difference_columns(
    results: Sequence[SystemResult], metric: str, group: str, end: str
) -> Iterator[_Filled]:
    """The differences in a metric, and the share of pairs in which people would agree."""
    tested = {each.label: of for each in results if (of := each.difference_in(metric))}
    named = "" if metric == "bleu" else f"{MEASURES[metric].label} "
    if tested:
        cells = {name: Number(each, each.value) for name, each in tested.items()}
        yield _Filled(Column(f"{named}difference{end}", group, follows=True), cells)
    if any(each.agreement for each in tested.values()):
        agree = {n: e.agreement for n, e in tested.items() if e.agreement and e.significant}
        yield _Filled(Column(f"{named}{AGREE}{end}", group, follows=True), agree)


def _as_published(
    results: Sequence[SystemResult], numbers: pd.DataFrame, group: str, end: str
) -> Iterator[_Filled]:
    """A column for each variant of BLEU of the published numbers; ours are scored in the same way.

    Our rows are empty for variants that are not computed here.
    """
    for variant, printed in numbers.groupby("scored", sort=False):
        means = {each.label: of.mean for each in results if (of := each.score(variant))}
        ours = {name: Number(f"{mean:.1f}", mean) for name, mean in means.items()}
        label = f"BLEU {variant}" if variant in VARIANTS else OTHERWISE
        cells = {**ours, **_printed(printed, "bleu")}
        yield _Filled(Column(label + end, group), cells, best("bleu", means))


def _cost_columns(
    group: str, results: Sequence[SystemResult], costs: Costs, numbers: pd.DataFrame
) -> Iterator[_Filled]:
    trainings = {each.label: each.seeds for each in reversed(results) if not each.outside}
    for label, cell in costs.items():
        yield _Filled(Column(label, group), {row: cell(of) for row, of in trainings.items()})
    if costs and numbers.training_flops_by_time.notna().any():
        printed = _printed(numbers, "training_flops_by_time")
        yield _Filled(Column(BY_TIME, group), printed)


def _names(numbers: pd.DataFrame) -> list[str]:
    return [f"{name} (published)" for name in numbers.system]


def _printed(numbers: pd.DataFrame, column: str) -> dict[str, Number]:
    """The cells of published numbers, as printed."""
    known = numbers.dropna(subset=column)
    return {
        name: Number(text, float(text))
        for name, text in zip(_names(known), known[column], strict=True)
    }


def _row(name: str, kind: str, filled: Sequence[_Filled]) -> Row:
    cells = (column.cells.get(name, Number(NONE, None)) for column in filled)
    best = (place for place, column in enumerate(filled, 1) if name in column.best)
    mark = {"baseline": " (baseline)", "outside": f" ({OUTSIDE})"}.get(kind, "")
    return Row((f"{name}{mark}", *cells), kind, frozenset(best))
