"""The lines of a test set with the outputs of several systems, ranked for the page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bleuprint.config.paths import Run
from bleuprint.report.page.context import ReportContext
from bleuprint.report.score_frame import bleu_rows, by_test_set
from bleuprint.runs.results import Results
from bleuprint.scoring.sacrebleu_metrics import sentence_bleu

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
    for task, test, scores in by_test_set(context.scores):
        rows = bleu_rows(scores)
        languages = rows[0].source, rows[0].target
        outputs = {}
        bleu = {}
        for row in shown_systems(rows):
            run = Run(row.system, row.corpus, context.settings.seeds[0])
            results = Results.open(context.settings, run, context.root)
            references, output = results.references_and_translations(test)
            outputs[row.row_name] = output
            bleu[row.row_name] = sentence_bleu(output, references, languages[1])
        yield SetLines(
            task=task,
            test=test,
            languages=languages,
            sources=results.source_lines(test),
            references=references,
            outputs=outputs,
            bleu=pd.DataFrame(bleu),
            left_out=len(rows) - len(outputs),
        )


def shown_systems(rows: Sequence[Any], most: int = SYSTEMS) -> list[Any]:
    """Return at most `most` systems of a test set: the baseline and the best others, in order.

    `rows`: the BLEU of each system, as rows of the score frame.
    """
    baseline, *others = sorted(rows, key=lambda row: pd.notna(row.difference))
    best = sorted(others, key=lambda row: -row.value)[: most - 1]
    chosen = {row.row_name for row in (baseline, *best)}
    return [row for row in rows if row.row_name in chosen]
