"""Whether the corpora were prepared with the settings that params.yaml has."""

from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.corpus.clean import Cleaning
from bleuprint.corpus.dedup import Deduplication
from bleuprint.corpus.filter import Filtering
from bleuprint.corpus.steps.sharded import settings_sha256
from bleuprint.corpus.tokenize import Tokenizing
from bleuprint.dataset.binarize import Binarizing
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object

_STEPS = (Cleaning, Deduplication, Filtering, Tokenizing, Binarizing)


def check_preparation(settings: Settings, root: Path = Path()) -> None:
    """Raise UserError if a stage ran with other settings than those of params.yaml.

    DVC takes outputs of other settings for up to date after `dvc commit --force`.
    """
    for name, corpus in settings.corpora.items():
        for stage, expected in settings_of_stages(name, corpus, root).items():
            path = paths.ledger(name, stage, root)
            if read_object(path, ("settings",))["settings"] != expected:
                raise UserError(
                    f"{path}: {stage} of {name} ran with other settings than those of params.yaml; "
                    f"run: dvc repro --force --single-item {stage}@{name}, then dvc repro"
                )


def settings_of_stages(name: str, corpus: Corpus, root: Path) -> dict[str, str]:
    """The fingerprints of settings that the stages write into their ledgers, by stage."""
    drawn = fingerprint.of_settings(corpus.split, corpus.dedup.decontaminate)
    steps = {step.stage: settings_sha256(step.of(name, corpus, root)) for step in _STEPS}
    return {"download": fingerprint.of_settings(corpus.files), "split": drawn, **steps}
