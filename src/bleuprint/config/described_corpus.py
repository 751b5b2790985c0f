"""The texts that corpora/NAME.yaml describes, for a corpus of params.yaml with `from: NAME`.

A file in corpora/ lists the files of each text by language, so that one description serves all
directions. Here they become the source and the target of one language pair. What the corpus in
params.yaml says of a text, by language or as `source` and `target`, is merged into its description.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from bleuprint.config.corpus_files import Text
from bleuprint.config.merge import merge_mappings
from bleuprint.runtime.schema import list_known_names
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, load_located_yaml

_LANGUAGE = re.compile("[a-z]{2,3}")
# The settings of a text. Other keys of two or three letters are languages: `tag` is a setting.
_TEXT_KEYS = {field.name for field in fields(Text)}
_LICENSE = "license_and_citation"


def with_described_texts(entry: Any, root: Path) -> Any:
    """Return a corpus of one language pair with the texts of the file that its `from` names.

    Args:
        entry: The corpus as params.yaml writes it.
        root: The folder that contains corpora/.

    Returns:
        The corpus without `from`. A corpus without this key, or a value that is not a mapping, is
        returned as it is; validation refuses it later if necessary.

    Raises:
        UserError: The file does not exist, or it lacks text in a language of the corpus.
    """
    if not isinstance(entry, LocatedMapping) or "from" not in entry:
        return entry
    description = _load_description(entry["from"], entry.locations["from"], root)
    for side in ("source", "target"):
        if not isinstance(entry.get(side), str):
            raise entry.locations["from"].error(f"needs {side}, a language, beside it")
    if entry["source"] == entry["target"]:
        raise entry.locations["target"].error(f"{entry['target']!r} is the source, too")
    corpus = merge_mappings(description, entry.without("from"))
    return _with_texts_by_side(corpus)


def _load_description(name: Any, location: Location, root: Path) -> LocatedMapping:
    """Read the file in corpora/ that a corpus names.

    Args:
        name: The value of `from`.
        location: Where params.yaml has this value, for messages.
        root: The folder that contains corpora/.
    """
    folder = root / "corpora"
    path = folder / f"{name}.yaml"
    if not isinstance(name, str) or "/" in name or not path.is_file():
        known_names = sorted(file.stem for file in folder.glob("*.yaml"))
        raise location.error(f"no file {path}; {list_known_names(name, known_names)}")
    description = load_located_yaml(path)
    if not isinstance(description, LocatedMapping):
        raise Location(path).error("is not a mapping of license_and_citation and files")
    return description


def _with_texts_by_side(corpus: LocatedMapping) -> LocatedMapping:
    """Return a corpus with its texts by side instead of by language, and with their licenses.

    Only the licenses that remaining texts name are kept. Where the description has one license
    only, a text need not name it.
    """
    licenses = corpus.get(_LICENSE)
    files = corpus.get("files")
    if not isinstance(licenses, LocatedMapping) or not isinstance(files, LocatedMapping):
        return corpus  # Validation refuses it.

    def change_text(text: LocatedMapping, location: Location) -> LocatedMapping:
        """Return a text by side, with its license."""
        return _with_license(_text_by_side(text, location, corpus), licenses)

    files = _change_texts(files, change_text)
    license_names = {str(text.get(_LICENSE)) for text in _texts_of(files)}
    corpus = corpus.with_value(_LICENSE, licenses.only(license_names), corpus.locations[_LICENSE])
    return corpus.with_value("files", files, corpus.locations["files"])


def _text_by_side(
    text: LocatedMapping, location: Location, corpus: LocatedMapping
) -> LocatedMapping:
    """Return a text with the keys `source` and `target` in place of languages.

    A file of another language is left out. If the text also has a `source` or `target`, these are
    changes of the file of that language.

    Args:
        text: The settings of the text.
        location: Where they stand, for messages.
        corpus: The corpus, which has the languages as `source` and `target`.

    Raises:
        UserError: The text has files by language, but none in a language of the corpus.
    """
    languages = [key for key in text if key not in _TEXT_KEYS and _LANGUAGE.fullmatch(str(key))]
    if not languages:
        return text
    by_side = text.without(*languages)
    for side in ("source", "target"):
        language = corpus[side]
        if language not in languages:
            known_languages = ", ".join(languages)
            raise location.error(
                f"has no text in {language!r} ({corpus.locations[side]}); there are: "
                f"{known_languages}"
            )
        file = text[language]
        changes = text.get(side)
        file_location = text.locations[language]
        if side in text:
            file_location = text.locations[side]
        if isinstance(file, LocatedMapping) and isinstance(changes, LocatedMapping):
            file = merge_mappings(file, changes)
        by_side = by_side.with_value(side, file, file_location)
    return by_side


def _with_license(text: LocatedMapping, licenses: LocatedMapping) -> LocatedMapping:
    """Return a text with the name of its license if it names none and there is only one."""
    if len(licenses) != 1 or _LICENSE in text:
        return text
    (only_license,) = licenses
    return text.with_value(_LICENSE, only_license, licenses.locations[only_license])


def _change_texts(
    files: LocatedMapping, change_text: Callable[[LocatedMapping, Location], LocatedMapping]
) -> LocatedMapping:
    """Return the texts of a corpus, each changed by a function.

    Values that are not mappings stay as they are; validation refuses them.

    Args:
        files: The settings `files`: texts by name in train, in valid, and in each set of tests.
        change_text: Takes a text and its location.
    """

    def change_set(texts: Any) -> Any:
        """Return the texts of one set, each changed."""
        if not isinstance(texts, LocatedMapping):
            return texts
        changed_texts = {}
        for name, text in texts.items():
            if isinstance(text, LocatedMapping):
                text = change_text(text, texts.locations[name])
            changed_texts[name] = text
        return LocatedMapping(changed_texts, texts.locations)

    changed_sets: dict[str, Any] = {}
    for set_name in ("train", "valid"):
        if set_name in files:
            changed_sets[set_name] = change_set(files[set_name])
    tests = files.get("tests")
    if isinstance(tests, LocatedMapping):
        changed_tests = {name: change_set(texts) for name, texts in tests.items()}
        changed_sets["tests"] = LocatedMapping(changed_tests, tests.locations)
    return LocatedMapping({**files, **changed_sets}, files.locations)


def _texts_of(files: LocatedMapping) -> Iterator[LocatedMapping]:
    """Yield the settings of each text in the sets of a corpus."""
    sets = [files.get("train"), files.get("valid")]
    tests = files.get("tests")
    if isinstance(tests, LocatedMapping):
        sets += tests.values()
    for texts in sets:
        if not isinstance(texts, Mapping):
            continue
        for text in texts.values():
            if isinstance(text, LocatedMapping):
                yield text
