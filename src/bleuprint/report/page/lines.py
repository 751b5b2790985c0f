"""The lines of a test set with the translations of several systems, ranked for the HTML report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bleuprint.config.paths import Run
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.score_frame import ScoreRow, bleu_rows, by_test_set
from bleuprint.runs.results import Results
from bleuprint.scoring.sacrebleu_metrics import sentence_bleu

# The largest number of systems whose translations are shown.
MAX_SYSTEMS = 6


@dataclass(frozen=True, eq=False)
class SetLines:
    """The lines of a test set, which count from 0.

    Attributes:
        task: The name of the task.
        test: The name of the test set.
        languages: The source and the target language.
        sources: The source lines.
        references: The reference lines.
        outputs: The translations of each system, by the name of its row.
        bleu: The sentence BLEU: a row for each line, and a column for each system.
        hidden_systems: The number of systems that are not shown.
    """

    task: str
    test: str
    languages: tuple[str, str]
    sources: Sequence[str]
    references: Sequence[str]
    outputs: Mapping[str, Sequence[str]]
    bleu: pd.DataFrame
    hidden_systems: int

    @property
    def baseline(self) -> str:
        """The system that the reader compares with at first."""
        return next(iter(self.outputs))

    def differing(self) -> list[int]:
        """Return the lines in which the systems' BLEU differs, the largest difference first."""
        spread = self.bleu.max(axis=1) - self.bleu.min(axis=1)
        ranked = spread[spread > 0].sort_values(ascending=False, kind="stable")
        return list(map(int, ranked.index))

    def worst(self) -> list[int]:
        """Return all lines by their mean BLEU over systems, the lowest first.

        Of lines with equal BLEU, the longest comes first, since it tells most.
        """
        negative_lengths = [-len(line) for line in self.references]
        mean_bleu = self.bleu.mean(axis=1)
        # np.lexsort sorts by its last key first.
        return list(map(int, np.lexsort((negative_lengths, mean_bleu))))


def lines_of_sets(report: ReportData) -> Iterator[SetLines]:
    """Yield the lines of each test set, with the translations of the first seed.

    Args:
        report: The experiment and its results.
    """
    for task, test, scores in by_test_set(report.scores):
        rows = bleu_rows(scores)
        source = rows[0].source
        target = rows[0].target
        outputs = {}
        bleu = {}
        for row in shown_systems(rows):
            run = Run(row.system, row.corpus, report.settings.seeds[0])
            results = Results.open(report.settings, run, report.root)
            references, translations = results.references_and_translations(test)
            outputs[row.row_name] = translations
            bleu[row.row_name] = sentence_bleu(translations, references, target)
        yield SetLines(
            task=task,
            test=test,
            languages=(source, target),
            # Sources and references are the same for all systems, so any system's files give them.
            sources=results.source_lines(test),
            references=references,
            outputs=outputs,
            bleu=pd.DataFrame(bleu),
            hidden_systems=len(rows) - len(outputs),
        )


def shown_systems(rows: Sequence[ScoreRow], max_systems: int = MAX_SYSTEMS) -> list[ScoreRow]:
    """Return the baseline and the best other systems of a test set, in the order of the rows.

    Args:
        rows: The BLEU of each system.
        max_systems: The largest number of systems, the baseline included.
    """
    # The baseline has no difference, and so comes first.
    baseline, *others = sorted(rows, key=lambda row: pd.notna(row.difference))
    best = sorted(others, key=lambda row: -row.value)[: max_systems - 1]
    shown_names = {row.row_name for row in (baseline, *best)}
    return [row for row in rows if row.row_name in shown_names]
