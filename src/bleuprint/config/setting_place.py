"""Where params.yaml has a setting, for messages about what the setting names, such as a file."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import load_entries
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.yaml_tree import LocatedMapping, Location


def place_of_setting(keys: Sequence[str], root: Path = Path()) -> Location:
    """Find where params.yaml sets a value, for a message: the file, the line and the key.

    An entry may take the value from another entry; then the line of the other entry is returned. If
    params.yaml was edited, so that the value is gone, the closest key around it is returned.

    Args:
        keys: The keys that lead to the value, from the top level: `["corpora", "news", "files"]`.
        root: The project's folder, which contains params.yaml.
    """
    path = root / "params.yaml"
    value: Any = LocatedMapping({}, {})
    with suppress(UserError):  # The file may have been edited, so that it cannot be read now.
        value, _errors = load_entries(path)
    location = Location(path)
    for key in keys:
        if not isinstance(value, LocatedMapping) or key not in value:
            break  # The value is gone: keep the place of the last key that exists.
        location = location.child(value, key)
        value = value[key]
    if location.key:
        return location
    # Not even the first key was found, so that no line is known.
    return Location(path, ".".join(keys))
