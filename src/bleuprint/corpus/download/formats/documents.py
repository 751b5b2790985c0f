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
    """The pairs of sentences that translate each other; all documents are in memory.

    `counts` has a pair for each bead: sentences without a translation are dropped, by 1-0 or 0-1,
    and several that translate each other (2-1, 1-2, 2-2) are joined by a space, which is a change.
    Raises UserError if the files have different numbers of documents.
    """
    # imported here: SciPy takes a fifth of a second, and all texts are read by this package
    from bleuprint.corpus.alignment.align import Document, align

    sides = [list(_documents(stream, name)) for stream, name in zip(streams, names, strict=True)]
    if len(sides[0]) != len(sides[1]):
        first = counted(len(sides[0]), "document")
        raise UserError(
            f"{names[0]} has {first} and {names[1]} has {len(sides[1])}: "
            "not parallel; a document ends at an empty line"
        )
    documents = [*map(Document, *sides)]
    aligned = zip(documents, align(documents, environment.worker_count()), strict=True)
    found = ((document, bead) for document, beads in aligned for bead in beads)
    for number, (document, bead) in enumerate(found, 1):
        pair, shown = (_pair(document, bead, between) for between in (" ", " | "))
        if not (bead.source and bead.target):
            counts.record_dropped(bead.kind, number, shown)
            continue
        if bead.kind != "1-1":
            counts.record_changed(bead.kind, number, shown, pair)
        yield pair


def _documents(stream: BinaryIO, name: str) -> Iterator[list[str]]:
    sentences: list[str] = []
    for line in read_lines(stream, name):
        if line.strip():
            sentences.append(line)
        else:
            yield sentences
            sentences = []
    if sentences:
        yield sentences


def _pair(document: "Document", bead: "Bead", between: str) -> Pair:
    sides = zip(document, bead, strict=True)
    return Pair._make(between.join(text[place] for place in places) for text, places in sides)
