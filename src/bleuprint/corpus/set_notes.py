"""Notes on the sets of a corpus: sets that are the same text or overlap, lines that do not fit.

Files in inputs/ are read, and validation and test sets that were downloaded before; of each text
only the first lines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import File, Text
from bleuprint.config.experiment import Settings
from bleuprint.corpus.download.download import local_pairs
from bleuprint.corpus.misalignment import PairClues, described
from bleuprint.corpus.set_findings import Overlap, overlaps
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.text.parallel import Pair, TextFolder

# The pairs of a text that are read, and those that are compared by more than their lengths: a note
# must not take the time of a stage.
_PAIRS, _PAIRS_WITH_WORDS = 100_000, 5000
# What follows from a text that is in two sets.
_IN_TEST = "checkpoints would be chosen by the sentences that the table scores; give another one"
_DROPPED = "dedup.decontaminate drops its sentences from the training text"
_LEARNED = "with dedup.decontaminate none, the model is trained on these sentences"


def set_notes(settings: Settings) -> Iterator[str]:
    """All notes, one line each, of all corpora."""
    reader = _Reader({})
    for name, corpus in settings.pairs().items():
        texts = {key: text for key, text in corpus.files.texts().items() if text.made is None}
        same = list(_same_texts(texts))
        for each in same:
            yield f"corpora.{name}: {each.note(corpus.dedup.decontaminate != 'none')}"
        pairs = dict[str, list[Pair]]()
        for key, text in texts.items():
            try:
                pairs[key] = reader.pairs(text, corpus.languages)
            except UserError as error:
                yield f"corpora.{name}.files.{key}: {error}"
        for key in _held_out_without_files(corpus, texts):
            pairs[key] = _downloaded(name, corpus, key)
        for key, of_text in pairs.items():
            if text_fault := _fault(of_text):
                yield f"corpora.{name}.files.{key}: {text_fault}"
        for overlap in _overlaps(pairs, same):
            yield f"corpora.{name}: {overlap}"


def _is_here(text: Text) -> bool:
    return all(file.path is not None and Path(file.path).is_file() for file in text.files)


@dataclass(frozen=True)
class _Reader:
    """Reads the first pairs of texts, each text once."""

    known: dict[tuple[Text, tuple[str, str]], list[Pair]]

    def pairs(self, text: Text, languages: tuple[str, str]) -> list[Pair]:
        """The pairs; none without the files. Raises UserError if they are not parallel."""
        if text.format == "documents":  # their lines are no sentences yet
            return []
        if not _is_here(text):
            return []
        key = text, languages
        if key not in self.known:
            self.known[key] = list(islice(local_pairs(text, languages), _PAIRS))
        return self.known[key]


def _held_out_without_files(corpus: Corpus, texts: Mapping[str, Text]) -> list[str]:
    """The validation and test sets whose files are not all in inputs/."""
    found = []
    for set_name, parts in corpus.files.sets().items():
        keys = [f"{set_name}.{part}" for part in parts]
        if set_name != "train" and not all(_is_here(texts[key]) for key in keys):
            found.append(set_name)
    return found


def _downloaded(name: str, corpus: Corpus, set_name: str) -> list[Pair]:
    """The first pairs of a set that was downloaded before; none if it was not."""
    texts = TextFolder(paths.given(name), *corpus.languages)
    if not all(path.is_file() for path in texts.files(set_name)):
        return []
    return list(islice(texts.pairs(set_name), _PAIRS))


def _fault(pairs: Sequence[Pair]) -> str:
    """What is wrong with the sides of a text; empty if nothing is."""
    clues = PairClues(_PAIRS_WITH_WORDS)
    for pair in pairs:
        clues.add(pair)
    misfits = clues.misfits()
    if not misfits:
        return ""
    return f"its sides do not fit line by line: {described(misfits)}. Compare these lines"


def _set_of(key: str) -> str:
    """The set of SET.PART, or SET; that of a test set is test.NAME."""
    parts = key.split(".")
    return ".".join(parts[:2]) if parts[0] == "test" else parts[0]


def _overlaps(pairs: Mapping[str, list[Pair]], same: Sequence["_SameText"]) -> Iterator[Overlap]:
    """The overlaps of held-out sets that are not the same text as a whole."""
    sources = dict[str, list[str]]()
    for key, of_text in pairs.items():
        set_name = _set_of(key)
        if set_name != "train":
            sources.setdefault(set_name, []).extend(pair.source for pair in of_text)
    known = {(each.first_set, each.second_set) for each in same}
    for overlap in overlaps(sources):
        other = "valid" if overlap.other == "valid" else f"test.{overlap.other}"
        if (other, f"test.{overlap.test}") not in known:
            yield overlap


@dataclass(frozen=True)
class _SameText:
    """Two texts, in SET.PART each, that have the same sentences on both sides, or in the source."""

    first: str
    second: str
    in_source_alone: bool

    @property
    def first_set(self) -> str:
        return _set_of(self.first)

    @property
    def second_set(self) -> str:
        return _set_of(self.second)

    def note(self, is_decontaminated: bool) -> str:
        """What is the same, and what follows; whether dedup drops held-out sentences from train."""
        what = "have the same source file" if self.in_source_alone else "are the same text"
        sets = {self.first_set, self.second_set}
        if "train" in sets:
            follows = f": {_DROPPED if is_decontaminated else _LEARNED}"
        elif "valid" in sets:
            follows = f": {_IN_TEST}"
        else:
            follows = "" if self.in_source_alone else ": the table would score it twice"
        return f"files.{self.first} and files.{self.second} {what}{follows}"


def _same_texts(texts: Mapping[str, Text]) -> Iterator[_SameText]:
    """The texts of different sets that have the same files, by name or by content."""
    for (first, text), (second, other) in combinations(texts.items(), 2):
        if _set_of(first) == _set_of(second) or text.format != other.format:
            continue
        if _has_same_source(text, other):
            yield _SameText(first, second, in_source_alone=not _has_same_target(text, other))


def _has_same_source(text: Text, other: Text) -> bool:
    if text.both is not None and other.both is not None:
        has_same_column = (text.columns or (1, 2))[0] == (other.columns or (1, 2))[0]
        return has_same_column and _is_same(text.both, other.both)
    return _is_same(text.source, other.source)


def _has_same_target(text: Text, other: Text) -> bool:
    if text.both is not None:
        return (text.columns or (1, 2))[1] == (other.columns or (1, 2))[1]
    return _is_same(text.target, other.target)


def _is_same(first: File | None, second: File | None) -> bool:
    """Whether two files are one, or have the same content: by hashes where they are known."""
    if first is None or second is None:
        return False
    if first.name == second.name:
        return True
    if first.archive_member != second.archive_member:
        return False
    if first.sha256 is not None and second.sha256 is not None:
        return first.sha256 == second.sha256
    if first.path is None or second.path is None:
        return False
    paths = Path(first.path), Path(second.path)
    if not all(path.is_file() for path in paths):
        return False
    if paths[0].stat().st_size != paths[1].stat().st_size:
        return False
    return sha256_of(paths[0]) == sha256_of(paths[1])
