"""The first section: the findings in sentences, and what to try next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bleuprint.report import cost_columns
from bleuprint.report.page.advice import LINES, on_histories, on_records
from bleuprint.report.page.funnel import accounts, kept
from bleuprint.report.page.history import Validation, history
from bleuprint.report.page.material import Material
from bleuprint.report.page.section import Section
from bleuprint.report.published import gap_tables
from bleuprint.report.published.gap import measured, unmeasured
from bleuprint.report.system_results import SIGNIFICANT, Standing, paired_t
from bleuprint.runtime.html import counted

# Rules, and pieces of evidence, that are not folded away.
_SHOWN = 3


@dataclass(frozen=True)
class _Ranking:
    """The best and the second system on a test set of `lines`.

    `behind` is the second's mean BLEU below the best's; `p` tests that over seeds, None with one.
    """

    best: Standing
    second: Standing | None
    behind: float
    p: float | None
    lines: int


def summary(material: Material) -> Section:
    gaps = measured(material.settings, material.records, material.root)
    data = {
        "columns": list(_rankings(material.standings)),
        "significant": SIGNIFICANT,
        "few": LINES,
        "gaps": [
            {"heading": gap_tables.heading(gap), "sentence": gap_tables.sentence(gap)}
            for gap, _ in gaps
        ],
        "hints": [gap_tables.hint(each) for each in unmeasured(material.settings, gaps)],
        "cost": _cost(material),
        "pairs": {name: kept(accounts(material, name)) for name in material.settings.corpora},
        "advice": [
            *on_histories(list(_validations(material)), _length_settings(material)),
            *on_records(material.standings),
        ],
        "shown": _SHOWN,
    }
    return Section("summary", "Summary", data)


def _rankings(standings: Sequence[Standing]) -> Iterator[_Ranking]:
    for column in dict.fromkeys((each.corpus, each.test) for each in standings):
        ranked = [each for each in standings if (each.corpus, each.test) == column]
        ranked.sort(key=lambda each: -each.bleu.mean)
        best, second = ranked[0], ranked[1] if len(ranked) > 1 else None
        behind, p = 0.0, None
        if second is not None:
            behind = best.bleu.mean - second.bleu.mean
            pairs = zip(best.records, second.records, strict=True)
            by_seed = [record.bleu.score - other.bleu.score for record, other in pairs]
            p = paired_t(by_seed) if len(by_seed) > 1 else None
        yield _Ranking(best, second, behind, p, best.records[0].lines)


def _cost(material: Material) -> str:
    """What the trainings took, from the least to the most."""
    trained = {record.cell: record for record in material.records}
    ranked = sorted(trained.values(), key=lambda record: record.training_flops)
    flops = dict.fromkeys(cost_columns.counted_flops([ranked[place]]) for place in (0, -1))
    flops_each = f"{' to '.join(flops)} FLOPs{' each' if len(ranked) > 1 else ''}"
    timings = (material.timings.get(cell) for cell in material.cells)
    seconds = [timing.training.seconds for timing in timings if timing and timing.training]
    trainings = counted(len(ranked), "training")
    if not seconds:
        return f"{trainings} took {flops_each}."
    if len(seconds) == 1:
        times = _duration(seconds[0])
    else:
        times = f"{_duration(min(seconds))} to {_duration(max(seconds))} each, "
        times += f"{_duration(sum(seconds))} together"
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


def _length_settings(material: Material) -> str:
    """The settings that limit how long the trainings are."""
    trainings = [system.train for system in material.settings.systems.values()]
    names = ("max_updates" if train.max_epochs is None else "max_epochs" for train in trainings)
    return " or ".join(dict.fromkeys(f"train.{name}" for name in names))


def _validations(material: Material) -> Iterator[tuple[str, Sequence[Validation]]]:
    for cell in material.cells:
        curves = history(cell, material.root)
        if curves is not None:
            seed = f", seed {cell.seed}" if len(material.settings.seeds) > 1 else ""
            yield f"{cell.system}, {cell.corpus}{seed}", curves.validation
