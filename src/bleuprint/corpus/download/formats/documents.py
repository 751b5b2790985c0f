"""The format documents: two files of a sentence a line, not parallel, whose sentences are aligned.

A document ends at a line that is empty or white space; the last one may lack it. Document i of one
file translates document i of the other.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted
from bleuprint.text.parallel import Pair

if TYPE_CHECKING:
    from bleuprint.corpus.alignment.align import Document
    from bleuprint.corpus.alignment.lattice import Bead


def read_documents(
    streams: Sequence[BinaryIO], names: Sequence[str], counts: SetCounts
) -> Iterator[Pair]:
    """Align the sentences of documents, and yield those that translate each other.

    Several sentences that translate each other (2-1, 1-2, 2-2) become one pair, joined by spaces,
    which is counted as a change. All documents are in memory.

    Args:
        streams: The bytes of the source and the target file.
        names: The names of both files in messages.
        counts: Counts sentences without a translation as dropped, by `1-0` or `0-1`.

    Raises:
        UserError: The files contain different numbers of documents.
    """
    # Imported here: SciPy takes a fifth of a second, and this package reads texts of all formats.
    from bleuprint.corpus.alignment.align import Document, align

    source_documents = list(_split_documents(streams[0], names[0]))
    target_documents = list(_split_documents(streams[1], names[1]))
    if len(source_documents) != len(target_documents):
        raise UserError(
            f"{names[0]} has {counted(len(source_documents), 'document')} and {names[1]} has "
            f"{len(target_documents)}: not parallel; a document ends at an empty line"
        )
    documents = []
    for source, target in zip(source_documents, target_documents, strict=True):
        documents.append(Document(source, target))
    alignments = align(documents, environment.worker_count())
    number = 0  # of the bead, counted through all documents
    for document, beads in zip(documents, alignments, strict=True):
        for bead in beads:
            number += 1
            sample = _bead_pair(document, bead, separator=" | ")
            if not bead.source or not bead.target:
                counts.record_dropped(bead.kind, number, sample)
                continue
            pair = _bead_pair(document, bead, separator=" ")
            if bead.kind != "1-1":
                counts.record_changed(bead.kind, number, sample, pair)
            yield pair


def _split_documents(stream: BinaryIO, name: str) -> Iterator[list[str]]:
    """Yield the sentences of each document of a file."""
    sentences: list[str] = []
    for line in read_lines(stream, name):
        if line.strip():
            sentences.append(line)
        else:
            yield sentences
            sentences = []
    if sentences:
        yield sentences


def _bead_pair(document: "Document", bead: "Bead", separator: str) -> Pair:
    """Return the sentences of a bead as one pair, with a separator between sentences."""
    return Pair(
        source=separator.join(document.source[index] for index in bead.source),
        target=separator.join(document.target[index] for index in bead.target),
    )
