"""The interface through which the trainer reports its progress."""

from typing import Literal

from bleuprint.training.train_state import TrainState
from bleuprint.training.train_step import UpdateStats

# How a training ended: complete; stopped by a signal, with its state saved; or by an error.
Status = Literal["FINISHED", "KILLED", "FAILED"]


class Observer:
    """Is told of the events of a training, such as a finished update, in the process with rank 0.

    The methods of this class do nothing; subclasses override those that they need, to log or to
    print. An observer must not change results.
    """

    def started(self, state: TrainState, expected_updates: int | None) -> None:
        """Handle the start of the training, or its continuation from a checkpoint.

        The trainer calls this. The method does nothing here; subclasses may log or print something.

        Args:
            state: The state of the training, at its start or in the checkpoint.
            expected_updates: The approximate number of updates of the training; None if it is not
                known.
        """

    def waited(self, seconds: float) -> None:
        """Handle the arrival of the next update's data, for which the training waited so long."""

    def updated(self, state: TrainState, stats: UpdateStats) -> None:
        """Handle an update of the weights, which `state` already counts.

        Args:
            state: The state of the training after the update.
            stats: The statistics of the update.
        """

    def recorded(self, state: TrainState, point: dict[str, float]) -> None:
        """Handle a point of the training curve; its loss is the mean since the previous point.

        Args:
            state: The state of the training.
            point: The point of the training curve.
        """

    def validated(self, state: TrainState, metrics: dict[str, float]) -> None:
        """Handle the results of a validation: the `loss` in nats per token, and `bleu`.

        Args:
            state: The state of the training.
            metrics: The results of the validation by metric.
        """

    def skipped(self, state: TrainState) -> None:
        """Handle an update that ran out of memory and was skipped."""

    def warned(self, message: str) -> None:
        """Handle a message for the user; training continues."""

    def saving(self, state: TrainState) -> None:
        """Prepare for a checkpoint of `state`, which is about to be written."""

    def saved(self, state: TrainState) -> None:
        """Handle a checkpoint of `state` that was written."""

    def ended(self, state: TrainState, status: Status) -> None:
        """Handle the end of the training; called exactly once after `started`, however it ends.

        Args:
            state: The state of the training at its end.
            status: How the training has ended.
        """
