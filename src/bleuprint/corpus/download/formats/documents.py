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
    """Read documents in two languages, and find out which sentences translate each other.

    The lines of the two files are not parallel: two source sentences may have one translation, for
    example. Such groups are called 2-1, 1-2 or 2-2 by their numbers of source and target sentences.
    Each becomes one sentence pair, with the sentences joined by spaces. All documents are in
    memory.

    Args:
        streams: The bytes of the source and the target file. An empty line ends a document.
            Document n of one file is the translation of document n of the other.
        names: The names of both files in messages.
        counts: Statistics to which sentences without a translation are added as dropped, by the
            rule `1-0` or `0-1`, and joined sentences as changed.

    Raises:
        UserError: The files contain different numbers of documents.
    """
    # Imported here: SciPy takes a fifth of a second, and this package reads texts of all formats.
    from bleuprint.corpus.alignment.align import Document, align

    source_documents = list(_split_documents(streams[0], names[0]))
    target_documents = list(_split_documents(streams[1], names[1]))
    if len(source_documents) != len(target_documents):
        raise UserError(
            f"{names[0]} has {counted(len(source_documents), 'document')}, but {names[1]} has "
            f"{len(target_documents)}, so they are not parallel. A document ends at an empty line"
        )
    documents = []
    for source, target in zip(source_documents, target_documents, strict=True):
        documents.append(Document(source, target))
    alignments = align(documents, environment.worker_count())
    # A bead is a group of source and target sentences that translate each other. Beads are numbered
    # through all documents.
    bead_number = 0
    for document, beads in zip(documents, alignments, strict=True):
        for bead in beads:
            bead_number += 1
            separate_sentences = _join_bead(document, bead, separator=" | ")
            if not bead.source or not bead.target:
                counts.record_dropped(bead.kind, bead_number, separate_sentences)
                continue
            pair = _join_bead(document, bead, separator=" ")
            if bead.kind != "1-1":
                counts.record_changed(bead.kind, bead_number, separate_sentences, pair)
            yield pair


def _split_documents(stream: BinaryIO, name: str) -> Iterator[list[str]]:
    """Yield the sentences of each document of a file; an empty line ends a document."""
    sentences: list[str] = []
    for line in read_lines(stream, name):
        if line.strip():
            sentences.append(line)
        else:
            yield sentences
            sentences = []
    # The empty line after the last document may be missing.
    if sentences:
        yield sentences


def _join_bead(document: "Document", bead: "Bead", separator: str) -> Pair:
    """Join a bead, that is, a few sentences that translate each other, to one sentence pair.

    Args:
        document: The source and target sentences.
        bead: The indices of the sentences to join, on both sides.
        separator: What to put between sentences of one side.
    """
    return Pair(
        source=separator.join(document.source[index] for index in bead.source),
        target=separator.join(document.target[index] for index in bead.target),
    )
