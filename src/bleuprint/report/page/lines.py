"""The lines of a test set with the outputs of several systems, ranked for the page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bleuprint.cells.results import Results
from bleuprint.config.paths import Cell
from bleuprint.report.page.context import ReportContext
from bleuprint.report.paired import OfTest
from bleuprint.report.system_results import SystemResult
from bleuprint.scoring.sacrebleu_measures import sentence_bleu

# Lines of each short list: a system's best and worst, those where systems differ most.
MOST = 5
# Systems whose outputs are shown.
SYSTEMS = 6
_BLEU = "bleu", ""


@dataclass(frozen=True, eq=False)
class SetLines:
    """A test set, with `outputs` by system, `bleu` of each line with a column for each of these,
    and BLEU of all lines as `measured`.

    Lines count from 0. `left_out` is the number of other systems.
    """

    corpus: str
    test: str
    languages: tuple[str, str]
    sources: Sequence[str]
    references: Sequence[str]
    outputs: Mapping[str, Sequence[str]]
    bleu: pd.DataFrame
    measured: Mapping[str, OfTest]
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
        """All lines, in case there is room for only some: the short lists, then the others."""
        first = [rank(system)[:MOST] for system in self.outputs for rank in (self.best, self.worst)]
        return list(dict.fromkeys(chain(self.differing, *first, range(len(self.sources)))))


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
    for (corpus, test), results in columns.items():
        entry = context.settings.corpus(corpus)
        outputs, bleu, measured, systems = {}, {}, {}, shown_systems(results)
        for system in systems:
            cell = Cell(system, corpus, context.settings.seeds[0])
            run = Results.open(context.settings, cell, context.root)
            references, outputs[system] = run.lines(test)
            measured[system] = {_BLEU: run.measures(test)[_BLEU]}
            bleu[system] = sentence_bleu(outputs[system], references, entry.target)
        yield SetLines(
            corpus=corpus,
            test=test,
            languages=(entry.source, entry.target),
            sources=run.sources(test),
            references=references,
            outputs=outputs,
            bleu=pd.DataFrame(bleu),
            measured=measured,
            left_out=len(results) - len(systems),
        )


def shown_systems(results: Sequence[SystemResult], most: int = SYSTEMS) -> list[str]:
    """At most `most` systems of a test set, in their order: the baseline and the best others."""
    baseline, *others = sorted(results, key=lambda result: result.difference is not None)
    others.sort(key=lambda result: -result.bleu.mean)
    chosen = {result.system for result in (baseline, *others[: most - 1])}
    return [s.system for s in results if s.system in chosen]
