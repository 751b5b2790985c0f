"""The format documents: two files of a sentence a line, not parallel, whose sentences are aligned.

A document ends at an empty line; the last one may lack it. Document i of one file translates
document i of the other.
"""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bleuprint.corpus.alignment.align import Document, align
from bleuprint.corpus.alignment.lattice import Bead
from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import Pair

# Between sentences of one side in the ledger's samples.
_AND = " | "


def read_documents(
    streams: Sequence[BinaryIO], names: Sequence[str], counts: SetCounts
) -> Iterator[Pair]:
    """The pairs of sentences that translate each other; all documents are in memory.

    `counts` has a pair for each bead: sentences without a translation are dropped, by 1-0 or 0-1,
    and several that translate each other (2-1, 1-2, 2-2) are joined by a space, which is a change.
    Raises UserError if the files have different numbers of documents.
    """
    sides = [list(_documents(stream, name)) for stream, name in zip(streams, names, strict=True)]
    if len(sides[0]) != len(sides[1]):
        raise UserError(
            f"{names[0]} has {len(sides[0])} documents and {names[1]} has {len(sides[1])}: "
            "not parallel; a document ends at an empty line"
        )
    documents = list(map(Document, *sides))
    number = 0
    aligned = align(documents, environment.workers())
    for document, beads in zip(documents, aligned, strict=True):
        for bead in beads:
            number += 1
            if not (bead.source and bead.target):
                counts.drop(bead.kind, number, _pair(document, bead, _AND))
                continue
            pair = _pair(document, bead, " ")
            if bead.kind != "1-1":
                counts.change(bead.kind, number, _pair(document, bead, _AND), pair)
            yield pair


def _documents(stream: BinaryIO, name: str) -> Iterator[list[str]]:
    sentences: list[str] = []
    for line in read_lines(stream, name):
        if line:
            sentences.append(line)
        else:
            yield sentences
            sentences = []
    if sentences:
        yield sentences


def _pair(document: Document, bead: Bead, between: str) -> Pair:
    return Pair(
        between.join(document.source[place] for place in bead.source),
        between.join(document.target[place] for place in bead.target),
    )
