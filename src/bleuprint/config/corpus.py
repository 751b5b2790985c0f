"""The settings of a corpus: its texts, and how they are cleaned, divided and tokenized."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Interval, MinLen

from bleuprint.config.citation import LicenseAndCitation
from bleuprint.config.corpus_files import Files, Text
from bleuprint.config.directions import tag
from bleuprint.config.optimization import check_one
from bleuprint.rules import CHECKS, EDITS
from bleuprint.rules.edits import NonPrinting, Unicode
from bleuprint.rules.lengths import Length
from bleuprint.rules.rule import Check, Edit, edited
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import Language, Name, Named, SettingError, Share
from bleuprint.text.segmenter import check_segmenter, has_segmenter
from bleuprint.text.tokenizers import Tokenize, tokenizer_for

T = TypeVar("T")


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
class Direction:
    """One of several directions of a corpus; of a `zero_shot` one, nothing is trained on."""

    zero_shot: bool | None = None


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
    clean: Annotated[tuple[Edit, ...], Named(EDITS)] = (Unicode(), NonPrinting())
    dedup: Dedup = Dedup()
    filter: Annotated[tuple[Check, ...], Named(CHECKS)] = (Length(max=250),)
    split: Split = Split()
    tokenize: Tokenize = field(default_factory=Tokenize)
    directions: Annotated[dict[Name, Direction], MinLen(2)] | None = None

    def __post_init__(self) -> None:  # noqa: C901
        if self.directions is not None:
            self._check_directions(self.directions)
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
        """Raise SettingError at a `tag` that is not one token, and at copies that dedup drops."""
        keys = ["files", "train", part]
        if text.tag is not None and self.vocabulary.sentencepiece is not None:
            message = f"{text.tag!r}: not with vocabulary.sentencepiece, for which it is rare text"
            raise SettingError([*keys, "tag"], message)
        if text.tag is not None:
            word = edited(text.tag, self.source, self.clean)
            if (tokens := tokenizer_for(self.source, self.tokenize).tokenize(word)) != [text.tag]:
                message = f"clean and tokenize turn {text.tag!r} into {tokens}: not one token"
                raise SettingError([*keys, "tag"], message)
        drops = [key for key in ("pairs", "sources", "targets") if getattr(self.dedup, key)]
        if (text.repeat or 1) > 1 and drops:
            message = f"{text.repeat}: dedup.{drops[0]} would drop the copies"
            raise SettingError([*keys, "repeat"], message)

    def _check_directions(self, directions: Mapping[str, Direction]) -> None:
        """Check each direction as a corpus of its own, and that zero-shot languages are known."""
        trained = [name.split("-") for name, each in directions.items() if not each.zero_shot]
        if self.tokenize.name == "segmenter":  # of one language at least
            check_segmenter([*dict.fromkeys("-".join(directions).split("-"))])
        for name, corpus in self.pairs("").items():
            if made := corpus.files.synthetic_texts():
                keys = ["files", "train", f"{corpus.source}-{corpus.target}-{next(iter(made))}"]
                raise SettingError(keys, "made by a system: not in a corpus with directions")
            sides = zip((corpus.source, corpus.target), zip(*trained, strict=True), strict=True)
            for side, (language, known) in zip(("source", "target"), sides, strict=True):
                if language not in known:
                    message = f"no direction of the training text has {language!r} as its {side}"
                    raise SettingError(["directions", name.removeprefix("/")], message)

    @property
    def languages(self) -> tuple[str, str]:
        return self.source, self.target

    @property
    def tags(self) -> dict[str, str]:
        """The target languages of several directions by the tags of their sources."""
        targets = (name.split("-")[1] for name in self.directions or ())
        return {tag(language): language for language in targets}

    def used_split(self) -> Split:
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

    def pairs(self, name: str) -> dict[str, "Corpus"]:
        """The corpora of one language pair: itself as `name`, or NAME/DIRECTION for each."""
        if self.directions is None:
            return {name: self}
        return {f"{name}/{each}": self._direction(each) for each in self.directions}

    def pair(self, name: str, direction: str | None) -> "Corpus":
        """The corpus of one pair to translate with: itself as `name`, or that of a direction.

        Raises UserError if it has no such direction, or several and none is given.
        """
        pairs = self.pairs(name)
        if found := pairs.get(f"{name}/{direction}" if direction else name):
            return found
        there = ", ".join(self.directions or (f"{self.source}-{self.target} alone, without it",))
        given = f"--direction {direction}: {name} has" if direction else f"{name}: --direction is"
        raise UserError(f"{given} {there}")

    def of_test(self, test: str) -> "Corpus":
        """The corpus of a test set's language pair."""
        return self._direction("-".join(test.split("-")[:2])) if self.directions else self

    def _direction(self, name: str) -> "Corpus":
        source, target = name.split("-")
        files = self.files
        files = Files(_of(name, files.train), _of(name, files.valid), _of(name, files.tests))
        split, tokenize = replace(self.split, temperature=None), self.tokenize
        if tokenize.name == "segmenter" and not any(map(has_segmenter, (source, target))):
            tokenize = replace(tokenize, name="moses")  # as tokenizer_for does
        return replace(
            self,
            tokenize=tokenize,
            split=split,
            directions=None,
            files=files,
            source=source,
            target=target,
        )

    def deciding(self) -> dict[str, Any]:
        """The settings that can change a result: all but license and citation."""
        settings = {key: value for key, value in vars(self).items() if value is not None}
        del settings["license_and_citation"]
        return settings


def _of(direction: str, texts: Mapping[str, T]) -> dict[str, T]:
    """The texts of a direction, by their names without it."""
    begin = f"{direction}-"
    return {k.removeprefix(begin): text for k, text in texts.items() if k.startswith(begin)}
