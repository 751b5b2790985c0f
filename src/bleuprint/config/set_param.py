"""`dvc exp run -S` on a params.yaml whose entries share sections by aliases or merge keys.

DVC (3.67) writes all values of all entries into the document, entry by entry. A section that two
entries share is one mapping there: the last entry's values overwrite those of the others, so that
the value given by -S is lost, or reaches all of them.
"""

import io
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from bleuprint.runtime.code import git
from bleuprint.runtime.errors import UserError


def check_shared(document: Any, path: Path) -> None:
    """Raise UserError if DVC has written a value into `path` whose entries share sections.

    `document`: the content of `path` in ruamel's round-trip types.
    """
    if not rewritten(path):
        return
    for kind in ("systems", "corpora"):
        entries = document.get(kind) if isinstance(document, Mapping) else None
        shared = next(_shared(entries), None) if isinstance(entries, Mapping) else None
        if shared:
            first, second, section = shared
            raise UserError(
                f"{path}: rewritten by dvc exp run -S, which loses a value, or changes other "
                f"entries too, where entries share a section, as {kind}.{first} and {second} share "
                f"{section}: git checkout {path} (git diff shows what that undoes), then set it by "
                "bleuprint exp run -S"
            )


def rewritten(path: Path) -> bool:
    """Whether DVC has written a file since git's last commit, by the format that it gives YAML.

    False if the committed file has this format too: then an edit by hand may keep it.
    """
    before, text = committed(path), path.read_bytes()
    return bool(before) and text != before and _has_format(text) and not _has_format(before)


def committed(path: Path) -> bytes:
    """The content of a file in git's last commit; nothing if it has none."""
    return git(path.absolute().parent, "show", f"HEAD:./{path.name}")


def replace_entries(document: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Put plain `values`, which share no sections, in the place of the entries of `document`.

    To be used instead of DVC's `merge_dicts`, which writes them into the entries (see above).
    """
    document.update(values)


def _has_format(text: bytes) -> bool:
    """Whether a text is YAML as DVC writes it."""
    yaml = YAML()
    yaml.default_flow_style = False
    stream = io.BytesIO()
    try:
        yaml.dump(yaml.load(text), stream)
    except (YAMLError, UnicodeDecodeError):  # of a commit
        return False
    return stream.getvalue() == text


def _shared(entries: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Two names of entries and the keys of a mapping that they share, joined by dots."""
    sections = {name: dict(_mappings(entry, "")) for name, entry in entries.items()}
    for first, second in combinations(sections, 2):
        for identity in sections[first].keys() & sections[second].keys():
            yield first, second, sections[second][identity]


def _mappings(value: Any, key: str) -> Iterator[tuple[int, str]]:
    """The identity and the keys of each mapping in a value."""
    if isinstance(value, Mapping):
        if key:
            yield id(value), key
        for name, entry in value.items():
            yield from _mappings(entry, f"{key}.{name}" if key else str(name))
