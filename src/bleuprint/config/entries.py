"""The content of params.yaml with every entry in full, before it is validated.

Mappings still know the line of each entry here, so that an error names it. `experiment.py` makes
the dataclasses of the settings from this content.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from bleuprint.config.inherit import expand_entries
from bleuprint.config.old_keys import old_key_errors
from bleuprint.config.references import LINKS
from bleuprint.runtime.errors import UserError, UserErrors
from bleuprint.runtime.schema import describe_unknown_key
from bleuprint.runtime.yaml_tree import LocatedMapping, load_located_yaml


def read_entries(
    path: Path,
    root: Path | None,
    known_keys: Collection[str],
    optional_mappings: Collection[str],
) -> tuple[LocatedMapping, list[UserError]]:
    """Read params.yaml, and complete its corpora and systems by the settings that they inherit.

    Args:
        path: The path of params.yaml, or of a recipe.
        root: The folder that contains corpora/; if it is None, it is searched for.
        known_keys: The top-level keys.
        optional_mappings: The top-level keys of mappings that may be missing, but not empty.

    Returns:
        The content, with the settings of each system by corpus in `runs`; and the errors of the
        entries that are left out because they cannot be completed.

    Raises:
        UserError: The file is not a mapping in YAML.
        UserErrors: The file has keys of bleuprint 1.0.
    """
    document = load_located_yaml(path)
    if not isinstance(document, LocatedMapping):
        raise UserError(f"{path}: not a mapping of experiment, seeds, corpora and systems")
    if root is None:
        root = _find_root(path)
    old_keys = list(old_key_errors(document, root / "corpora"))
    if old_keys:
        raise UserErrors(str(error) for error in old_keys)
    errors = list(_top_level_errors(document, path, known_keys, optional_mappings))
    expanded, expansion_errors = expand_entries(document.only(known_keys), path, root)
    return expanded, errors + expansion_errors


def _find_root(path: Path) -> Path:
    """Return the folder with corpora/: that of params.yaml or, for a recipe, the folder above."""
    for folder in path.parents[:2]:
        if (folder / "corpora").is_dir():
            return folder
    return path.parent


def _top_level_errors(
    document: LocatedMapping,
    path: Path,
    known_keys: Collection[str],
    optional_mappings: Collection[str],
) -> Iterator[UserError]:
    """Yield the errors of the top-level keys of params.yaml.

    Args:
        document: The content of params.yaml.
        path: The path of params.yaml.
        known_keys: The top-level keys.
        optional_mappings: The top-level keys of mappings that may be missing, but not empty.
    """
    for key, value in document.items():
        location = document.locations[key]
        if key not in known_keys:
            yield location.error(describe_unknown_key(key, known_keys))
        elif key in optional_mappings and value is None:
            yield location.error("is empty: remove the key, or add entries")
        elif key in LINKS and not isinstance(value, LocatedMapping):
            yield location.error(f"{value!r} is not a mapping of names")
    if "systems" not in document:
        yield UserError(f"{path}: the key 'systems' is missing")
