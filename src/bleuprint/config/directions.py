"""Corpora with several translation directions: their settings, language pairs and tags.

`directions: {en-de: {}, de-en: {}, de-fr: {zero_shot: true}}` replaces source and target of a
corpus. One model is then trained on all directions, but uses only the test sets of a `zero_shot`
direction. joined_directions.py reads these settings from params.yaml. The text of all directions is
in files of two languages, `src` and `tgt`.

The rest of the code sees a corpus as a list of language pairs (`language_pairs`): each direction is
the corpus of one pair, called CORPUS/DIRECTION, and a corpus without directions is its own single
pair.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

from bleuprint.config.pair_name import PairName, direction_of_text, split_direction
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import SettingError
from bleuprint.text.language_tag import tag
from bleuprint.text.segmenter import check_segmenter, has_segmenter
from bleuprint.text.tokenizers import Tokenize

# The languages of the files that contain the text of all directions.
SOURCE = "src"
TARGET = "tgt"


@dataclass(frozen=True)
class Direction:
    """One of several directions of a corpus.

    Attributes:
        zero_shot: Whether only the test sets of the direction are used, none of its training text.
    """

    zero_shot: bool | None = None


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


def language_pairs(corpus: C, name: str) -> dict[str, C]:
    """Split a corpus into its language pairs. Each is a corpus with two languages.

    A corpus with several translation directions has several; any other corpus is its only pair.

    Args:
        corpus: The corpus.
        name: The name of the corpus, such as `many`.

    Returns:
        The pairs by name: `many/en-de` for a direction, or `many` for the only pair.
    """
    if corpus.directions is None:
        return {name: corpus}
    return {
        f"{name}/{direction}": _corpus_of_direction(corpus, direction)
        for direction in corpus.directions
    }


def chosen_pair(corpus: C, name: str, direction: str | None) -> C:
    """Return the language pair that the user chooses on the command line, by --direction.

    A corpus with several directions needs the option; a corpus with one language pair must not have
    it.

    Args:
        corpus: The corpus on which the translating system was trained.
        name: The name of the corpus.
        direction: The value of --direction, such as en-de; None without the option.

    Raises:
        UserError: The corpus has no such direction, or it has several and the user gives none.
    """
    pair_name = f"{name}/{direction}" if direction else name
    pairs = language_pairs(corpus, name)
    if pair_name in pairs:
        return pairs[pair_name]
    if not corpus.directions:
        raise UserError(
            f"--direction {direction}: {name} has one language pair, {corpus.source}-"
            f"{corpus.target}. Remove --direction"
        )
    known_directions = ", ".join(corpus.directions)
    if direction:
        raise UserError(f"--direction {direction}: {name} has only {known_directions}")
    raise UserError(f"{name} has several directions. Choose one by --direction: {known_directions}")


def origin_of_test(corpus: AnyCorpus, name: str, test: str) -> tuple[str, str]:
    """Return the language pair that a test set belongs to, and the name of the test set in it.

    If the corpus `many` has several directions, its test set `en-de-news` is the test set `news` of
    the language pair `many/en-de`. A corpus with one language pair is itself this pair.

    Args:
        corpus: The corpus.
        name: The name of the corpus, such as `many`.
        test: The name of the test set in the corpus, such as `en-de-news`.

    Returns:
        Two names, such as `many/en-de` and `news`.
    """
    if corpus.directions is None:
        return name, test
    direction = direction_of_text(test, corpus.directions)
    return f"{name}/{direction}", test.removeprefix(f"{direction}-")


def pair_of_test(corpus: C, test: str) -> C:
    """Return the language pair that a test set belongs to, as a corpus with two languages.

    Args:
        corpus: The corpus. If it has one language pair, it is returned itself.
        test: The name of the test set, such as `en-de-news` in a corpus with several directions.
    """
    if corpus.directions is None:
        return corpus
    # The name of the corpus is not needed: only the direction is read from the name of the pair.
    pair_name, _ = origin_of_test(corpus, "", test)
    return _corpus_of_direction(corpus, PairName.parse(pair_name).direction)


def target_languages_by_tag(corpus: AnyCorpus) -> dict[str, str]:
    """Return the target languages by the tag that stands before their source sentences.

    Args:
        corpus: The corpus.

    Returns:
        A mapping such as `{"<2de>": "de"}`; empty for a corpus of one language pair, whose
        sentences have no tags.
    """
    languages = {}
    for direction in corpus.directions or ():
        _, target = split_direction(direction)
        languages[tag(target)] = target
    return languages


def words_without_tag(corpus: AnyCorpus, line: str) -> list[str]:
    """Return the words of a tokenized source sentence, without a language tag.

    In a corpus with several directions, a sentence begins with a tag, such as `<2de>`, that names
    the language to translate into.

    Args:
        corpus: The corpus. Only if it has several directions, its sentences have tags.
        line: The sentence, as tokens separated by spaces.
    """
    words = line.split()
    has_tag = corpus.directions is not None
    return words[1:] if has_tag else words


def header_of_pairs(corpus: AnyCorpus) -> dict[str, Any] | None:
    """Return the entry about translation directions in the header of a binarized corpus.

    It lists the target languages by tag, as `{"tags": {"<2de>": "de"}}`. For a corpus of one
    language pair, whose sentences have no tags, it is None.

    Args:
        corpus: The corpus.
    """
    languages_by_tag = target_languages_by_tag(corpus)
    return {"tags": languages_by_tag} if languages_by_tag else None


def params_of_pairs(corpus: AnyCorpus) -> dict[str, Any]:
    """Return, for MLflow, on which directions of a corpus a model is trained.

    Args:
        corpus: The corpus.

    Returns:
        A mapping such as `{"directions": {"en-de": "trained", "de-fr": "zero-shot"}}`; empty for a
        corpus of one language pair.
    """
    if corpus.directions is None:
        return {}
    training_by_direction = {}
    for name, direction in corpus.directions.items():
        training_by_direction[name] = "zero-shot" if direction.zero_shot else "trained"
    return {"directions": training_by_direction}


def languages_text(corpus: AnyCorpus) -> str:
    """Return the languages of a corpus as text: `en to de`, or `en-de, de-en` for directions."""
    if corpus.directions is None:
        return f"{corpus.source} to {corpus.target}"
    return ", ".join(corpus.directions)


def check_directions(corpus: AnyCorpus) -> None:
    """Check the settings of a corpus with several translation directions.

    Each direction must be a valid corpus of one language pair. The model is not trained on a
    zero-shot direction. So it must learn to read the source language of this direction, and to
    write its target language, from other directions.

    Args:
        corpus: The corpus, which has several directions.

    Raises:
        SettingError: A direction has a language that the model does not know.
        ValueError: A setting does not fit the languages.
    """
    directions = corpus.directions or {}
    if corpus.tokenize.name == "segmenter":
        # At least one language of the corpus must have a segmenter.
        languages = list[str]()
        for name in directions:
            languages += split_direction(name)
        check_segmenter(list(dict.fromkeys(languages)))
    trained_sources = set()
    trained_targets = set()
    for name, direction in directions.items():
        if not direction.zero_shot:
            source, target = split_direction(name)
            trained_sources.add(source)
            trained_targets.add(target)
    # Each pair is a new corpus, which checks its own settings when it is created. The empty name is
    # the name of the whole corpus, which is not needed here.
    for pair_name, pair in language_pairs(corpus, "").items():
        direction_name = PairName.parse(pair_name).direction
        _check_trained(direction_name, "source", pair.source, trained_sources)
        _check_trained(direction_name, "target", pair.target, trained_targets)


def _check_trained(direction: str, side: str, language: str, trained_languages: Set[str]) -> None:
    """Raise SettingError if a direction has a language that the model does not learn.

    Args:
        direction: The direction, such as en-de.
        side: `source` or `target`.
        language: The language that the direction has on this side.
        trained_languages: The languages that the training text has on this side.
    """
    if language not in trained_languages:
        message = f"no direction of the training text has {language!r} as its {side}"
        raise SettingError(["directions", direction], message)


def _corpus_of_direction(corpus: C, direction: str) -> C:
    """Return one direction of a corpus with several directions as a corpus of two languages.

    Args:
        corpus: The corpus with several directions.
        direction: The direction, such as en-de. Only its texts are kept, and `en-de-news` is called
            `news` again.
    """
    source, target = split_direction(direction)
    directions = corpus.directions or {}
    files = replace(
        corpus.files,
        train=_texts_of_direction(direction, corpus.files.train, directions),
        valid=_texts_of_direction(direction, corpus.files.valid, directions),
        tests=_texts_of_direction(direction, corpus.files.tests, directions),
    )
    tokenize = corpus.tokenize
    has_any_segmenter = has_segmenter(source) or has_segmenter(target)
    if tokenize.name == "segmenter" and not has_any_segmenter:
        # A corpus refuses `segmenter` if neither of its languages has one. For such languages the
        # segmenter uses the Moses tokenizer, so `moses` gives the same tokens.
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


def _texts_of_direction(
    direction: str, texts: Mapping[str, T], directions: Iterable[str]
) -> dict[str, T]:
    """Select the texts of one direction, and remove the direction from their names.

    Args:
        direction: The direction, such as en-de.
        texts: The texts of all directions by name, such as `en-de-news`.
        directions: All directions of the corpus.

    Returns:
        The texts of the direction by name, such as `news`.
    """
    texts_of_direction = {}
    for name, text in texts.items():
        if direction_of_text(name, directions) == direction:
            texts_of_direction[name.removeprefix(f"{direction}-")] = text
    return texts_of_direction
