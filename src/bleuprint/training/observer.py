"""The interface through which a training reports; the trainer does not know who listens."""

from typing import Literal

from bleuprint.training.train_state import State
from bleuprint.training.train_step import Outcome

Status = Literal["FINISHED", "KILLED", "FAILED"]


class Observer:
    """Receives the events of one training, on rank 0 alone; each method does nothing here.

    An observer changes no result. `started` is called after a checkpoint was loaded, if there is
    one, and `ended` exactly once after it, however the training ends.
    """

    def started(self, state: State, expected_updates: int | None) -> None:
        """`expected_updates`: about how many updates there will be; None if that is unknown."""

    def updated(self, state: State, outcome: Outcome) -> None:
        """The weights were updated; `state` counts this update."""

    def recorded(self, state: State, point: dict[str, float]) -> None:
        """`point` was added to the training curve; its values are means since the last one."""

    def validated(self, state: State, measures: dict[str, float]) -> None:
        """The model was measured on the validation set."""

    def skipped(self, state: State) -> None:
        """The next update ran out of memory and was left out."""

    def warned(self, message: str) -> None:
        """Something that the user should know, and that does not stop the training."""

    def saving(self, state: State) -> None:
        """A checkpoint of `state` is about to be written."""

    def saved(self, state: State) -> None:
        """The checkpoint was written."""

    def ended(self, state: State, status: Status) -> None:
        """FINISHED; KILLED: stopped by a signal, with its state saved; FAILED: by an error."""
