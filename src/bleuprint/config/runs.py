"""The runs of an experiment, and the fingerprints of their settings.

A run is a system on a corpus with a seed. An external system translates once for all seeds.
"""

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Run
from bleuprint.config.system import System
from bleuprint.runtime import fingerprint


def trained_runs(settings: Settings) -> list[Run]:
    """Return all runs of trained systems: each system on each of its corpora with each seed."""
    return [run for run in all_runs(settings) if settings.is_trained(run.system)]


def scored_runs(settings: Settings) -> list[Run]:
    """Return the runs whose translations are scored.

    A trained system translates with each seed. The translations of an external system are files of
    the user, and do not depend on a seed. They are scored once, as the run with the first seed.
    """
    return [run for run in all_runs(settings) if run.seed in settings.seeds_of(run.system)]


def all_runs(settings: Settings) -> list[Run]:
    """Return all runs of the experiment: each system on each of its corpora with each seed.

    Trained systems come first, then external ones, whose translations are files of the user. An
    external system has a run for each seed, too, so that each run of the baseline can be compared
    with a run of the same seed.
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
    """Return a SHA-256 of all settings that can change the translations of a run.

    Args:
        settings: The settings of the experiment.
        run: A system on a corpus with a seed. The translations of an external system are files of
            the user; they depend only on these files and the corpus.
    """
    corpus = settings.corpus(run.corpus).deciding_settings()
    if not settings.is_trained(run.system):
        external_system = settings.all_systems[run.system][run.corpus]
        return fingerprint.of_settings(external_system, corpus)
    system = settings.system_on(run.system, run.corpus)
    synthetic_texts = settings.text_settings(run.corpus)
    return fingerprint.of_settings(system, corpus, run.seed, *synthetic_texts)


def training_settings_sha256(system: System, seed: int) -> str:
    """Return a SHA-256 of the settings that can change the weights of a trained model.

    A model must be trained again if this hash changes. The settings for averaging and decoding are
    not hashed, since they are used after the training.

    Args:
        system: The settings of the system.
        seed: The seed of the training.
    """
    settings = [system.model, system.train, seed]
    # Earlier versions had only native arithmetic, and did not hash this setting. So it is not
    # hashed for native arithmetic: models of earlier versions keep their hash.
    if system.arithmetic != "native":
        settings.append(system.arithmetic)
    return fingerprint.of_settings(*settings)
