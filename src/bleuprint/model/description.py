"""model.json, which describes the weights beside it; read without torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bleuprint.config.system import Model
from bleuprint.runtime.files import RERUN
from bleuprint.runtime.schema import Count, Sha256, read_record

DESCRIPTION = "model.json"


@dataclass(frozen=True)
class VocabularyFile:
    """The vocabulary of one side: its size with special tokens, and the SHA-256 of its file."""

    size: Count
    sha256: Sha256


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies that a model was trained on."""

    source: VocabularyFile
    target: VocabularyFile


@dataclass(frozen=True)
class Averaged:
    """How checkpoints were averaged: the settings that are given, and the checkpoints' updates."""

    settings: dict[str, int | bool]
    updates: list[Count]

    @property
    def is_ensemble(self) -> bool:
        """Whether the checkpoints translate together."""
        return bool(self.settings.get("ensemble"))


@dataclass(frozen=True)
class ModelDescription:
    """The content of model.json.

    `fingerprint`: that of the training; `averaged`: None for a checkpoint; `weights_sha256`: the
    SHA-256 of model.safetensors beside it, None for a checkpoint and for an ensemble's folder.
    """

    model: Model
    vocabularies: Vocabularies
    fingerprint: str | None = None
    averaged: Averaged | None = None
    weights_sha256: Sha256 | None = None

    @classmethod
    def read(cls, folder: Path, remedy: str = RERUN) -> Self:
        """Read model.json in a folder; raises UserError if it is missing or damaged."""
        return read_record(cls, folder / DESCRIPTION, remedy)
