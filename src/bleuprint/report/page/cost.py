"""The section of cost: what each training took, counted and measured."""

from collections.abc import Iterator

from bleuprint.report import cost_columns
from bleuprint.report.page.material import Material
from bleuprint.report.page.scores import mean_or_none, trainings
from bleuprint.report.page.section import Section
from bleuprint.report.system_results import Standing


def cost(material: Material) -> Section:
    numbers = [*cost_columns.COUNTED, *cost_columns.MEASURED[: -len(cost_columns.TEXTS)]]
    by_cell = {(each.system, each.corpus): each for each in material.standings}
    data = {
        "heads": ["System", "Corpus", *cost_columns.TEXTS, *numbers],
        "rows": [_row(material, each) for each in by_cell.values()],
        "explained": cost_columns.EXPLAINED.split("\n\n"),
    }
    return Section("cost", "Cost", data)


def _row(
    material: Material, standing: Standing
) -> tuple[list[str], list[tuple[float | None, str]]]:
    """The cells of text, and those of numbers: sort key and text."""
    trained = trainings(material, standing)
    *measured, device, commit = cost_columns.measured(trained)
    shown = [*cost_columns.counted(standing.records), *measured]
    numbers = list(zip(_sort_keys(material, standing), shown, strict=True))
    return [standing.system, standing.corpus, device, commit], numbers


def _sort_keys(material: Material, standing: Standing) -> Iterator[float | None]:
    """Means in the order of COUNTED and MEASURED, without the texts."""
    for name in ("parameters", "updates", "target_tokens", "training_flops"):
        yield mean_or_none([getattr(record, name) for record in standing.records])
    for name in ("seconds", "tokens_per_second", "flops_by_time", "mfu"):
        yield mean_or_none([getattr(each, name) for each in trainings(material, standing)])
