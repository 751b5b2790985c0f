"""Write notes on the sets of a corpus: the same text twice, overlaps, lines that do not fit.

`notes_on_sets` is the entry point of the command check.

Files in inputs/ are read, and validation and test sets that were downloaded before. Only the first
pairs of each text are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

from bleuprint.config.corpus import Corpus
from bleuprint.config.corpus_files import File, Text, settings_key
from bleuprint.config.experiment import Settings
from bleuprint.corpus.download.download import read_text_pairs
from bleuprint.corpus.local_texts import find_downloaded_set, has_local_files
from bleuprint.corpus.misalignment import PairClues, describe_misfits
from bleuprint.corpus.set_findings import Overlap, find_overlaps
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.text.parallel import Pair

# The number of pairs that are read of each text, and the number of pairs up to which a text is
# compared by its words, too: notes must not take as long as a stage.
_MAX_PAIRS = 100_000
_MAX_PAIRS_WITH_WORDS = 5000
# The columns of source and target in a table whose settings do not name them, counted from 1.
_DEFAULT_COLUMNS = (1, 2)


def notes_on_sets(settings: Settings) -> Iterator[str]:
    """Look for problems in the training, validation and test sets of all corpora.

    Args:
        settings: The settings of the experiment, with its corpora.

    Yields:
        A line for the user about each problem, such as a text that is both training and test set.
    """
    reader = _Reader(pairs_read={})
    for name, corpus in settings.language_pairs().items():
        yield from _notes_on_corpus(name, corpus, reader)


def _notes_on_corpus(name: str, corpus: Corpus, reader: "_Reader") -> Iterator[str]:
    """Look for problems in the training, validation and test sets of one corpus.

    Three kinds of problems are searched, in this order: texts that are in two sets; lines that are
    not translations of each other; test sets that share sentences with another set.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        reader: Reads the first sentence pairs of the texts.

    Yields:
        A line for the user about each problem.
    """
    texts = corpus.files.parallel_texts()
    same_texts = list(_same_texts(texts))
    is_decontaminated = corpus.dedup.decontaminate != "none"
    for same_text in same_texts:
        yield same_text.note(name, is_decontaminated)

    # A key names a set and a text, such as `test.news.europarl`; or a downloaded set alone.
    pairs_by_key = dict[str, list[Pair]]()
    for key, text in texts.items():
        try:
            pairs_by_key[key] = reader.pairs(text, corpus.languages)
        except UserError as error:
            yield f"{settings_key(name, key)}: {error}"
    for set_name in _held_out_without_files(corpus, texts):
        pairs_by_key[set_name] = _read_downloaded_set(name, corpus, set_name)

    for key, pairs in pairs_by_key.items():
        line_note = _note_on_unrelated_lines(pairs)
        if line_note:
            yield f"{settings_key(name, key)}: {line_note}"
    for overlap in _partial_overlaps(pairs_by_key, same_texts):
        yield f"corpora.{name}: {overlap}"


@dataclass(frozen=True)
class _Reader:
    """Reads the first pairs of texts. A text that several corpora share is read once.

    Attributes:
        pairs_read: The pairs of each text that was read, by its settings and languages.
    """

    pairs_read: dict[tuple[Text, tuple[str, str]], list[Pair]]

    def pairs(self, text: Text, languages: tuple[str, str]) -> list[Pair]:
        """Read the first sentence pairs of a text, or return them again if they were read before.

        Args:
            text: The settings of the text and its files.
            languages: The codes of source and target.

        Returns:
            The pairs. An empty list if the files still have to be downloaded, or contain whole
            documents, whose sentences are not aligned yet.

        Raises:
            UserError: The files are not parallel.
        """
        if text.format == "documents" or not has_local_files(text):
            return []
        key = (text, languages)
        if key not in self.pairs_read:
            pairs = islice(read_text_pairs(text, languages), _MAX_PAIRS)
            self.pairs_read[key] = list(pairs)
        return self.pairs_read[key]


def _held_out_without_files(corpus: Corpus, texts: Mapping[str, Text]) -> list[str]:
    """Return the validation and test sets of a corpus whose files are not in inputs/.

    These files have to be downloaded.

    Args:
        corpus: The settings of the corpus.
        texts: The settings of its texts, by set and text, such as `test.news.europarl`.

    Returns:
        The names of the sets, such as `valid` and `test.news`.
    """
    set_names = []
    for set_name, texts_of_set in corpus.files.sets().items():
        if set_name == "train":
            continue
        settings_of_texts = [texts[f"{set_name}.{text_name}"] for text_name in texts_of_set]
        if not all(has_local_files(text) for text in settings_of_texts):
            set_names.append(set_name)
    return set_names


def _read_downloaded_set(name: str, corpus: Corpus, set_name: str) -> list[Pair]:
    """Read the first sentence pairs of a data set, if it was downloaded before.

    Args:
        name: Corpus name, such as `multi30k`.
        corpus: The settings of the corpus.
        set_name: Data set, such as `test.flickr2016`.

    Returns:
        The pairs; an empty list if the set was not downloaded before.
    """
    folder = find_downloaded_set(name, corpus, set_name)
    if folder is None:
        return []
    return list(islice(folder.pairs(set_name), _MAX_PAIRS))


def _note_on_unrelated_lines(pairs: Sequence[Pair]) -> str:
    """Return a note that names the lines of a text which are not translations of each other.

    Args:
        pairs: The first sentence pairs of the text.

    Returns:
        The end of a message that begins with the name of the text; empty if all lines fit.
    """
    clues = PairClues(_MAX_PAIRS_WITH_WORDS)
    for pair in pairs:
        clues.add(pair)
    misfits = clues.misfits()
    if not misfits:
        return ""
    return f"its sides do not fit line by line: {describe_misfits(misfits)}. Compare these lines"


def _set_of(key: str) -> str:
    """Return the data set that a text belongs to: `test.news` for `test.news.europarl`.

    Args:
        key: The set and the text, as in the settings, such as `train.europarl`; or a set alone.
    """
    parts = key.split(".")
    if parts[0] == "test":
        return ".".join(parts[:2])
    return parts[0]


def _partial_overlaps(
    pairs_by_key: Mapping[str, list[Pair]], same_texts: Sequence["_SameText"]
) -> Iterator[Overlap]:
    """Find test sets that share some sentences with another test set or the validation set.

    Two sets that both contain the whole of a text are skipped: the user gets another note on them.

    Args:
        pairs_by_key: The sentence pairs of each text, by set and text, such as `test.news.europarl`
            or, for a downloaded set, `test.news`.
        same_texts: The texts that are in two sets as a whole.
    """
    # The source sentences of each validation and test set.
    sources = dict[str, list[str]]()
    for key, pairs in pairs_by_key.items():
        set_name = _set_of(key)
        if set_name == "train":
            continue
        set_sources = sources.setdefault(set_name, [])
        set_sources.extend(pair.source for pair in pairs)
    same_sets = {(same_text.first_set, same_text.second_set) for same_text in same_texts}
    for overlap in find_overlaps(sources):
        # An overlap names test sets without the prefix `test.`.
        test_set = f"test.{overlap.test}"
        other_set = f"test.{overlap.other}"
        if overlap.other == "valid":
            other_set = "valid"
        # In both tuples, the set that comes first in the settings is the first one.
        if (other_set, test_set) not in same_sets:
            yield overlap


@dataclass(frozen=True)
class _SameText:
    """Two texts that have the same sentences, either on both sides or in the source only.

    Attributes:
        first: The data set and the name of a text in the settings, such as `train.europarl`.
        second: The same of a later text.
        is_in_source_only: Whether only the sources are the same.
    """

    first: str
    second: str
    is_in_source_only: bool

    @property
    def first_set(self) -> str:
        """The set that contains the first text."""
        return _set_of(self.first)

    @property
    def second_set(self) -> str:
        """The set that contains the second text."""
        return _set_of(self.second)

    def note(self, corpus: str, is_decontaminated: bool) -> str:
        """Return a line for the user: which two texts are the same, and what follows from that.

        Args:
            corpus: The name of the corpus of both texts.
            is_decontaminated: Whether sentences of validation and test sets are dropped from the
                training text.
        """
        similarity = "are the same text"
        if self.is_in_source_only:
            similarity = "have the same source file"
        first_key = settings_key(corpus, self.first)
        second_key = settings_key(corpus, self.second)
        note = f"{first_key} and {second_key} {similarity}"
        consequence = self._consequence(is_decontaminated)
        return f"{note}. {consequence}" if consequence else note

    def _consequence(self, is_decontaminated: bool) -> str:
        """Say what happens if the same text is in two data sets.

        Args:
            is_decontaminated: Whether sentences of validation and test sets are dropped from the
                training text.

        Returns:
            A sentence; empty for two test sets with the same source, but with different
            references, which are useful.
        """
        sets = {self.first_set, self.second_set}
        if "train" in sets and is_decontaminated:
            return "The training text loses its sentences, by dedup.decontaminate"
        if "train" in sets:
            return "With dedup.decontaminate none, the model is trained on these sentences"
        if "valid" in sets:
            return (
                "Checkpoints would be chosen by the sentences that the table scores. Replace one "
                "of the two"
            )
        if self.is_in_source_only:
            return ""
        return "The table would score it twice. Remove one of the two"


def _same_texts(texts: Mapping[str, Text]) -> Iterator[_SameText]:
    """Find texts that are in two data sets, such as in the training and in a test set.

    Args:
        texts: The settings of all texts of a corpus, by set and text, such as `train.europarl`.

    Yields:
        Two texts of different sets with the same source file, or the same source and target file.
    """
    for first_key, second_key in combinations(texts, 2):
        first_text = texts[first_key]
        second_text = texts[second_key]
        if _set_of(first_key) == _set_of(second_key):
            continue
        # A file that is read in two formats yields different sentences.
        if first_text.format != second_text.format:
            continue
        if not _has_same_source(first_text, second_text):
            continue
        has_same_target = _has_same_target(first_text, second_text)
        yield _SameText(first_key, second_key, is_in_source_only=not has_same_target)


def _has_same_source(first: Text, second: Text) -> bool:
    """Return whether two texts have the same source: the same file, or the same column of a table.

    Args:
        first: The settings of a text. `both` is a file with source and target, such as a table.
        second: The settings of another text.
    """
    if first.both is not None and second.both is not None:
        first_source_column, _ = _columns(first)
        second_source_column, _ = _columns(second)
        has_same_column = first_source_column == second_source_column
        return has_same_column and _has_same_content(first.both, second.both)
    return _has_same_content(first.source, second.source)


def _has_same_target(first: Text, second: Text) -> bool:
    """Return whether two texts have the same target, if they are known to have the same source.

    Args:
        first: The settings of a text. `both` is a file with source and target, such as a table.
        second: The settings of another text.
    """
    if first.both is not None:
        # Since their sources are the same column, both texts are in the same table.
        _, first_target_column = _columns(first)
        _, second_target_column = _columns(second)
        return first_target_column == second_target_column
    return _has_same_content(first.target, second.target)


def _columns(text: Text) -> tuple[int | str, int | str]:
    """Return the columns of source and target in a table, each by its name or number from 1."""
    return text.columns or _DEFAULT_COLUMNS


def _has_same_content(first: File | None, second: File | None) -> bool:
    """Return whether two files have the same content, without downloading them.

    Files with the same name have the same content. Other files are compared by the hashes in the
    settings; if these are missing, files on this machine are compared by their sizes, then by their
    hashes. Files that cannot be compared count as different.

    Args:
        first: The settings of a file; None if a text has no such file.
        second: The settings of another file.
    """
    if first is None or second is None:
        return False
    # `name` is the URL or path of the file, with its name inside an archive.
    if first.name == second.name:
        return True
    # The hashes belong to the archives.
    if first.archive_member != second.archive_member:
        return False
    if first.sha256 is not None and second.sha256 is not None:
        return first.sha256 == second.sha256
    if first.path is None or second.path is None:
        return False
    first_path = Path(first.path)
    second_path = Path(second.path)
    if not first_path.is_file() or not second_path.is_file():
        return False
    if first_path.stat().st_size != second_path.stat().st_size:
        return False
    return sha256_of(first_path) == sha256_of(second_path)
