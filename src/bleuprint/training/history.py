"""The records of a finished training, and how they are read.

checkpoints.json belongs to the exported checkpoints, training.json to the facts of the training,
curves.json to its learning curves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from bleuprint.runtime.schema import read_record
from bleuprint.runtime.wording import counted, join_with_and

CHECKPOINTS = "checkpoints.json"

# What validations are compared by.
Metric = Literal["loss", "bleu"]


def ranking(validations: Sequence[dict[str, Any]], metric: Metric) -> list[int]:
    """Sort the validations of a training from the best to the worst, and return their updates.

    The earlier of two equally good validations comes first. For example, BLEU scores of 20, 25 and
    24 after 100, 200 and 300 updates give [200, 300, 100].

    Args:
        validations: The `update`, `loss` and `bleu` of each validation.
        metric: What to compare: the lowest loss or the highest BLEU is the best.
    """
    # The sort puts low values first, so BLEU is negated.
    sign = -1 if metric == "bleu" else 1
    best_first = sorted(
        validations,
        key=lambda validation: (sign * validation[metric], validation["update"]),
    )
    return [validation["update"] for validation in best_first]


@dataclass(frozen=True)
class CheckpointsRecord:
    """The content of checkpoints.json.

    Attributes:
        fingerprint: The fingerprint of the training.
        validation_metric: What its validations are compared by.
        validations: The `update`, `loss` and `bleu` of each validation, in order.
    """

    fingerprint: str
    validation_metric: Metric
    validations: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read checkpoints.json, which says which training run exported the checkpoints.

        Args:
            folder: The folder of the exported checkpoints.

        Raises:
            UserError: The file is damaged.
        """
        return read_record(cls, folder / CHECKPOINTS)


@dataclass(frozen=True)
class EarlyEnd:
    """Why early stopping ended a training before its last update or epoch.

    Early stopping ends a training after `patience` validations without a better score.

    Attributes:
        update: The update after which the training ended.
        most_updates: The number of updates that it would have had without early stopping; None if
            there is no other limit.
        metric: The metric that did not improve.
        validations: The number of validations in a row without improvement.
        best: The best value of the metric.
        best_update: The update with the best value.
        loss_before: The validation loss at the best update; None if `loss` is None.
        loss: The validation loss at the end, if it was the lowest of all and so still falling;
            otherwise None.
        warmup_updates: The number of warmup updates, if the training ended before them; otherwise
            None.
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
        """Describe the early end, such as `ended at update 30 of 700: bleu has not improved …`."""
        end = f"ended at update {self.update:,}"
        if self.most_updates is not None:
            end += f" of {self.most_updates:,}"
        validations = counted(self.validations, "validation")
        return (
            f"{end}: {self.metric} has not improved in {validations} "
            f"(best {self.best:.3f} at update {self.best_update:,})"
        )

    @property
    def warning(self) -> str:
        """Say why early stopping may have ended the training too early, with advice.

        The text is empty if nothing suggests that it was too early.
        """
        # `loss` and `warmup_updates` are only set if they are reasons.
        reasons = []
        if self.loss is not None:
            loss_fall = f"{self.loss_before:.3f} to {self.loss:.3f}"
            reasons.append(f"the loss was still falling ({loss_fall})")
        if self.warmup_updates is not None:
            reasons.append(f"warmup of {counted(self.warmup_updates, 'update')} was not over")
        if not reasons:
            return ""
        return f"{join_with_and(reasons)}. Raise train.patience or train.validate_interval"


@dataclass(frozen=True)
class TrainingFacts:
    """The content of training.json: what a training counted, and the hashes that identify it.

    If the training is repeated, all values are the same. Times, which are not, are in another file.

    Attributes:
        parameters: The number of parameters of the model.
        updates: The number of updates.
        source_tokens: The number of source tokens trained on, without padding.
        target_tokens: The number of target tokens trained on, without padding.
        flops: The floating-point operations of the whole training.
        skipped: The number of updates that ran out of memory and were skipped.
        valid_loss: The validation loss at the end, in nats per token.
        fingerprint: The SHA-256 of the next four hashes; it identifies the training.
        settings: The SHA-256 of the settings and the seed.
        code: The SHA-256 of the code that computes the weights.
        data: The SHA-256 of the training and validation sets.
        start: The SHA-256 of the weights that the training starts from; None if they are random.
        early_end: Why early stopping ended the training; None if it did not.
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
        """Read training.json, which contains what a training counted, such as its updates.

        Raises:
            UserError: The file is damaged or lacks a field.
        """
        return read_record(cls, path)


@dataclass(frozen=True)
class Point:
    """A point of the training curve.

    Attributes:
        update: The number of the update.
        tokens: The number of target tokens up to it.
        loss: The mean loss since the previous point, in nats per token, with label smoothing.
        learning_rate: The learning rate of the update.
        gradient_norm: The norm of the gradient of the update, before clipping.
    """

    update: int
    tokens: int
    loss: float
    learning_rate: float
    gradient_norm: float


@dataclass(frozen=True)
class Validation:
    """A point of the validation curve.

    Attributes:
        update: The number of updates before the validation.
        loss: The loss in nats per token, without label smoothing.
        bleu: The BLEU score of greedy search.
    """

    update: int
    loss: float
    bleu: float


@dataclass(frozen=True)
class Curves:
    """The content of curves.json.

    Attributes:
        training: The points of the training curve, in order.
        validation: The validations, in order.
    """

    training: tuple[Point, ...]
    validation: tuple[Validation, ...]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read curves.json, the learning curves of a training.

        Args:
            path: The file.

        Returns:
            The curves; None if there is no such file.

        Raises:
            UserError: The file is damaged.
        """
        if not path.exists():
            return None
        return read_record(cls, path)
