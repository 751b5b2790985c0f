"""What all sections of the page are made from."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.report.frame import Records, runs_in
from bleuprint.report.page.funnel import Kept, kept
from bleuprint.report.score_frame import bleu_rows, score_frame
from bleuprint.training.history import Curves


@dataclass(frozen=True, eq=False)
class ReportContext:
    """The experiment and its records; other files are read below `root`."""

    settings: Settings
    records: Records
    root: Path = Path()

    @property
    def scores(self) -> pd.DataFrame:
        """The score frame of the records."""
        return score_frame(self.records)

    @cached_property
    def rows(self) -> list[Any]:
        """The BLEU of each row of the tables, with the facts of the row."""
        return bleu_rows(self.scores)

    @cached_property
    def runs(self) -> list[Run]:
        """Each training once, in the order of the records."""
        return runs_in(self.records.runs)

    @property
    def several(self) -> bool:
        """Whether there are several seeds."""
        return len(self.settings.seeds) > 1

    @cached_property
    def kept(self) -> dict[str, Kept]:
        """The training pairs of each corpus."""
        return {name: kept(name, self.root) for name in self.settings.corpora}

    @cached_property
    def curves(self) -> dict[Run, Curves]:
        """The curves of each training that has any."""
        read = {
            run: Curves.read(self.root / run.results_folder / "curves.json") for run in self.runs
        }
        return {run: curves for run, curves in read.items() if curves}
