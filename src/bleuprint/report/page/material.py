"""What the page is made of: the outputs of the stages, and nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report.records import Record
from bleuprint.report.system_results import Standing, standings
from bleuprint.tracking.timings import Timing


@dataclass(frozen=True)
class Material:
    """The experiment, its records and timings; what else a section shows, it reads below `root`."""

    settings: Settings
    records: Sequence[Record]
    timings: Mapping[Cell, Timing]
    root: Path = Path()

    @cached_property
    def standings(self) -> list[Standing]:
        return standings(self.records)

    @cached_property
    def cells(self) -> list[Cell]:
        """Each training once, in the order of the records."""
        return list(dict.fromkeys(record.cell for record in self.records))
