"""Training state other than the weights."""

from dataclasses import dataclass
from typing import Any

from bleuprint.config.system import Train
from bleuprint.dataset.batching import Position
from bleuprint.training.history import EarlyEnd, Metric, ranking


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
        return self._is_complete(settings) or self._is_out_of_patience(settings)

    def early_end(self, settings: Train, most_updates: int | None) -> EarlyEnd | None:
        """Why it ended before its last update or epoch; None if it did not end, or after these.

        `most_updates`: how many updates it could have had; None if that is not known.
        """
        if self._is_complete(settings) or not self._is_out_of_patience(settings):
            return None
        metric = settings.validation_metric
        best_update = self.ranking(metric)[0]
        best = next(each for each in self.validations if each["update"] == best_update)
        last = self.validations[-1]
        is_falling = last["loss"] < min(each["loss"] for each in self.validations[:-1])
        warmup = settings.lr_schedule.warmup_updates
        return EarlyEnd(
            update=self.update,
            most_updates=most_updates,
            metric=metric,
            validations=self._validations_after(best_update),
            best=best[metric],
            best_update=best_update,
            loss_before=best["loss"] if is_falling else None,
            loss=last["loss"] if is_falling else None,
            warmup_updates=warmup if self.update < warmup else None,
        )

    def _is_complete(self, settings: Train) -> bool:
        """Whether it has had all its updates or epochs."""
        conditions = (
            (self.update, settings.max_updates),
            (self.position.epoch, settings.max_epochs),
        )
        return any(limit is not None and reached >= limit for reached, limit in conditions)

    def _is_out_of_patience(self, settings: Train) -> bool:
        if settings.patience is None or not self.validations:
            return False
        best_update = self.ranking(settings.validation_metric)[0]
        return self._validations_after(best_update) >= settings.patience

    def _validations_after(self, update: int) -> int:
        return sum(each["update"] > update for each in self.validations)

    def ranking(self, metric: Metric) -> list[int]:
        """The validated updates, best first; of equal ones the earlier first."""
        return ranking(self.validations, metric)

    @property
    def validated(self) -> bool:
        """Whether the current weights have been validated."""
        return bool(self.validations) and self.validations[-1]["update"] == self.update
