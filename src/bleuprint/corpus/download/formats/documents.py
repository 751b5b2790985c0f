"""The format documents: two files of a sentence a line, not parallel, whose sentences are aligned.

A document ends at a line that is empty or white space; the last one may lack it. Document i of one
file translates document i of the other.
"""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bleuprint.corpus.alignment.align import Document, align
from bleuprint.corpus.alignment.lattice import Bead
from bleuprint.corpus.download.formats.lines import read_lines
from bleuprint.corpus.steps.ledger import SetCounts
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, say
from bleuprint.text.parallel import Pair

# Between sentences of one side in the ledger's samples.
_AND = " | "
# Documents of 30 sentences that do not match have 55 to 86 % of 1-1 beads (the phrasebook's), those
# that do 85 to 100 %, with up to 15 % of their sentences lost, joined or split.
_ALIKE = 0.85
# With fewer beads the share says little.
_FEW = 8


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
    number, poor = 0, list[int]()
    aligned = align(documents, environment.workers())
    for place, (document, beads) in enumerate(zip(documents, aligned, strict=True), 1):
        if not _plausible(beads):
            poor.append(place)
        for bead in beads:
            number += 1
            if not (bead.source and bead.target):
                counts.drop(bead.kind, number, _pair(document, bead, _AND))
                continue
            pair = _pair(document, bead, " ")
            if bead.kind != "1-1":
                counts.change(bead.kind, number, _pair(document, bead, _AND), pair)
            yield pair
    if poor:
        say(
            f"{' and '.join(names)}: {len(poor)} of {len(documents)} documents have less than "
            f"{_ALIKE:.0%} of 1-1 beads (the first: {poor[0]}): do they match?",
            "note",
        )


def _plausible(beads: Sequence[Bead]) -> bool:
    """Whether a document looks like a translation of the other: most beads are 1-1."""
    alike = sum(bead.kind == "1-1" for bead in beads)
    return len(beads) < _FEW or alike >= _ALIKE * len(beads)


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


def _pair(document: Document, bead: Bead, between: str) -> Pair:
    return Pair(
        between.join(document.source[place] for place in bead.source),
        between.join(document.target[place] for place in bead.target),
    )
