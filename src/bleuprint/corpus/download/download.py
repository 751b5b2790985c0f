"""The stage download: the texts of a corpus as aligned lines.

Sentences stay as published; what their format adds (a byte order mark, carriage returns at line
ends, markup) is removed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain, islice
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
from bleuprint.runtime.wording import counted, join_with_and
from bleuprint.text.parallel import BLOCK_PAIRS, Pair, PairWriter, TextFolder, pack_pairs


class Sample(NamedTuple):
    """At most `pairs` pairs of the training texts together, drawn by `seed`."""

    pairs: int
    seed: int


def download_corpus(
    corpus: str,
    files: Files,
    raw: TextFolder,
    filter_stats_path: Path,
    source: Downloads,
    sample: Sample | None = None,
) -> None:
    """Write train, valid and each test.NAME, their parts joined, in two languages each.

    Beside a test set that says its documents are their ids, after the name of the part if there are
    several. A training text of which a system translates one side goes to a folder of its name,
    with empty lines for that side. With `sample`, train is a sample of its parts together, in
    random order, and what is left out is counted as dropped by `sample`; what `pairs` in a text
    leaves out is, by `pairs`. With `repeat`, each copy counts.
    """
    filter_stats = FilterStats("download", corpus, fingerprint.of_settings(files))
    with atomic_folder(raw.path) as partial:
        for name, parts in files.sets().items():
            readings = {
                part: _Reading(
                    settings_key(corpus, f"{name}.{part}"),
                    text,
                    raw.languages,
                    source,
                )
                for part, text in parts.items()
            }
            if readings or name == "train":  # a zero-shot direction has an empty one
                if sample and name == "train":
                    _write_sample(readings, raw.with_path(partial), filter_stats, sample)
                else:
                    _write_set(name, readings, raw.with_path(partial), filter_stats)
        source.record()
        filter_stats.write(filter_stats_path)


def _write_sample(
    readings: Mapping[str, "_Reading"],
    folder: TextFolder,
    filter_stats: FilterStats,
    sample: Sample,
) -> None:
    counts = filter_stats.add_set("train")
    copies = (each for each in readings.values() for _ in range(each.text.repeat or 1))
    pairs = chain.from_iterable(each.chosen(counts) for each in copies)
    with folder.writer("train") as writer:
        drawn = draw_sample(pairs, sample, counts)
        writer.write_packed(*pack_pairs(drawn))
        counts.count_kept(len(drawn))


def _write_set(
    name: str, readings: Mapping[str, "_Reading"], folder: TextFolder, filter_stats: FilterStats
) -> None:
    ids: list[str] = []
    with folder.writer(name) as writer:
        for part, reading in readings.items():
            counts, repeat = filter_stats.add_set(f"{name}.{part}"), reading.text.repeat or 1
            if reading.text.synthetic_side:  # copies are made later
                (folder.path / part).mkdir()
                with folder.with_path(folder.path / part).writer(name) as alone:
                    once = reading.write(alone)
                for _ in range(repeat):
                    counts.add(once)
                continue
            for _ in range(repeat):
                counts.add(reading.write(writer))
            several = f"{part}/" if len(readings) > 1 else ""
            ids += [id and f"{several}{id}" for id in reading.documents]
    known = sum(map(bool, ids))
    if name.startswith("test.") and known:
        if known < (lines := folder.count(name)):
            missing = f"{lines - known} of {lines} lines are of no document"
            print_message(f"{name}: {missing}: none is used", "note")
            return
        text = "".join(f"{' '.join(id.split(chr(10)))}\n" for id in ids)
        # no later stage copies it, and no training depends on it
        paths.document_ids_file(folder.path, name).write_bytes(text.encode())


@dataclass
class _Reading:
    """Reads a text; `key`: its place in params.yaml.

    `documents`: the ids of the documents of its pairs, if the format says them.
    """

    key: str
    text: Text
    languages: tuple[str, str]
    source: Downloads
    documents: list[str] = field(default_factory=list)

    def write(self, writer: PairWriter) -> SetCounts:
        """Write the text, and count its pairs."""
        counts = SetCounts()
        chosen = self.chosen(counts)
        with Progress(f"read {self.key.removeprefix('corpora.')}", None, "pairs") as progress:
            while block := list(islice(chosen, BLOCK_PAIRS)):
                writer.write_packed(*pack_pairs(block))
                counts.count_kept(len(block))
                progress.advance(len(block))
        return counts

    def chosen(self, counts: SetCounts) -> Iterator[Pair]:
        """The pairs, or as many of them as `text.pairs` says; the text is then read twice.

        Drawn by selection sampling, which keeps the order and needs no memory (Knuth, The Art of
        Computer Programming, volume 2, section 3.4.2, algorithm S). Raises UserError if the text
        has fewer pairs.
        """
        if (wanted := self.text.pairs) is None:
            yield from self.pairs(counts)
            return
        left = sum(1 for _ in self.pairs(SetCounts()))
        if left < wanted:
            names = join_with_and(file.name for file in self.text.files)
            raise UserError(
                f"{self.key}.pairs is {wanted}, but {names} have {counted(left, 'pair')}"
            )
        seed = self.text.pairs_seed
        random = None if seed is None else Random(seed)
        for pair in self.pairs(counts):
            if wanted and (random is None or random.random() * left < wanted):
                wanted -= 1
                yield pair
            else:
                counts.count_dropped("pairs")
            left -= 1

    def pairs(self, counts: SetCounts) -> Iterator[Pair]:
        """All pairs; `counts` has what the format drops."""
        self.documents.clear()
        try:
            with ExitStack() as opened:
                streams = [opened.enter_context(_open(f, self.source)) for f in self.text.files]
                yield from read_text(self.text, streams, self.languages, counts, self.documents)
        except UserError as error:
            raise UserError(f"{error}{self.source.doubts(self.text.files)}") from None


def read_text_pairs(
    text: Text,
    languages: tuple[str, str],
    source: Downloads | None = None,
    counts: SetCounts | None = None,
) -> Iterator[Pair]:
    """Yield all pairs of a text in files of inputs/, or in files that `source` fetches.

    Args:
        text: the settings of the files.
        languages: the codes of source and target.
        source: where files are fetched from; not needed for files in inputs/.
        counts: counts the pairs that the format drops.
    """
    reading = _Reading("", text, languages, source or Downloads(None, Path(), None))
    return reading.pairs(SetCounts() if counts is None else counts)


def draw_sample(pairs: Iterator[Pair], sample: Sample, counts: SetCounts) -> list[Pair]:
    """A simple random sample, in random order (Vitter 1985, algorithm R)."""
    random, drawn = Random(sample.seed), list(islice(pairs, sample.pairs))
    for seen, pair in enumerate(pairs, len(drawn) + 1):
        counts.count_dropped("sample")
        if (place := random.randrange(seen)) < sample.pairs:
            drawn[place] = pair
    random.shuffle(drawn)
    return drawn


@contextmanager
def _open(file: File, source: Downloads) -> Iterator[BinaryIO]:
    """A stream of an unpacked file."""
    if file.url in EMBEDDED:
        yield BytesIO("".join(f"{sentence}\n" for sentence in _embedded(file.url)).encode())
    else:
        name = file.url or file.path or ""
        with open_member(fetch(file, source), name, file.archive_member) as stream:
            yield stream


def _embedded(url: str) -> Iterable[str]:
    """The sentences of an embedded corpus."""
    corpus, text, language = re.split("[:.]", url)
    if corpus == "phrasebook":
        return phrasebook.sentences(text, language)
    if corpus == "copy":
        return toy_tasks.copy_task(text)
    return toy_tasks.toy_sentences(text, language)
