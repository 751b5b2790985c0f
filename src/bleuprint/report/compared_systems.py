"""The two systems that `bleuprint compare` compares, with their scores and files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.report.frame import SYSTEM_AND_TEST, Records
from bleuprint.report.score_frame import ScoreRow, score_frame, score_rows, select_metric
from bleuprint.report.system_columns import reason_not_tested_against
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import join_with_and

_TEST_SET_FINGERPRINTS = ["sources_sha256", "references_sha256"]


@dataclass(frozen=True, eq=False)
class SystemScores:
    """The scores of a system on a test set, and the rows of results.json that they come from.

    Attributes:
        scores: The scores on all lines, means over seeds, by the key of the metric.
        runs: The rows of its runs, that is, of its training with each seed.
        metrics: The rows of its metrics, a value for each seed.
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
    """The scores of the two compared systems on a test set that both translate.

    Attributes:
        first: The scores of the first system.
        second: The scores of the second system.
    """

    first: SystemScores
    second: SystemScores

    @property
    def are_trained(self) -> bool:
        """Return whether both systems are trained here, and neither is a file of translations."""
        return self.first.bleu.is_trained and self.second.bleu.is_trained

    @property
    def have_same_lines(self) -> bool:
        """Return whether both systems translate the same lines, by the hashes of the files.

        Test sets of the same name may have different lines in two Git revisions.
        """
        runs = pd.concat([self.first.runs, self.second.runs])
        different_test_sets = runs[_TEST_SET_FINGERPRINTS].drop_duplicates()
        return len(different_test_sets) == 1

    @property
    def have_same_translations(self) -> bool:
        """Return whether the translations of both systems have the same bytes, with each seed."""
        first_hashes = list(self.first.runs.hypotheses_sha256)
        second_hashes = list(self.second.runs.hypotheses_sha256)
        return first_hashes == second_hashes

    @property
    def why_untested(self) -> str:
        """The reason why no difference between the systems is tested; empty if it is tested."""
        return reason_not_tested_against(self.first.bleu, self.second.bleu)


@dataclass(frozen=True, eq=False)
class ReportedSystem:
    """A system to compare, and the report that its scores are read from.

    Attributes:
        system: The name of the system.
        corpus: The only corpus to compare; None for all corpora of the report.
        revision: The Git revision of the report; empty for the working tree.
        settings: The settings of the report.
        records: The results of the report, as results.json stores them.
        are_corpora_different: Whether the two compared systems are trained on two corpora, which
            have the same test sets.
    """

    system: str
    corpus: str | None
    revision: str
    settings: Settings
    records: Records
    are_corpora_different: bool

    def __str__(self) -> str:
        """Return the system as an argument of the command names it, such as `base@v1.0`."""
        name = f"{self.system}, {self.corpus}" if self.are_corpora_different else self.system
        return f"{name}@{self.revision}" if self.revision else name

    def scores(self, seeds: Sequence[int]) -> dict[tuple[str, str], SystemScores]:
        """Return the scores of the system on each test set.

        Args:
            seeds: The seeds to compare. Both systems list their runs in this order, so that runs
                with the same seed can be paired by their position.

        Returns:
            The scores by corpus and test set. If the two systems are trained on different corpora,
            the corpus is an empty string, so that a test set has the same key for both systems.

        Raises:
            UserError: The report has no such system or corpus, or no results of them.
        """
        records = self._select_records(seeds)
        runs = _sort_by_seed(records.runs, seeds)
        metrics = _sort_by_seed(records.metrics, seeds)
        # pandas yields pairs of a key (system, corpus, test set) and the rows with it.
        runs_by_test_set = dict(list(runs.groupby(SYSTEM_AND_TEST, sort=False)))
        metrics_by_test_set = dict(list(metrics.groupby(SYSTEM_AND_TEST, sort=False)))
        all_scores = score_frame(Records(runs, metrics))
        scores_of_all_lines = all_scores[all_scores.group == ""]
        scores_by_test_set = {}
        for key, rows in scores_of_all_lines.groupby(SYSTEM_AND_TEST, sort=False):
            _, corpus, test = key
            corpus_or_empty = "" if self.are_corpora_different else corpus
            scores_by_test_set[corpus_or_empty, test] = SystemScores(
                scores={row.metric: row for row in score_rows(rows)},
                runs=runs_by_test_set[key],
                metrics=metrics_by_test_set[key],
            )
        return scores_by_test_set

    def _select_records(self, seeds: Sequence[int]) -> Records:
        """Return the results of this system with these seeds, from all results of the report.

        If a corpus was chosen, only results on this corpus are returned.

        Raises:
            UserError: The report has no such system or corpus, or no results of them.
        """
        runs = self.records.runs
        is_selected = (runs.system == self.system) & runs.seed.isin(seeds)
        if not is_selected.any():
            # Raises an error that lists the known systems if this system is unknown.
            self.settings.system_settings(self.system)
        if self.corpus:
            # Raises an error that lists the known corpora if this corpus is unknown.
            self.settings.corpus(self.corpus)
            is_selected &= runs.corpus == self.corpus
        if not is_selected.any():
            corpus = self.corpus or "any corpus"
            seed_names = join_with_and(seeds)
            raise UserError(
                f"{self}: the report contains no results on {corpus} with the seeds {seed_names}"
            )
        return self.records.select_runs(is_selected)

    def open_results(self, scores: SystemScores) -> list[Results]:
        """Open the files of translations and scores of each seed, and check their hashes.

        Args:
            scores: The scores of this system on a test set. They must come from the working tree,
                since Git does not store these files.
        """
        checked_results = []
        for seed in scores.runs.seed:
            run = Run(scores.bleu.system, scores.bleu.corpus, int(seed))
            checked_results.append(Results.open(self.settings, run).check())
        return checked_results


def _sort_by_seed(table: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Return the rows of a table in the order in which these seeds are listed."""
    return table.sort_values("seed", key=lambda column: column.map(seeds.index), kind="stable")
