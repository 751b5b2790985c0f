"""The settings and results that all sections of the HTML report are made from."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.report.frame import Records
from bleuprint.report.page.funnel import PairCounts, training_pair_counts
from bleuprint.report.score_frame import ScoreRow, bleu_rows, score_frame
from bleuprint.report.training_costs import training_runs
from bleuprint.training.history import Curves


@dataclass(frozen=True, eq=False)
class ReportData:
    """The settings and the results of an experiment, from which its HTML report is made.

    What several sections show is computed by a property, once.

    Attributes:
        settings: The settings of the experiment.
        records: The results of the experiment, as results.json stores them.
        root: The project's folder, from which all other files are read.
    """

    settings: Settings
    records: Records
    root: Path = Path()

    @property
    def scores(self) -> pd.DataFrame:
        """All scores of the report as a data frame, with the columns of `ScoreRow`."""
        return score_frame(self.records)

    @cached_property
    def bleu_rows(self) -> list[ScoreRow]:
        """The BLEU of each system on each test set."""
        return bleu_rows(self.scores)

    @cached_property
    def training_runs(self) -> list[Run]:
        """The runs, that is, each system on each corpus with each seed; no external systems."""
        return training_runs(self.records.runs)

    @property
    def has_several_seeds(self) -> bool:
        """Return whether each system is trained with several seeds."""
        return len(self.settings.seeds) > 1

    @cached_property
    def pair_counts(self) -> dict[str, PairCounts]:
        """How many sentence pairs of each corpus were read, dropped and trained on.

        The numbers come from the filtering statistics, which the stages of preparation write.
        """
        counts_by_corpus = {}
        for corpus in self.settings.corpora:
            counts_by_corpus[corpus] = training_pair_counts(corpus, self.root)
        return counts_by_corpus

    @cached_property
    def curves(self) -> dict[Run, Curves]:
        """The loss and validation scores by update of each training run that recorded them."""
        curves_by_run = {}
        for run in self.training_runs:
            curves = Curves.read(self.root / run.results_folder / "curves.json")
            if curves:
                curves_by_run[run] = curves
        return curves_by_run
