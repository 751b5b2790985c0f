"""The stage download: the texts of a corpus as aligned lines.

Sentences stay as published; what their format adds (a byte order mark, carriage returns at line
ends, markup) is removed.
"""

import re
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, MutableSequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path
from random import Random
from typing import BinaryIO, NamedTuple

from bleuprint.config.corpus_files import EMBEDDED, File, Files, Text
from bleuprint.corpus.download.archive import Damaged, open_member
from bleuprint.corpus.download.document_ids import write_document_ids
from bleuprint.corpus.download.fetch import Source, accept, doubts, fetch, reject
from bleuprint.corpus.download.formats import read_text
from bleuprint.corpus.download.lockfile import read_lock
from bleuprint.corpus.steps.ledger import Ledger, SetCounts
from bleuprint.runtime import environment, fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder
from bleuprint.runtime.progress import Progress
from bleuprint.text.parallel import BLOCK_PAIRS, Pair, PairWriter, TextFolder, packed

# For the ids of documents that nobody needs.
_NOWHERE: MutableSequence[str] = deque(maxlen=0)


class Sample(NamedTuple):
    """At most `pairs` pairs of each training text, drawn by `seed`."""

    pairs: int
    seed: int


def download_corpus(
    corpus: str,
    files: Files,
    raw: TextFolder,
    ledger_path: Path,
    source: Source,
    sample: Sample | None = None,
) -> None:
    """Write train, valid and each test.NAME, their parts joined, in two languages each.

    Beside a test set that says its documents are their ids, after the name of the part if there are
    several. A training text of which a system translates one side goes to a folder of its name,
    with empty lines for that side. With `sample`, training texts are drawn from, in random order.
    What it leaves out is counted as dropped by `sample`, what `pairs` in a text leaves out by
    `pairs`. With `repeat`, each copy counts.
    """
    outside = files.outside(Path(), environment.root())
    ledger = Ledger("download", corpus, fingerprint.of_settings(files), outside=outside)
    with whole_folder(raw.path) as partial:
        for name, parts in files.sets().items():
            if parts:
                documents: list[str] = []
                with raw.at(partial).writer(name) as writer:
                    for part, text in parts.items():
                        counts = ledger.open(f"{name}.{part}")
                        key = f"corpora.{corpus}.files.{name}.{part}"
                        if text.made:
                            (partial / part).mkdir()
                            with raw.at(partial / part).writer(name) as alone:
                                _write_text(
                                    key, text, raw.languages, source, None, alone, counts, _NOWHERE
                                )
                            continue
                        drawn = sample if name == "train" else None
                        ids = list[str]() if name.startswith("test.") else _NOWHERE
                        for _ in range(text.repeat or 1):
                            _write_text(
                                key, text, raw.languages, source, drawn, writer, counts, ids
                            )
                        documents += [f"{part}/{id}" if id and len(parts) > 1 else id for id in ids]
                if name.startswith("test."):
                    write_document_ids(raw.at(partial), name, documents)
        sums = read_lock(source.lock) if source.lock else {}
        urls = {file.url for file in files.sides().values() if file.sha256 is None}
        ledger.redirected = {
            url: entry.redirected_to
            for url, entry in sums.items()
            if url in urls and entry.redirected_to
        }
        ledger.write(ledger_path)


def remove_others(folder: Path, files: Files) -> None:
    """Remove from a corpus's folder what no stage writes any more.

    Those are translations of former texts, and the text where former versions wrote it.
    """
    stages = {"given", *(f"made.{part}" for part in files.made())}
    for path in folder.glob("*"):
        if path.name not in stages:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _write_text(
    key: str,
    text: Text,
    languages: tuple[str, str],
    source: Source,
    sample: Sample | None,
    writer: PairWriter,
    counts: SetCounts,
    documents: MutableSequence[str],
) -> None:
    """Write a text, and count its pairs; of one that a system translates, the copies made later.

    `documents` gets the ids of the documents of all its pairs, if the format says them.
    """
    once = SetCounts()
    chosen = _chosen(key, text, languages, source, once, documents)
    if sample:
        chosen = iter(draw(chosen, sample, once))
    with Progress(f"read {key.removeprefix('corpora.')}", None, "pairs") as progress:
        while block := list(islice(chosen, BLOCK_PAIRS)):
            writer.write_packed(*packed(block))
            once.keep(len(block))
            progress.advance(len(block))
    for _ in range((text.repeat or 1) if text.made else 1):
        counts.add(once)


def _chosen(
    key: str,
    text: Text,
    languages: tuple[str, str],
    source: Source,
    counts: SetCounts,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    """The pairs of a text, or as many of them as `text.pairs` says; the text is then read twice.

    `key`: that of the text in params.yaml. Drawn by selection sampling, which keeps the order and
    needs no memory (Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm S).
    Raises UserError if the text has fewer pairs.
    """
    pairs = _pairs(text, languages, source, counts, documents)
    if text.pairs is None:
        yield from pairs
        return
    left, wanted = (
        sum(1 for _ in _pairs(text, languages, source, SetCounts(), deque(maxlen=0))),
        text.pairs,
    )
    if left < wanted:
        names = " and ".join(file.name for file in text.files)
        raise UserError(f"{key}.pairs is {wanted}, but {names} have {left} pairs")
    random = None if text.pairs_seed is None else Random(text.pairs_seed)
    for pair in pairs:
        if wanted and (random is None or random.random() * left < wanted):
            wanted -= 1
            yield pair
        else:
            counts.leave_out("pairs")
        left -= 1


def local_pairs(text: Text, languages: tuple[str, str]) -> Iterator[Pair]:
    """All pairs of a text in files of inputs/."""
    return _pairs(text, languages, Source(None, Path(), None), SetCounts(), _NOWHERE)


def draw(pairs: Iterator[Pair], sample: Sample, counts: SetCounts) -> list[Pair]:
    """A simple random sample, in random order (Vitter 1985, algorithm R)."""
    random, drawn = Random(sample.seed), list(islice(pairs, sample.pairs))
    for seen, pair in enumerate(pairs, len(drawn) + 1):
        counts.leave_out("sample")
        if (place := random.randrange(seen)) < sample.pairs:
            drawn[place] = pair
    random.shuffle(drawn)
    return drawn


def _pairs(
    text: Text,
    languages: tuple[str, str],
    source: Source,
    counts: SetCounts,
    documents: MutableSequence[str],
) -> Iterator[Pair]:
    with ExitStack() as opened:
        streams = [opened.enter_context(_open(file, source)) for file in text.files]
        try:
            yield from read_text(text, streams, languages, counts, documents)
        except Damaged:
            raise
        except UserError as error:
            raise UserError(f"{error}{doubts(text.files, source)}") from None
    for file in text.files:
        accept(file, source)


@contextmanager
def _open(file: File, source: Source) -> Iterator[BinaryIO]:
    """A stream of an unpacked file."""
    if file.url in EMBEDDED:
        yield BytesIO("".join(f"{sentence}\n" for sentence in _embedded(file.url)).encode())
        return
    path, name = fetch(file, source), file.url or file.path or ""
    try:
        with open_member(path, name, file.archive_member) as stream:
            yield stream
    except Damaged as error:
        if str(error).startswith((f"{name}:", f"{name}!")):  # not another file that is open
            reject(path, file, source)
        raise


def _embedded(url: str) -> Iterable[str]:
    """The sentences of an embedded corpus."""
    # imported here: other corpora do not use them
    from bleuprint.corpus import phrasebook, toy_tasks

    corpus, split, language = re.split("[:.]", url)
    match corpus:
        case "phrasebook":
            return phrasebook.sentences(split, language)
        case "copy":
            return toy_tasks.copy_task(split)
        case _:
            return toy_tasks.toy_sentence(language)
