"""The settings of a corpus: its texts, and how they are cleaned, divided and tokenized."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from annotated_types import Ge, Interval, MinLen

from bleuprint.config.citation import LicenseAndCitation
from bleuprint.config.corpus_files import Files
from bleuprint.config.directions import (
    Direction,
    check_directions,
    chosen_pair,
    header_of_pairs,
    language_pairs,
    languages_text,
    origin_of_test,
    pair_of_test,
    params_of_pairs,
    source_words,
)
from bleuprint.config.optimization import check_exactly_one
from bleuprint.config.pair_name import PairName
from bleuprint.rules import CHECKS, EDITS
from bleuprint.rules.edits import NonPrinting, Unicode
from bleuprint.rules.lengths import Length
from bleuprint.rules.rule import Check, Edit
from bleuprint.runtime.schema import Language, Name, NamedEntries, SettingError, Share
from bleuprint.text.segmenter import check_segmenter
from bleuprint.text.tokenizers import Tokenize


@dataclass(frozen=True)
class Dedup:
    """Which training pairs are dropped as duplicates, or because a held-out set contains them.

    Of several equal pairs, the first is kept.

    Attributes:
        pairs: Whether pairs are dropped that equal an earlier pair.
        sources: Whether pairs are dropped whose source equals an earlier source.
        targets: Whether pairs are dropped whose target equals an earlier target.
        decontaminate: How sentences are compared with those of validation and test sets: not at all
            (none), as they are (exact), or without regard to case, punctuation, spaces and
            compatible characters (normalized).
    """

    pairs: bool = True
    sources: bool = False
    targets: bool = False
    decontaminate: Literal["none", "exact", "normalized"] = "normalized"


@dataclass(frozen=True)
class Split:
    """How validation and test sets are drawn from the training text of a corpus without them.

    Attributes:
        valid: The share of the pairs for validation.
        test: The share of the pairs for the test set.
        seed: The seed of the draws.
        every: With N, validation takes every N-th pair instead of a random share.
        temperature: For a corpus with several directions: the temperature by which their training
            texts are sampled (1: as they are).
    """

    valid: Share = 0.05
    test: Share = 0.05
    seed: Annotated[int, Interval(ge=0, le=2**32 - 1)] = 1
    every: Annotated[int, Ge(2)] | None = None
    temperature: Annotated[float, Ge(1)] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if no training pairs remain, or validation is drawn in two ways."""
        if self.valid + self.test >= 1:
            raise ValueError(
                f"valid {self.valid} and test {self.test} leave no training pairs: their sum must "
                "be less than 1"
            )
        if self.every is not None and self.valid:
            raise ValueError(f"valid {self.valid} and every {self.every}: valid must be 0")


@dataclass(frozen=True)
class Bpe:
    """Byte-pair encoding.

    Attributes:
        num_merges: The number of merge operations.
        joint: Whether merges are learned from both languages together, or from each alone.
        threshold: Subwords that are rarer than this in their language are split again, as by
            subword-nmt's --vocabulary-threshold.
    """

    num_merges: Annotated[int, Interval(ge=0, le=10_000_000)]
    joint: bool = True
    threshold: Annotated[int, Interval(ge=0, le=10_000_000)] = 0


@dataclass(frozen=True)
class Words:
    """A vocabulary of whole words: the most frequent ones.

    Attributes:
        joint: Whether both languages share one vocabulary.
        max_size: The largest number of words.
        min_count: How often a word must occur in the training text.
    """

    joint: bool = False
    max_size: Annotated[int, Interval(ge=1, le=10**9)] = 10**9
    min_count: Annotated[int, Interval(ge=1, le=10_000_000)] = 1


@dataclass(frozen=True)
class SentencePiece:
    """Subwords of SentencePiece.

    Attributes:
        model_type: How pieces are found: by a unigram language model, or by SentencePiece's BPE.
        vocab_size: The number of pieces, including the four special tokens and, with
            `byte_fallback`, 256 bytes.
        joint: Whether both languages share one model.
        byte_fallback: Whether unknown characters are spelled by their bytes.
    """

    model_type: Literal["unigram", "bpe"] = "unigram"
    vocab_size: Annotated[int, Interval(ge=5, le=10_000_000)] = 8000
    joint: bool = True
    byte_fallback: bool = False


@dataclass(frozen=True)
class Units:
    """The units that the model reads and writes: subwords or words. One of the first three is set.

    Attributes:
        bpe: Subwords of byte-pair encoding.
        words: Whole words.
        sentencepiece: Subwords of SentencePiece.
        of: The corpus whose vocabulary is used, with its settings. params.yaml names it at the top
            level, in `vocabularies`.
    """

    bpe: Bpe | None = None
    words: Words | None = None
    sentencepiece: SentencePiece | None = None
    of: Name | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless there are units of one kind."""
        check_exactly_one(self, "bpe", "words", "sentencepiece")

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        units = self.bpe or self.words or self.sentencepiece
        return units is not None and units.joint


@dataclass(frozen=True)
class Corpus:
    """A language pair, its texts and their preparation; or several pairs for one model.

    Attributes:
        source: The source language; `src` with `directions`.
        target: The target language; `tgt` with `directions`.
        license_and_citation: The licenses of the texts, by the names that the texts use.
        files: The training, validation and test texts.
        vocabulary: The units of the model.
        clean: The rules that change sentences, in the order in which they run.
        dedup: Which pairs are dropped as duplicates.
        filter: The rules that drop pairs.
        split: How missing validation and test sets are drawn.
        tokenize: The tokenizer.
        directions: The directions, SOURCE-TARGET, of a corpus with several.
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

    def __post_init__(self) -> None:
        """Check settings that depend on each other: languages, licenses, files and drawn sets.

        If the corpus has several translation directions, each direction is checked instead, as a
        corpus with a source and a target language.

        Raises:
            SettingError: A setting does not fit another one; the error names its keys.
            ValueError: Settings do not fit, but no single key is to blame.
        """
        if self.directions is not None:
            check_directions(self)
            return
        # Only the training texts of several directions are mixed, by a temperature.
        if self.split.temperature is not None:
            message = f"{self.split.temperature}: only for a corpus with directions; remove it"
            raise SettingError(["split", "temperature"], message)
        self._check_languages()
        self._check_licenses()
        self._check_repeated_texts()
        self._check_missing_sets()

    def _check_languages(self) -> None:
        """Raise ValueError if the languages are equal, or a tokenizer or rule does not know them.

        A rule is a setting of `clean` or `filter`, such as language identification.
        """
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
        for rule in (*self.clean, *self.filter):
            for language in self.languages:
                rule.check_language(language)

    def _check_licenses(self) -> None:
        """Raise SettingError if a text names a license that the corpus does not describe."""
        for name, text in self.files.texts().items():
            license_name = text.license_and_citation
            if license_name not in self.license_and_citation:
                # A text of a test set is called test.NAME.PART, but params.yaml has its settings
                # under tests.NAME.PART.
                text_keys = name.replace("test.", "tests.", 1).split(".")
                keys = ["files", *text_keys, "license_and_citation"]
                message = f"no entry {license_name!r} in license_and_citation"
                raise SettingError(keys, message)

    def _check_repeated_texts(self) -> None:
        """Raise SettingError if deduplication would drop the copies of a repeated training text.

        `repeat: 3` uses a training text three times, so that the model sees it more often. All of
        its copies are duplicates.
        """
        repeat_by_text = {}
        for name, text in self.files.train.items():
            if text.repeat is not None and text.repeat > 1:
                repeat_by_text[name] = text.repeat
        for key in ("pairs", "sources", "targets"):
            drops_duplicates = getattr(self.dedup, key)
            if not drops_duplicates:
                continue
            for name, repeat in repeat_by_text.items():
                message = f"{repeat}: dedup.{key} would drop the copies; set it to false"
                raise SettingError(["files", "train", name, "repeat"], message)

    def _check_missing_sets(self) -> None:
        """Raise SettingError if the corpus has no validation or test set.

        Each is either in files, or drawn from the training text: a share of its pairs.
        """
        has_training_text = bool(self.files.train)
        is_valid_drawn = bool(self.split.valid or self.split.every)
        if has_training_text and not self.files.valid and not is_valid_drawn:
            message = "0, but files has no validation text: set a share to draw, such as 0.05"
            raise SettingError(["split", "valid"], message)
        if has_training_text and not self.files.tests and not self.split.test:
            message = "0, but files has no test text: set a share to draw, such as 0.05"
            raise SettingError(["split", "test"], message)

    @property
    def languages(self) -> tuple[str, str]:
        """The source and the target language."""
        return self.source, self.target

    @property
    def languages_text(self) -> str:
        """The languages as text: `en to de`, or `en-de, de-en` for several directions."""
        return languages_text(self)

    def effective_split(self) -> Split:
        """Return the settings for drawing sets from the training text, without those in no use.

        A set that is in files is not drawn, so its settings have no effect; they are replaced by
        their defaults. DVC compares the result: it then sees no change, and prepares nothing again,
        when a setting in no use is edited.
        """
        if self.directions:
            # All are in use: the seed also samples the training texts of the directions.
            return self.split
        defaults = dict[str, Any]()
        if self.files.valid:
            defaults["valid"] = Split.valid
            defaults["every"] = None
        if self.files.tests:
            defaults["test"] = Split.test
        if self.files.valid and self.files.tests:
            defaults["seed"] = Split.seed
        try:
            return replace(self.split, **defaults)
        except ValueError:
            # A default share, added to the share of the set that is drawn, is 1 or more.
            return self.split

    def language_pairs(self, name: str) -> dict[str, "Corpus"]:
        """Return the language pairs of the corpus by name, each as a corpus with two languages.

        A corpus with several translation directions has several. Any other corpus is its only pair.

        Args:
            name: The name of the corpus, with which the names of the pairs begin: `many/en-de`.
        """
        return language_pairs(self, name)

    def language_pair(self, name: str, direction: str | None) -> "Corpus":
        """Return the language pair that the user chooses to translate with, by --direction.

        Args:
            name: The name of the corpus, for messages.
            direction: The chosen direction, such as en-de; None if the corpus has one pair only.

        Raises:
            UserError: There is no such direction, or the corpus has several and none is chosen.
        """
        return chosen_pair(self, name, direction)

    def set_label(self, pair_name: str, set_name: str) -> str:
        """Return what messages call a set of a language pair, such as `en-de train`.

        Args:
            pair_name: The language pair, such as `many/en-de`. If the corpus has one pair, its name
                is that of the corpus, and the label is the name of the set alone.
            set_name: The set: train, valid or test.NAME.
        """
        return PairName.parse(pair_name).set_label(set_name)

    def language_pair_of_test(self, test: str) -> "Corpus":
        """Return the language pair that a test set belongs to, as a corpus with two languages."""
        return pair_of_test(self, test)

    def origin_of_test(self, name: str, test: str) -> tuple[str, str]:
        """Return the language pair that a test set belongs to, and the name of the test set in it.

        For the test set `en-de-news` of a corpus `many` with several translation directions, these
        are `many/en-de` and `news`. If the corpus has one pair, both names stay as they are.

        Args:
            name: The name of the corpus.
            test: The name of the test set in the corpus.
        """
        return origin_of_test(self, name, test)

    def source_words(self, line: str) -> list[str]:
        """Return the words of a tokenized source sentence.

        A corpus with several directions puts a tag before them, such as `<2de>`: the language to
        translate into. It is left out.
        """
        return source_words(self, line)

    def header_of_pairs(self) -> dict[str, Any] | None:
        """Return what the binarized corpus records about translation directions; None for one."""
        return header_of_pairs(self)

    def params_of_pairs(self) -> dict[str, Any]:
        """Return what MLflow shows about translation directions; empty for a single one."""
        return params_of_pairs(self)

    def deciding_settings(self) -> dict[str, Any]:
        """Return the settings that can change a result: all except licenses and citations.

        A setting that is None has no effect, and is left out.
        """
        settings = {}
        for key, value in vars(self).items():
            if value is not None and key != "license_and_citation":
                settings[key] = value
        return settings
