"""What all sections of the page are made from."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report.frame import Records, cells_in
from bleuprint.report.page.funnel import Kept, kept
from bleuprint.report.system_results import SystemResult, system_results
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
    def cells(self) -> list[Cell]:
        """Each training once, in the order of the records."""
        return cells_in(self.records.cells)

    @property
    def several(self) -> bool:
        """Whether there are several seeds."""
        return len(self.settings.seeds) > 1

    @cached_property
    def kept(self) -> dict[str, Kept]:
        """The training pairs of each corpus."""
        return {name: kept(name, self.root) for name in self.settings.corpora}

    @cached_property
    def curves(self) -> dict[Cell, Curves]:
        """The curves of each training that has any."""
        read = {cell: Curves.read(self.root / cell.results / "curves.json") for cell in self.cells}
        return {cell: curves for cell, curves in read.items() if curves}
