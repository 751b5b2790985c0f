"""Aligns the sentences of documents: by their lengths, then by lengths and words (Moore 2002).

Pairs that the first pass is certain of teach the word translations that the second one uses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from scipy.sparse import csr_array

from bleuprint.corpus.alignment.gale_church import LengthScorer
from bleuprint.corpus.alignment.lattice import Band, Bead, Posteriors, best_path, posteriors
from bleuprint.corpus.alignment.words import Direction, WordScorer, words
from bleuprint.corpus import word_translation as wt
from bleuprint.runtime import environment
from bleuprint.runtime.process_pool import map_parts

CERTAIN = 0.9
IMPROBABLE = 1e-6
AT_EDGE = 1e-3


@dataclass(frozen=True)
class Document:
    """The sentences of a document in both languages; a side may have none."""

    source: Sequence[str]
    target: Sequence[str]


def align(documents: Sequence[Document], workers: int) -> Iterator[list[Bead]]:
    totals = [sum(len(s) for d in documents for s in side(d)) for side in (lambda d: d.source, lambda d: d.target)]
    ratio = totals[1] / totals[0] if all(totals) else 1.0
    firsts = [by_length(d, ratio) for d in documents]
    pairs = [
        (words(d.source[i]), words(d.target[j])) for d, f in zip(documents, firsts) for i, j in f.pairs.tolist()
    ]
    table = wt.learn(pairs)
    fwd, bwd = directions(table)
    for d, f in zip(documents, firsts):
        ids = [[wt._ids(n, words(s)) for s in side] for n, side in zip(table._numbers, (d.source, d.target))]
        yield best_path(f.band, WordScorer(LengthScorer.of(d.source, d.target, ratio), *ids, fwd, bwd))

def directions(table):
    s, t = np.divmod(table.links, len(table.target_words))
    shape = len(table.source_words), len(table.target_words)
    f, b = table._evidence
    return (Direction(csr_array((f.links.astype(float), (s, t)), shape), f.prior, f.null, wt._UNEXPLAINED),
            Direction(csr_array((b.links.astype(float), (t, s)), shape[::-1]), b.prior, b.null, wt._UNEXPLAINED))


def by_length(document: Document, ratio: float) -> Posteriors:
    score = LengthScorer.of(document.source, document.target, ratio)
    rows, columns = len(document.source) + 1, len(document.target) + 1
    half = 16 + int(np.sqrt(max(rows, columns)) / 2)
    while True:
        band = Band.around(score.centers, columns, half)
        found = posteriors(band, score, CERTAIN, IMPROBABLE)
        if found and (found.at_edge < AT_EDGE or half >= columns):
            return found
        half *= 2
