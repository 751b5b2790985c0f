"""Which checkpoints of a training are averaged."""

from dataclasses import dataclass
from typing import Any, Literal

from bleuprint.config.optimization import check_exactly_one
from bleuprint.runtime.schema import Count


@dataclass(frozen=True)
class Average:
    """Which checkpoints are averaged. One of the first three is set.

    Attributes:
        last: How many of the last checkpoints.
        best: How many of the best checkpoints.
        ema: Instead, the moving average that the training kept (`train.ema`), at its end.
        ensemble: Whether the checkpoints translate together, by the mean of their probabilities,
            instead of the mean of their weights.
    """

    last: Count | None = None
    best: Count | None = None
    ema: Literal[True] | None = None
    ensemble: bool = False

    def __post_init__(self) -> None:
        """Check that the settings choose which checkpoints to use.

        Raises:
            ValueError: Not exactly one of `last`, `best` and `ema` is set; or an ensemble would
                consist of a single model.
        """
        check_exactly_one(self, "last", "best", "ema")
        # `ema` is one model, too: a moving average of the weights.
        has_one_model = self.ema or self.last == 1 or self.best == 1
        if self.ensemble and has_one_model:
            raise ValueError("an ensemble needs more than one checkpoint. Raise last or best")

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings that are not at their default, as JSON values."""
        return {name: value for name, value in vars(self).items() if value}
