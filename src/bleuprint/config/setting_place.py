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

    An entry may inherit the value from another entry; then the line of the other entry is returned.
    params.yaml may have been edited since its settings were loaded. If the value is gone, the
    closest key around it that still exists is returned.

    Args:
        keys: The keys that lead to the value, from the top level: `["corpora", "news", "files"]`.
        root: The project's folder, which contains params.yaml.
    """
    path = root / "params.yaml"
    content: Any = LocatedMapping({}, {})
    with suppress(UserError):  # The file may have been edited, so that it cannot be read now.
        content, _errors = load_entries(path)
    location = Location(path)
    # Go one level deeper with each key.
    for key in keys:
        if not isinstance(content, LocatedMapping) or key not in content:
            break  # The value is gone: keep the place of the last key that exists.
        location = location.child(content, key)
        content = content[key]
    if location.key:
        return location
    # Not even the first key was found, so no line is known.
    return Location(path, ".".join(keys))
