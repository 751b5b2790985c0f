"""Errors for the keys of bleuprint 1.0 in params.yaml, which all have a new name or form.

Each error says what to write instead. Results that bleuprint 1.0 has written are recognized by
their keys, too.
"""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import describe_unknown_key
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping, load_located_yaml

_OLD_KEY = "a key of bleuprint 1.0"
# What to write in place of an old top-level key.
_TOP_LEVEL_ADVICE = {
    "made_texts": "It is called synthetic now",
    "outside": (
        "Write each of its systems under systems, with about, corpora and translations, and move "
        "the files to inputs/external/"
    ),
    "tuned": (
        "Write its systems under systems, and name what each starts from at the top level: "
        "init_from: {NAME: {system: ..., corpus: ...}}"
    ),
}
# The new names of old keys; each constant is named after the section that contains the keys.
_NEW_CLEAN_NAMES = {"tags": "html_tags"}
_NEW_FILTER_NAMES = {
    "ratio": "length_ratio",
    "longest_word": "long_word",
    "alphabetic": "alphabet_ratio",
    "script": "character_score",
    "numbers": "numerals",
    "sentence_marks": "terminal_punctuation",
    "alignment_score": "word_alignment",
}
_NEW_LANGUAGE_ID_NAMES = {"likelier": "min_odds"}
_NEW_SENTENCEPIECE_NAMES = {"model": "model_type", "size": "vocab_size"}
_NEW_TRAIN_NAMES = {"validate_every": "validate_interval", "checkpoint_every": "save_interval"}
_NEW_KEEP_NAMES = {"last": "keep_last", "best": "keep_best", "every": "keep_interval"}
_NEW_DECODE_NAMES = {"no_repeat_ngram": "no_repeat_ngram_size", "min_length": "min_len"}


def check_not_of_1_0(content: Container[str], path: Path) -> None:
    """Raise UserError if version 1.0 wrote a JSON file of results; this version cannot read it.

    Such a file has the key `cells`, which is called `runs` since version 2.

    Args:
        content: The keys of the file.
        path: The path of the file, for the message.
    """
    is_of_1_0 = "cells" in content and "runs" not in content
    if is_of_1_0:
        raise UserError(
            f"{path}: bleuprint 1.0 wrote this result, with the key cells instead of runs. Run "
            "its experiment again with this version"
        )


def old_key_errors(document: LocatedMapping, corpora_folder: Path) -> Iterator[UserError]:
    """Yield an error for each key of version 1.0 in params.yaml and in the files of its corpora.

    Version 2 has renamed these keys. Each error says what to write now.

    Args:
        document: The content of params.yaml.
        corpora_folder: The folder corpora/. Only the files in it that params.yaml uses are read.
    """
    for key in document:
        if key in _TOP_LEVEL_ADVICE:
            yield document.locations[key].error(f"{_OLD_KEY}. {_TOP_LEVEL_ADVICE[key]}")
        if key == "corpora":
            yield from _old_key_errors_of_corpora(as_mapping(document[key]), corpora_folder)
        if key in ("systems", "tuned"):
            for system in as_mapping(document[key]).values():
                yield from _old_key_errors_of_system(as_mapping(system))
        if key == "published" and isinstance(document[key], list):
            for score in document[key]:
                yield from _old_key_errors_of_published(as_mapping(score))


def _renamed_key_errors(section: Any, new_names: Mapping[str, str]) -> Iterator[UserError]:
    """Yield an error for each key of a section that has a new name since version 2.

    Args:
        section: A section of params.yaml, such as `decode`. If it is not a mapping, validation
            refuses it later, and this function yields nothing.
        new_names: The new name of each renamed key, such as `{"min_length": "min_len"}`.
    """
    section = as_mapping(section)
    for key in section:
        if key in new_names:
            yield section.locations[key].error(f"{_OLD_KEY}. It is called {new_names[key]} now")


def _old_key_errors_of_corpora(corpora: LocatedMapping, folder: Path) -> Iterator[UserError]:
    """Yield an error for each key of version 1.0 in all corpora.

    The corpora of params.yaml come first, then the files in corpora/ that they use.

    Args:
        corpora: The corpora of params.yaml by name.
        folder: The folder corpora/.
    """
    file_names = list[str]()
    for entry in corpora.values():
        yield from _old_key_errors_of_corpus(as_mapping(entry))
        file_names += _names_of_used_files(entry)
    # Several corpora may use one file. As a key of a dict, its name comes only once.
    for name in dict.fromkeys(file_names):
        path = folder / f"{name}.yaml"
        if path.is_file():
            yield from _old_key_errors_of_file(path)


def _names_of_used_files(settings: Any) -> Iterator[str]:
    """Yield the names of the files in corpora/ that a corpus uses: all values of a key `from`.

    The key may be in the corpus itself, or deeper, in one of its directions. So the function calls
    itself for each value.

    Args:
        settings: The settings of the corpus, or any value in them.
    """
    # `as_mapping` turns a value that is not a mapping, such as a number, into an empty mapping, at
    # which the recursion ends.
    for key, value in as_mapping(settings).items():
        if key == "from" and value is not None:
            yield str(value)
        yield from _names_of_used_files(value)


def _old_key_errors_of_file(path: Path) -> Iterator[UserError]:
    """Yield an error for each key of version 1.0 in a file of corpora/."""
    try:
        corpus = load_located_yaml(path)
    except UserError:
        return  # The file is not YAML. This is reported later, when the corpus is read.
    yield from _old_key_errors_of_corpus(as_mapping(corpus))


def _old_key_errors_of_corpus(corpus: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each key of version 1.0 in the rules and the vocabulary of a corpus."""
    rules = as_mapping(corpus.get("filter"))
    vocabulary = as_mapping(corpus.get("vocabulary"))
    yield from _renamed_key_errors(corpus.get("clean"), _NEW_CLEAN_NAMES)
    yield from _renamed_key_errors(rules, _NEW_FILTER_NAMES)
    yield from _renamed_key_errors(rules.get("language_id"), _NEW_LANGUAGE_ID_NAMES)
    yield from _renamed_key_errors(vocabulary.get("sentencepiece"), _NEW_SENTENCEPIECE_NAMES)


def _old_key_errors_of_system(system: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each key of version 1.0 in the settings of a system.

    Under `corpora`, the system may have other settings for single corpora. They are searched, too.
    """
    for key in ("over", "random"):
        if key in system:
            yield system.locations[key].error(f"{_OLD_KEY}. Write one system for each value")
    all_settings = [system]
    for settings_on_corpus in as_mapping(system.get("corpora")).values():
        all_settings.append(as_mapping(settings_on_corpus))
    for settings in all_settings:
        yield from _old_key_errors_of_training(as_mapping(settings.get("train")))
        yield from _old_key_errors_of_decoding(as_mapping(settings.get("decode")))


def _old_key_errors_of_decoding(decode: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each key of version 1.0 in the section `decode` of a system."""
    yield from _renamed_key_errors(decode, _NEW_DECODE_NAMES)
    if "engine" in decode:
        yield decode.locations["engine"].error(
            f"{_OLD_KEY}. Remove it: PyTorch translates. For CTranslate2, bleuprint export writes "
            "a model"
        )


def _old_key_errors_of_training(train: LocatedMapping) -> Iterator[UserError]:
    """Yield an error for each key of version 1.0 in the section `train` of a system."""
    yield from _renamed_key_errors(train, _NEW_TRAIN_NAMES)
    if "keep" in train:
        yield _keep_error(train)
    if "from" in train:
        yield train.locations["from"].error(
            f"{_OLD_KEY}. To start from a system, name it at the top level: init_from: "
            "{NAME: {system: ..., corpus: ...}}. To start from a folder, write here: "
            "init_from: {folder: ...}"
        )


def _keep_error(train: LocatedMapping) -> UserError:
    """Return the error for the key `keep`, which three settings replace since version 2.

    For `keep: {last: 5, best: 1}`, the message says to write `keep_last: 5, keep_best: 1`. It also
    says which keys in `keep` were unknown to version 1.0 already.

    Args:
        train: The section `train` of a system, which contains `keep`.
    """
    kept_checkpoints = as_mapping(train["keep"])
    new_settings = []
    unknown_key_problems = []
    for key, value in kept_checkpoints.items():
        if key in _NEW_KEEP_NAMES:
            new_settings.append(f"{_NEW_KEEP_NAMES[key]}: {value}")
        else:
            unknown_key_problems.append(f"{key}: {describe_unknown_key(key, _NEW_KEEP_NAMES)}")
    # If `keep` contains no known key, the names of all three settings are listed.
    settings_text = ", ".join(new_settings or _NEW_KEEP_NAMES.values())
    problems = [f"{_OLD_KEY}. Write in its place: {settings_text}", *unknown_key_problems]
    location: Location = train.locations["keep"]
    return location.error("; ".join(problems))


def _old_key_errors_of_published(score: LocatedMapping) -> Iterator[UserError]:
    """Yield an error if a published score has the key `scored`, which is called `metric` now.

    Args:
        score: An entry of `published`: a score from a paper, for comparison.
    """
    if "scored" not in score:
        return
    location = score.locations["scored"]
    if location.is_merged:
        # YAML's merge key `<<` takes the key from another score, which has the error already.
        return
    old_value = score["scored"]
    metric = "unknown" if old_value == "otherwise" else old_value
    yield location.error(f"{_OLD_KEY}. Write metric: {metric}")
