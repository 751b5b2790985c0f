"""What each system is: its size, or in which settings it differs from the baseline."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from bleuprint.config.experiment import Settings
from bleuprint.report.grid import NONE
from bleuprint.report.task import Task
from bleuprint.runtime.counts import counted
from bleuprint.runtime.flatten import dotted

# Settings of a system that are named beside its scores; all are under Provenance.
_MOST = 5
_SECTION = re.compile("^(model|train|decode|vocabulary)[.]")
# Settings of a training that do not change its weights at an update.
_WATCHING = ("train.validate_every", "train.checkpoint_every", "train.keep.")


def changes(systems: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """System, setting, the baseline's value and this one's, for each setting that differs."""
    base, *_ = systems.values()
    for name, settings in list(systems.items())[1:]:
        keys = dict.fromkeys((*base, *settings))
        pairs = {key: (base.get(key, NONE), settings.get(key, NONE)) for key in keys}
        changed = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        for key, pair in (changed or {"nothing": (NONE, NONE)}).items():
            yield name, key, *pair


def descriptions(settings: Settings, tasks: Sequence[Task] = ()) -> dict[str, str]:
    """A line on each row: of the first system its size, of the others what differs from it.

    Where corpora share a task, also what differs in the preparation from the first of them.
    """
    first, systems = settings.systems[0], _of_systems(settings)
    rows = dict(systems)
    for task in tasks:
        prepared = {name: dotted(settings.corpus(name).deciding()) for name in task.corpora}
        # what replaces something first
        ordered = sorted(changes(prepared), key=lambda changed: changed[-1] == NONE)
        corpora = {task.corpora[0]: "", **_short(ordered, task.corpora[0])}
        for (name, about), corpus in product(systems.items(), task.corpora):
            parts = [about, corpora[corpus]] if name != first else [corpora[corpus] or about]
            rows[task.row(name, corpus)] = "; ".join(filter(None, parts))
    return rows


def _of_systems(settings: Settings) -> dict[str, str]:
    first = settings.systems[0]
    system = settings.system(first)
    model, train = system.model, system.train
    text = (
        f"{model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads"
    )
    for most, noun in ((train.max_updates, "update"), (train.max_epochs, "epoch")):
        text += f", {counted(most, noun)}" if most else ""
    systems = {name: settings.dotted(name) for name in settings.systems}
    return {first: text} | _short(changes(systems), first)


def _short(changed: Iterable[tuple[str, str, str, str]], first: str) -> dict[str, str]:
    """The settings that differ from those of `first`, by name."""
    found: dict[str, list[str]] = {}
    for name, key, _, value in changed:
        settings = found.setdefault(name, [])
        if key != "nothing" and not key.startswith(_WATCHING):
            short = _SECTION.sub("", key)
            settings.append(f"without {short}" if value == NONE else f"{short} {value}")
    return {
        name: (", ".join(each[:_MOST]) or f"as {first}")
        + (f" and {len(each) - _MOST} more" if len(each) > _MOST else "")
        for name, each in found.items()
    }
