"""A corpus of several directions in params.yaml: the files of each, as one corpus's.

`directions: {en-de: {}, de-en: {}, de-fr: {zero_shot: true}}` stands for source and target. Each
direction has the files of the corpus, by `from` or `files`, and its own merged into them; names of
texts and test sets begin with the direction: train.en-de-NAME, tests.en-de-NAME. Only the test sets
of a `zero_shot` direction are used. Text of all directions is in files of the two languages below.
"""

import re
from collections.abc import Callable
from typing import Any

from bleuprint.runtime.yaml_tree import Place, Tree, as_tree

# Stand for the languages of both sides, in names of files.
SOURCE, TARGET = "src", "tgt"
DIRECTION = re.compile("([a-z]{2,3})-([a-z]{2,3})")
_SETS = {"train": "training text", "valid": "validation set", "tests": "test set"}
_OF_TEXTS = ("from", "files", "license_and_citation")


def tag(language: str) -> str:
    """The first word of a source, which says the language of its translation."""
    return f"<2{language}>"


def joined(
    entry: Any, with_files: Callable[[Any], Any], merged: Callable[[Tree, Tree], Tree]
) -> Any:
    """A corpus with the files of all its directions; of one with source and target, its own.

    `with_files`: gives a corpus of one direction its files. Raises UserError at a direction without
    training text, validation or test set, and where directions differ in what a license is.
    """
    if not isinstance(entry, Tree) or not isinstance(entry.get("directions"), Tree):
        return with_files(entry)
    directions: Tree = entry["directions"]
    place: Place = entry.places["directions"]
    for side in ("source", "target"):
        if side in entry:
            raise entry.places[side].error("beside directions, which name languages: remove it")
    texts = entry.only(_OF_TEXTS)
    sets, licenses = {name: Tree({}, {}) for name in _SETS}, Tree({}, {})
    for name, given in directions.items():
        at, sides = directions.places[name], _sides(directions, name)
        whole = with_files(merged(merged(texts, sides), given.only(_OF_TEXTS)))
        _add(sets, name, whole.get("files"), given.get("zero_shot") is True, at)
        cited = whole.get("license_and_citation", Tree({}, {}))
        if not isinstance(cited, Tree):
            raise whole.places["license_and_citation"].error(f"{cited!r} is not a mapping")
        for key, value in cited.items():
            if licenses.setdefault(key, value) != value:
                raise at.error(f"another license_and_citation.{key} than of a direction before")
            licenses.places[key] = cited.places[key]
    if not sets["train"]:
        raise place.error("needs one that is not zero_shot: no text to train on")
    own = {name: given.without(*_OF_TEXTS) for name, given in directions.items()}
    made = {
        "source": SOURCE,
        "target": TARGET,
        "license_and_citation": licenses,
        "files": Tree(sets, dict.fromkeys(sets, place)),
        "directions": Tree(own, directions.places),
    }
    rest = entry.without(*_OF_TEXTS)
    return Tree({**rest, **made}, {**dict.fromkeys(made, place), **entry.places})


def _sides(directions: Tree, name: Any) -> Tree:
    """The languages of a direction as source and target."""
    place, match = directions.places[name], DIRECTION.fullmatch(str(name))
    if not match or match[1] == match[2]:
        raise place.error("a direction is SOURCE-TARGET, two languages such as en-de")
    if not isinstance(directions[name], Tree):
        raise place.error("not a mapping; {} for the files of the corpus")
    return Tree({"source": match[1], "target": match[2]}, {"source": place, "target": place})


def _add(sets: dict[str, Tree], direction: str, files: Any, zero_shot: bool, place: Place) -> None:
    """Add the texts of a direction to the sets of the corpus, named after it."""
    for name in ("tests",) if zero_shot else _SETS:
        if not (texts := as_tree(as_tree(files).get(name))):
            raise place.error(f"has no {_SETS[name]}: needs files.{name}")
        for text, value in texts.items():
            sets[name][f"{direction}-{text}"] = value
            sets[name].places[f"{direction}-{text}"] = texts.places[text]
