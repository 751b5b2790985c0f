"""The stage download: writes the texts of a corpus as aligned lines, one file for each language.

Sentences stay as published; what their format adds (a byte order mark, carriage returns at line
ends, markup) is removed. `download_corpus` is the stage; `read_text_pairs` reads one text for other
purposes, such as the notes of `bleuprint check`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from random import Random
from typing import BinaryIO, NamedTuple

from bleuprint.config import paths
from bleuprint.config.corpus_files import File, Files, Text, settings_key
from bleuprint.config.embedded_texts import EMBEDDED
from bleuprint.corpus import phrasebook, toy_tasks
from bleuprint.corpus.download.archive import member_names, open_member
from bleuprint.corpus.download.fetch import Downloads, fetch
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.download.formats.moses import side_members
from bleuprint.corpus.download.line_ends import with_line_feeds
from bleuprint.corpus.steps.filter_stats import FilterStats, SetCounts
from bleuprint.runtime import fingerprint
from bleuprint.runtime.atomic_files import atomic_folder, write_text
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.progress import Progress
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import BLOCK_PAIRS, Pair, PairWriter, TextFolder, encode_pairs

# For a user's files in inputs/, which are not downloaded.
NO_DOWNLOADS = Downloads(mirror=None, store=Path(), lock=None)


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
    """Download the texts of a corpus, and write its training, validation and test sets.

    A set may consist of several texts, which are joined in the order of the settings.

    Args:
        corpus: Corpus name, such as `multi30k`.
        files: The settings of the texts of each set.
        raw: The folder to write to, and the languages.
        filter_stats_path: The file for the filtering statistics: how many sentence pairs each text
            has, and how many are dropped, because only a sample of them is wanted.
        downloads: Where files are downloaded from.
        sample: If given, the training set is a random sample of all training texts together.
    """
    filter_stats = FilterStats("download", corpus, fingerprint.of_settings(files))
    with atomic_folder(raw.path) as unfinished:
        folder = raw.with_path(unfinished)
        for set_name, texts in files.sets().items():
            readers = {}
            for text_name, text in texts.items():
                key = settings_key(corpus, f"{set_name}.{text_name}")
                readers[text_name] = _TextReader(key, text, raw.languages, downloads)
            # A set without texts is not written. Only the training set of a zero-shot direction,
            # which has no training text, is written as empty files.
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
    """Write a training set that is a random sample of all training texts together.

    Args:
        readers: The readers of the training texts, by name.
        folder: The folder to write to.
        filter_stats: The statistics to which the training set is added.
        sample: How many sentence pairs to sample, and the seed.
    """
    counts = filter_stats.add_set("train")
    all_pairs = _repeated_pairs(readers, counts)
    sampled_pairs = draw_sample(all_pairs, sample, counts)
    source, target = encode_pairs(sampled_pairs)
    with folder.writer("train") as writer:
        writer.write_lines(source, target)
    counts.count_kept(len(sampled_pairs))


def _repeated_pairs(readers: Mapping[str, "_TextReader"], counts: SetCounts) -> Iterator[Pair]:
    """Yield the sentence pairs of all training texts; a text may be repeated to upsample it.

    Args:
        readers: The readers of the training texts, by name.
        counts: The statistics of the training set; each reader adds the pairs that it drops.
    """
    for reader in readers.values():
        times = reader.text.repeat or 1
        for _ in range(times):
            yield from reader.chosen_pairs(counts)


def _write_set(
    set_name: str,
    readers: Mapping[str, "_TextReader"],
    folder: TextFolder,
    filter_stats: FilterStats,
) -> None:
    """Write a data set, which may consist of several texts.

    For a test set, also write which document each line belongs to.

    Args:
        set_name: Data set: `train`, `valid`, or a test set such as `test.flickr2016`.
        readers: The reader of each text, by the name of the text.
        folder: The folder to write to.
        filter_stats: The statistics to which each text is added.
    """
    document_ids: list[str] = []
    with folder.writer(set_name) as writer:
        for text_name, reader in readers.items():
            counts = filter_stats.add_set(f"{set_name}.{text_name}")
            # The setting `repeat` upsamples a training text: it is written this many times.
            times = reader.text.repeat or 1
            if reader.text.synthetic_side:
                # A text in one language, which a system will translate. It is written once, but
                # counted `times` times, since the stage clean repeats its translation.
                counts_of_one_copy = _write_untranslated(set_name, text_name, reader, folder)
                for _ in range(times):
                    counts.add(counts_of_one_copy)
                continue
            for _ in range(times):
                counts.add(reader.write(writer))
            # Documents of different texts may have the same id, so the name of the text is added.
            prefix = f"{text_name}/" if len(readers) > 1 else ""
            for document_id in reader.document_ids:
                # A line that belongs to no document keeps its empty id.
                document_ids.append(f"{prefix}{document_id}" if document_id else "")
    if set_name.startswith("test."):
        _write_document_ids(set_name, document_ids, folder)


def _write_untranslated(
    set_name: str, text_name: str, reader: "_TextReader", folder: TextFolder
) -> SetCounts:
    """Write a training text in one language, which a system of the experiment will translate.

    It is written to a folder of its own, where all lines of the other language are empty.

    Args:
        set_name: The data set that the text belongs to, `train`.
        text_name: The name of the text, and of its folder.
        reader: The reader of the text.
        folder: The folder of the corpus.
    """
    text_folder = folder.with_path(folder.path / text_name)
    text_folder.path.mkdir()
    with text_folder.writer(set_name) as writer:
        return reader.write(writer)


def _write_document_ids(set_name: str, document_ids: Sequence[str], folder: TextFolder) -> None:
    """Write for each line of a test set the id of its document, to score whole documents.

    Nothing is written if no line has an id. If only some lines have one, a note is printed, and
    nothing is written either.

    Args:
        set_name: Test set, such as `test.news`.
        document_ids: The id of each line's document, empty if it has none. The list is empty if the
            format of the files does not mark documents.
        folder: The folder of the test set.
    """
    lines_with_id = sum(1 for document_id in document_ids if document_id)
    if lines_with_id == 0:
        return
    line_count = folder.count(set_name)
    if lines_with_id < line_count:
        print_message(
            f"{set_name}: {line_count - lines_with_id} of {line_count} lines belong to no "
            "document, so the documents of this set are ignored",
            "note",
        )
        return
    content = ""
    for document_id in document_ids:
        # An id may contain a line break, which would begin a new line here.
        content += document_id.replace("\n", " ") + "\n"
    write_text(paths.document_ids_file(folder.path, set_name), content)


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
        """Write the sentence pairs of the text, or as many of them as the settings choose.

        Args:
            writer: Writes to the files of the data set.

        Returns:
            How many pairs were written, and how many dropped.
        """
        counts = SetCounts()
        pairs = self.chosen_pairs(counts)
        label = f"read {self.key.removeprefix('corpora.')}"
        with Progress(label, total=None, unit="pairs") as progress:
            while block := list(islice(pairs, BLOCK_PAIRS)):
                source, target = encode_pairs(block)
                writer.write_lines(source, target)
                counts.count_kept(len(block))
                progress.advance(len(block))
        return counts

    def chosen_pairs(self, counts: SetCounts) -> Iterator[Pair]:
        """Yield the sentence pairs of the text, or as many of them as its setting `pairs` allows.

        These are the first pairs or, with the setting `pairs_seed`, random ones, in the order of
        the text. Random pairs are drawn by selection sampling (Knuth, The Art of Computer
        Programming, volume 2, section 3.4.2, algorithm S), which keeps no pairs in memory. It must
        know the number of all pairs, so the text is read twice.

        Args:
            counts: Statistics to which the other pairs are added, as dropped.

        Raises:
            UserError: The text contains fewer pairs than the user wants.
        """
        if self.text.pairs is None:
            yield from self.pairs(counts)
            return
        wanted = self.text.pairs
        remaining = self._count_pairs()
        if remaining < wanted:
            names = " and ".join(file.name for file in self.text.files)
            raise UserError(
                f"{self.key}.pairs is {wanted}, but only {counted(remaining, 'pair')} can be read "
                f"from {names}. Lower pairs"
            )
        seed = self.text.pairs_seed
        random = None if seed is None else Random(seed)
        for pair in self.pairs(counts):
            # With a seed, a pair is chosen with the probability wanted / remaining: the number of
            # pairs still to choose, divided by the number of pairs still to read. At the end,
            # exactly the wanted number is chosen. Without a seed, the first pairs are chosen.
            if wanted > 0 and (random is None or random.random() * remaining < wanted):
                wanted -= 1
                yield pair
            else:
                counts.count_dropped("pairs")
            remaining -= 1

    def _count_pairs(self) -> int:
        """Return the number of sentence pairs of the text, by reading all of them."""
        ignored_counts = SetCounts()
        count = 0
        for _ in self.pairs(ignored_counts):
            count += 1
        return count

    def pairs(self, counts: SetCounts) -> Iterator[Pair]:
        """Open the files of the text, downloading them if necessary, and yield all sentence pairs.

        Afterwards, `document_ids` contains the id of each pair's document, if the format marks
        documents.

        Args:
            counts: Statistics to which unusable pairs, such as untranslated ones, are added as
                dropped.

        Raises:
            UserError: A file is missing, damaged or malformed.
        """
        self.document_ids.clear()
        try:
            text = self.text
            if text.format == "moses":
                text = _plain_text_of_archive(text, self.languages, self.downloads)
            with ExitStack() as opened:
                streams = []
                for file in text.files:
                    streams.append(opened.enter_context(open_file(file, self.downloads)))
                yield from read_text(text, streams, self.languages, counts, self.document_ids)
        except UserError as error:
            # How to download the files again, if nothing has shown that they arrived undamaged.
            hint = self.downloads.unchecked_hint(self.text.files)
            raise UserError(f"{error}{hint}") from None


def read_text_pairs(
    text: Text,
    languages: tuple[str, str],
    downloads: Downloads | None = None,
    counts: SetCounts | None = None,
) -> Iterator[Pair]:
    """Read the sentence pairs of a text from its published files, or from a user's files.

    Args:
        text: The settings of the text: its files and their format.
        languages: The codes of the source and the target language.
        downloads: Where files are downloaded from; not needed for a user's files in inputs/.
        counts: Statistics to which unusable pairs are added as dropped; by default they are not
            counted.
    """
    if downloads is None:
        downloads = NO_DOWNLOADS
    if counts is None:
        counts = SetCounts()
    return _TextReader("", text, languages, downloads).pairs(counts)


def draw_sample(pairs: Iterator[Pair], sample: Sample, counts: SetCounts) -> list[Pair]:
    """Draw a random sample of sentence pairs, by reservoir sampling.

    The number of pairs need not be known, and only the sample is in memory (Vitter 1985, "Random
    Sampling with a Reservoir", algorithm R).

    Args:
        pairs: All pairs.
        sample: How many pairs to draw, and the seed.
        counts: Statistics to which the other pairs are added, as dropped by `sample`.

    Returns:
        The sample, in random order.
    """
    random = Random(sample.seed)
    reservoir = list(islice(pairs, sample.pairs))
    for pairs_so_far, pair in enumerate(pairs, len(reservoir) + 1):
        counts.count_dropped("sample")
        # The new pair is drawn with the probability (sample size) / (pairs so far). If it is drawn,
        # it replaces a random pair of the reservoir, the one at `position`.
        position = random.randrange(pairs_so_far)
        if position < sample.pairs:
            reservoir[position] = pair
    random.shuffle(reservoir)
    return reservoir


def _plain_text_of_archive(text: Text, languages: tuple[str, str], downloads: Downloads) -> Text:
    """Return an archive with a file per language as a plain text: with a source and a target file.

    Args:
        text: The settings of the text, whose format is moses.
        languages: The codes of source and target, which are the ends of the files' names.
        downloads: Where the archive is downloaded from.

    Raises:
        UserError: The archive is damaged, or lacks a file in one of the languages.
    """
    archive = text.both
    assert archive is not None
    path = fetch(archive, downloads)
    members = member_names(path, archive.address, archive.archive_member)
    source_name, target_name = side_members(members, languages, archive.name)
    return replace(
        text,
        format="plain",
        both=None,
        source=replace(archive, archive_member=(*archive.archive_member, source_name)),
        target=replace(archive, archive_member=(*archive.archive_member, target_name)),
    )


@contextmanager
def open_file(file: File, downloads: Downloads) -> Iterator[BinaryIO]:
    """Open a file of a corpus for reading, after downloading and unpacking it.

    Some small corpora are part of the program; their sentences are read as if from a file.

    Args:
        file: The settings of the file.
        downloads: Where it is downloaded from.

    Yields:
        The unpacked bytes.
    """
    if file.url in EMBEDDED:
        lines = [f"{sentence}\n" for sentence in _embedded_sentences(file.url)]
        yield BytesIO("".join(lines).encode())
        return
    path = fetch(file, downloads)
    with open_member(path, file.address, file.archive_member) as stream:
        yield stream if file.line_ends is None else with_line_feeds(stream)


def _embedded_sentences(url: str) -> Iterable[str]:
    """Return the sentences of a corpus that is part of the program.

    Args:
        url: Its name, split and language in place of a URL: `phrasebook:train.en`.
    """
    corpus, split, language = re.split("[:.]", url)
    if corpus == "phrasebook":
        return phrasebook.sentences(split, language)
    if corpus == "copy":
        return toy_tasks.copy_task(split)  # Source and target are the same sentences.
    return toy_tasks.toy_sentences(split, language)
