"""Where params.yaml has a setting, for messages about what the setting names, such as a file."""

from collections.abc import Sequence
from pathlib import Path

from bleuprint.config.entries import load_entries
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.yaml_tree import LocatedMapping, Location


def place_of_setting(keys: Sequence[str], root: Path = Path()) -> Location:
    """Return the file, line and key at which params.yaml sets a value.

    A value that an entry inherits is set in another entry. Of a value that is not there, as after
    an edit, it is the place of the closest entry around it.

    Args:
        keys: The keys of the value in the settings, such as external, SYSTEM, CORPUS, translations
            and TEST.
        root: The project's folder.
    """
    path = root / "params.yaml"
    try:
        value, _ = load_entries(path)
    except UserError:  # it was edited meanwhile
        value = LocatedMapping({}, {})
    place = Location(path)
    for key in keys:
        if not isinstance(value, LocatedMapping) or key not in value:
            break
        place = place.child(value, key)
        value = value[key]
    return place if place.key else Location(path, ".".join(keys))
