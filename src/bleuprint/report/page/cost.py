"""The section of cost: what each training took, counted and measured."""

import statistics
from collections.abc import Iterator, Sequence

from bleuprint.report import cost_columns
from bleuprint.report.page.html import Entry, details, escape, paragraph, table
from bleuprint.report.page.material import Material, Section
from bleuprint.report.page.scores import trainings
from bleuprint.report.records import Record
from bleuprint.report.system_results import Standing
from bleuprint.tracking.timings import Training

_Values = Sequence[float | None]


def cost(material: Material) -> Section:
    numbers = [*cost_columns.COUNTED, *cost_columns.MEASURED[: -len(cost_columns.TEXTS)]]
    heads = [escape(head) for head in ("System", "Corpus", *cost_columns.TEXTS, *numbers)]
    cells = {(one.system, one.corpus): one for one in material.standings}
    rows = [_row(material, one) for one in cells.values()]
    caption = "Counted and measured; means over seeds where there are several"
    body = table(heads, rows, caption, left=4, sortable=True)
    explained = cost_columns.EXPLAINED.split("\n\n")
    body += details("What each column is", "".join(paragraph(escape(one)) for one in explained))
    return Section("cost", "Cost", body)


def _row(material: Material, one: Standing) -> list[Entry]:
    trained = trainings(material, one)
    *measured, device, commit = cost_columns.measured(trained)
    shown = [*cost_columns.counted(one.records), *measured]
    texts = one.system, one.corpus, device, commit
    numbers = zip(_values(one.records, trained), shown, strict=True)
    return [*map(Entry.text, texts), *(Entry.number(_mean(of), text) for of, text in numbers)]


def _values(records: Sequence[Record], trained: Sequence[Training]) -> Iterator[_Values]:
    """What the columns are sorted by, in the order of COUNTED and MEASURED, texts left out."""
    yield [one.parameters for one in records]
    yield [one.updates for one in records]
    yield [one.target_tokens for one in records]
    yield [one.training_flops for one in records]
    yield [one.seconds for one in trained]
    yield [one.tokens_per_second for one in trained]
    yield [one.flops_by_time for one in trained]
    yield [one.mfu for one in trained]


def _mean(values: _Values) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None
