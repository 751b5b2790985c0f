"""model.json, which describes the weights in the same folder; read without torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.system import Model
from bleuprint.runtime.file_errors import RERUN
from bleuprint.runtime.schema import Count, Sha256, read_record

DESCRIPTION = "model.json"


@dataclass(frozen=True)
class VocabularyFile:
    """The source or target vocabulary that a model was trained on.

    Attributes:
        size: The number of its tokens, special tokens included.
        sha256: The SHA-256 of its file.
    """

    size: Count
    sha256: Sha256


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies that a model was trained on."""

    source: VocabularyFile
    target: VocabularyFile


@dataclass(frozen=True)
class Averaged:
    """How the checkpoints of a training were averaged.

    Attributes:
        settings: The settings below `average` in params.yaml.
        updates: The update of each checkpoint, oldest first.
    """

    settings: dict[str, int | bool]
    updates: list[Count]

    @property
    def is_ensemble(self) -> bool:
        """Return whether the checkpoints translate together instead of being averaged."""
        return bool(self.settings.get("ensemble"))


@dataclass(frozen=True)
class ModelDescription:
    """The content of model.json.

    Attributes:
        model: The shape of the model.
        vocabularies: The vocabularies that it was trained on.
        fingerprint: The fingerprint of its training; None for weights from elsewhere.
        averaged: How checkpoints were averaged; None for a checkpoint.
        weights_sha256: The SHA-256 of model.safetensors in the same folder; None for a checkpoint,
            and for the folder of an ensemble.
    """

    model: Model
    vocabularies: Vocabularies
    fingerprint: str | None = None
    averaged: Averaged | None = None
    weights_sha256: Sha256 | None = None

    @classmethod
    def read(cls, folder: Path, remedy: str = RERUN) -> Self:
        """Read model.json, which describes the weights in the same folder.

        Args:
            folder: The folder of a model.
            remedy: What the message tells the user to do if the file is missing or damaged.

        Raises:
            UserError: The file is missing or damaged.
        """
        return read_record(cls, folder / DESCRIPTION, remedy)
