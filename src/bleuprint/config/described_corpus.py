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

from bleuprint.config.corpus_files import NAMES_OF_TEXTS, Text
from bleuprint.config.merge import merge_mappings
from bleuprint.runtime.schema import list_known_names
from bleuprint.runtime.tag_pattern import LANGUAGE_TAG
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, load_located_yaml

_LANGUAGE = re.compile(LANGUAGE_TAG)
# The settings of a text. Other keys that look like a language are one: `tag` is a setting.
_TEXT_KEYS = {field.name for field in fields(Text)}
_LICENSE = "license_and_citation"


def with_described_texts(entry: Any, root: Path) -> Any:
    """Add to a corpus of params.yaml the texts that a file in corpora/ describes.

    A corpus with `from: NAME` takes its texts from corpora/NAME.yaml. The corpus's own settings are
    merged into the settings of the file.

    A LocatedMapping is a dict that also stores the line of each value in the YAML file
    (`locations`), so that an error message can name the line.

    Args:
        entry: The corpus as params.yaml writes it: one language pair.
        root: The folder that contains corpora/.

    Returns:
        The corpus with its texts, without `from`. A corpus without `from` stays unchanged.

    Raises:
        UserError: The file does not exist, or it has no text in a language of the corpus.
    """
    if not isinstance(entry, LocatedMapping) or "from" not in entry:
        return entry  # If it is not a mapping, validation refuses it later.
    from_location = entry.locations["from"]
    description = _load_description(entry["from"], from_location, root)
    # The languages decide which files of each text are used.
    for side in ("source", "target"):
        if not isinstance(entry.get(side), str):
            raise from_location.error(
                f"the {side} language is missing. Name it, for example {side}: en"
            )
    if entry["source"] == entry["target"]:
        raise entry.locations["target"].error(
            f"source and target are both {entry['target']!r}. Name two languages"
        )
    corpus = merge_mappings(description, entry.without("from"))
    return _with_texts_by_side(corpus)


def _load_description(name: Any, location: Location, root: Path) -> LocatedMapping:
    """Read a file in corpora/, which describes the texts of a corpus.

    Args:
        name: The name of the file without .yaml, as params.yaml writes it under `from`.
        location: Where params.yaml has the name, for messages.
        root: The folder that contains corpora/.

    Raises:
        UserError: The file does not exist, or its content is not a mapping.
    """
    folder = root / "corpora"
    path = folder / f"{name}.yaml"
    # A slash would lead to another folder.
    is_file_name = isinstance(name, str) and "/" not in name
    if not (is_file_name and path.is_file()):
        known_names = sorted(file.stem for file in folder.glob("*.yaml"))
        raise location.error(f"no file {path}; {list_known_names(name, known_names)}")
    description = load_located_yaml(path)
    if not isinstance(description, LocatedMapping):
        raise Location(path).error("is not a mapping of license_and_citation and files")
    return description


def _with_texts_by_side(corpus: LocatedMapping) -> LocatedMapping:
    """Return a corpus whose texts have a `source` and a `target` file instead of one per language.

    A file in corpora/ describes a text in many languages: `{en: FILE, de: FILE, fr: FILE}`. A
    corpus from German to English turns it into `{source: FILE, target: FILE}`, with the German and
    the English file. It keeps only the licenses that its texts name.

    Args:
        corpus: A corpus of one language pair; its texts are described by language.
    """
    licenses = corpus.get(_LICENSE)
    files = corpus.get("files")
    if not isinstance(licenses, LocatedMapping):
        return corpus  # Validation refuses it later.
    if not isinstance(files, LocatedMapping):
        return corpus

    def change_text(text: LocatedMapping, location: Location) -> LocatedMapping:
        """Return a text with a source and a target file, and with its license."""
        return _with_license(_text_by_side(text, location, corpus), licenses)

    files = change_texts(files, change_text)
    license_names = {str(text.get(_LICENSE)) for text in _texts_of(files)}
    corpus = corpus.with_value(_LICENSE, licenses.only(license_names), corpus.locations[_LICENSE])
    return corpus.with_value("files", files, corpus.locations["files"])


def _text_by_side(
    text: LocatedMapping, location: Location, corpus: LocatedMapping
) -> LocatedMapping:
    """Return a text with a `source` and a `target` file instead of one file per language.

    Files in languages that the corpus does not translate are dropped. params.yaml may write
    settings under `source` or `target`, for example another URL; they are merged into the settings
    of the file. Each value keeps its line in the YAML file (`locations`), for error messages.

    Args:
        text: The text by language: `{en: FILE, de: FILE, fr: FILE}`. A text that already has a
            `source` and a `target` file is returned unchanged.
        location: Where the text is described, for messages.
        corpus: The corpus, which names its two languages under `source` and `target`.

    Raises:
        UserError: The text has no file in a language of the corpus.
    """
    # Each key that is not a setting of a text and looks like a language code, such as `en`.
    languages = [key for key in text if key not in _TEXT_KEYS and _LANGUAGE.fullmatch(str(key))]
    if not languages:
        return text
    by_side = text.without(*languages)
    for side in ("source", "target"):
        language = corpus[side]
        if language not in languages:
            known_languages = ", ".join(languages)
            raise location.error(
                f"the text is not in {language!r} ({corpus.locations[side]}), but only in "
                f"{known_languages}"
            )
        file = text[language]
        file_location = text.locations[language]
        if side in text:
            changes = text[side]
            file_location = text.locations[side]
            # Values of a wrong type are not merged; validation refuses them later.
            if isinstance(file, LocatedMapping) and isinstance(changes, LocatedMapping):
                file = merge_mappings(file, changes)
        by_side = by_side.with_value(side, file, file_location)
    return by_side


def _with_license(text: LocatedMapping, licenses: LocatedMapping) -> LocatedMapping:
    """Return a text that names its license.

    If a corpus has only one license, its texts need not name it; the name is added here. A text by
    name, such as `{opus: Books/v1}`, has a license of its own (named_texts.py).

    Args:
        text: The text.
        licenses: All licenses of the corpus by name.
    """
    names_license = _LICENSE in text
    is_named = not text.keys().isdisjoint(NAMES_OF_TEXTS)
    if names_license or is_named or len(licenses) != 1:
        return text
    (only_name,) = licenses
    return text.with_value(_LICENSE, only_name, licenses.locations[only_name])


def change_texts(
    files: LocatedMapping, change_text: Callable[[LocatedMapping, Location], LocatedMapping]
) -> LocatedMapping:
    """Apply a function to each text in the training, validation and test sets of a corpus.

    Args:
        files: The texts by set: `{train: {NAME: TEXT}, valid: {NAME: TEXT}, tests: {SET: {NAME:
            TEXT}}}`.
        change_text: Takes a text and where it is described, and returns the changed text.

    Returns:
        The same sets with the changed texts.
    """
    changed_sets: dict[str, Any] = {}
    # Sets that are missing in params.yaml stay missing.
    for set_name in ("train", "valid"):
        if set_name in files:
            changed_sets[set_name] = _change_set(files[set_name], change_text)
    tests = files.get("tests")
    if isinstance(tests, LocatedMapping):
        changed_tests = {}
        for test_name, texts in tests.items():
            changed_tests[test_name] = _change_set(texts, change_text)
        changed_sets["tests"] = LocatedMapping(changed_tests, tests.locations)
    return LocatedMapping({**files, **changed_sets}, files.locations)


def _change_set(
    texts: Any, change_text: Callable[[LocatedMapping, Location], LocatedMapping]
) -> Any:
    """Apply a function to each text of one set.

    Each text keeps its line in the YAML file (`locations`), for error messages.

    Args:
        texts: The texts by name. A value that should be a mapping, but is not, is returned
            unchanged; validation refuses it later.
        change_text: Takes a text and where it is described, and returns the changed text.
    """
    if not isinstance(texts, LocatedMapping):
        return texts
    changed_texts = {}
    for name, text in texts.items():
        changed_texts[name] = text
        if isinstance(text, LocatedMapping):
            changed_texts[name] = change_text(text, texts.locations[name])
    return LocatedMapping(changed_texts, texts.locations)


def _texts_of(files: LocatedMapping) -> Iterator[LocatedMapping]:
    """Yield each text in the training, validation and test sets of a corpus.

    Values of a wrong type are skipped; validation refuses them later.

    Args:
        files: The texts by set: `{train: {NAME: TEXT}, valid: {NAME: TEXT}, tests: {SET: {NAME:
            TEXT}}}`.
    """
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
