"""The content of params.yaml with every entry in full, before it is validated.

Mappings still know the line of each entry here, so that an error names it. `experiment.py` makes
the dataclasses of the settings from this content.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from bleuprint.config.inherit import expand_entries
from bleuprint.config.old_keys import old_key_errors
from bleuprint.config.own_names import pin_own_code
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
    """Read params.yaml, and fill in the settings that corpora and systems take from elsewhere.

    For example, a system with `like: NAME` gets the settings of the system NAME. Names of own code
    get its fingerprint. The values of the settings are not checked yet.

    Args:
        path: The path of params.yaml, or of a recipe.
        root: The folder that contains corpora/. If it is None, the folder of the file is tried,
            then the folder above it.
        known_keys: The valid top-level keys.
        optional_mappings: Top-level keys that may be missing; if they are written, they need a
            value.

    Returns:
        The content, with the settings of each system on each corpus in `runs`; and the errors found
        so far. A corpus or system that cannot be filled in is missing in the content, and has an
        error.

    Raises:
        UserError: The file is not a mapping in YAML.
        UserErrors: The file has keys of version 1.0, which have other names now.
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
    pinned, own_code_errors = pin_own_code(expanded, root)
    return pinned, errors + expansion_errors + own_code_errors


def _find_root(path: Path) -> Path:
    """Return the folder that contains corpora/: the folder of a settings file, or the one above.

    params.yaml is next to corpora/; a recipe is in recipes/, one folder deeper.

    Args:
        path: The path of params.yaml, or of a recipe.
    """
    folder_of_file = path.parent
    for folder in (folder_of_file, folder_of_file.parent):
        if (folder / "corpora").is_dir():
            return folder
    return folder_of_file


def _top_level_errors(
    document: LocatedMapping,
    path: Path,
    known_keys: Collection[str],
    optional_mappings: Collection[str],
) -> Iterator[UserError]:
    """Yield an error for each top-level key of params.yaml that is unknown, empty or missing.

    Args:
        document: The content of params.yaml.
        path: The path of params.yaml, for messages.
        known_keys: The valid top-level keys.
        optional_mappings: Top-level keys that may be missing; if they are written, they need a
            value.
    """
    for key, value in document.items():
        location = document.locations[key]
        if key not in known_keys:
            yield location.error(describe_unknown_key(key, known_keys))
        elif key in optional_mappings and value is None:
            # DVC, which reads the file too, fails at a key without a value.
            yield location.error("is empty. Remove the key, or add entries")
        elif key in LINKS and not isinstance(value, LocatedMapping):
            yield location.error(f"{value!r} is not a mapping of names")
    if "systems" not in document:
        yield UserError(f"{path}: the key 'systems' is missing")
