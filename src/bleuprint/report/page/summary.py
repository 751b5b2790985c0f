"""The first section: the result at a glance, the findings in sentences, and what to try next."""

from collections.abc import Iterator, Sequence

from bleuprint.report import notes, tables
from bleuprint.report.cost_columns import duration, power
from bleuprint.report.page.advice import advice
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.findings import Finding, best_systems
from bleuprint.report.page.funnel import kept, total
from bleuprint.report.page.glance import glances
from bleuprint.report.page.section import Section
from bleuprint.runtime.html import counted
from bleuprint.training.history import Validation

# Rules that are named.
_SHOWN = 3


def summary(context: ReportContext) -> Section:
    data = {
        "glances": list(glances(context.results)),
        "several_seeds": len(context.settings.seeds) > 1,
        "notes": list(notes.reachable_notes(context.records.cells, context.root)),
        "findings": list(_findings(context)),
        "advice": advice(context.results, list(_validations(context))),
    }
    return Section("summary", "Summary", data)


def _findings(context: ReportContext) -> Iterator[Finding]:
    yield from best_systems(context.results)
    if shown := notes.detectable_note(context.records):
        text = shown.partition(": ")[2]
        yield Finding("The smallest difference that this can show", text[0].upper() + text[1:])
    for each in tables.document_findings(context.records):
        yield Finding("By document", each)
    yield Finding("Cost", _cost(context), "cost")
    yield Finding("Data", _data(context), "data")


def _cost(context: ReportContext) -> str:
    """The cost of all trainings together; the time only if all were timed.

    Rows that differ only in averaging or decoding share a training.
    """
    trainings = context.trainings.drop_duplicates("training_sha256")
    costs = trainings[["training_flops", "train_seconds"]].sum(skipna=False)
    text = f"{counted(len(trainings), 'training')}: {power(costs.training_flops)} FLOPs"
    if costs.notna().all():
        text += f", {duration(costs.train_seconds)} (h:mm:ss)"
    return f"{text}, together."


def _data(context: ReportContext) -> str:
    """What became of the training pairs of all corpora."""
    corpora = context.settings.corpora
    pairs = total(kept(name, context.root) for name in corpora)
    text = f" of {len(corpora)} corpora" if len(corpora) > 1 else ""
    drawn = f"{pairs.drawn:,} of {pairs.read:,} pairs were drawn for validation and test sets; "
    text = f"{drawn if pairs.drawn else ''}of {pairs.candidates:,} training pairs{text} "
    text = text[0].upper() + text[1:]
    if not pairs.most():
        return f"{text}all are trained on, none was dropped."
    rules = ", ".join(pairs.most()[:_SHOWN])
    return f"{text}{pairs.left:,} are trained on; most were dropped by: {rules}."


def _validations(context: ReportContext) -> Iterator[tuple[str, Sequence[Validation]]]:
    for cell, curves in context.curves.items():
        seed = f", seed {cell.seed}" if len(context.settings.seeds) > 1 else ""
        yield f"{cell.system}, {cell.corpus}{seed}", curves.validation
