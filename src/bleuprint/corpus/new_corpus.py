"""The command new-corpus: an entry of `corpora` for two files, with rules that suit them."""

import json
import random
import re
import unicodedata
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from bleuprint.config.corpus import Corpus
from bleuprint.config.system import System
from bleuprint.corpus.download.download import Sample
from bleuprint.corpus.download.fetch import Source
from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.corpus.guess_languages import GuessedLanguage, guess_languages
from bleuprint.corpus.inspect import Inspection, inspect_corpus
from bleuprint.corpus.line_shift import first_shifted_line
from bleuprint.corpus.tool_formats import tool_format
from bleuprint.rules.language_id import LanguageId
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import not_a_file
from bleuprint.runtime.schema import MAX_NAME, build
from bleuprint.text.segmenter import has_segmenter
from bleuprint.text.tokenizers import tokenizer_for

# Pairs that are inspected, and lines by which languages are guessed.
_PAIRS, _LINES = 20_000, 2000
# A check that would drop a larger share of the pairs is left out: it does not suit the text.
# Numbers and sentence marks differ in good translations too ("two", a title without a full stop).
_MOST_DROPPED = {
    "numbers": 0.02,
    "sentence_marks": 0.02,
    "language_id": 0.2,
    "alignment_score": 0.2,
}
# Below it word translations cannot be learned, so that good pairs score low.
_ALIGNED_PAIRS = 1000
# Merges of BPE for corpora of up to so many pairs; the sizes of published set-ups, which use
# 32,000 for millions.
_MERGES = {5_000: 2000, 20_000: 4000, 100_000: 6000, 500_000: 10_000, 2_000_000: 16_000}
_MOST_MERGES = 32_000
# Pairs drawn for each of validation and test set, at most; each needs one, and the training.
_HELD_OUT, _FEWEST = 2000, 3

EDITS = {
    "entities": "{}",
    "tags": "{}",
    "mojibake": "{}",
    "unicode": "{form: NFC}",
    "non_printing": "{}",
}
CHECKS = {
    "identical": "{}",
    "length": "{min: 1, max: 100}",
    "ratio": "{max: 4.0}",
    "numbers": "{}",
    "sentence_marks": "{}",
    "language_id": "{likelier: 10.0}",
    "alignment_score": "{min: 0.5}",
}
# Applied whatever the sample shows.
_ALWAYS = frozenset({"unicode", "non_printing", "identical", "length", "ratio"})

_ENTRY = """\
  {name}:
    source: "{source}"
    target: "{target}"
    license_and_citation:
      {part}: {{license: not stated, bibtex: "@misc{{{part}, title = {{{{{part}}}}}}}"}}
    files:
      train:
        {part}:
          license_and_citation: {part}
          source: {{path: {source_path}}}
          target: {{path: {target_path}}}
      valid: {{}}
      tests: {{}}
    clean: {{{clean}}}
    dedup: {{pairs: true, sources: false, targets: false, decontaminate: normalized}}
    filter: {{{filter}}}
    # validation and test set are drawn from the {pairs:,} pairs
    split: {{valid: {share}, test: {share}, seed: 1}}
    tokenize: {{name: {tokenizer}, lowercase: false, hyphens: false, escape: false}}
    vocabulary: {{{vocabulary}}}
"""
_BPE = "bpe: {{num_merges: {size}, joint: true, threshold: 0, learner: subword-nmt}}"
_PIECES = "sentencepiece: {{model: unigram, size: {size}, joint: true, byte_fallback: true}}"


@dataclass(frozen=True)
class NewCorpus:
    """The entry of a corpus, as YAML indented by two spaces, and what it is based on.

    `left_out`: checks that would drop too many pairs, and how many of the sample; `train_pairs`,
    `train_words`: about what will be trained on, and its words of the target language.
    """

    name: str
    entry: str
    pairs: int
    inspection: Inspection
    left_out: dict[str, int]
    train_pairs: int
    train_words: int

    def notes(self, systems: Mapping[str, System]) -> Iterator[str]:
        """What to say if there is not enough for an update of systems that train on it."""
        sizes = {name: system.train.update_size for name, system in systems.items()}
        small = ", ".join(
            f"{name} (train.{setting}: {size})"
            for name, (setting, size) in sizes.items()
            if size > (self.train_words if setting == "tokens_per_update" else self.train_pairs)
        )
        if small:
            yield (
                f"about {_pairs(self.train_pairs)} with {_count(self.train_words, 'target word')} "
                f"will be left to train on, less than one update of {small}: lower it, and "
                "train.max_tokens with it"
            )


@dataclass(frozen=True)
class Draft:
    """What an entry says but for its rules.

    `samples`: lines of each side. `pieces`: the size of a vocabulary of SentencePiece, of text that
    is not tokenized; None: words of a tokenizer, split by BPE.
    """

    files: Sequence[Path]
    guesses: Sequence[GuessedLanguage]
    pairs: int
    samples: Sequence[Sequence[str]]
    pieces: int | None = None

    @property
    def languages(self) -> list[str]:
        return [guess.language for guess in self.guesses]

    def notes(self) -> Iterator[str]:
        """What to say of formats, and of languages that are not those of the files' names."""
        for path, lines in zip(self.files, self.samples, strict=True):
            if found := tool_format(lines):
                yield f"{path}: looks like {found}"
        for path, guess in zip(self.files, self.guesses, strict=True):
            if guess.by_name is None:
                yield (
                    f"{path}: {guess.by_text} by its text, most likely so in {guess.share:.0%} of "
                    "lines: if that is wrong, correct the entry"
                )
            elif guess.disagree:
                yield (
                    f"{path}: {guess.by_name} by its name, which is written; {guess.by_text} by "
                    f"its text, most likely so in {guess.share:.0%} of lines"
                )

    def suggest(self, source: Source, scratch: Path, workers: int) -> NewCorpus:
        """The entry with rules that suit a random sample; raises UserError if they drop it all."""
        checks, left_out = self.checks(), dict[str, int]()
        while True:
            corpus, sample = self.corpus([*EDITS], checks), Sample(_PAIRS, 1)
            inspection = inspect_corpus(self.name, corpus, sample, source, scratch, workers)
            unsuited = {
                rule: _dropped(rule, inspection) for rule in checks if not _suits(rule, inspection)
            }
            left_out |= unsuited
            checks = [rule for rule in checks if rule not in unsuited]
            # where they dropped most pairs, the other checks have seen few
            if sum(unsuited.values()) <= inspection.last.pairs_out:
                break
        left = inspection.last.pairs_out + sum(unsuited.values())
        self._check_left(inspection, left)
        edits = [rule for rule in EDITS if _suits(rule, inspection)]
        train = round(self.pairs * left / inspection.drawn * (1 - 2 * self.held_out))
        words = round(train * self._target_words())
        entry = self.text(edits, checks)
        return NewCorpus(self.name, entry, self.pairs, inspection, left_out, train, words)

    def _target_words(self) -> float:
        """The words of a target sentence, with its end, in the mean of the sample."""
        tokenizer = tokenizer_for(self.languages[1], self.corpus([], []).tokenize)
        words = sum(len(tokenizer.tokenize(line)) for line in self.samples[1])
        return words / len(self.samples[1]) + 1

    def _check_left(self, inspection: Inspection, left: int) -> None:
        """Raise UserError if too few pairs of the sample are left."""
        if left < _FEWEST:
            drops = ", ".join(
                f"{count:,} by `{rule}`"
                for counts in inspection.stages.values()
                for rule, count in counts.dropped.items()
                if count
            )
            raise UserError(
                f"{self.files[0]} and {self.files[1]}: at least {_FEWEST} pairs are needed, and "
                f"{left} of {inspection.drawn:,} would be left; dropped are {drops}"
            )

    @property
    def part(self) -> str:
        """What the names of the files have in common, as a name; letters lose their accents."""
        names = [unicodedata.normalize("NFKD", path.name) for path in self.files]
        ascii_names = [name.encode("ascii", "ignore").decode() for name in names]
        parts = [re.split(r"[^A-Za-z0-9]+", name) for name in ascii_names]
        common = [part for part in parts[0] if part in parts[1] and part not in ("txt", "")]
        named = [part for part in common if part not in self.languages]
        return "-".join(named)[: MAX_NAME // 2].strip("-") or "mine"

    @property
    def name(self) -> str:
        return "-".join([self.part, *self.languages])

    def checks(self) -> list[str]:
        """The checks that can judge these languages and as many pairs."""
        known = set(self.languages) <= set(LanguageId.known_languages)
        without = set() if known else {"language_id"}
        without |= {"alignment_score"} if self.pairs < _ALIGNED_PAIRS else set()
        return [name for name in CHECKS if name not in without]

    @property
    def held_out(self) -> float:
        """The share of the pairs for each of validation and test set."""
        if self.pairs < _ALIGNED_PAIRS:
            return 0.1
        return max(0.0001, round(min(0.05, _HELD_OUT / self.pairs), 4))

    @property
    def segmented(self) -> bool:
        """Whether a language has no spaces between words, which rules count."""
        return any(map(has_segmenter, self.languages))

    @property
    def merges(self) -> int:
        """The number of merges of BPE."""
        return next((m for pairs, m in _MERGES.items() if self.pairs <= pairs), _MOST_MERGES)

    def text(self, edits: list[str], checks: list[str]) -> str:
        tokenizer = "segmenter" if self.segmented else "moses"
        vocabulary = _BPE.format(size=self.merges)
        if self.pieces is not None:
            tokenizer, vocabulary = "none", _PIECES.format(size=self.pieces)
        return _ENTRY.format(
            name=self.name,
            part=self.part,
            source=self.languages[0],
            target=self.languages[1],
            source_path=_quoted(self.files[0]),
            target_path=_quoted(self.files[1]),
            clean=", ".join(f"{name}: {EDITS[name]}" for name in edits),
            filter=", ".join(f"{name}: {CHECKS[name]}" for name in checks),
            pairs=self.pairs,
            share=self.held_out,
            tokenizer=tokenizer,
            vocabulary=vocabulary,
        )

    def corpus(self, edits: list[str], checks: list[str]) -> Corpus:
        document = YAML(typ="rt").load(self.text(edits, checks))
        return build(Corpus, document[self.name], Path("params.yaml"))


def draft(files: Sequence[Path]) -> Draft:
    """The draft of an entry for a source and a target text below inputs/.

    Raises UserError if the files are elsewhere, not UTF-8, not parallel, or in unknown languages.
    """
    for path in files:
        _check_place(path)
    texts = [_Lines(path) for path in files]
    pairs = _check_parallel(files, texts)
    samples = [text.sample for text in texts]
    return Draft(files, guess_languages(files, samples), pairs, samples)


def report(new: NewCorpus) -> Iterator[str]:
    """What each rule of the entry would do to the sample, and what was left out."""
    drawn = new.inspection.drawn
    sample = "" if drawn == new.pairs else f" (tried on {drawn:,} drawn at random)"
    found = list(_found(new))
    yield f"{_pairs(new.pairs)}{sample}{':' if found else ': no rule changes or drops any'}"
    yield from found


def _found(new: NewCorpus) -> Iterator[str]:
    """What each rule does to the sample."""
    for stage, counts in new.inspection.stages.items():
        for rule, count in counts.changed.items():
            if count:
                yield f"  {_pairs(count)} would be edited by `{rule}` ({stage})"
        for rule, count in counts.dropped.items():
            if count and rule not in new.left_out:
                yield f"  {_pairs(count)} would be dropped by `{rule}` ({stage})"
    for rule, count in new.left_out.items():
        yield f"  {_pairs(count)} would be dropped by `{rule}` (filter): too many, left out"


class _Lines:
    """The lengths of a file's lines, in characters, and a random sample of the lines."""

    def __init__(self, path: Path) -> None:
        drawing = random.Random(1)
        self.lengths = array("Q")  # 8 bytes a line
        self.sample: list[str] = []
        with path.open("rb") as file:
            for number, line in enumerate(read_lines(file, str(path))):
                self.lengths.append(len(line))
                if len(self.sample) < _LINES:
                    self.sample.append(line)
                elif (place := drawing.randrange(number + 1)) < _LINES:
                    self.sample[place] = line


def _check_place(path: Path) -> None:
    """Raise UserError unless a file is below inputs/, as an entry must name it."""
    if not path.is_file():
        raise UserError(f"{path}: {not_a_file(path)}")
    if path.suffix in (".gz", ".bz2", ".xz", ".zip", ".tgz", ".tar"):
        raise UserError(f"{path}: packed: unpack it first")
    if path.is_absolute() or path.parts[0] != "inputs" or ".." in path.parts:
        raise UserError(
            f"{path}: not below inputs/: put it there by: cp {json.dumps(str(path))} inputs/"
        )


def _check_parallel(files: Sequence[Path], texts: Sequence[_Lines]) -> int:
    """The number of pairs; raises UserError if the files have unequal numbers of lines."""
    source, target = (text.lengths for text in texts)
    if len(source) == len(target):
        if len(source) < _FEWEST:
            raise UserError(
                f"{files[0]}: {_count(len(source), 'line')}: at least {_FEWEST} pairs are needed, "
                "to train on, to validate and to test"
            )
        return len(source)
    place = first_shifted_line(source, target)
    where = (
        "" if place is None else f"; by their lengths, lines differ from about line {place:,} on"
    )
    raise UserError(
        f"{files[0]} has {_count(len(source), 'line')} and {files[1]} has {len(target):,}: "
        f"not parallel{where}"
    )


def _quoted(path: Path) -> str:
    text = path.as_posix()
    return text if re.fullmatch(r"[A-Za-z0-9_./-]+", text) else json.dumps(text, ensure_ascii=False)


def _suits(rule: str, inspection: Inspection) -> bool:
    """Whether a rule is to be applied, by what it did to the sample."""
    if rule in _ALWAYS:
        return True
    if rule in EDITS:
        return any(counts.changed.get(rule) for counts in inspection.stages.values())
    return _dropped(rule, inspection) <= _MOST_DROPPED[rule] * inspection.last.pairs_in


def _dropped(rule: str, inspection: Inspection) -> int:
    return sum(counts.dropped.get(rule, 0) for counts in inspection.stages.values())


def _pairs(count: int) -> str:
    return _count(count, "pair")


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
