"""The section of training curves: all systems in one chart, a chart for each quantity."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bleuprint.config.paths import Cell
from bleuprint.config.system import LrSchedule, Noam, System
from bleuprint.report.page.chart import Chart, chart, line_styles
from bleuprint.report.page.history import History, Point, Validation, history, thinned
from bleuprint.report.page.html import Entry, details, escape, figure, paragraph, table
from bleuprint.report.page.legend import legend, line_id
from bleuprint.report.page.material import Material, Section
from bleuprint.training.lr_schedule import learning_rate

# Of all lines in a chart together: more are not to be seen, and would weigh on the page.
_POINTS = 5000
# What The Annotated Transformer draws: d_model and warmup, factor 1, over 20,000 updates.
_ANNOTATED = ((512, 4000), (512, 8000), (256, 4000))
_ANNOTATED_UPDATES = 20_000

# A longer table is folded away.
_ROWS = 8

_Line = Sequence[tuple[float, float]]


class _Kind(NamedTuple):
    """A quantity: what its axis says, and whether that is logarithmic."""

    name: str
    axis: str
    of: Callable[[History], _Line]
    log: bool = False


def curves(material: Material) -> Section | None:
    found = {cell: one for cell in material.cells if (one := history(cell, material.root))}
    if not found:
        return None
    body = paragraph(_EXPLAINED, "hint") + legend(list(material.settings.systems))
    for number, corpus in enumerate(material.settings.corpora):
        of_corpus = {cell: one for cell, one in found.items() if cell.corpus == corpus}
        if of_corpus:
            body += f"<h3>{escape(corpus)}</h3>\n" + _charts(material, number, of_corpus)
            body += _ends(of_corpus, len(material.settings.seeds) > 1)
    return Section("curves", "Training curves", body + _schedules(material))


_EXPLAINED = (
    "Loss is in nats a target token: of training with label smoothing, each point the mean since "
    "the one before; of validation without. Perplexity is e to that loss. Validation BLEU is of "
    "greedy search on the validation set, and no test score."
)


def _charts(material: Material, number: int, found: Mapping[Cell, History]) -> str:
    drawn = []
    for place, kind in enumerate(_KINDS):
        lines = {cell: kind.of(one) for cell, one in found.items()}
        drawn.append(_figure(material, f"curves-{number}-{place}", kind, lines))
    rates = {cell: list(_rates(material, cell, one)) for cell, one in found.items()}
    drawn.append(_figure(material, f"curves-{number}-rate", _RATE, rates))
    return f'<div class="charts">\n{"".join(drawn)}</div>\n'


def _figure(material: Material, name: str, kind: _Kind, lines: Mapping[Cell, _Line]) -> str:
    """A chart of one line for each training; nothing where no line has a point."""
    lines = {cell: line for cell, line in lines.items() if line}
    if not lines:
        return ""
    systems = list(material.settings.systems)
    styles = line_styles(systems)
    points = max(50, _POINTS // len(lines))
    width = 1.6 if len(material.settings.seeds) == 1 else 0.9
    with chart(name, f"{kind.name} by update", 4.6, 2.9) as made:
        for cell, line in lines.items():
            sparse: dict[str, Any] = {"marker": "o", "markersize": 3} if len(line) < 20 else {}
            (drawn,) = made.axes.plot(
                *thinned(line, points), **styles[cell.system], linewidth=width, **sparse
            )
            drawn.set_gid(line_id(systems.index(cell.system), cell.seed))
        if kind.log:
            _logarithmic(made)
        made.axes.set_xlabel("Update")
        made.axes.xaxis.set_major_formatter("{x:,.0f}")
        made.axes.set_ylabel(kind.axis)
        if kind is _RATE:
            made.axes.yaxis.set_major_formatter("{x:,.0f}")
        if kind is _VALIDATION:
            made.axes.secondary_yaxis("right", functions=(np.exp, _log)).set_ylabel("Perplexity")
    return figure(made.svg(), kind.name)


def _logarithmic(made: Chart) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = made.axes.yaxis
    made.axes.set_yscale("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _log(perplexity: ArrayLike) -> ArrayLike:
    """matplotlib asks for that of 0, too, before the axis has its limits."""
    return np.log(np.maximum(perplexity, 1e-9))


def _of_training(value: Callable[[Point], float]) -> Callable[[History], _Line]:
    return lambda found: [(one.update, value(one)) for one in found.training]


def _of_validation(value: Callable[[Validation], float]) -> Callable[[History], _Line]:
    return lambda found: [(one.update, value(one)) for one in found.validation]


_VALIDATION = _Kind("Validation loss", "Nats a token", _of_validation(lambda one: one.loss))
_KINDS = (
    _Kind("Training loss", "Nats a token", _of_training(lambda one: one.loss)),
    _VALIDATION,
    _Kind("Validation BLEU", "BLEU", _of_validation(lambda one: one.bleu)),
    _Kind("Learning rate", "Learning rate", _of_training(lambda one: one.learning_rate)),
    _Kind(
        "Gradient norm, before clipping",
        "Norm",
        _of_training(lambda one: one.gradient_norm),
        log=True,
    ),
)
_RATE = _Kind("Target tokens a second", "Tokens a second", lambda _: ())


def _rates(material: Material, cell: Cell, found: History) -> Iterator[tuple[float, float]]:
    """Target tokens a second at the points of the curve, where they were measured."""
    timing = material.timings.get(cell)
    rates = timing.training.rates if timing and timing.training else None
    if rates is not None and len(rates) == len(found.training):
        yield from ((one.update, rate) for one, rate in zip(found.training, rates, strict=True))


def _ends(found: Mapping[Cell, History], several: bool) -> str:
    """The last validation and the best of each training, as a table."""
    rows = []
    for cell, one in found.items():
        if one.best is None:
            continue
        last, best = one.validation[-1], one.best
        name = f"{cell.system}, seed {cell.seed}" if several else cell.system
        rows.append(
            [
                Entry.text(name),
                Entry.number(last.update, f"{last.update:,}"),
                Entry.number(last.loss, f"{last.loss:.3f}"),
                Entry.number(last.loss, f"{math.exp(last.loss):.2f}"),
                Entry.number(last.bleu, f"{last.bleu:.1f}"),
                Entry.number(best.update, f"{best.update:,}"),
                Entry.number(best.loss, f"{best.loss:.3f}"),
            ]
        )
    if not rows:
        return ""
    heads = ("System", "Last update", "Loss", "Perplexity", "BLEU", "Best at update", "Its loss")
    caption = "Validation at the end of training, and at its best"
    made = table(heads, rows, caption, sortable=True)
    return made if len(rows) <= _ROWS else details("The figures of validation", made)


def _schedules(material: Material) -> str:
    """The learning rates that the settings ask for, without a training."""
    systems = material.settings.systems
    ends = {name: _last_update(material, name, one) for name, one in systems.items()}
    drawn: dict[tuple[LrSchedule, int], list[str]] = {}
    for name, one in systems.items():
        width = one.model.d_model if one.train.lr_schedule.noam else 0
        drawn.setdefault((one.train.lr_schedule, width), []).append(name)
    lines = {
        _names(names): (schedule, width, max(ends[name] for name in names))
        for (schedule, width), names in drawn.items()
    }
    text = "As the settings have them, drawn without a training."
    if any(one.train.lr_schedule.noam for one in systems.values()):
        for width, warmup in _ANNOTATED:
            schedule = LrSchedule(noam=Noam(factor=1.0, warmup_updates=warmup))
            name = f"{width}:{warmup}"
            lines[name] = schedule, width, _ANNOTATED_UPDATES
        text += " Those named by d_model:warmup are the ones that The Annotated Transformer draws."
    with chart("schedules", "Learning-rate schedules", 5.0, 3.0) as made:
        styles = line_styles(list(lines))
        for name, (schedule, width, end) in lines.items():
            updates = sorted({1 + round((end - 1) * i / 400) for i in range(401)})
            rates = [learning_rate(schedule, update, width) for update in updates]
            made.axes.plot(updates, rates, **styles[name], label=name)
        made.axes.set_xlabel("Update")
        made.axes.xaxis.set_major_formatter("{x:,.0f}")
        made.axes.set_ylabel("Learning rate")
        made.axes.legend(fontsize=9)
    return "<h3>Learning-rate schedules</h3>\n" + figure(made.svg(), text)


def _last_update(material: Material, name: str, system: System) -> int:
    if system.train.max_updates is not None:
        return system.train.max_updates
    return max(record.updates for record in material.records if record.system == name)


def _names(names: Sequence[str]) -> str:
    return (
        ", ".join(names) if len(names) < 4 else f"{', '.join(names[:2])} and {len(names) - 2} more"
    )
