"""What a training knows of itself beside its weights."""

from dataclasses import dataclass
from typing import Any, Literal

from bleuprint.config.system import Train
from bleuprint.dataset.batching import Position

Measure = Literal["loss", "bleu"]


@dataclass
class State:
    """All that is in a checkpoint beside the tensors.

    Tokens and operations are those it was trained on; `position` counts tokens as planned, before
    BPE-dropout. `skipped` are updates that ran out of memory and were left out. `interval` sums up
    the loss and the tokens since the last point on the `curve`.
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
    def new(cls, parameters: int) -> "State":
        interval = {"loss": 0.0, "tokens": 0}
        return cls(parameters, 0, Position(), 0, 0, 0, 0, interval, [], [])

    @classmethod
    def of(cls, saved: dict[str, Any]) -> "State":
        fields = {name: saved[name] for name in cls.__dataclass_fields__}
        return cls(**{**fields, "position": Position(**saved["position"])})

    def finished(self, settings: Train) -> bool:
        """Whether one of the conditions is met under which training stops."""
        return (
            (settings.max_updates is not None and self.update >= settings.max_updates)
            or (settings.max_epochs is not None and self.position.epoch >= settings.max_epochs)
            or (settings.patience is not None and self._unbettered(settings) >= settings.patience)
        )

    def ranking(self, measure: Measure) -> list[int]:
        """The updates that were validated, best first; of equals the earlier one."""
        sign = 1 if measure == "loss" else -1
        ranked = sorted(self.validations, key=lambda one: (sign * one[measure], one["update"]))
        return [int(validation["update"]) for validation in ranked]

    @property
    def validated(self) -> bool:
        """Whether the weights are validated as they are."""
        return bool(self.validations) and self.validations[-1]["update"] == self.update

    def _unbettered(self, settings: Train) -> int:
        """How many validations there have been since the best."""
        if not self.validations:
            return 0
        best = self.ranking(settings.validation_metric)[0]
        return sum(validation["update"] > best for validation in self.validations)
