"""The lines of a test set with the outputs of several systems, ranked for the page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bleuprint.cells.results import Results
from bleuprint.config.paths import Cell
from bleuprint.report.page.context import ReportContext
from bleuprint.report.system_results import SystemResult, by_test
from bleuprint.scoring.sacrebleu_measures import sentence_bleu

# Systems whose outputs are shown.
SYSTEMS = 6


@dataclass(frozen=True, eq=False)
class SetLines:
    """A test set with `outputs` by row, and `bleu` of each line with a column for each of them.

    Lines count from 0. `left_out` is the number of other systems.
    """

    task: str
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

    def differing(self) -> list[int]:
        """Lines where systems' BLEU differs, those where it differs most first."""
        spread = self.bleu.max(axis=1) - self.bleu.min(axis=1)
        ranked = spread[spread > 0].sort_values(ascending=False, kind="stable")
        return [int(line) for line in ranked.index]

    def worst(self) -> list[int]:
        """Lines by mean BLEU, the lowest first; ties: the longest first, the most informative."""
        lengths = [-len(line) for line in self.references]
        return [int(line) for line in np.lexsort((lengths, self.bleu.mean(axis=1)))]


def lines_of_sets(context: ReportContext) -> Iterator[SetLines]:
    """Every test set, with the outputs of the first seed."""
    for (task, test), results in by_test(context.results).items():
        outputs, bleu = {}, {}
        languages = results[0].first.source, results[0].first.target
        for shown in shown_systems(results):
            cell = Cell(shown.system, shown.corpus, context.settings.seeds[0])
            run = Results.open(context.settings, cell, context.root)
            references, output = run.lines(test)
            outputs[shown.label] = output
            bleu[shown.label] = sentence_bleu(output, references, languages[1])
        yield SetLines(
            *(task, test, languages, run.sources(test), references, outputs),
            bleu=pd.DataFrame(bleu),
            left_out=len(results) - len(outputs),
        )


def shown_systems(results: Sequence[SystemResult], most: int = SYSTEMS) -> list[SystemResult]:
    """At most `most` systems of a test set, in their order: the baseline and the best others."""
    baseline, *others = sorted(results, key=lambda result: result.difference is not None)
    others.sort(key=lambda result: -result.bleu.mean)
    chosen = baseline, *others[: most - 1]
    return [result for result in results if result in chosen]
