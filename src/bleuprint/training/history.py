"""The records of a finished training: checkpoints.json, training.json and curves.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from bleuprint.runtime.schema import read_record
from bleuprint.runtime.wording import counted, join_with_and

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
        return read_record(cls, folder / CHECKPOINTS)


@dataclass(frozen=True)
class EarlyEnd:
    """Why a training ended before its last update or epoch: by `patience`.

    Attributes:
        update: The last update.
        most_updates: How many it could have had; None if only patience ends it.
        metric: What did not improve.
        validations: For how many validations in a row.
        best: The best value before these.
        best_update: The update with the best value.
        loss_before: The validation loss at the best update, if it was higher than `loss`.
        loss: The validation loss at the end, if it was still falling: the lowest of all.
        warmup_updates: The updates of warmup, if this was not over.
    """

    update: int
    most_updates: int | None
    metric: Metric
    validations: int
    best: float
    best_update: int
    loss_before: float | None = None
    loss: float | None = None
    warmup_updates: int | None = None

    def __str__(self) -> str:
        of_updates = f" of {self.most_updates:,}" if self.most_updates is not None else ""
        validations = counted(self.validations, "validation")
        return (
            f"ended at update {self.update:,}{of_updates}: {self.metric} has not improved in "
            f"{validations} (best {self.best:.3f} at update {self.best_update:,})"
        )

    @property
    def warning(self) -> str:
        """Why it may have ended too early; empty if nothing says so."""
        signs = []
        if self.loss is not None:
            signs.append(f"the loss was still falling ({self.loss_before:.3f} to {self.loss:.3f})")
        if self.warmup_updates is not None:
            signs.append(f"warmup of {counted(self.warmup_updates, 'update')} was not over")
        if not signs:
            return ""
        return f"{join_with_and(signs)}: raise train.patience or train.validate_interval"


@dataclass(frozen=True)
class TrainingFacts:
    """training.json: the reproducible facts of a training.

    `flops` of the whole training; tokens without padding; `skipped`: updates that ran out of
    memory; `valid_loss` in nats a token; `early_end`: None after the last update or epoch.
    `fingerprint` is the SHA-256 of `settings`, `code`, `data`
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
    early_end: EarlyEnd | None = None

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises UserError if the file is damaged or lacks a field."""
        return read_record(cls, path)


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
        return read_record(cls, path) if path.exists() else None
