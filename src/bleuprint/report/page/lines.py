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
    """The lines of a test set with the translations of some systems, for the HTML report.

    Its methods rank the lines by sentence BLEU, so that the report shows the most interesting ones.

    Attributes:
        task: The corpora that share the test set, under one name.
        test: The name of the test set.
        languages: The source and the target language.
        sources: The source lines.
        references: The reference lines.
        outputs: The translations of each shown system, by the name of its table row.
        bleu: The sentence BLEU: a row for each line, from 0, and a column for each shown system.
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
        """The first system, which the page compares with until the reader chooses another."""
        return next(iter(self.outputs))

    def rank_by_difference(self) -> list[int]:
        """Return the positions of the lines that one system translates better than another.

        First comes the line with the largest difference between the highest and the lowest sentence
        BLEU of all systems. Lines without a difference are not in the list.
        """
        differences = self.bleu.max(axis=1) - self.bleu.min(axis=1)
        differing = differences[differences > 0]
        ranked = differing.sort_values(ascending=False, kind="stable")
        # The index of the data frame numbers the lines from 0.
        return list(map(int, ranked.index))

    def rank_worst_first(self) -> list[int]:
        """Return the positions of all lines, from 0, with the worst translated lines first.

        Lines are ranked by their mean sentence BLEU over all systems. Of lines with equal BLEU, the
        one with the longest reference comes first, since it shows more of a translation.
        """
        mean_bleu = self.bleu.mean(axis=1)
        negative_lengths = [-len(reference) for reference in self.references]
        # np.lexsort sorts by its last key, and lines with equal values in it by the key before.
        ranked = np.lexsort((negative_lengths, mean_bleu))
        return list(map(int, ranked))


def lines_of_sets(report: ReportData) -> Iterator[SetLines]:
    """Yield the lines of each test set with their translations and sentence BLEU.

    If systems are trained with several seeds, only translations of the first seed are shown.

    Args:
        report: The settings and the results of the experiment.
    """
    for task, test, scores in by_test_set(report.scores):
        rows = bleu_rows(scores)
        source_language = rows[0].source
        target_language = rows[0].target
        sources: list[str] = []
        references: list[str] = []
        outputs = {}
        bleu = {}
        for row in shown_systems(rows):
            run = Run(row.system, row.corpus, report.settings.seeds[0])
            results = Results.open(report.settings, run, report.root)
            # All systems have the same source and reference lines, so any system will do.
            sources = results.source_lines(test)
            references, translations = results.references_and_translations(test)
            outputs[row.row_name] = translations
            bleu[row.row_name] = sentence_bleu(translations, references, target_language)
        yield SetLines(
            task=task,
            test=test,
            languages=(source_language, target_language),
            sources=sources,
            references=references,
            outputs=outputs,
            bleu=pd.DataFrame(bleu),
            hidden_systems=len(rows) - len(outputs),
        )


def shown_systems(rows: Sequence[ScoreRow], max_systems: int = MAX_SYSTEMS) -> list[ScoreRow]:
    """Choose the systems whose translations are shown: the baseline and those with the best BLEU.

    Args:
        rows: The BLEU of each system on a test set.
        max_systems: The largest number of systems, the baseline included.

    Returns:
        The rows of the chosen systems, in the order of `rows`.
    """
    # Only the baseline has no difference from a baseline. Its key is False, which is sorted first.
    baseline, *others = sorted(rows, key=lambda row: pd.notna(row.difference))
    best_first = sorted(others, key=lambda row: -row.value)
    best = best_first[: max_systems - 1]
    shown_names = {row.row_name for row in (baseline, *best)}
    return [row for row in rows if row.row_name in shown_names]
