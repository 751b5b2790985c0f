"""Corpora with several translation directions: their settings, and the names of their texts.

`directions: {en-de: {}, de-en: {}, de-fr: {zero_shot: true}}` replaces source and target of a
corpus. One model is then trained on all directions. Each direction takes the texts of the corpus
(`from`, `files`), changed by its own. Texts and test sets are named after their direction:
train.en-de-NAME, tests.en-de-NAME. Only the test sets of a `zero_shot` direction are used. The text
of all directions stands in files of two languages, `src` and `tgt`.

The rest of the code sees a corpus as a list of language pairs: each direction is the corpus of one
pair, called CORPUS/DIRECTION, and a corpus without directions is its own single pair.
"""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

from bleuprint.config.merge import merge_mappings
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import SettingError
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, as_mapping
from bleuprint.text.segmenter import check_segmenter, has_segmenter
from bleuprint.text.tokenizers import Tokenize

# The languages of the files that contain the text of all directions.
SOURCE = "src"
TARGET = "tgt"
DIRECTION = re.compile("([a-z]{2,3})-([a-z]{2,3})")
# What messages call a set, by its key in `files`.
_SETS = {"train": "training text", "valid": "validation set", "tests": "test set"}
_LICENSE = "license_and_citation"
# The settings of a corpus that describe its texts; a direction may have them, too.
_TEXT_KEYS = ("from", "files", _LICENSE)


@dataclass(frozen=True)
class Direction:
    """One of several directions of a corpus.

    Attributes:
        zero_shot: Whether only the test sets of the direction are used, none of its training text.
    """

    zero_shot: bool | None = None


@dataclass(frozen=True)
class PairName:
    """The name of a language pair, CORPUS or CORPUS/DIRECTION.

    Attributes:
        corpus: The name of the corpus.
        direction: The direction, SOURCE-TARGET; empty for a corpus without directions.
    """

    corpus: str
    direction: str

    @classmethod
    def parse(cls, name: str) -> "PairName":
        """Split a name, CORPUS or CORPUS/DIRECTION, into its parts."""
        corpus, _, direction = name.partition("/")
        return cls(corpus, direction)

    def text_name(self, own_name: str) -> str:
        """Return the name that a text or test set of this pair has in the corpus.

        Args:
            own_name: The name in the language pair, such as `news` for en-de-news.
        """
        return f"{self.direction}-{own_name}" if self.direction else own_name

    def set_name(self, own_name: str) -> str:
        """Return the name of the corpus's set that contains a set of this pair.

        Args:
            own_name: A set of the pair: train, valid or test.NAME; or a part, such as train.PART.

        Returns:
            test.DIRECTION-NAME; train and valid, which all directions share, stay as they are.
        """
        split, dot, name = own_name.partition(".")
        return f"{split}.{self.text_name(name)}" if dot else split

    def set_label(self, own_name: str) -> str:
        """Return how messages name a set of this pair, such as `en-de train`."""
        return f"{self.direction} {own_name}".strip()


class AnyCorpus(Protocol):
    """The attributes of a corpus that this module reads.

    The class itself is in config/corpus.py, which imports this module.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def source(self) -> str:
        """Return the source language, or `src` with several directions."""

    @property
    def target(self) -> str:
        """Return the target language, or `tgt` with several directions."""

    @property
    def files(self) -> Any:
        """Return the texts of the corpus."""

    @property
    def split(self) -> Any:
        """Return the settings by which sets are drawn from the training text."""

    @property
    def tokenize(self) -> Tokenize:
        """Return the settings of the tokenizer."""

    @property
    def directions(self) -> Mapping[str, Direction] | None:
        """Return the directions by name, SOURCE-TARGET; None for a single language pair."""


T = TypeVar("T")
C = TypeVar("C", bound=AnyCorpus)


def tag(language: str) -> str:
    """Return the first word of a source sentence, which names the language to translate into."""
    return f"<2{language}>"


def join_directions(entry: Any, with_described_texts: Callable[[Any], Any]) -> Any:
    """Return a corpus of params.yaml with the texts of all its directions.

    Each direction inherits the texts of the corpus, and its own settings are merged into them. The
    texts are named after the direction, for example train.en-de-NAME.

    Args:
        entry: The corpus as params.yaml writes it. One without `directions` has one language pair.
        with_described_texts: Gives a corpus of one language pair the texts that its `from` names.

    Raises:
        UserError: A direction lacks a training text, a validation set or a test set, or two
            directions describe a license of one name differently.
    """
    if not isinstance(entry, LocatedMapping):
        return with_described_texts(entry)
    directions = entry.get("directions")
    if not isinstance(directions, LocatedMapping):
        return with_described_texts(entry)
    directions_location: Location = entry.locations["directions"]
    for side in ("source", "target"):
        if side in entry:
            raise entry.locations[side].error("beside directions, which name languages: remove it")
    sets = {set_name: LocatedMapping({}, {}) for set_name in _SETS}
    licenses = LocatedMapping({}, {})
    own_settings = {}
    for name, direction in directions.items():
        location = directions.locations[name]
        pair = _pair_of_direction(entry, directions, name)
        described_pair = with_described_texts(pair)
        is_zero_shot = direction.get("zero_shot") is True
        _add_texts(sets, name, described_pair.get("files"), is_zero_shot, location)
        _add_licenses(licenses, described_pair, location)
        own_settings[name] = direction.without(*_TEXT_KEYS)
    if not sets["train"]:
        message = "needs one that is not zero_shot: no text to train on"
        raise directions_location.error(message)
    joined_settings = {
        "source": SOURCE,
        "target": TARGET,
        _LICENSE: licenses,
        "files": LocatedMapping(sets, dict.fromkeys(sets, directions_location)),
        "directions": LocatedMapping(own_settings, directions.locations),
    }
    # Settings that the entry does not write itself are made of its directions.
    locations = dict.fromkeys(joined_settings, directions_location) | entry.locations
    other_settings = entry.without(*_TEXT_KEYS)
    return LocatedMapping({**other_settings, **joined_settings}, locations)


def _pair_of_direction(
    entry: LocatedMapping, directions: LocatedMapping, name: Any
) -> LocatedMapping:
    """Return the corpus of one direction: its languages, and the settings of its texts.

    Args:
        entry: The corpus as params.yaml writes it.
        directions: The directions of the corpus.
        name: The name of the direction, SOURCE-TARGET.

    Raises:
        UserError: The name is not of this form, or the direction is not a mapping.
    """
    location = directions.locations[name]
    match = DIRECTION.fullmatch(str(name))
    if not match or match[1] == match[2]:
        raise location.error("a direction is SOURCE-TARGET, two languages such as en-de")
    direction = directions[name]
    if not isinstance(direction, LocatedMapping):
        raise location.error("not a mapping; {} for the files of the corpus")
    pair = entry.only(_TEXT_KEYS)
    pair = pair.with_value("source", match[1], location)
    pair = pair.with_value("target", match[2], location)
    return merge_mappings(pair, direction.only(_TEXT_KEYS))


def _add_texts(
    sets: Mapping[str, LocatedMapping],
    direction: str,
    files: Any,
    is_zero_shot: bool,
    location: Location,
) -> None:
    """Add the texts of a direction to the sets of the corpus, named after the direction.

    Args:
        sets: The sets `train`, `valid` and `tests`, which are changed.
        direction: The name of the direction.
        files: The settings `files` of the direction.
        is_zero_shot: Whether only the test sets of the direction are used.
        location: Where params.yaml has the direction, for messages.

    Raises:
        UserError: The direction lacks texts of a set.
    """
    used_sets = ["tests"] if is_zero_shot else list(_SETS)
    for set_name in used_sets:
        texts = as_mapping(as_mapping(files).get(set_name))
        if not texts:
            raise location.error(f"has no {_SETS[set_name]}: needs files.{set_name}")
        for text_name, text in texts.items():
            joined_name = f"{direction}-{text_name}"
            sets[set_name][joined_name] = text
            sets[set_name].locations[joined_name] = texts.locations[text_name]


def _add_licenses(licenses: LocatedMapping, pair: LocatedMapping, location: Location) -> None:
    """Add the licenses of a direction's texts to those of the corpus.

    Args:
        licenses: The licenses of the directions before, which are changed.
        pair: The corpus of the direction.
        location: Where params.yaml has the direction, for messages.

    Raises:
        UserError: A direction before describes a license of the same name differently.
    """
    pair_licenses = pair.get(_LICENSE, LocatedMapping({}, {}))
    if not isinstance(pair_licenses, LocatedMapping):
        raise pair.locations[_LICENSE].error(f"{pair_licenses!r} is not a mapping")
    for name, license_and_citation in pair_licenses.items():
        if name in licenses and licenses[name] != license_and_citation:
            raise location.error(f"another {_LICENSE}.{name} than of a direction before")
        licenses[name] = license_and_citation
        licenses.locations[name] = pair_licenses.locations[name]


def languages_by_side(entry: Any) -> set[str]:
    """Return the languages that a vocabulary of a corpus must know, such as `de` or `from de`.

    A corpus with directions needs them by side, because its vocabulary contains the tags of its
    target languages.

    Args:
        entry: The corpus as params.yaml writes it.

    Returns:
        The source and target language; or `from LANGUAGE` and `to LANGUAGE` for each direction.
    """
    corpus = as_mapping(entry)
    directions = corpus.get("directions")
    if not isinstance(directions, LocatedMapping):
        return {str(corpus.get("source")), str(corpus.get("target"))}
    languages = set()
    for name in directions:
        source, target = name.split("-")
        languages |= {f"from {source}", f"to {target}"}
    return languages


def check_directions(corpus: AnyCorpus) -> None:
    """Check each direction as a corpus of its own, and that zero-shot languages are known.

    A language is known on a side if a direction with training text has it on this side.

    Raises:
        SettingError: A direction has a language that is not known on its side.
        ValueError: A setting does not fit the languages.
    """
    directions = corpus.directions or {}
    if corpus.tokenize.name == "segmenter":
        # At least one language of the corpus must have a segmenter.
        languages = []
        for name in directions:
            languages += name.split("-")
        check_segmenter(list(dict.fromkeys(languages)))
    trained_sources = set()
    trained_targets = set()
    for name, direction in directions.items():
        if not direction.zero_shot:
            source, target = name.split("-")
            trained_sources.add(source)
            trained_targets.add(target)
    # Making the corpus of a direction checks it, too.
    for pair_name, pair in language_pairs(corpus, "").items():
        direction_name = PairName.parse(pair_name).direction
        _check_known(direction_name, "source", pair.source, trained_sources)
        _check_known(direction_name, "target", pair.target, trained_targets)


def _check_known(direction: str, side: str, language: str, known_languages: Set[str]) -> None:
    """Raise SettingError if no training text has a language on this side."""
    if language not in known_languages:
        message = f"no direction of the training text has {language!r} as its {side}"
        raise SettingError(["directions", direction], message)


def language_pairs(corpus: C, name: str) -> dict[str, C]:
    """Return the language pairs of a corpus by name, each as a corpus.

    Args:
        corpus: The corpus.
        name: The name of the corpus.

    Returns:
        The corpus itself as `name`, or NAME/DIRECTION for each direction.
    """
    if corpus.directions is None:
        return {name: corpus}
    return {
        f"{name}/{direction}": _corpus_of_direction(corpus, direction)
        for direction in corpus.directions
    }


def chosen_pair(corpus: C, name: str, direction: str | None) -> C:
    """Return the language pair to translate with.

    Args:
        corpus: The corpus of the system that translates.
        name: The name of the corpus.
        direction: The argument of --direction; None without this option.

    Raises:
        UserError: The corpus has no such direction, or it has several and the option is missing.
    """
    pair_name = f"{name}/{direction}" if direction else name
    pairs = language_pairs(corpus, name)
    if pair_name in pairs:
        return pairs[pair_name]
    if corpus.directions:
        known_directions = ", ".join(corpus.directions)
    else:
        known_directions = f"{corpus.source}-{corpus.target} alone, without it"
    if direction:
        raise UserError(f"--direction {direction}: {name} has {known_directions}")
    raise UserError(f"{name}: --direction is {known_directions}")


def origin_of_test(corpus: AnyCorpus, name: str, test: str) -> tuple[str, str]:
    """Return the name of a test set's language pair, and the test set's name in this pair.

    The test set en-de-news of the corpus `many` is the test set `news` of the pair many/en-de.

    Args:
        corpus: The corpus.
        name: The name of the corpus.
        test: The name of the test set in the corpus.
    """
    if corpus.directions is None:
        return name, test
    source, target, own_name = test.split("-", 2)
    return f"{name}/{source}-{target}", own_name


def pair_of_test(corpus: C, test: str) -> C:
    """Return the language pair of a test set, as a corpus."""
    if corpus.directions is None:
        return corpus
    pair_name, _ = origin_of_test(corpus, "", test)
    return _corpus_of_direction(corpus, PairName.parse(pair_name).direction)


def target_languages_by_tag(corpus: AnyCorpus) -> dict[str, str]:
    """Return each target language by the tag that its sources begin with.

    A corpus of one language pair has no tags.
    """
    languages = {}
    for direction in corpus.directions or ():
        _, target = direction.split("-")
        languages[tag(target)] = target
    return languages


def source_words(corpus: AnyCorpus, line: str) -> list[str]:
    """Return the words of a tokenized source sentence, without the tag of its target language."""
    words = line.split()
    has_tag = corpus.directions is not None
    return words[1:] if has_tag else words


def header_of_pairs(corpus: AnyCorpus) -> dict[str, Any] | None:
    """Return the part of a binary corpus's header that describes its language pairs.

    Returns:
        The target languages by tag; None for a corpus of one language pair.
    """
    languages_by_tag = target_languages_by_tag(corpus)
    return {"tags": languages_by_tag} if languages_by_tag else None


def params_of_directions(corpus: AnyCorpus) -> dict[str, Any]:
    """Return which directions a model is trained on, as parameters for MLflow.

    Returns:
        `trained` or `zero-shot` by direction; an empty mapping for one language pair.
    """
    if corpus.directions is None:
        return {}
    training_by_direction = {}
    for name, direction in corpus.directions.items():
        training_by_direction[name] = "zero-shot" if direction.zero_shot else "trained"
    return {"directions": training_by_direction}


def languages_text(corpus: AnyCorpus) -> str:
    """Return the languages of a corpus for people: `en to de`, or `en-de, de-en`."""
    if corpus.directions is None:
        return f"{corpus.source} to {corpus.target}"
    return ", ".join(corpus.directions)


def _corpus_of_direction(corpus: C, direction: str) -> C:
    """Return one direction of a corpus with several as a corpus of one language pair.

    Args:
        corpus: The corpus with several directions.
        direction: The direction, SOURCE-TARGET.
    """
    source, target = direction.split("-")
    files = replace(
        corpus.files,
        train=_texts_of_direction(direction, corpus.files.train),
        valid=_texts_of_direction(direction, corpus.files.valid),
        tests=_texts_of_direction(direction, corpus.files.tests),
    )
    tokenize = corpus.tokenize
    if tokenize.name == "segmenter" and not has_segmenter(source) and not has_segmenter(target):
        # Languages without a segmenter are tokenized as by Moses in any case. The setting says so
        # because a corpus of one pair without a segmenter is refused.
        tokenize = replace(tokenize, name="moses")
    return replace(
        corpus,
        tokenize=tokenize,
        split=replace(corpus.split, temperature=None),
        directions=None,
        files=files,
        source=source,
        target=target,
    )


def _texts_of_direction(direction: str, texts: Mapping[str, T]) -> dict[str, T]:
    """Return the texts of one direction by their names in this direction.

    Args:
        direction: The direction, SOURCE-TARGET.
        texts: The texts of all directions by DIRECTION-NAME.
    """
    prefix = f"{direction}-"
    own_texts = {}
    for name, text in texts.items():
        if name.startswith(prefix):
            own_texts[name.removeprefix(prefix)] = text
    return own_texts
