"""The content of params.yaml with every entry in full, before it is validated.

Mappings still know the line of each entry here, so that an error names it. `experiment.py` makes
the dataclasses of the settings from this content.
"""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config.external import separate_external_systems
from bleuprint.config.inherit import expand_entries
from bleuprint.config.old_keys import old_key_errors
from bleuprint.config.references import LINKS
from bleuprint.runtime.errors import UserError, UserErrors
from bleuprint.runtime.schema import describe_unknown_key
from bleuprint.runtime.yaml_tree import LocatedMapping, load_located_yaml

# The top-level keys of params.yaml that may be missing. dvc.yaml has an empty mapping in place of a
# missing key, but DVC fails at a key without a value.
_OPTIONAL_MAPPINGS = (*LINKS, "synthetic", "comet")
_KNOWN_KEYS = (
    "experiment",
    "seeds",
    "corpora",
    "systems",
    "published",
    "synthetic",
    "comet",
    *LINKS,
)


def load_entries(path: Path, root: Path | None = None) -> tuple[LocatedMapping, list[UserError]]:
    """Read params.yaml, and complete its corpora and systems by the settings that they inherit.

    Args:
        path: The path of params.yaml, or of a recipe.
        root: The folder that contains corpora/; by default it is searched for.

    Returns:
        The content, with the trained systems in `runs` and the other systems in `external`, both by
        corpus; and the errors of the entries that are left out because they cannot be completed.

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
    errors = list(_top_level_errors(document, path))
    known_entries = document.only(_KNOWN_KEYS)
    expanded, expansion_errors = expand_entries(known_entries, path, root)
    separated, system_errors = separate_external_systems(expanded)
    return separated, errors + expansion_errors + system_errors


def _find_root(path: Path) -> Path:
    """Return the folder with corpora/: that of params.yaml or, for a recipe, the folder above."""
    for folder in path.parents[:2]:
        if (folder / "corpora").is_dir():
            return folder
    return path.parent


def _top_level_errors(document: LocatedMapping, path: Path) -> Iterator[UserError]:
    """Yield the errors of the top-level keys of params.yaml."""
    for key, value in document.items():
        location = document.locations[key]
        if key not in _KNOWN_KEYS:
            yield location.error(describe_unknown_key(key, _KNOWN_KEYS))
        elif key in _OPTIONAL_MAPPINGS and value is None:
            yield location.error("is empty: remove the key, or add entries")
        elif key in LINKS and not isinstance(value, LocatedMapping):
            yield location.error(f"{value!r} is not a mapping of names")
    if "systems" not in document:
        yield UserError(f"{path}: the key 'systems' is missing")
