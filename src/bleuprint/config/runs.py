"""The runs of an experiment: systems on corpora with seeds."""

from collections.abc import Sequence
from itertools import product

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.system import System
from bleuprint.runtime import fingerprint


def runs_of(settings: Settings) -> list[Run]:
    """Every run that is trained, systems first."""
    cells = map(Run._make, product(settings.systems, settings.corpora, settings.seeds))
    return [cell for cell in cells if settings.runs[cell.system].get(cell.corpus)]


def scored_runs(settings: Settings) -> list[Run]:
    """Every run with translations: those that are trained, then those of external systems.

    An external system has one set of translations, which the run of the first seed stands for.
    """
    return runs_of(settings) + _external_runs(settings, settings.seeds[:1])


def rows_of(settings: Settings) -> list[Run]:
    """Every run of the table, with each seed: those that are trained, then external systems.

    The seed of an external system is that of the baseline to which it is compared.
    """
    return runs_of(settings) + _external_runs(settings, settings.seeds)


def _external_runs(settings: Settings, seeds: Sequence[int]) -> list[Run]:
    """The runs of external systems with these seeds."""
    cells = map(Run._make, product(settings.external, settings.corpora, seeds))
    return [cell for cell in cells if cell.system in settings.external_on(cell.corpus)]


def settings_sha256(settings: Settings, cell: Run) -> str:
    """The fingerprint of all settings of a run, from the corpus's files to decoding.

    For an external system, which has no training, that of its files and `about`.
    """
    corpus = settings.corpus(cell.corpus).deciding()
    external = settings.external_on(cell.corpus).get(cell.system)
    if external is not None:
        return fingerprint.of_settings(external, corpus)
    system = settings.system_on(cell.system, cell.corpus)
    of_texts = settings.text_settings(cell.corpus)  # none of most corpora
    return fingerprint.of_settings(system, corpus, cell.seed, *of_texts)


def training_settings_sha256(system: System, seed: int) -> str:
    """The fingerprint of the settings that decide a training's weights."""
    portable = () if system.arithmetic == "native" else (system.arithmetic,)
    return fingerprint.of_settings(system.model, system.train, seed, *portable)
