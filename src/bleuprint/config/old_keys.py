"""Keys of params.yaml in bleuprint 1.0 that have another name or form now.

Each message says what to write instead. Nothing else accepts the old keys. Results of 1.0 are
known by their keys, too.
"""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.yaml_tree import LocatedMapping, as_mapping, load_located_yaml

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
# What keys are called now, by the section that has them.
_CLEAN = {"tags": "html_tags"}
_FILTER = {
    "ratio": "length_ratio",
    "longest_word": "long_word",
    "alphabetic": "alphabet_ratio",
    "script": "character_score",
    "numbers": "numerals",
    "sentence_marks": "terminal_punctuation",
    "alignment_score": "word_alignment",
}
_LANGUAGE_ID = {"likelier": "min_odds"}
_SENTENCEPIECE = {"model": "model_type", "size": "vocab_size"}
_TRAIN = {"validate_every": "validate_interval", "checkpoint_every": "save_interval"}
_KEEP = {"last": "keep_last", "best": "keep_best", "every": "keep_interval"}
_DECODE = {"no_repeat_ngram": "no_repeat_ngram_size", "min_length": "min_len"}


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


def old_key_errors(document: LocatedMapping, corpora_folder: Path) -> Iterator[UserError]:
    """Yield an error for each key of 1.0 in params.yaml and in the corpora files that it names.

    Args:
        document: The content of params.yaml.
        corpora_folder: The folder with the corpora files.
    """
    for key in document:
        if key in _TOP_LEVEL:
            yield document.locations[key].error(f"{_OLD}: {_TOP_LEVEL[key]}")
        if key == "corpora":
            yield from _old_keys_of_corpora(as_mapping(document[key]), corpora_folder)
        if key in ("systems", "tuned"):
            for system in as_mapping(document[key]).values():
                yield from _old_keys_of_system(as_mapping(system))
        if key == "published" and isinstance(document[key], list):
            for number in document[key]:
                yield from _old_keys_of_published(as_mapping(number))


def _renamed(section: Any, new_names: Mapping[str, str]) -> Iterator[UserError]:
    """Yield an error for each key of a section that has a new name."""
    section = as_mapping(section)
    for key in section:
        if key in new_names:
            yield section.locations[key].error(f"{_OLD}: it is called {new_names[key]} now")


def _old_keys_of_corpora(corpora: LocatedMapping, folder: Path) -> Iterator[UserError]:
    """Yield an error for each old key of all corpora, then of the corpora files that they name."""
    file_names = list[str]()
    for entry in corpora.values():
        yield from _old_keys_of_corpus(as_mapping(entry))
        file_names += _file_names(entry)
    for name in dict.fromkeys(file_names):
        path = folder / f"{name}.yaml"
        if path.is_file():
            yield from _old_keys_of_file(path)


def _file_names(entry: Any) -> Iterator[str]:
    """Yield the names of corpora files that a corpus uses.

    Each is the value of a key `from`, of the corpus, one of its texts or one of its directions.
    """
    for key, value in as_mapping(entry).items():
        if key == "from" and value is not None:
            yield str(value)
        # of a value that is not a mapping, nothing
        yield from _file_names(value)


def _old_keys_of_file(path: Path) -> Iterator[UserError]:
    """Yield an error for each old key of a corpora file; one that is not YAML is refused later."""
    try:
        corpus = load_located_yaml(path)
    except UserError:
        return
    yield from _old_keys_of_corpus(as_mapping(corpus))


def _old_keys_of_corpus(corpus: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each old key in the settings of a corpus."""
    rules = as_mapping(corpus.get("filter"))
    vocabulary = as_mapping(corpus.get("vocabulary"))
    yield from _renamed(corpus.get("clean"), _CLEAN)
    yield from _renamed(rules, _FILTER)
    yield from _renamed(rules.get("language_id"), _LANGUAGE_ID)
    yield from _renamed(vocabulary.get("sentencepiece"), _SENTENCEPIECE)


def _old_keys_of_system(system: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each old key of a system."""
    for key in ("over", "random"):
        if key in system:
            yield system.locations[key].error(f"{_OLD}: write one system for each value")
    settings = [system]
    for settings_on_corpus in as_mapping(system.get("corpora")).values():
        settings.append(as_mapping(settings_on_corpus))
    for each in settings:
        yield from _old_keys_of_training(as_mapping(each.get("train")))
        yield from _old_keys_of_decoding(as_mapping(each.get("decode")))


def _old_keys_of_decoding(decode: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each old key of the section `decode`."""
    yield from _renamed(decode, _DECODE)
    if "engine" in decode:
        yield decode.locations["engine"].error(
            f"{_OLD}: remove it; PyTorch translates, and bleuprint export writes a model for "
            "CTranslate2"
        )


def _old_keys_of_training(train: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each old key of the section `train`."""
    yield from _renamed(train, _TRAIN)
    if "keep" in train:
        kept = as_mapping(train["keep"])
        new = []
        for key, value in kept.items():
            if key in _KEEP:
                new.append(f"{_KEEP[key]}: {value}")
        message = ", ".join(new) or ", ".join(_KEEP.values())
        yield train.locations["keep"].error(f"{_OLD}: write in its place: {message}")
    if "from" in train:
        yield train.locations["from"].error(
            f"{_OLD}: to start from a system, name it at the top level: init_from: "
            "{NAME: {system: ..., corpus: ...}}; to start from a folder, write "
            "init_from: {folder: ...} here"
        )


def _old_keys_of_published(number: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for the old key of a published number."""
    # of one that has it from another number (<<), the other one's place is named
    if "scored" in number and not number.locations["scored"].is_merged:
        value = number["scored"]
        metric = "unknown" if value == "otherwise" else value
        yield number.locations["scored"].error(f"{_OLD}: write metric: {metric}")
