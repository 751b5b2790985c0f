"""The first section: the findings in sentences, and what to try next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report.cost_columns import counted_flops
from bleuprint.report.page.advice import LINES, on_curves, on_records
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.funnel import kept
from bleuprint.report.page.section import Section
from bleuprint.report.published import gap_tables
from bleuprint.report.system_results import SIGNIFICANT, SystemResult, paired_t
from bleuprint.runtime.html import counted
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
        "gaps": [
            (gap_tables.heading(gap.published), gap_tables.sentence(gap)) for gap in context.gaps
        ],
        "cost": _cost(context),
        "pairs": {name: kept(name, context.root) for name in settings.corpora},
        "advice": [
            *on_curves(list(_validations(context)), _length_settings(context)),
            *on_records(context.records),
        ],
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
    """The cost of the trainings, from the least to the most."""
    ranked = context.trainings.sort_values("training_flops", kind="stable")
    seconds = ranked.train_seconds.dropna()
    flops = dict.fromkeys((counted_flops(ranked[:1]), counted_flops(ranked[-1:])))
    flops_each = f"{' to '.join(flops)} FLOPs{' each' if len(ranked) > 1 else ''}"
    trainings = counted(len(ranked), "training")
    if seconds.empty:
        return f"{trainings} took {flops_each}."
    times = _duration(seconds.min())
    if len(seconds) > 1:
        times += f" to {_duration(seconds.max())} each, {_duration(seconds.sum())} together"
    if len(seconds) < len(ranked):
        few = f"{len(seconds)} {'was' if len(seconds) == 1 else 'were'} timed"
        return f"{trainings} took {flops_each}; {few}, and took {times}."
    return f"{trainings} took {times} ({flops_each})."


def _duration(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _length_settings(context: ReportContext) -> str:
    """The settings that limit the length of the trainings."""
    trainings = [system.train for system in context.settings.systems.values()]
    names = ("max_updates" if train.max_epochs is None else "max_epochs" for train in trainings)
    return " or ".join(dict.fromkeys(f"train.{name}" for name in names))


def _validations(context: ReportContext) -> Iterator[tuple[str, Sequence[Validation]]]:
    for cell, curves in context.curves.items():
        seed = f", seed {cell.seed}" if len(context.settings.seeds) > 1 else ""
        yield f"{cell.system}, {cell.corpus}{seed}", curves.validation
