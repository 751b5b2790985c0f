"""What each system is: its size, or in which settings it differs from the baseline."""

import re
from collections.abc import Iterable, Iterator, Mapping

from bleuprint.config.experiment import Settings
from bleuprint.report.frame import table_row_name
from bleuprint.report.table import NONE
from bleuprint.runtime.flatten import flatten_settings
from bleuprint.runtime.wording import counted, list_first

# Settings of a system that are named beside its scores; all are under Provenance.
_MOST = 5
_SECTION = re.compile("^(model|train|decode|vocabulary)[.]")
# Settings of a training that do not change its weights at an update.
_WATCHING = ("train.validate_interval", "train.save_interval", "train.keep_")


def changes(systems: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """System, setting, the baseline's value and this one's, for each setting that differs."""
    base, *_ = systems.values()
    for name, settings in list(systems.items())[1:]:
        keys = dict.fromkeys((*base, *settings))
        pairs = {key: (base.get(key, NONE), settings.get(key, NONE)) for key in keys}
        changed = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        for key, pair in (changed or {"nothing": (NONE, NONE)}).items():
            yield name, key, *pair


def descriptions(settings: Settings, tasks: Mapping[str, str]) -> dict[str, str]:
    """Return a line on each row: of the first system its size, of others what differs from it.

    Where corpora share a task, also what differs in the preparation from the first of them.

    Args:
        settings: The experiment.
        tasks: The name of the task of each corpus (frame.task_names).
    """
    systems = _of_systems(settings)
    rows = dict(systems)
    for task in dict.fromkeys(tasks.values()):
        corpora = [corpus for corpus in tasks if tasks[corpus] == task]
        prepared = {
            name: flatten_settings(settings.corpus(name).deciding_settings()) for name in corpora
        }
        # what replaces something first
        ordered = sorted(changes(prepared), key=lambda changed: changed[-1] == NONE)
        preparations = {corpora[0]: "", **_short(ordered, corpora[0])}
        for system, about in systems.items():
            for corpus in corpora:
                preparation = preparations[corpus]
                if not preparation:
                    text = about
                elif system == settings.trained_systems[0]:
                    text = preparation
                else:
                    text = f"{about}; {preparation}"
                rows[table_row_name(system, corpus, tasks)] = text
    return rows


def _of_systems(settings: Settings) -> dict[str, str]:
    first = settings.trained_systems[0]
    system = settings.system_settings(first)
    model, train = system.model, system.train
    text = (
        f"{model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads"
    )
    for most, noun in ((train.max_updates, "update"), (train.max_epochs, "epoch")):
        text += f", {counted(most, noun)}" if most else ""
    systems = {name: settings.dotted_settings(name) for name in settings.trained_systems}
    return {first: text} | _short(changes(systems), first)


def _short(changed: Iterable[tuple[str, str, str, str]], first: str) -> dict[str, str]:
    """The settings that differ from those of `first`, by name."""
    found: dict[str, list[str]] = {}
    for name, key, _, value in changed:
        settings = found.setdefault(name, [])
        if key != "nothing" and not key.startswith(_WATCHING):
            short = _SECTION.sub("", key)
            settings.append(f"without {short}" if value == NONE else f"{short} {value}")
    return {name: list_first(each, _MOST) or f"as {first}" for name, each in found.items()}
