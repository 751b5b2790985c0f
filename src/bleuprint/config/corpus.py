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
    words_without_tag,
)
from bleuprint.config.optimization import check_exactly_one
from bleuprint.config.pair_name import PairName
from bleuprint.rules import CHECKS, EDITS, FOUND_NAMES, find_check, find_edit
from bleuprint.rules.edits import NonPrinting, Unicode
from bleuprint.rules.lengths import Length
from bleuprint.rules.rule import Check, Edit
from bleuprint.runtime.fingerprint import NOT_COUNTED
from bleuprint.runtime.named_entries import NamedEntries
from bleuprint.runtime.schema import Language, Name, SettingError, Sha256, Share
from bleuprint.text.bcp47 import check_language_tag
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
        decontaminate: How sentences are compared with validation and test sentences: not at all
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
        """Check the shares of the pairs that become the validation and the test set.

        Raises:
            ValueError: The shares leave no pairs for training; or `valid` and `every`, two ways to
                choose the validation pairs, are both set.
        """
        if self.valid + self.test >= 1:
            raise ValueError(
                f"valid {self.valid} and test {self.test} leave no training pairs. Their sum "
                "must be less than 1"
            )
        if self.every is not None and self.valid:
            raise ValueError(
                f"valid {self.valid} and every {self.every} both choose validation pairs. To use "
                "every, set valid: 0"
            )


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
        joint: Whether both languages share one model; with `folder`, one vocabulary.
        byte_fallback: Whether unknown characters are spelled by their bytes.
        folder: A pretrained model whose pieces are used: a folder that `bleuprint import` has
            written. Then nothing is learned, and only `joint` has an effect.
        marian: Instead of `folder`: the folder of a model in the Marian format of Hugging Face,
            such as a model of OPUS-MT. `folder` is then the folder into which it is imported.
        huggingface: Instead of `folder`: such a model at Hugging Face, OWNER/NAME, which is
            downloaded.
        revision: The commit of the model at Hugging Face: 40 hexadecimal digits.
        sha256: The SHA-256 of the pieces in `folder`; the stage resolve adds it.
    """

    model_type: Literal["unigram", "bpe"] = "unigram"
    vocab_size: Annotated[int, Interval(ge=5, le=10_000_000)] = 8000
    joint: bool = True
    byte_fallback: bool = False
    folder: str | None = None
    marian: str | None = None
    huggingface: str | None = None
    revision: str | None = None
    # Not counted, since only the stage resolve knows it, and commands read params.yaml.
    sha256: Sha256 | None = field(default=None, metadata=NOT_COUNTED)


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
    def shared_from(self) -> str | None:
        """The corpus whose vocabulary is used; None if the corpus learns its own.

        This is the setting `of`, whose name is short because reports/resolved.json contains it.
        """
        return self.of

    @property
    def joint(self) -> bool:
        """Return whether both languages share one vocabulary."""
        units = self.bpe or self.words or self.sentencepiece
        return units is not None and units.joint


@dataclass(frozen=True)
class Corpus:
    """A language pair, its texts and their preparation; or several pairs for one model.

    Attributes:
        source: The source language, a tag of BCP 47 such as `en` or `zh-Hant`; `src` with
            `directions`.
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
    clean: Annotated[tuple[Edit, ...], NamedEntries(EDITS, find_edit, FOUND_NAMES)] = (
        Unicode(),
        NonPrinting(),
    )
    dedup: Dedup = Dedup()
    filter: Annotated[tuple[Check, ...], NamedEntries(CHECKS, find_check, FOUND_NAMES)] = (
        Length(max=250),
    )
    split: Split = Split()
    tokenize: Tokenize = field(default_factory=Tokenize)
    directions: Annotated[dict[Name, Direction], MinLen(2)] | None = None

    def __post_init__(self) -> None:
        """Check settings that depend on each other, such as the languages and the tokenizer.

        If the corpus has several translation directions, such as en-de and de-en, each of them is
        checked like a corpus with one source and one target language.

        Raises:
            SettingError: A setting does not fit another one; the error names its keys.
            ValueError: Settings do not fit, but no single key is to blame.
        """
        if self.directions is not None:
            check_directions(self)
            return
        # The temperature decides how the training texts of several directions are mixed. This
        # corpus has one direction.
        if self.split.temperature is not None:
            message = "only a corpus with directions uses this setting. Remove it"
            raise SettingError(["split", "temperature"], message)
        self._check_languages()
        self._check_licenses()
        self._check_repeated_texts()
        self._check_missing_sets()

    def _check_languages(self) -> None:
        """Raise an error if a language is unknown, or if something does not support it.

        Both languages must differ. The tokenizer and the rules must support both languages. A rule
        is an entry of `clean` or `filter`, such as language identification.

        Raises:
            SettingError: A language is unknown.
            ValueError: The languages are equal, or something does not support one of them.
        """
        for key, language in (("source", self.source), ("target", self.target)):
            try:
                check_language_tag(language)
            except ValueError as error:
                raise SettingError([key], str(error)) from None
        if self.source == self.target:
            raise ValueError(
                f"source and target are both {self.source!r}, but names of text files end in "
                "these codes, so they must differ. For text in one language, such as "
                "simplification, write target: qaa, a code for local use, and remove the filter "
                "language_id"
            )
        if self.tokenize.name == "segmenter":
            check_segmenter([self.source, self.target])
        if self.tokenize.name == "characters" and self.vocabulary.sentencepiece is not None:
            raise ValueError(
                "tokenize.name characters does not work with vocabulary.sentencepiece, which reads "
                "its token ▁ as a space. Use tokenize.name none"
            )
        for rule in (*self.clean, *self.filter, *self.files.rules()):
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
                message = (
                    f"license_and_citation of the corpus has no entry {license_name!r}. Add it"
                )
                raise SettingError(keys, message)

    def _check_repeated_texts(self) -> None:
        """Raise SettingError if deduplication would undo the setting `repeat` of a training text.

        `repeat: 3` puts three copies of a text into the training text, so that the model sees it
        more often. Deduplication would take the second and third copy for duplicates, and drop
        them.
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
                message = (
                    f"with repeat {repeat}, dedup.{key} would drop the copies. Set dedup.{key}: "
                    "false"
                )
                raise SettingError(["files", "train", name, "repeat"], message)

    def _check_missing_sets(self) -> None:
        """Raise SettingError if the corpus has a training text, but no validation or test set.

        Both sets are needed. Each is either in files, or drawn from the training text.
        """
        if not self.files.train:
            return
        is_valid_drawn = bool(self.split.valid or self.split.every)
        has_valid = bool(self.files.valid) or is_valid_drawn
        if not has_valid:
            message = (
                "the share is 0, but files has no validation text. Set a share to draw, such as "
                "0.05"
            )
            raise SettingError(["split", "valid"], message)
        has_test = bool(self.files.tests) or bool(self.split.test)
        if not has_test:
            message = (
                "the share is 0, but files has no test text. Set a share to draw, such as 0.05"
            )
            raise SettingError(["split", "test"], message)

    @property
    def languages(self) -> tuple[str, str]:
        """The source and the target language."""
        return self.source, self.target

    @property
    def languages_text(self) -> str:
        """The languages as text: `en to de`, or `en-de, de-en` for several directions."""
        return languages_text(self)

    def only_text(self, name: str) -> "Corpus":
        """Return a corpus with only one of the training texts, and with the rules of this text.

        Args:
            name: The name of the training text. If the corpus has several directions, such as
                `en-de-news`, the result is the language pair en-de with the text `news`.
        """
        text = self.files.train[name]
        text_alone = replace(text, separate=None, clean=None, filter=None)
        # Names of training texts begin with their direction, as those of test sets do.
        pair = self.language_pair_of_test(name)
        _, name_in_pair = self.origin_of_test("", name)
        return replace(
            pair,
            files=replace(pair.files, train={name_in_pair: text_alone}),
            clean=self.clean if text.clean is None else text.clean,
            filter=self.filter if text.filter is None else text.filter,
        )

    def effective_split(self) -> Split:
        """Return the settings `split`, with each setting that has no effect set to its default.

        For example, the share `valid` has no effect if the validation set is in files. DVC compares
        the settings that this method returns with those of the last run. So it does not run stages
        again if the user edits a setting that has no effect.
        """
        if self.directions:
            # All settings have an effect: the seed also samples the directions' training texts.
            return self.split
        defaults = dict[str, Any]()
        if self.files.valid:
            defaults["valid"] = Split.valid
            defaults["every"] = None
        if self.files.tests:
            defaults["test"] = Split.test
        if self.files.valid and self.files.tests:
            # No set is drawn at random.
            defaults["seed"] = Split.seed
        try:
            return replace(self.split, **defaults)
        except ValueError:
            # `Split` refuses shares whose sum is 1 or more, for example if the user draws a test
            # set of 0.96, and the default of `valid`, 0.05, is added.
            return self.split

    def language_pairs(self, name: str) -> dict[str, "Corpus"]:
        """Return the language pairs of the corpus by name, each as a corpus with two languages.

        A corpus `many` with several translation directions has the pairs `many/en-de`,
        `many/de-en` and so on. Any other corpus `news` has one pair, which is the corpus itself,
        under its own name `news`.

        Args:
            name: The name of the corpus.
        """
        return language_pairs(self, name)

    def language_pair(self, name: str, direction: str | None) -> "Corpus":
        """Return the language pair that the user chooses to translate with, by --direction.

        Args:
            name: The name of the corpus, for messages.
            direction: The chosen direction, such as en-de; None if the corpus has one pair only.

        Raises:
            UserError: The direction does not exist, or the corpus has several and none is chosen.
        """
        return chosen_pair(self, name, direction)

    def set_label(self, pair_name: str, set_name: str) -> str:
        """Return how messages name a set of a language pair.

        The label is `en-de train` for the training set of the pair `many/en-de`, and `train` in a
        corpus `news` with one language pair.

        Args:
            pair_name: The name of the language pair: `many/en-de`, or `news`.
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

    def words_without_tag(self, line: str) -> list[str]:
        """Return the words of a tokenized source sentence, without a language tag.

        In a corpus with several directions, each source sentence begins with a tag, such as
        `<2de>`, that names the language to translate into. The tag is not one of its words.
        """
        return words_without_tag(self, line)

    def header_of_pairs(self) -> dict[str, Any] | None:
        """Return what the binarized corpus records about translation directions; None for one."""
        return header_of_pairs(self)

    def params_of_pairs(self) -> dict[str, Any]:
        """Return what MLflow shows about translation directions; empty for a single one."""
        return params_of_pairs(self)

    def deciding_settings(self) -> dict[str, Any]:
        """Return the settings that can change a result: all except licenses and citations.

        A setting that is None has no effect, and is skipped.
        """
        settings = {}
        for key, value in vars(self).items():
            if value is not None and key != "license_and_citation":
                settings[key] = value
        return settings
