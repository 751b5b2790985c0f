"""Where params.yaml has a setting, for messages about what the setting names, such as a file."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import load_entries
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.yaml_tree import LocatedMapping, Location


def place_of_setting(keys: Sequence[str], root: Path = Path()) -> Location:
    """Return the file, line and key at which params.yaml sets a value.

    A value that an entry inherits is set in another entry. If the value does not exist, for example
    after an edit, the closest entry around it is named.

    Args:
        keys: The keys of the value in the settings, such as external, SYSTEM, CORPUS, translations
            and TEST.
        root: The project's folder.
    """
    path = root / "params.yaml"
    value: Any = LocatedMapping({}, {})
    with suppress(UserError):  # The file may have been edited, so that it cannot be read now.
        value, _ = load_entries(path)
    location = Location(path)
    for key in keys:
        if not isinstance(value, LocatedMapping) or key not in value:
            break
        location = location.child(value, key)
        value = value[key]
    if location.key:
        return location
    return Location(path, ".".join(keys))
