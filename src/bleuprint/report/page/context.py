"""What all sections of the page are made from."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import STATISTICS, Cell, folder
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.report.frame import Records, cells_in, trained
from bleuprint.report.page.funnel import Kept, kept
from bleuprint.report.system_results import SystemResult, system_results
from bleuprint.report.task import Task, tasks_of
from bleuprint.training.history import Curves


@dataclass(frozen=True, eq=False)
class ReportContext:
    """The experiment and its records; other files are read below `root`."""

    settings: Settings
    records: Records
    root: Path = Path()

    @cached_property
    def results(self) -> list[SystemResult]:
        return system_results(self.records)

    @cached_property
    def tasks(self) -> list[Task]:
        return [*dict.fromkeys(tasks_of(self.records.cells).values())]

    @cached_property
    def cells(self) -> list[Cell]:
        """Each training once, in the order of the records."""
        return cells_in(self.records.cells)

    @cached_property
    def trainings(self) -> pd.DataFrame:
        """The record of each training on its first test set."""
        return trained(self.records.cells).drop_duplicates(Cell._fields)

    @property
    def several(self) -> bool:
        """Whether there are several seeds."""
        return len(self.settings.seeds) > 1

    @cached_property
    def kept(self) -> dict[str, Kept]:
        """The training pairs of each corpus."""
        return {name: kept(name, self.root) for name in self.settings.corpora}

    @cached_property
    def statistics(self) -> dict[str, CorpusStatistics]:
        """The statistics of each corpus."""
        folders = {name: folder(name, "statistics", self.root) for name in self.settings.corpora}
        return {name: CorpusStatistics.read(at / STATISTICS) for name, at in folders.items()}

    @cached_property
    def curves(self) -> dict[Cell, Curves]:
        """The curves of each training that has any."""
        read = {cell: Curves.read(self.root / cell.results / "curves.json") for cell in self.cells}
        return {cell: curves for cell, curves in read.items() if curves}
