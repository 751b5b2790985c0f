"""params.yaml as frozen dataclasses: the one place where settings are read.

Every setting is written in params.yaml: there are no defaults here, so that DVC tracks everything
that a stage computes from. What does not change a result (workers, GPUs, mirrors) is not a setting
but an environment variable; see `runtime/environment.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from bleuprint.config import renamed
from bleuprint.config.comet import Comet, check_comet
from bleuprint.config.corpus_files import Files, LicenseAndCitation, Text
from bleuprint.config.made_texts import Column, MadeText, check_made_texts
from bleuprint.config.outside import OutsideRow, check_outside
from bleuprint.config.published import Published
from bleuprint.config.set_param import check_shared
from bleuprint.config.system import Overrides, Row, System
from bleuprint.rules import CHECKS, EDITS
from bleuprint.rules.rule import Check, Edit, edited
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import (
    Name,
    Named,
    Range,
    SettingError,
    Share,
    build,
    line_of,
    load_yaml,
)
from bleuprint.text.segmenter import check_segmenter
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

    pairs: bool
    sources: bool
    targets: bool
    decontaminate: Literal["none", "exact", "normalized"]


@dataclass(frozen=True)
class Split:
    """Shares of the pairs that become validation and test sets if a corpus has none.

    With `every`, validation takes every n-th pair instead of a random share.
    """

    valid: Share
    test: Share
    seed: Annotated[int, Range(0, 2**32 - 1)]
    every: Annotated[int, Range(2)] | None = None

    def __post_init__(self) -> None:
        if self.valid + self.test >= 1:
            raise ValueError(f"valid {self.valid} and test {self.test} leave no training pairs")
        if self.every is not None and self.valid:
            raise ValueError(f"valid {self.valid} and every {self.every}: valid must be 0")


@dataclass(frozen=True)
class Bpe:
    """Byte-pair encoding, learned from both languages together (`joint`) or from each alone.

    `threshold`: subwords rarer than this in their language are split again, as by subword-nmt's
    --vocabulary-threshold. `learner`: the implementation; both learn the same merges.
    """

    num_merges: Annotated[int, Range(0, 10_000_000)]
    joint: bool
    threshold: Annotated[int, Range(0, 10_000_000)]
    learner: Literal["incremental", "subword-nmt"]


@dataclass(frozen=True)
class Words:
    """Whole words: the `max_size` most frequent that occur at least `min_count` times."""

    joint: bool
    max_size: Annotated[int, Range(1, 10**9)]
    min_count: Annotated[int, Range(1, 10_000_000)]


@dataclass(frozen=True)
class SentencePiece:
    """Subwords of SentencePiece: by a `unigram` language model, or by its own `bpe`.

    `size`: of the vocabulary, which includes the four special tokens and, with `byte_fallback`, 256
    bytes, by which unknown characters are spelled.
    """

    model: Literal["unigram", "bpe"]
    size: Annotated[int, Range(5, 10_000_000)]
    joint: bool
    byte_fallback: bool


@dataclass(frozen=True)
class Units:
    """The tokens of the model: subwords (`bpe` or `sentencepiece`) or `words`."""

    bpe: Bpe | None = None
    words: Words | None = None
    sentencepiece: SentencePiece | None = None

    def __post_init__(self) -> None:
        if len(self._kinds()) != 1:
            raise ValueError("needs one of bpe, words and sentencepiece")

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        return self._kinds()[0].joint

    def _kinds(self) -> list[Bpe | Words | SentencePiece]:
        return [kind for kind in (self.bpe, self.words, self.sentencepiece) if kind is not None]


@dataclass(frozen=True)
class Corpus:
    """One column of the table: a language pair, its texts and their preparation."""

    source: str
    target: str
    license_and_citation: dict[str, LicenseAndCitation]
    files: Files
    clean: Annotated[tuple[Edit, ...], Named(EDITS)]
    dedup: Dedup
    filter: Annotated[tuple[Check, ...], Named(CHECKS)]
    split: Split
    tokenize: Tokenize
    vocabulary: Units

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            if not re.fullmatch("[a-z]{2,3}", language := getattr(self, side)):
                raise SettingError(
                    [side], f"{language!r}: a language is two or three letters, such as 'de'"
                )
        if self.source == self.target:
            raise ValueError(f"source and target are both {self.source!r}")
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
        try:
            files = self.files.of_languages(self.source, self.target)
        except SettingError as error:
            raise SettingError(["files", *error.keys], str(error)) from None
        # names stand for files, and the same files by name or by URL are the same settings
        object.__setattr__(self, "files", files)
        for part, text in self.files.train.items():
            self._check_part(part, text)

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

    def deciding(self) -> dict[str, Any]:
        """The settings that can change a result: all but license and citation."""
        settings = dict(vars(self))
        del settings["license_and_citation"]
        return settings


@dataclass(frozen=True)
class Settings:
    """The whole experiment."""

    experiment: Name
    seeds: tuple[Annotated[int, Range(0, 2**32 - 1)], ...]
    corpora: dict[str, Corpus]
    systems: dict[str, Row]
    published: tuple[Published, ...]
    made_texts: dict[str, MadeText] | None = None
    comet: dict[str, Comet] | None = None
    outside: dict[str, dict[str, OutsideRow]] | None = None

    def __post_init__(self) -> None:
        for kind, entries in (("corpora", self.corpora), ("systems", self.systems)):
            if not entries:
                raise SettingError([kind], "is empty: name at least one")
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise SettingError(
                ["seeds"], f"{list(self.seeds)}: must list at least one seed, and none twice"
            )
        self._check_cells()
        columns = {
            name: Column(each.source, each.target, each.files, self.systems_on(name))
            for name, each in self.corpora.items()
        }
        check_made_texts(self.made_texts or {}, columns, self.systems)
        check_comet(self.comet or {})
        tests = {name: [*each.files.tests] or ["held-out"] for name, each in self.corpora.items()}
        check_outside(self.outside or {}, tests, self.systems)
        for position in range(len(self.published)):
            self._check_published(position)

    def _check_cells(self) -> None:
        for name, row in self.systems.items():
            for corpus in row.corpora or ():
                if corpus not in self.corpora:
                    raise SettingError(
                        ["systems", name, "corpora", corpus],
                        f"no such corpus; there are: {', '.join(self.corpora)}",
                    )
        for corpus, column in self.corpora.items():
            if not (systems := self.systems_on(corpus)):
                raise SettingError(
                    ["corpora", corpus], "no system is trained on it (systems.*.corpora)"
                )
            for name, system in systems.items():
                _check_cell(name, system, corpus, column)
        cells = [f"{system}-{corpus}" for system in self.systems for corpus in self.corpora]
        if twice := {cell for cell in cells if cells.count(cell) > 1}:
            raise ValueError(f"two cells are called {min(twice)}: rename a system or a corpus")

    def _check_published(self, position: int) -> None:
        """Raise SettingError at a duplicate, or an unknown corpus, test set or system."""
        number = self.published[position]
        tests = self.corpora[number.corpus].files.tests if number.corpus in self.corpora else ()
        systems = [*self.systems_on(number.corpus)]
        for key, what, names in (
            ("corpus", f"corpus {number.corpus!r}", [*self.corpora]),
            ("test", f"test set {number.test!r}", [*tests] or ["held-out"]),
            ("system", f"system {number.system!r} on {number.corpus}", systems),
        ):
            if getattr(number, key) not in (None, *names):
                message = f"no {what}; there are: {', '.join(names)}"
                raise SettingError(["published", position, key], message)
        cells = [(n.name, n.source, n.corpus, n.test, n.scored) for n in self.published]
        if (cell := cells[position]) in cells[:position]:
            raise SettingError(["published", position], f"a second number of {', '.join(cell)}")

    def corpus(self, name: str) -> Corpus:
        return _entry("corpora", self.corpora, name)

    def system(self, name: str) -> Row:
        if any(name in rows for rows in (self.outside or {}).values()):
            raise UserError(f"params.yaml: {name} is a row from outside, without a model here")
        return _entry("systems", self.systems, name)

    def systems_on(self, corpus: str) -> dict[str, System]:
        """The systems that are trained on a corpus, with their settings there."""
        rows = ((name, row.on(corpus)) for name, row in self.systems.items())
        return {name: system for name, system in rows if system is not None}

    def system_on(self, name: str, corpus: str) -> System:
        """The settings of a system on a corpus; raises UserError if there is no such cell."""
        row, _ = self.system(name), self.corpus(corpus)
        if (system := row.on(corpus)) is None:
            raise UserError(
                f"params.yaml: {name} is not trained on {corpus}; systems.{name}.corpora has: "
                f"{', '.join(row.corpora or ())}"
            )
        return system

    def made_text(self, name: str) -> MadeText:
        return _entry("made_texts", self.made_texts or {}, name)

    def outside_on(self, corpus: str) -> dict[str, OutsideRow]:
        """The rows of a corpus whose translations were not made here."""
        return (self.outside or {}).get(corpus, {})

    def check_seed(self, seed: int) -> None:
        """Raise UserError if there is no such seed."""
        if seed not in self.seeds:
            seeds = ", ".join(map(str, self.seeds))
            raise UserError(f"params.yaml: no seed {seed}; there are: {seeds}")

    def overrides(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The overrides by system, corpus and section, for DVC, which needs a value of each.

        True: the system's own section; False: the system is not trained on the corpus.
        """
        return {
            name: {corpus: _sections(row, corpus) for corpus in self.corpora}
            for name, row in self.systems.items()
        }


def load(path: Path = Path("params.yaml")) -> Settings:
    """Read and check the experiment; raises UserError naming file, line, key and value."""
    document = load_yaml(path)
    check_shared(document, path)
    for key in ("made_texts", "comet", "outside"):
        if isinstance(document, Mapping) and document.get(key, ()) is None:  # DVC fails at it
            line = line_of(document, key)
            raise UserError(f"{path}:{line}: {key} is empty: remove the key, or add entries")
    try:
        return build(Settings, document, path)
    except UserError as error:
        raise renamed.refusal(document, path) or error from None


def _sections(row: Row, corpus: str) -> dict[str, Any]:
    given = Overrides() if row.corpora is None else row.corpora.get(corpus)
    if given is None:
        return {each.name: False for each in fields(Overrides)}
    return {name: True if value is None else value for name, value in asdict(given).items()}


def _check_cell(system: str, row: System, corpus: str, column: Corpus) -> None:
    """Raise SettingError if a system cannot be trained on a corpus."""
    if row.model.tie_embeddings == "all" and not column.vocabulary.joint:
        raise SettingError(
            ["systems", system],
            "ties all embeddings (model.tie_embeddings), "
            f"but corpus {corpus} has a vocabulary for each language (vocabulary)",
        )
    if row.train.bpe_dropout and column.vocabulary.bpe is None:
        raise SettingError(
            ["systems", system], f"has train.bpe_dropout, but corpus {corpus} has no bpe"
        )


def _entry(kind: str, entries: Mapping[str, T], name: str) -> T:
    if name not in entries:
        raise UserError(f"params.yaml: no {kind} entry {name!r}; there are: {', '.join(entries)}")
    return entries[name]
