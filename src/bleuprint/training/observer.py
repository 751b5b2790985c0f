"""The interface through which the trainer reports its progress."""

from typing import Literal

from bleuprint.training.train_state import TrainState
from bleuprint.training.train_step import UpdateStats

Status = Literal["FINISHED", "KILLED", "FAILED"]


class Observer:
    """Receives the events of one training on rank 0; the methods here do nothing.

    An observer must not change results. `started` is called after a checkpoint, if any, was loaded;
    `ended` exactly once after `started`, however the training ends.
    """

    def started(self, state: TrainState, expected_updates: int | None) -> None:
        """`expected_updates`: approximate number of updates of the training; None if unknown."""

    def waited(self, seconds: float) -> None:
        """Data of the next update was waited for, since the end of the last one."""

    def updated(self, state: TrainState, stats: UpdateStats) -> None:
        """The weights were updated; `state` counts this update."""

    def recorded(self, state: TrainState, point: dict[str, float]) -> None:
        """`point` was added to the training curve; its loss is the mean since the last point."""

    def validated(self, state: TrainState, metrics: dict[str, float]) -> None:
        """The model was validated: `loss` (nats a token) and `bleu`."""

    def skipped(self, state: TrainState) -> None:
        """The next update ran out of memory and was skipped."""

    def warned(self, message: str) -> None:
        """A message for the user; training continues."""

    def saving(self, state: TrainState) -> None:
        """A checkpoint of `state` is about to be written."""

    def saved(self, state: TrainState) -> None:
        """The checkpoint was written."""

    def ended(self, state: TrainState, status: Status) -> None:
        """FINISHED; KILLED: stopped by a signal, with its state saved; FAILED: by an error."""
