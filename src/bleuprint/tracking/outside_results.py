"""The results of rows from outside, and of every row, whether it was trained here or not."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from bleuprint.comet.score import COMET
from bleuprint.config.experiment import Settings
from bleuprint.config.outside import OutsideRow
from bleuprint.config.paths import Cell, outside, outside_comet
from bleuprint.runtime.errors import UserError
from bleuprint.tracking.cell_results import CellResults, ScoredTranslations, cells_of


@dataclass(frozen=True)
class OutsideResults(ScoredTranslations):
    """The scores of translations that were not made here.

    Those of every seed are the same: a seed is that of the baseline, to which they are compared.
    """

    row: OutsideRow

    @property
    def path(self) -> Path:
        return self.root / results_folder(self.settings, self.cell)

    @cached_property
    def tests(self) -> list[str]:
        return list(self.row.tests)

    @property
    def comet(self) -> Path:
        return self.root / comet_file(self.settings, self.cell)

    @property
    def stage(self) -> str:
        return f"score_outside@{self.cell.corpus}"

    def check(self) -> Self:
        """Raise UserError unless the scores are of the files that params.yaml names."""
        for test, file in self.row.tests.items():
            if (scored := self.scores_of(test)["hypotheses"]) != file.sha256:
                raise UserError(
                    f"{self.path}/scores.json: of a file with SHA-256 {scored[:12]}..., but "
                    f"params.yaml has {file.sha256[:12]}...; run: dvc repro"
                )
        return super().check()


def results_folder(settings: Settings, cell: Cell) -> Path:
    """The folder of the results of a row, below the project's root."""
    if cell.system in settings.outside_on(cell.corpus):
        return outside(cell.corpus) / cell.system
    return cell.results


def comet_file(settings: Settings, cell: Cell) -> Path:
    """COMET of a row, below the project's root, if params.yaml names a model."""
    if cell.system in settings.outside_on(cell.corpus):
        return outside_comet(cell.corpus) / f"{cell.system}.json"
    return cell.results / COMET


def open_results(settings: Settings, cell: Cell, root: Path = Path()) -> ScoredTranslations:
    """The results of a row with a seed; raises UserError if it has none with these settings."""
    if row := settings.outside_on(cell.corpus).get(cell.system):
        return OutsideResults(settings, cell, root, row)
    return CellResults.open(settings, cell, root)


def rows_of(settings: Settings) -> list[Cell]:
    """Every cell of the table, with each seed: those that are trained, then those from outside."""
    names = dict.fromkeys(name for rows in (settings.outside or {}).values() for name in rows)
    outside_cells = [
        Cell(name, corpus, seed)
        for name in names
        for corpus in settings.corpora
        for seed in settings.seeds
        if name in settings.outside_on(corpus)
    ]
    return cells_of(settings) + outside_cells
