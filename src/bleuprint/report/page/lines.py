"""The lines of a test set with the outputs of several systems, ranked for the page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bleuprint.config.paths import Cell
from bleuprint.report.page.context import ReportContext
from bleuprint.report.system_results import SystemResult
from bleuprint.scoring.sentence_scores import sentence_bleu
from bleuprint.tracking.cell_results import CellResults

# Lines of each short list: a system's best and worst, those where systems differ most.
MOST = 5
# Systems whose outputs are shown.
SYSTEMS = 6


@dataclass(frozen=True, eq=False)
class SetLines:
    """A test set, with `outputs` by system, and `bleu` with a column for each of these.

    Lines count from 0. `left_out` is the number of other systems.
    """

    corpus: str
    test: str
    languages: tuple[str, str]
    sources: Sequence[str]
    references: Sequence[str]
    outputs: Mapping[str, Sequence[str]]
    bleu: pd.DataFrame
    left_out: int

    @property
    def baseline(self) -> str:
        return next(iter(self.outputs))

    def best(self, system: str) -> list[int]:
        """Lines by BLEU, the highest first; ties: the longest first, the most informative."""
        return _ranked(-self.bleu[system], [-len(line) for line in self.references])

    def worst(self, system: str) -> list[int]:
        """Lines by BLEU, the lowest first; ties: the longest first."""
        return _ranked(self.bleu[system], [-len(line) for line in self.references])

    @cached_property
    def differing(self) -> list[int]:
        """Lines where systems' BLEU differs, those where it differs most first."""
        spread = self.bleu.max(axis=1) - self.bleu.min(axis=1)
        return _ranked(-spread)[: int((spread > 0).sum())]

    def by_interest(self) -> list[int]:
        """All lines, the most informative first, in case there is room for only some.

        First the short lists; then in turn a line where systems differ, one that all translate
        well, one that all translate badly, and one of an even sample of the set.
        """
        first = [rank(system)[:MOST] for system in self.outputs for rank in (self.best, self.worst)]
        ranked = _ranked(-self.bleu.mean(axis=1))
        # the golden section's multiples, modulo 1: any number of the first ones are evenly spread
        even = _ranked(np.arange(len(self.sources)) * 0.6180339887498949 % 1)
        turns = chain(*zip_longest(self.differing, ranked, ranked[::-1], even))
        lines = dict.fromkeys(chain(self.differing[:MOST], *first, turns))
        return [line for line in lines if line is not None]


def _ranked(*keys: ArrayLike) -> list[int]:
    """Lines in rising order of the first key; ties in that of the second, and so on."""
    return [int(line) for line in np.lexsort(np.array(keys[::-1]))]


def lines_of_sets(context: ReportContext) -> Iterator[SetLines]:
    """Every test set, with the outputs of the first seed.

    Raises UserError if a file is not the one that was scored.
    """
    columns: dict[tuple[str, str], list[SystemResult]] = {}
    for result in context.results:
        columns.setdefault((result.corpus, result.test), []).append(result)
    for results in columns.values():
        yield _read(context, results)


def shown_systems(results: Sequence[SystemResult], most: int = SYSTEMS) -> list[str]:
    """At most `most` systems of a test set, in their order.

    The baseline and the best are chosen first, then those with the smallest p.
    """
    best = max(results, key=lambda result: result.bleu.mean)

    def rank(result: SystemResult) -> tuple[bool, bool, float, float]:
        difference = result.difference
        if difference is None:
            return False, False, 0.0, 0.0
        return True, result is not best, difference.p, -abs(difference.bleu)

    chosen = {result.system for result in sorted(results, key=rank)[:most]}
    return [s.system for s in results if s.system in chosen]


def _read(context: ReportContext, results: Sequence[SystemResult]) -> SetLines:
    corpus, test = results[0].corpus, results[0].test
    entry = context.settings.corpus(corpus)
    outputs, bleu, systems = {}, {}, shown_systems(results)
    for system in systems:
        cell = Cell(system, corpus, context.settings.seeds[0])
        run = CellResults.open(context.settings, cell, context.root)
        references, outputs[system] = run.lines(test)
        bleu[system] = sentence_bleu(outputs[system], references, entry.target)
    return SetLines(
        corpus=corpus,
        test=test,
        languages=(entry.source, entry.target),
        sources=run.sources(test),
        references=references,
        outputs=outputs,
        bleu=pd.DataFrame(bleu),
        left_out=len(results) - len(systems),
    )
