"""What each system is: its size, or in which settings it differs from the baseline."""

from collections.abc import Iterator, Mapping

from bleuprint.config.experiment import Settings
from bleuprint.report.grid import NONE
from bleuprint.runtime.html import counted

# Settings of a system that are named beside its scores; all are under Provenance.
_MOST = 5


def changes(systems: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """System, setting, the baseline's value and this one's, for each setting that differs."""
    base, *_ = systems.values()
    for name, settings in list(systems.items())[1:]:
        keys = dict.fromkeys((*base, *settings))
        pairs = {key: (base.get(key, NONE), settings.get(key, NONE)) for key in keys}
        changed = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        for key, pair in (changed or {"nothing": (NONE, NONE)}).items():
            yield name, key, *pair


def descriptions(settings: Settings) -> dict[str, str]:
    """A line on each system: of the first its size, of the others what differs from it."""
    first = settings.systems[0]
    system = settings.system(first)
    model, train = system.model, system.train
    text = (
        f"{model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads"
    )
    for most, noun in ((train.max_updates, "update"), (train.max_epochs, "epoch")):
        text += f", {counted(most, noun)}" if most else ""
    by_system: dict[str, list[str]] = {}
    for name, key, _, value in changes({name: settings.dotted(name) for name in settings.systems}):
        short = key.removeprefix("model.").removeprefix("train.").removeprefix("decode.")
        setting = f"without {short}" if value == NONE else f"{short} {value}"
        by_system.setdefault(name, []).append(setting if key != "nothing" else f"as {first}")
    return {first: text} | {
        name: ", ".join(found[:_MOST])
        + (f" and {len(found) - _MOST} more" if len(found) > _MOST else "")
        for name, found in by_system.items()
    }
