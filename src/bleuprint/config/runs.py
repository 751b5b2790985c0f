"""The runs of an experiment: systems on corpora with seeds."""

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.system import System
from bleuprint.runtime import fingerprint


def trained_runs(settings: Settings) -> list[Run]:
    """Every run that is trained, systems first."""
    return [run for run in all_runs(settings) if settings.is_trained(run.system)]


def scored_runs(settings: Settings) -> list[Run]:
    """Every run with translations of its own: those that are trained, then the other ones.

    A system that is not trained translates with the first seed alone, which stands for all.
    """
    return [run for run in all_runs(settings) if run.seed in settings.seeds_of(run.system)]


def all_runs(settings: Settings) -> list[Run]:
    """Every run of the table, with each seed: those that are trained, then the other ones.

    The seed of a system that is not trained is that of the baseline to which it is compared.
    """
    runs = []
    for system, row in settings.all_systems.items():
        for corpus in settings.corpora:
            if row.get(corpus) is not None:
                runs += [Run(system, corpus, seed) for seed in settings.seeds]
    return runs


def settings_sha256(settings: Settings, run: Run) -> str:
    """The fingerprint of all settings of a run, from the corpus's files to decoding.

    Of a system that is not trained, no seed and no training text decides anything.
    """
    corpus = settings.corpus(run.corpus).deciding_settings()
    if not settings.is_trained(run.system):
        return fingerprint.of_settings(settings.all_systems[run.system][run.corpus], corpus)
    system = settings.system_on(run.system, run.corpus)
    of_texts = settings.text_settings(run.corpus)  # none of most corpora
    return fingerprint.of_settings(system, corpus, run.seed, *of_texts)


def training_settings_sha256(system: System, seed: int) -> str:
    """The fingerprint of the settings that decide a training's weights."""
    portable = () if system.arithmetic == "native" else (system.arithmetic,)
    return fingerprint.of_settings(system.model, system.train, seed, *portable)
