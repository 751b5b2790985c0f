"""Training state other than the weights."""

from dataclasses import dataclass
from typing import Any, Literal

from bleuprint.config.system import Train
from bleuprint.dataset.batching import Position

Measure = Literal["loss", "bleu"]


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
        return (
            (settings.max_updates is not None and self.update >= settings.max_updates)
            or (settings.max_epochs is not None and self.position.epoch >= settings.max_epochs)
            or (
                settings.patience is not None
                and self._validations_since_best(settings) >= settings.patience
            )
        )

    def ranking(self, measure: Measure) -> list[int]:
        """The validated updates, best first; of equal ones the earlier first."""
        sign = 1 if measure == "loss" else -1
        ranked = sorted(self.validations, key=lambda v: (sign * v[measure], v["update"]))
        return [int(validation["update"]) for validation in ranked]

    @property
    def validated(self) -> bool:
        """Whether the current weights have been validated."""
        return bool(self.validations) and self.validations[-1]["update"] == self.update

    def _validations_since_best(self, settings: Train) -> int:
        if not self.validations:
            return 0
        best = self.ranking(settings.validation_metric)[0]
        return sum(validation["update"] > best for validation in self.validations)
