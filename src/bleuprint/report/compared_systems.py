"""The two sides of `bleuprint compare`: systems of a report, with their scores and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.report.frame import Records
from bleuprint.report.score_frame import (
    SYSTEM_AND_TEST,
    ScoreRow,
    reason_not_tested_against,
    score_frame,
    score_rows,
    select_metric,
)
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError

_TEXT_FINGERPRINTS = ["sources_sha256", "references_sha256"]


@dataclass(frozen=True, eq=False)
class SystemScores:
    """The scores of a system on a test set.

    Attributes:
        scores: The scores on all lines, means over seeds, by the key of the metric.
        runs: The rows of its runs in the records, one for each seed.
        metrics: The rows of its metrics in the records.
    """

    scores: Mapping[str, ScoreRow]
    runs: pd.DataFrame
    metrics: pd.DataFrame

    @property
    def bleu(self) -> ScoreRow:
        """The BLEU of the system."""
        return self.scores["bleu"]

    def seed_values(self, metric: str) -> list[float]:
        """Return the value of a metric on all lines for each seed."""
        return list(select_metric(self.metrics, metric).value)


@dataclass(frozen=True, eq=False)
class ScoresPair:
    """The scores of both sides on a test set.

    Attributes:
        first: The scores of the first side.
        second: The scores of the second side.
    """

    first: SystemScores
    second: SystemScores

    @property
    def are_trained(self) -> bool:
        """Whether both systems are trained here."""
        return self.first.bleu.is_trained and self.second.bleu.is_trained

    @property
    def have_same_lines(self) -> bool:
        """Whether both test sets have the same bytes."""
        runs = pd.concat([self.first.runs, self.second.runs])
        return len(runs[_TEXT_FINGERPRINTS].drop_duplicates()) == 1

    @property
    def have_same_translations(self) -> bool:
        """Whether the translations of all seeds have the same bytes."""
        first_hashes = list(self.first.runs.hypotheses_sha256)
        second_hashes = list(self.second.runs.hypotheses_sha256)
        return first_hashes == second_hashes

    @property
    def why_untested(self) -> str:
        """The reason why the difference is not tested; empty if it is tested."""
        return reason_not_tested_against(self.first.bleu, self.second.bleu)


@dataclass(frozen=True, eq=False)
class ReportedSystem:
    """One side of a comparison: a system of a report, on one corpus or on all of them.

    Attributes:
        system: The name of the system.
        corpus: The only corpus that is compared; None for all.
        revision: The Git revision of the report; empty for the working tree.
        settings: The settings of the report.
        records: The records of the report.
        on_different_corpora: Whether the two sides are on two corpora with the same test sets.
    """

    system: str
    corpus: str | None
    revision: str
    settings: Settings
    records: Records
    on_different_corpora: bool

    def __str__(self) -> str:
        """Return the side as an argument of the command names it."""
        name = f"{self.system}, {self.corpus}" if self.on_different_corpora else self.system
        return f"{name}@{self.revision}" if self.revision else name

    def scores(self, seeds: Sequence[int]) -> dict[tuple[str, str], SystemScores]:
        """Return the scores on each test set.

        Args:
            seeds: The seeds to compare, in the order in which runs are paired.

        Returns:
            The scores by corpus and test set. The corpus is empty if the sides are on different
            corpora, so that the same test set has the same key on both sides.

        Raises:
            UserError: The report has no such system or corpus, or no results of them.
        """
        records = self._selected_records(seeds)
        runs = _sort_by_seed(records.runs, seeds)
        metrics = _sort_by_seed(records.metrics, seeds)
        runs_by_test_set = dict(list(runs.groupby(SYSTEM_AND_TEST, sort=False)))
        metrics_by_test_set = dict(list(metrics.groupby(SYSTEM_AND_TEST, sort=False)))
        all_scores = score_frame(Records(runs, metrics))
        scores_of_all_lines = all_scores[all_scores.group == ""]
        scores_by_test_set = {}
        for key, rows in scores_of_all_lines.groupby(SYSTEM_AND_TEST, sort=False):
            _, corpus, test = key
            scores = {row.metric: row for row in score_rows(rows)}
            shared_corpus = "" if self.on_different_corpora else corpus
            scores_by_test_set[shared_corpus, test] = SystemScores(
                scores,
                runs_by_test_set[key],
                metrics_by_test_set[key],
            )
        return scores_by_test_set

    def _selected_records(self, seeds: Sequence[int]) -> Records:
        """Return the records of this side's runs."""
        runs = self.records.runs
        is_selected = (runs.system == self.system) & runs.seed.isin(seeds)
        if not is_selected.any():
            self.settings.system_settings(
                self.system
            )  # Raises an error that lists the known systems.
        if self.corpus:
            # Raises an error that lists the known corpora.
            self.settings.corpus(self.corpus)
            is_selected &= runs.corpus == self.corpus
        if not is_selected.any():
            corpus = self.corpus or "any corpus"
            raise UserError(f"{self}: no results on {corpus} with the seeds {seeds}")
        return self.records.select_runs(is_selected)

    def open_results(self, scores: SystemScores) -> list[Results]:
        """Return the checked files behind some scores of the working tree, for each seed."""
        opened = []
        for seed in scores.runs.seed:
            run = Run(scores.bleu.system, scores.bleu.corpus, int(seed))
            opened.append(Results.open(self.settings, run).check())
        return opened


def _sort_by_seed(table: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Return the rows of a table in the order of the seeds."""
    return table.sort_values("seed", key=lambda column: column.map(seeds.index), kind="stable")
