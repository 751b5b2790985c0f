"""The cells of an experiment: systems on corpora with seeds, and translations from outside."""

from itertools import product

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.config.system import System
from bleuprint.runtime import fingerprint


def cells_of(settings: Settings) -> list[Cell]:
    """Every cell that is trained, systems first."""
    cells = map(Cell._make, product(settings.systems, settings.corpora, settings.seeds))
    return [cell for cell in cells if settings.cells[cell.system].get(cell.corpus)]


def rows_of(settings: Settings) -> list[Cell]:
    """Every cell of the table, with each seed: those that are trained, then those from outside.

    The seed of a row from outside is that of the baseline to which it is compared.
    """
    names = dict.fromkeys(name for rows in (settings.outside or {}).values() for name in rows)
    outside = [
        Cell(*each)
        for each in product(names, settings.corpora, settings.seeds)
        if each[0] in settings.outside_on(each[1])
    ]
    return cells_of(settings) + outside


def settings_sha256(settings: Settings, cell: Cell) -> str:
    """The fingerprint of all settings of a cell, from the corpus's files to decoding.

    For a row from outside, which has no training, that of its files and `about`.
    """
    corpus = settings.corpus(cell.corpus).deciding()
    if row := settings.outside_on(cell.corpus).get(cell.system):
        return fingerprint.of_settings(row, corpus)
    parts = settings.corpus(cell.corpus).files.made()
    made = [settings.made_text(part) for part in parts]  # none of most corpora
    return fingerprint.of_settings(settings.system_on(*cell[:2]), corpus, cell.seed, *made)


def training_settings_sha256(system: System, seed: int) -> str:
    """The fingerprint of the settings that decide a training's weights."""
    portable = () if system.arithmetic == "native" else (system.arithmetic,)
    return fingerprint.of_settings(system.model, system.train, seed, *portable)
