"""Keys of params.yaml in bleuprint 1.0 that have another name or form now.

Each message says what to write instead. Nothing else accepts the old keys. Results of 1.0 are
known by their keys, too.
"""

from collections.abc import Container, Iterator
from pathlib import Path

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.yaml_tree import Tree, as_tree

_OLD = "a key of bleuprint 1.0"
# What to write in place of a key at the top level.
_TOP_LEVEL = {
    "made_texts": "it is called synthetic now",
    "outside": (
        "write each of its systems under systems, with about, corpora and translations, and move "
        "the files to inputs/external/"
    ),
    "tuned": (
        "write its systems under systems, and name what each starts from at the top level: "
        "init_from: {NAME: {system: ..., corpus: ...}}"
    ),
}


def check_not_of_1_0(content: Container[str], path: Path) -> None:
    """Raise UserError if a file of results or of resolved settings was written by bleuprint 1.0.

    Args:
        content: The keys of the file.
        path: The file.
    """
    if "cells" in content and "runs" not in content:
        raise UserError(
            f"{path}: a result of bleuprint 1.0, with the key cells instead of runs; run its "
            "experiment again with this version"
        )


def old_key_errors(document: Tree) -> Iterator[UserError]:
    """Yield an error for each key of 1.0 in params.yaml, in the order of the file.

    Args:
        document: The content of params.yaml.
    """
    for key in document:
        if key in _TOP_LEVEL:
            yield document.places[key].error(f"{_OLD}: {_TOP_LEVEL[key]}")
        if key in ("systems", "tuned"):
            for system in as_tree(document[key]).values():
                yield from _old_keys_of_system(as_tree(system))


def _old_keys_of_system(system: Tree) -> Iterator[UserError]:
    """The old keys of one system."""
    if "over" in system:
        yield system.places["over"].error(f"{_OLD}: write one system for each value")
    settings = [system, *(as_tree(each) for each in as_tree(system.get("corpora")).values())]
    for each in settings:
        train = as_tree(each.get("train"))
        if "from" in train:
            yield train.places["from"].error(
                f"{_OLD}: to start from a system, name it at the top level: init_from: "
                "{NAME: {system: ..., corpus: ...}}; to start from a folder, write "
                "init_from: {folder: ...} here"
            )
