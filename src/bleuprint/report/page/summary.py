"""The first section: the findings in sentences, and what to try next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report import document_tables, power_table
from bleuprint.report.cost_columns import duration, power
from bleuprint.report.frame import trained
from bleuprint.report.page.advice import LINES, advice
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import kept
from bleuprint.report.page.section import Section
from bleuprint.report.published import gap_tables
from bleuprint.report.system_results import SystemResult, paired_t
from bleuprint.runtime.html import counted
from bleuprint.scoring.significance import SIGNIFICANT
from bleuprint.training.history import Validation

# Rules, and pieces of evidence, that are not folded away.
_SHOWN = 3


@dataclass(frozen=True)
class _Ranking:
    """The best and the second system on a test set.

    `behind` is the second's mean BLEU below the best's; `p` tests that over seeds, None with one.
    """

    best: SystemResult
    second: SystemResult | None
    behind: float
    p: float | None


def summary(context: ReportContext) -> Section:
    settings = context.settings
    data = {
        "columns": list(_rankings(context.results)),
        "significant": SIGNIFICANT,
        "few": LINES,
        "gaps": context.gaps,
        "gap_tables": gap_tables,
        "power": list(power_table.summary(context.records)),
        "documents": list(document_tables.findings(context.records)),
        "cost": _cost(context),
        "pairs": {name: kept(name, context.root) for name in settings.corpora},
        "advice": advice(trained(context.records), list(_validations(context))),
        "shown": _SHOWN,
    }
    return Section("summary", "Summary", data)


def _rankings(results: Sequence[SystemResult]) -> Iterator[_Ranking]:
    for column in dict.fromkeys((result.corpus, result.test) for result in results):
        ranked = [result for result in results if (result.corpus, result.test) == column]
        ranked.sort(key=lambda result: -result.bleu.mean)
        best, second = ranked[0], ranked[1] if len(ranked) > 1 else None
        if second is None:
            yield _Ranking(best, None, 0.0, None)
            continue
        by_seed = best.seeds.bleu.to_numpy() - second.seeds.bleu.to_numpy()
        p = paired_t(by_seed) if len(by_seed) > 1 else None
        yield _Ranking(best, second, best.bleu.mean - second.bleu.mean, p)


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


def _validations(context: ReportContext) -> Iterator[tuple[str, Sequence[Validation]]]:
    for cell, curves in context.curves.items():
        seed = f", seed {cell.seed}" if len(context.settings.seeds) > 1 else ""
        yield f"{cell.system}, {cell.corpus}{seed}", curves.validation
