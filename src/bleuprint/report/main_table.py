"""The table of each test set: systems down the side, scores and costs in the cells."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.published import Published
from bleuprint.report import notes
from bleuprint.report.cost_columns import COUNTED, MEASURED
from bleuprint.report.frame import Records, trainings
from bleuprint.report.grid import NONE, Column, Grid, Number, Row, latex
from bleuprint.report.notes import OTHERWISE
from bleuprint.report.published import literature
from bleuprint.report.system_results import OUTSIDE, SystemResult, by_test, system_results
from bleuprint.scoring.bleu_variants import VARIANTS
from bleuprint.scoring.human_agreement import AGREE
from bleuprint.scoring.measures import MEASURES

BY_TIME = "FLOPs, by time"
Costs = Mapping[str, Callable[[pd.DataFrame], str]]
COSTS: Costs = {"FLOPs": COUNTED["FLOPs"]}
ALL_COSTS: Costs = {**COUNTED, **MEASURED}


class _Filled(NamedTuple):
    """A column with its cells by row; `best`: the systems with the best score."""

    column: Column
    cells: Mapping[str, str]
    best: Sequence[str] = ()


def by_test_set(
    records: Records,
    metrics: Sequence[str] = ("bleu",),
    costs: Costs = COSTS,
    published: Sequence[Published] = (),
    alone: Sequence[str] = (),
) -> dict[str, Grid]:
    """By task and test set the scores of every system, the best of each marked, and `costs`.

    With each come the differences from the baseline, but for metrics that stand `alone`; with BLEU
    published numbers.
    """
    return {
        name: _grid(_columns(results, metrics, costs, numbers, alone), results, numbers)
        for name, results, numbers in _test_sets(records, published if "bleu" in metrics else None)
    }


def across(records: Records, published: Sequence[Published] = ()) -> Grid:
    """The same of BLEU as one table, the test sets beside each other."""
    test_sets = [*_test_sets(records, published)]
    filled = [
        each._replace(column=replace(each.column, group=name))
        for name, results, numbers in test_sets
        for each in _columns(results, ["bleu"], COSTS, numbers)
    ]
    numbers = pd.concat([numbers for *_, numbers in test_sets])
    return _grid(filled, system_results(records), numbers)


def costs(records: Records, shown: Costs = ALL_COSTS) -> Grid:
    """The cost of each training, counted and measured; means over seeds."""
    columns = [Column("System", left=True), Column("Corpus", left=True)]
    columns += [Column(label, left=label == "Device") for label in shown]
    rows = [
        Row((*place, *(cell(seeds) for cell in shown.values())))
        for place, seeds in trainings(records.cells).groupby(["system", "corpus"], sort=False)
    ]
    return Grid(tuple(columns), tuple(rows))


def tex(settings: Settings, records: Records, root: Path = Path()) -> str:
    """The scores and the training cost as two LaTeX tables."""
    experiment, published = settings.experiment, settings.published
    caption = f"Results of {experiment}. {' '.join(notes.notes(records, published, root))}"
    of = "those scored here" if records.cells.outside.notna().any() else "ours"
    table = latex(across(records, published), f"{caption} Bold: the best of {of}.")
    cost = latex(costs(records, COUNTED), f"Training cost of {experiment}.")
    return f"% Needs \\usepackage{{booktabs,graphicx}}.\n{table}\n{cost}"


def _test_sets(
    records: Records, published: Sequence[Published] | None
) -> Iterator[tuple[str, list[SystemResult], pd.DataFrame]]:
    """Each test set of a task: its name, results, and published numbers, unless None are asked."""
    numbers = literature.rows(records.cells, published or ())
    for (task, test), results in by_test(system_results(records)).items():
        of_test = numbers.corpus.isin(results[0].task.corpora) & (numbers.test == test)
        yield f"{task}, {test}", results, numbers[of_test & (published is not None)]


def _columns(
    results: Sequence[SystemResult],
    metrics: Sequence[str],
    costs: Costs,
    numbers: pd.DataFrame,
    alone: Sequence[str] = (),
) -> Iterator[_Filled]:
    """The columns of a test set."""
    for metric in metrics:
        scores = {each.label: score for each in results if (score := each.score(metric))}
        if not scores:  # COMET without a model
            continue
        cells = {name: Number(score, score.mean) for name, score in scores.items()}
        if metric == "bleu":
            default = numbers.scored == "sacrebleu"
            cells |= _printed(numbers[default], "bleu")
            yield from _as_published(results, numbers[~default])
        yield _Filled(Column(MEASURES[metric].label), cells, _marked(results, metric, metric))
        if metric not in alone:
            yield from _difference_columns(results, metric)
    trainings = {each.label: each.seeds for each in results if not each.outside}
    for label, cell in costs.items():
        yield _Filled(Column(label), {row: cell(of) for row, of in trainings.items()})
    if costs and numbers.training_flops_by_time.notna().any():
        yield _Filled(Column(BY_TIME), _printed(numbers, "training_flops_by_time"))


def _marked(results: Sequence[SystemResult], measure: str, metric: str) -> list[str]:
    """The best systems of a test set in a measure; none where the floor lets none be compared.

    `metric`: the measure whose order it has.
    """
    scores = {each.label: score for each in results if (score := each.score(measure))}
    labels = best(metric, {name: score.mean for name, score in scores.items()})
    untested = {each.label for each in results if each.floor}
    untested |= {each.label for each in results if each.is_too_low}
    others = {each.label for each in results if each.baseline is not None}
    if others and others <= untested:
        return []
    return [name for name in labels if name not in untested]


def best(metric: str, means: Mapping[str, float]) -> list[str]:
    """The systems with the best of several scores in a measure."""
    top = (min if MEASURES[metric].lower_is_better else max)(means.values(), default=0.0)
    return [name for name, mean in means.items() if mean == top and len(means) > 1]


def _difference_columns(results: Sequence[SystemResult], metric: str) -> Iterator[_Filled]:
    """The differences in a metric, and the share of pairs in which people would agree."""
    tested = {each.label: of for each in results if (of := each.difference_in(metric))}
    named = "" if metric == "bleu" else f"{MEASURES[metric].label} "
    if tested:
        cells = {name: Number(each, each.value) for name, each in tested.items()}
        yield _Filled(Column(f"{named}difference"), cells)
    if any(each.agreement for each in tested.values()):
        agree = {name: each.agreement for name, each in tested.items() if each.agreement}
        yield _Filled(Column(f"{named}{AGREE}"), agree)


def _as_published(results: Sequence[SystemResult], numbers: pd.DataFrame) -> Iterator[_Filled]:
    """A column for each variant of BLEU of the published numbers; ours are scored in the same way.

    Our rows are empty for variants that are not computed here.
    """
    for variant, printed in numbers.groupby("scored", sort=False):
        means = {each.label: of.mean for each in results if (of := each.score(variant))}
        ours = {name: Number(f"{mean:.1f}", mean) for name, mean in means.items()}
        label = f"BLEU {variant}" if variant in VARIANTS else OTHERWISE
        marked = _marked(results, str(variant), "bleu")
        yield _Filled(Column(label), {**ours, **_printed(printed, "bleu")}, marked)


def _names(numbers: pd.DataFrame) -> list[str]:
    return [f"{name} (published)" for name in numbers.system]


def _printed(numbers: pd.DataFrame, column: str) -> dict[str, Number]:
    """The cells of published numbers, as printed."""
    known = numbers.dropna(subset=column)
    return {
        name: Number(text, float(text))
        for name, text in zip(_names(known), known[column], strict=True)
    }


def _grid(
    columns: Iterable[_Filled], results: Sequence[SystemResult], numbers: pd.DataFrame
) -> Grid:
    """The columns of the rows of these results, below the published numbers."""
    kinds = dict.fromkeys(_names(numbers), "published")
    kinds |= {result.label: "outside" if result.outside else "" for result in results}
    tested = {each.label: each.difference for each in results if each.difference}
    kinds |= {of.baseline: "baseline" for of in tested.values() if of.baseline not in tested}
    filled, rows = [*columns], []
    for name, kind in kinds.items():
        cells = (column.cells.get(name, Number(NONE, None)) for column in filled)
        best = (place for place, column in enumerate(filled, 1) if name in column.best)
        mark = {"baseline": " (baseline)", "outside": f" ({OUTSIDE})"}.get(kind, "")
        rows.append(Row((f"{name}{mark}", *cells), kind, frozenset(best)))
    return Grid((Column("System", left=True), *(each.column for each in filled)), tuple(rows))
