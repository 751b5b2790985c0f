"""The stage download: writes the texts of a corpus as aligned lines, one file for each language.

Sentences stay as published; what their format adds (a byte order mark, carriage returns at line
ends, markup) is removed. `download_corpus` is the stage; `read_text_pairs` reads one text for other
purposes, such as the notes of `bleuprint check`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path
from random import Random
from typing import BinaryIO, NamedTuple

from bleuprint.config import paths
from bleuprint.config.corpus_files import EMBEDDED, File, Files, Text, settings_key
from bleuprint.corpus import phrasebook, toy_tasks
from bleuprint.corpus.download.archive import open_member
from bleuprint.corpus.download.fetch import Downloads, fetch
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.steps.filter_stats import FilterStats, SetCounts
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import atomic_folder
from bleuprint.runtime.progress import Progress
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import BLOCK_PAIRS, Pair, PairWriter, TextFolder, pack_pairs


class Sample(NamedTuple):
    """How many sentence pairs of the training texts are sampled, and the sampling seed."""

    pairs: int
    seed: int


def download_corpus(
    corpus: str,
    files: Files,
    raw: TextFolder,
    filter_stats_path: Path,
    downloads: Downloads,
    sample: Sample | None = None,
) -> None:
    """Download the texts of a corpus, and write train, valid and each test.NAME.

    The parts of a set are joined, in the order of the settings. If a format says which document a
    line of a test set belongs to, the ids of the documents are written next to the set. A training
    text of which a system translates one side goes to a folder of its name, where that side is
    empty.

    Args:
        corpus: The name of the corpus.
        files: The texts of each set.
        raw: The folder to write to, and the languages.
        filter_stats_path: The file for the filtering statistics. They count each text by set and
            part, and what `sample`, or the setting `pairs` of a text, leaves out as dropped. A text
            with `repeat` is counted as often as it is written.
        downloads: Where files are downloaded from.
        sample: If given, train is a sample of all training texts together, in random order.
    """
    filter_stats = FilterStats("download", corpus, fingerprint.of_settings(files))
    with atomic_folder(raw.path) as partial:
        folder = raw.with_path(partial)
        for set_name, parts in files.sets().items():
            readers = {}
            for part, text in parts.items():
                key = settings_key(corpus, f"{set_name}.{part}")
                readers[part] = _TextReader(key, text, raw.languages, downloads)
            # A zero-shot direction has no training text; its train is written as empty files.
            if not readers and set_name != "train":
                continue
            if sample is not None and set_name == "train":
                _write_sample(readers, folder, filter_stats, sample)
            else:
                _write_set(set_name, readers, folder, filter_stats)
        downloads.record()
        filter_stats.write(filter_stats_path)


def _write_sample(
    readers: Mapping[str, "_TextReader"],
    folder: TextFolder,
    filter_stats: FilterStats,
    sample: Sample,
) -> None:
    """Write a sample of all training texts together as train."""
    counts = filter_stats.add_set("train")
    sampled_pairs = draw_sample(_repeated_pairs(readers, counts), sample, counts)
    with folder.writer("train") as writer:
        writer.write_packed(*pack_pairs(sampled_pairs))
    counts.count_kept(len(sampled_pairs))


def _repeated_pairs(readers: Mapping[str, "_TextReader"], counts: SetCounts) -> Iterator[Pair]:
    """Yield the pairs of all training texts, each text as often as its setting `repeat` says."""
    for reader in readers.values():
        for _ in range(reader.text.repeat or 1):
            yield from reader.chosen_pairs(counts)


def _write_set(
    set_name: str,
    readers: Mapping[str, "_TextReader"],
    folder: TextFolder,
    filter_stats: FilterStats,
) -> None:
    """Write a set with all of its parts, and the ids of its documents.

    Args:
        set_name: The name of the set: train, valid, or test.NAME.
        readers: The reader of each part.
        folder: The folder to write to.
        filter_stats: The statistics to which the parts are added.
    """
    document_ids: list[str] = []
    with folder.writer(set_name) as writer:
        for part, reader in readers.items():
            counts = filter_stats.add_set(f"{set_name}.{part}")
            repeat = reader.text.repeat or 1
            if reader.text.synthetic_side:
                written = _write_synthetic_part(set_name, part, reader, folder)
                for _ in range(repeat):  # the stage clean writes the copies
                    counts.add(written)
                continue
            for _ in range(repeat):
                counts.add(reader.write(writer))
            # Different parts may use the same ids.
            prefix = f"{part}/" if len(readers) > 1 else ""
            for document_id in reader.document_ids:
                document_ids.append(f"{prefix}{document_id}" if document_id else "")
    if set_name.startswith("test."):
        _write_document_ids(set_name, document_ids, folder)


def _write_synthetic_part(
    set_name: str, part: str, reader: "_TextReader", folder: TextFolder
) -> SetCounts:
    """Write a text of which a system translates one side into a folder of its own."""
    part_folder = folder.with_path(folder.path / part)
    part_folder.path.mkdir()
    with part_folder.writer(set_name) as writer:
        return reader.write(writer)


def _write_document_ids(set_name: str, document_ids: Sequence[str], folder: TextFolder) -> None:
    """Write the document of each line of a test set, unless a line belongs to none.

    No later stage copies this file, and no training depends on it.

    Args:
        set_name: The name of the test set.
        document_ids: The id of each line's document, empty if it has none; no ids at all if the
            format of the files knows no documents.
        folder: The folder of the test set.
    """
    lines_with_id = 0
    for document_id in document_ids:
        if document_id:
            lines_with_id += 1
    if lines_with_id == 0:
        return
    line_count = folder.count(set_name)
    if lines_with_id < line_count:
        print_message(
            f"{set_name}: {line_count - lines_with_id} of {line_count} lines are of no document: "
            "none is used",
            "note",
        )
        return
    content = ""
    for document_id in document_ids:
        # An id of the file format may contain a line break.
        content += document_id.replace("\n", " ") + "\n"
    paths.document_ids_file(folder.path, set_name).write_bytes(content.encode())


@dataclass
class _TextReader:
    """Reads the sentence pairs of a text.

    Attributes:
        key: The place of the text in params.yaml, for messages.
        text: The settings of the text.
        languages: The codes of the source and the target language.
        downloads: Where its files are downloaded from.
        document_ids: After the text has been read, the id of each pair's document, if the format
            says it.
    """

    key: str
    text: Text
    languages: tuple[str, str]
    downloads: Downloads
    document_ids: list[str] = field(default_factory=list)

    def write(self, writer: PairWriter) -> SetCounts:
        """Write the chosen pairs of the text, and count them."""
        counts = SetCounts()
        pairs = self.chosen_pairs(counts)
        with Progress(f"read {self.key.removeprefix('corpora.')}", None, "pairs") as progress:
            while block := list(islice(pairs, BLOCK_PAIRS)):
                writer.write_packed(*pack_pairs(block))
                counts.count_kept(len(block))
                progress.advance(len(block))
        return counts

    def chosen_pairs(self, counts: SetCounts) -> Iterator[Pair]:
        """Yield all pairs, or as many of them as the setting `pairs` of the text says.

        These are the first pairs, or with `pairs_seed` random ones, drawn by selection sampling,
        which keeps their order and needs no memory (Knuth, The Art of Computer Programming,
        volume 2, section 3.4.2, algorithm S). The text is then read twice: it is counted first.

        Args:
            counts: Counts the pairs that are left out, as dropped by `pairs`.

        Raises:
            UserError: The text contains fewer pairs.
        """
        if self.text.pairs is None:
            yield from self.pairs(counts)
            return
        wanted = self.text.pairs
        remaining = self._count_pairs()
        if remaining < wanted:
            names = " and ".join(file.name for file in self.text.files)
            raise UserError(
                f"{self.key}.pairs is {wanted}, but {names} have {counted(remaining, 'pair')}"
            )
        seed = self.text.pairs_seed
        random = None if seed is None else Random(seed)
        for pair in self.pairs(counts):
            # A random pair is taken with the probability wanted / remaining, so that exactly the
            # wanted number is taken at the end.
            if wanted and (random is None or random.random() * remaining < wanted):
                wanted -= 1
                yield pair
            else:
                counts.count_dropped("pairs")
            remaining -= 1

    def _count_pairs(self) -> int:
        """Return the number of pairs of the text."""
        count = 0
        for _ in self.pairs(SetCounts()):
            count += 1
        return count

    def pairs(self, counts: SetCounts) -> Iterator[Pair]:
        """Yield all pairs of the text.

        Args:
            counts: Counts the pairs that the reader of the format drops.
        """
        self.document_ids.clear()
        try:
            with ExitStack() as opened:
                streams = []
                for file in self.text.files:
                    streams.append(opened.enter_context(_open(file, self.downloads)))
                yield from read_text(self.text, streams, self.languages, counts, self.document_ids)
        except UserError as error:
            hint = self.downloads.unchecked_hint(self.text.files)
            raise UserError(f"{error}{hint}") from None


def read_text_pairs(
    text: Text,
    languages: tuple[str, str],
    downloads: Downloads | None = None,
    counts: SetCounts | None = None,
) -> Iterator[Pair]:
    """Yield all pairs of a text.

    Args:
        text: The settings of the text.
        languages: The codes of the source and the target language.
        downloads: Where files are downloaded from; not needed for files in inputs/.
        counts: Counts the pairs that the reader of the format drops.
    """
    if downloads is None:
        downloads = Downloads(mirror=None, store=Path(), lock=None)
    if counts is None:
        counts = SetCounts()
    return _TextReader("", text, languages, downloads).pairs(counts)


def draw_sample(pairs: Iterator[Pair], sample: Sample, counts: SetCounts) -> list[Pair]:
    """Draw a simple random sample of sentence pairs, by reservoir sampling.

    Only the sample is in memory (Vitter 1985, "Random Sampling with a Reservoir", algorithm R).

    Args:
        pairs: All pairs.
        sample: How many pairs are drawn, and the seed.
        counts: Counts the other pairs as dropped by `sample`.

    Returns:
        The sample, in random order.
    """
    random = Random(sample.seed)
    reservoir = list(islice(pairs, sample.pairs))
    for pairs_so_far, pair in enumerate(pairs, len(reservoir) + 1):
        counts.count_dropped("sample")
        # The new pair stays with the probability (sample size) / (pairs so far), and then replaces
        # a random pair of the reservoir.
        position = random.randrange(pairs_so_far)
        if position < sample.pairs:
            reservoir[position] = pair
    random.shuffle(reservoir)
    return reservoir


@contextmanager
def _open(file: File, downloads: Downloads) -> Iterator[BinaryIO]:
    """Open the unpacked bytes of a file, or an embedded corpus as if it were a file."""
    if file.url in EMBEDDED:
        lines = [f"{sentence}\n" for sentence in _embedded_sentences(file.url)]
        yield BytesIO("".join(lines).encode())
        return
    name = file.url or file.path or ""
    with open_member(fetch(file, downloads), name, file.archive_member) as stream:
        yield stream


def _embedded_sentences(url: str) -> Iterable[str]:
    """Return the sentences of an embedded corpus, such as `phrasebook:train.en`."""
    corpus, split, language = re.split("[:.]", url)
    if corpus == "phrasebook":
        return phrasebook.sentences(split, language)
    if corpus == "copy":
        return toy_tasks.copy_task(split)
    return toy_tasks.toy_sentences(split, language)
