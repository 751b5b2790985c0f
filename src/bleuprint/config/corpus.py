"""The settings of a corpus: its texts, and how they are cleaned, divided and tokenized."""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Annotated, Any, Literal

from annotated_types import Ge, Interval, MinLen

from bleuprint.config.citation import LicenseAndCitation
from bleuprint.config.corpus_files import Files, Text
from bleuprint.config.directions import (
    Direction,
    PairName,
    check_directions,
    chosen_pair,
    facts_of_pairs,
    header_of_pairs,
    language_pairs,
    languages_text,
    origin_of_test,
    pair_of_test,
    source_words,
)
from bleuprint.config.optimization import check_one
from bleuprint.rules import CHECKS, EDITS
from bleuprint.rules.edits import NonPrinting, Unicode
from bleuprint.rules.lengths import Length
from bleuprint.rules.rule import Check, Edit
from bleuprint.runtime.schema import Language, Name, NamedEntries, SettingError, Share
from bleuprint.text.segmenter import check_segmenter
from bleuprint.text.tokenizers import Tokenize


@dataclass(frozen=True)
class Dedup:
    """Which training pairs are dropped as duplicates, or as contained in a held-out set.

    Of equal pairs (`pairs`), or of pairs with equal `sources` or `targets`, the first is kept.
    `decontaminate`: how sentences are compared with those of validation and test sets: not at all
    (none), as they are (exact), or without regard to case, punctuation, spaces and compatible
    characters (normalized).
    """

    pairs: bool = True
    sources: bool = False
    targets: bool = False
    decontaminate: Literal["none", "exact", "normalized"] = "normalized"


@dataclass(frozen=True)
class Split:
    """Shares of the pairs that become validation and test sets if a corpus has none.

    With `every`, validation takes every n-th pair instead of a random share. `temperature`: of a
    corpus of several directions, that of sampling their training text (1: as it is).
    """

    valid: Share = 0.05
    test: Share = 0.05
    seed: Annotated[int, Interval(ge=0, le=2**32 - 1)] = 1
    every: Annotated[int, Ge(2)] | None = None
    temperature: Annotated[float, Ge(1)] | None = None

    def __post_init__(self) -> None:
        if self.valid + self.test >= 1:
            raise ValueError(
                f"valid {self.valid} and test {self.test} leave no training pairs: their sum must "
                "be less than 1"
            )
        if self.every is not None and self.valid:
            raise ValueError(f"valid {self.valid} and every {self.every}: valid must be 0")


@dataclass(frozen=True)
class Bpe:
    """Byte-pair encoding, learned from both languages together (`joint`) or from each alone.

    `threshold`: subwords rarer than this in their language are split again, as by subword-nmt's
    --vocabulary-threshold.
    """

    num_merges: Annotated[int, Interval(ge=0, le=10_000_000)]
    joint: bool = True
    threshold: Annotated[int, Interval(ge=0, le=10_000_000)] = 0


@dataclass(frozen=True)
class Words:
    """Whole words: the `max_size` most frequent that occur at least `min_count` times."""

    joint: bool = False
    max_size: Annotated[int, Interval(ge=1, le=10**9)] = 10**9
    min_count: Annotated[int, Interval(ge=1, le=10_000_000)] = 1


@dataclass(frozen=True)
class SentencePiece:
    """Subwords of SentencePiece: by a `unigram` language model, or by its own `bpe`.

    `vocab_size`: the number of its pieces, with the four special tokens and, with `byte_fallback`,
    256 bytes, by which unknown characters are spelled.
    """

    model_type: Literal["unigram", "bpe"] = "unigram"
    vocab_size: Annotated[int, Interval(ge=5, le=10_000_000)] = 8000
    joint: bool = True
    byte_fallback: bool = False


@dataclass(frozen=True)
class Units:
    """The tokens of the model: subwords (`bpe` or `sentencepiece`) or `words`.

    `of`: the corpus whose vocabulary it is, with the settings of that; by `vocabularies`.
    """

    bpe: Bpe | None = None
    words: Words | None = None
    sentencepiece: SentencePiece | None = None
    of: Name | None = None

    def __post_init__(self) -> None:
        check_one(self, "bpe", "words", "sentencepiece")

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        units = self.bpe or self.words or self.sentencepiece
        return units is not None and units.joint


@dataclass(frozen=True)
class Corpus:
    """One column of the table: a language pair, its texts and their preparation.

    With `directions` (SOURCE-TARGET), of one model for several pairs, it has a column for each
    direction and test set; source and target then stand for the languages of both sides.
    """

    source: Language
    target: Language
    license_and_citation: dict[Name, LicenseAndCitation]
    files: Files
    vocabulary: Units
    clean: Annotated[tuple[Edit, ...], NamedEntries(EDITS)] = (Unicode(), NonPrinting())
    dedup: Dedup = Dedup()
    filter: Annotated[tuple[Check, ...], NamedEntries(CHECKS)] = (Length(max=250),)
    split: Split = Split()
    tokenize: Tokenize = field(default_factory=Tokenize)
    directions: Annotated[dict[Name, Direction], MinLen(2)] | None = None

    def __post_init__(self) -> None:  # noqa: C901
        if self.directions is not None:
            check_directions(self)
            return
        if self.split.temperature is not None:
            message = f"{self.split.temperature}: of a corpus with directions"
            raise SettingError(["split", "temperature"], message)
        if self.source == self.target:
            raise ValueError(
                f"source and target are both {self.source!r}, the ends of the names of both "
                "texts. For text in one language, such as simplification, write target: qaa, a "
                "code for local use, and leave out the filter language_id"
            )
        if self.tokenize.name == "segmenter":
            check_segmenter([self.source, self.target])
        if self.tokenize.name == "characters" and self.vocabulary.sentencepiece is not None:
            raise ValueError(
                "tokenize.name characters: not with vocabulary.sentencepiece, which reads its "
                "token ▁ as a space; use none"
            )
        for rule, side in product((*self.clean, *self.filter), (self.source, self.target)):
            rule.check_language(side)
        for name, text in self.files.texts().items():
            if text.license_and_citation not in self.license_and_citation:
                keys = name.replace("test.", "tests.", 1).split(".")
                raise SettingError(
                    ["files", *keys, "license_and_citation"],
                    f"no entry {text.license_and_citation!r} in license_and_citation",
                )
        for part, text in self.files.train.items():
            self._check_part(part, text)
        drawn = {"valid": self.files.valid or self.split.every, "test": self.files.tests}
        for name, given in drawn.items():
            if self.files.train and not given and not getattr(self.split, name):
                message = f"0: files names no {name} text, so that pairs must be drawn"
                raise SettingError(["split", name], message)

    def _check_part(self, part: str, text: Text) -> None:
        """Raise SettingError at copies of a training text that dedup drops."""
        drops = [key for key in ("pairs", "sources", "targets") if getattr(self.dedup, key)]
        if (text.repeat or 1) > 1 and drops:
            message = f"{text.repeat}: dedup.{drops[0]} would drop the copies"
            raise SettingError(["files", "train", part, "repeat"], message)

    @property
    def languages(self) -> tuple[str, str]:
        return self.source, self.target

    @property
    def languages_text(self) -> str:
        """What the corpus is between, for people: `en to de`, or all its language pairs."""
        return languages_text(self)

    def effective_split(self) -> Split:
        """Return the settings of the sets that are drawn; those of given sets have defaults.

        So a corpus with its own validation set is not prepared again when `split.valid` changes.
        """
        if self.directions:  # their text is sampled by the seed
            return self.split
        unused = dict[str, Any]()
        if self.files.valid:
            unused |= {"valid": Split.valid, "every": None}
        if self.files.tests:
            unused["test"] = Split.test
        if self.files.valid and self.files.tests:
            unused["seed"] = Split.seed
        try:
            return replace(self.split, **unused)
        except ValueError:  # the default of an unused share does not fit the share in use
            return self.split

    def language_pairs(self, name: str) -> dict[str, "Corpus"]:
        """Return the language pairs of the corpus called `name`, by name, each as a corpus.

        A corpus of one language pair is its own only pair.
        """
        return language_pairs(self, name)

    def language_pair(self, name: str, direction: str | None) -> "Corpus":
        """Return the language pair to translate with; raises UserError if there is none.

        Args:
            name: The name of the corpus.
            direction: Which of several pairs, as SOURCE-TARGET.
        """
        return chosen_pair(self, name, direction)

    def set_label(self, pair_name: str, set_name: str) -> str:
        """Return how messages name a set of one of the pairs, which `pairs` calls `pair_name`."""
        return PairName.parse(pair_name).set_label(set_name)

    def language_pair_of_test(self, test: str) -> "Corpus":
        """Return the corpus of a test set's language pair."""
        return pair_of_test(self, test)

    def origin_of_test(self, name: str, test: str) -> tuple[str, str]:
        """Return the language pair that a test set belongs to, and its name there.

        `name`: that of the corpus.
        """
        return origin_of_test(self, name, test)

    def source_words(self, line: str) -> list[str]:
        """Return the words of a tokenized source, without what a model reads before them."""
        return source_words(self, line)

    def header_of_pairs(self) -> dict[str, Any] | None:
        """Return what the header of the binary corpus says of the language pairs, if anything."""
        return header_of_pairs(self)

    def facts_of_pairs(self) -> dict[str, Any]:
        """Return what MLflow shows of the language pairs, beside the other settings."""
        return facts_of_pairs(self)

    def deciding_settings(self) -> dict[str, Any]:
        """The settings that can change a result: all but license and citation."""
        settings = {key: value for key, value in vars(self).items() if value is not None}
        del settings["license_and_citation"]
        return settings
