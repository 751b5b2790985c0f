"""Training state other than the weights."""

from dataclasses import dataclass
from typing import Any

from bleuprint.config.system import Train
from bleuprint.dataset.batching import Position
from bleuprint.training.history import Metric, ranking


@dataclass
class TrainState:
    """Everything in a checkpoint except tensors.

    Token counts and `flops` are those of the batches trained on; `position` counts tokens without
    BPE-dropout. `skipped`: updates that ran out of memory. `interval`: the loss (nats) and the
    tokens since the last point of `curve`, summed.
    """

    parameters: int
    update: int
    position: Position
    source_tokens: int
    target_tokens: int
    flops: int
    skipped: int
    interval: dict[str, float]
    curve: list[dict[str, float]]
    validations: list[dict[str, float]]

    @classmethod
    def initial(cls, parameters: int) -> "TrainState":
        interval = {"loss": 0.0, "tokens": 0}
        return cls(parameters, 0, Position(), 0, 0, 0, 0, interval, [], [])

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> "TrainState":
        fields = {name: saved[name] for name in cls.__dataclass_fields__}
        return cls(**{**fields, "position": Position(**saved["position"])})

    def finished(self, settings: Train) -> bool:
        """Whether one of the conditions that end a training is met."""
        best = next(iter(self.ranking(settings.validation_metric)), self.update)
        conditions = (
            (self.update, settings.max_updates),
            (self.position.epoch, settings.max_epochs),
            (sum(each["update"] > best for each in self.validations), settings.patience),
        )
        return any(limit is not None and reached >= limit for reached, limit in conditions)

    def ranking(self, metric: Metric) -> list[int]:
        """The validated updates, best first; of equal ones the earlier first."""
        return ranking(self.validations, metric)

    @property
    def validated(self) -> bool:
        """Whether the current weights have been validated."""
        return bool(self.validations) and self.validations[-1]["update"] == self.update
