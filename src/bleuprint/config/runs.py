"""The runs of an experiment, and the fingerprints of their settings.

A run is a system on a corpus with a seed. An external system translates once for all seeds.
"""

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.system import System
from bleuprint.runtime import fingerprint


def trained_runs(settings: Settings) -> list[Run]:
    """Return all runs of trained systems, system by system."""
    return [run for run in all_runs(settings) if settings.is_trained(run.system)]


def scored_runs(settings: Settings) -> list[Run]:
    """Return all runs with translations: every run of a trained system, the first of others.

    An external system translates only as the run with the first seed, which counts for all seeds.
    """
    return [run for run in all_runs(settings) if run.seed in settings.seeds_of(run.system)]


def all_runs(settings: Settings) -> list[Run]:
    """Return all runs in the table: each system on each of its corpora with each seed.

    Trained systems come first. An external system has a run for each seed, too: it is compared with
    the baseline's run of this seed.
    """
    runs = []
    for system, settings_by_corpus in settings.all_systems.items():
        for corpus in settings.corpora:
            if settings_by_corpus.get(corpus) is None:
                continue
            for seed in settings.seeds:
                runs.append(Run(system, corpus, seed))
    return runs


def settings_sha256(settings: Settings, run: Run) -> str:
    """Return the fingerprint of all settings of a run, from the corpus's files to decoding.

    The seed and the systems that translate training texts do not count for an external system.
    """
    corpus = settings.corpus(run.corpus).deciding_settings()
    if not settings.is_trained(run.system):
        external_system = settings.all_systems[run.system][run.corpus]
        return fingerprint.of_settings(external_system, corpus)
    system = settings.system_on(run.system, run.corpus)
    synthetic_texts = settings.text_settings(run.corpus)
    return fingerprint.of_settings(system, corpus, run.seed, *synthetic_texts)


def training_settings_sha256(system: System, seed: int) -> str:
    """Return the fingerprint of the settings that decide the weights of a training."""
    settings = [system.model, system.train, seed]
    # Native arithmetic is left out, so that trainings keep the fingerprint that they had before
    # there was a choice.
    if system.arithmetic != "native":
        settings.append(system.arithmetic)
    return fingerprint.of_settings(*settings)
