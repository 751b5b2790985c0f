"""The state of a training other than tensors, and when a training ends."""

from dataclasses import dataclass
from typing import Any

from bleuprint.config.system import Train
from bleuprint.dataset.batching import Position
from bleuprint.training.history import EarlyEnd, Metric, ranking


@dataclass
class TrainState:
    """The state of a training apart from tensors, which a checkpoint stores as state.json.

    Attributes:
        parameters: The number of parameters of the model.
        update: The number of updates so far.
        position: How far the batches of the training have been read. Its tokens are counted without
            BPE-dropout.
        source_tokens: The number of source tokens trained on.
        target_tokens: The number of target tokens trained on.
        flops: The floating-point operations so far.
        skipped: The number of updates that ran out of memory and were skipped.
        interval: The summed `loss` in nats, and the number of target `tokens`, since the last point
            of the curve.
        curve: The points of the training curve.
        validations: The `update`, `loss` and `bleu` of each validation.
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
        """Return the state before the first update.

        Args:
            parameters: The number of parameters of the model.
        """
        return cls(
            parameters=parameters,
            update=0,
            position=Position(),
            source_tokens=0,
            target_tokens=0,
            flops=0,
            skipped=0,
            interval={"loss": 0.0, "tokens": 0},
            curve=[],
            validations=[],
        )

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> "TrainState":
        """Return the state that a checkpoint contains.

        Args:
            saved: The content of the checkpoint's state.json. It also has other entries, such as
                the fingerprint of the training.
        """
        fields = {name: saved[name] for name in cls.__dataclass_fields__}
        # In JSON, the position is a mapping.
        fields["position"] = Position(**saved["position"])
        return cls(**fields)

    def is_finished(self, settings: Train) -> bool:
        """Return whether the training should end now.

        It ends after its last update or epoch, or by early stopping.
        """
        return self._is_complete(settings) or self._is_out_of_patience(settings)

    def early_end(self, settings: Train, most_updates: int | None) -> EarlyEnd | None:
        """Return why early stopping ended the training, and signs that this was too early.

        Such signs are a loss that was still falling, and a warmup that was not over.

        Args:
            settings: The settings of the training.
            most_updates: The number of updates that the training has without early stopping; None
                if it is not known.

        Returns:
            The reason. None if the training goes on, or had all its updates or epochs.
        """
        if self._is_complete(settings) or not self._is_out_of_patience(settings):
            return None
        metric = settings.validation_metric
        best_update = self.ranking(metric)[0]
        best_validation = self._validation_at(best_update)
        # If the metric is BLEU, the loss may still have been falling when BLEU did not improve.
        *earlier, last = self.validations
        is_loss_falling = last["loss"] < min(validation["loss"] for validation in earlier)
        warmup_updates = settings.lr_schedule.warmup_updates
        is_warmup_over = self.update >= warmup_updates
        # The last three fields are such signs; a sign that was not seen is None.
        return EarlyEnd(
            update=self.update,
            most_updates=most_updates,
            metric=metric,
            validations=self._validations_after(best_update),
            best=best_validation[metric],
            best_update=best_update,
            loss_before=best_validation["loss"] if is_loss_falling else None,
            loss=last["loss"] if is_loss_falling else None,
            warmup_updates=None if is_warmup_over else warmup_updates,
        )

    def _is_complete(self, settings: Train) -> bool:
        """Return whether the training has had all its updates or all its epochs."""
        has_all_updates = settings.max_updates is not None and self.update >= settings.max_updates
        has_all_epochs = (
            settings.max_epochs is not None and self.position.epoch >= settings.max_epochs
        )
        return has_all_updates or has_all_epochs

    def _is_out_of_patience(self, settings: Train) -> bool:
        """Return whether early stopping ends the training now.

        It does so after `patience` validations in a row without a new best score.
        """
        if settings.patience is None or not self.validations:
            return False
        best_update = self.ranking(settings.validation_metric)[0]
        return self._validations_after(best_update) >= settings.patience

    def _validations_after(self, update: int) -> int:
        """Return the number of validations after an update."""
        return sum(validation["update"] > update for validation in self.validations)

    def _validation_at(self, update: int) -> dict[str, float]:
        """Return the validation after an update.

        Raises:
            KeyError: The update has not been validated.
        """
        for validation in self.validations:
            if validation["update"] == update:
                return validation
        raise KeyError(update)

    def ranking(self, metric: Metric) -> list[int]:
        """Return the updates that have been validated, from the best to the worst validation.

        Args:
            metric: What to compare, `loss` or `bleu`.
        """
        return ranking(self.validations, metric)

    @property
    def is_validated(self) -> bool:
        """Return whether the current weights have been validated."""
        return bool(self.validations) and self.validations[-1]["update"] == self.update
