"""Readers of what a finished training writes: training.json and curves.json."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object


@dataclass(frozen=True)
class TrainingFacts:
    """training.json: what a training repeats exactly.

    `flops` of the whole training; tokens without padding; `valid_loss` in nats a token.
    `fingerprint` is the SHA-256 of `settings`, `code` and `data`, which are SHA-256, too.
    """

    parameters: int
    updates: int
    source_tokens: int
    target_tokens: int
    flops: float
    valid_loss: float
    fingerprint: str
    settings: str
    code: str
    data: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises UserError if the file is damaged or lacks a field."""
        names = [field.name for field in fields(cls)]
        content = read_object(path, names)
        return cls(**{name: content[name] for name in names})


@dataclass(frozen=True)
class Point:
    """A point of the training curve: `tokens` is the number of target tokens read so far.

    `loss` is the mean since the point before, in nats a token, with label smoothing;
    `gradient_norm` is that of this update, before clipping.
    """

    update: int
    tokens: int
    loss: float
    learning_rate: float
    gradient_norm: float


@dataclass(frozen=True)
class Validation:
    """Loss (nats a token, without label smoothing) and BLEU of greedy search at an update."""

    update: int
    loss: float
    bleu: float


@dataclass(frozen=True)
class Curves:
    """curves.json."""

    training: tuple[Point, ...]
    validation: tuple[Validation, ...]

    @property
    def best(self) -> Validation | None:
        """The validation of the lowest loss, of equals the first; None where there was none."""
        return min(self.validation, key=lambda validation: validation.loss, default=None)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """None if there is no such file; raises UserError if it is damaged."""
        if not path.exists():
            return None
        content = read_object(path, ("training", "validation"))
        try:
            return cls(
                tuple(Point(**point) for point in content["training"]),
                tuple(Validation(**point) for point in content["validation"]),
            )
        except TypeError:
            raise UserError(f"{path}: damaged, or of another version; run: dvc repro") from None
