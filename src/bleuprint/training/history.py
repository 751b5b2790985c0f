"""The records of a finished training: checkpoints.json, training.json and curves.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from bleuprint.runtime.files import read_object
from bleuprint.runtime.schema import build

CHECKPOINTS = "checkpoints.json"

Metric = Literal["loss", "bleu"]


def ranking(validations: Sequence[dict[str, Any]], metric: Metric) -> list[int]:
    """The validated updates, best first; of equal ones the earlier first."""
    sign = 1 if metric == "loss" else -1
    ranked = sorted(validations, key=lambda v: (sign * v[metric], v["update"]))
    return [validation["update"] for validation in ranked]


@dataclass(frozen=True)
class CheckpointsRecord:
    """checkpoints.json: the training of exported checkpoints, and its validations in order."""

    fingerprint: str
    validation_metric: Metric
    validations: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Raises UserError if the file is damaged."""
        path = folder / CHECKPOINTS
        return build(cls, read_object(path), path)


@dataclass(frozen=True)
class TrainingFacts:
    """training.json: the reproducible facts of a training.

    `flops` of the whole training; tokens without padding; `skipped`: updates that ran out of
    memory; `valid_loss` in nats a token. `fingerprint` is the SHA-256 of `settings`, `code`, `data`
    and `start` (None: from random weights), which are SHA-256, too.
    """

    parameters: int
    updates: int
    source_tokens: int
    target_tokens: int
    flops: float
    skipped: int
    valid_loss: float
    fingerprint: str
    settings: str
    code: str
    data: str
    start: str | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises UserError if the file is damaged or lacks a field."""
        names = [name for name in cls.__dataclass_fields__ if name != "start"]
        return build(cls, read_object(path, names), path)


@dataclass(frozen=True)
class Point:
    """A point of the training curve; `tokens` counts the target tokens up to here.

    `loss` is the mean since the previous point, in nats a token, with label smoothing;
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

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """None if there is no such file; raises UserError if it is damaged."""
        return build(cls, read_object(path), path) if path.exists() else None
