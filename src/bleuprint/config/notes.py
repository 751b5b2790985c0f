"""Notes on params.yaml: settings that are valid but may be unintended."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from bleuprint.config.experiment import Settings
from bleuprint.config.system import System
from bleuprint.runtime import environment

# Of each weight: itself, its gradient and Adam's two moments, four bytes each.
_TRAINING_BYTES = 16


def notes(settings: Settings, path: Path = Path("params.yaml")) -> Iterator[str]:
    """All notes, one line each."""
    yield from lost_anchors(path)
    for name, corpus in settings.corpora.items():
        for side, place in corpus.files.outside(Path(), environment.root()).items():
            yield f"corpora.{name}: {side} is read from outside the project: {place}"
        limits = [getattr(rule, "max", 0) for rule in corpus.filter if rule.name() == "length"]
        for row, system in settings.systems.items():
            most = system.model.max_positions
            if any(most <= limit for limit in limits):
                yield (
                    f"systems.{row}.model.max_positions is {most}, but filter.length of {name} "
                    f"keeps sentences of up to {limits[0]} words: one of {most} ends the training"
                )
    for row, system in settings.systems.items():
        yield from memory(row, system, psutil.virtual_memory().total, "memory")


def memory(name: str, system: System, available: int, what: str) -> Iterator[str]:
    """A note if training cannot fit into `available` bytes of `what`."""
    weights = system.model.layer_weights
    if (needed := weights * _TRAINING_BYTES) > available:
        yield (
            f"systems.{name} has {weights:.2g} weights in its layers: training takes more than "
            f"{needed / 1e9:,.0f} GB, and this machine has {available / 1e9:,.0f} GB of {what}"
        )


def lost_anchors(path: Path = Path("params.yaml")) -> Iterator[str]:
    """A note if entries have lost the anchors that they have in git's last commit."""
    if environment.in_temporary_run() or not path.exists():
        return
    command = ["git", "-C", str(path.absolute().parent), "show", f"HEAD:./{path.name}"]
    try:
        committed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        before, now = YAML().load(committed), YAML().load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, subprocess.CalledProcessError, YAMLError):
        return  # outside git, or params.yaml is new
    (old, _), (new, keys) = _anchors(before), _anchors(now)
    missing = {key: anchor for anchor, key in old.items() if anchor not in new and key in keys}
    lost = [f"&{anchor} of {key}" for key, anchor in missing.items() if key not in new.values()]
    if lost:
        yield (
            f"{path}: anchors of the last commit are gone ({', '.join(lost)}), as after dvc exp "
            "run -S: an edit no longer reaches what was merged from them; "
            f"git checkout {path} brings them back, without edits since"
        )


def _anchors(document: Any) -> tuple[dict[str, str], set[str]]:
    """The first key of each anchor, and all keys, both dotted."""
    anchors: dict[str, str] = {}
    keys: set[str] = set()

    def walk(value: Any, key: str) -> None:
        keys.add(key)
        anchor = getattr(value, "anchor", None)
        if anchor is not None and anchor.value:
            anchors.setdefault(anchor.value, key)
        if isinstance(value, Mapping):
            for name, entry in value.items():
                walk(entry, f"{key}.{name}".lstrip("."))

    walk(document, "")
    return anchors, keys
