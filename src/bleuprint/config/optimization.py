"""The settings of the optimizer and the learning-rate schedule, which system.py is made of."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from annotated_types import Interval

from bleuprint.runtime.schema import Share

# Upper bounds are far above any value in use: what exceeds them works on no machine.
# 3e38 is about the largest number of float32.
Above0 = Annotated[float, Interval(gt=0, le=3e38)]
AtLeast0 = Annotated[float, Interval(ge=0, le=3e38)]
Updates = Annotated[int, Interval(ge=1, le=10**9)]
Warmup = Annotated[int, Interval(ge=0, le=10**9)]


@dataclass(frozen=True)
class Optimizer:
    """The optimizer: Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or SGD.

    Attributes:
        name: The optimizer.
        weight_decay: Adam and SGD add `weight_decay` * weights to the gradient; AdamW multiplies
            the weights by 1 - learning rate * `weight_decay`.
        betas: The decay rates of Adam and AdamW, by default the values of the Transformer's paper.
        eps: The constant in the denominator of Adam and AdamW.
        momentum: The momentum of SGD, as in torch: velocity = momentum * velocity + gradient,
            weights -= learning rate * velocity.
    """

    name: Literal["adam", "adamw", "sgd"] = "adam"
    weight_decay: AtLeast0 = 0.0
    betas: tuple[Share, Share] | None = None
    eps: Above0 | None = None
    momentum: Share | None = None

    def __post_init__(self) -> None:
        """Fill in the defaults of those settings that the optimizer has and params.yaml omits.

        SGD has the setting `momentum`; Adam and AdamW have `betas` and `eps`.

        Raises:
            ValueError: params.yaml has a setting that this optimizer does not have.
        """
        if self.name == "sgd":
            defaults: dict[str, Any] = {"momentum": 0.0}
        else:
            defaults = {"betas": (0.9, 0.98), "eps": 1e-9}
        for setting in ("betas", "eps", "momentum"):
            value = getattr(self, setting)
            is_set = value is not None
            if is_set and setting not in defaults:
                raise ValueError(f"optimizer {self.name} has no setting {setting}. Remove it")
            if not is_set and setting in defaults:
                # A frozen dataclass refuses `self.eps = ...`, but not this call.
                object.__setattr__(self, setting, defaults[setting])


@dataclass(frozen=True)
class InverseSqrt:
    """A learning rate that rises linearly, then falls with the inverse square root of the update.

    After the warmup, it is lr * (warmup_updates / update)^0.5. Without warmup (0), the decay begins
    at the first update, as with a warmup of 1 update: lr * update^-0.5.

    Attributes:
        lr: The learning rate at the end of the warmup.
        warmup_updates: The number of updates in which it rises.
        warmup_init_lr: The learning rate at the beginning of the warmup.
    """

    lr: Above0
    warmup_updates: Warmup = 4000
    warmup_init_lr: AtLeast0 = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError if the learning rate would fall in the warmup, in which it must rise."""
        if self.warmup_init_lr > self.lr:
            raise ValueError(f"warmup_init_lr {self.warmup_init_lr} is above lr {self.lr}")


@dataclass(frozen=True)
class Noam:
    """The learning rate of the Transformer's paper (Vaswani et al. 2017).

    It is factor * d_model^-0.5 * min(update^-0.5, update * warmup_updates^-1.5). Without warmup (0)
    it is the limit of this formula: factor * d_model^-0.5 * update^-0.5.

    Attributes:
        factor: The factor of the learning rate.
        warmup_updates: The number of updates in which the learning rate rises.
    """

    factor: Above0 = 1.0
    warmup_updates: Warmup = 4000


@dataclass(frozen=True)
class Constant:
    """The same learning rate for every update.

    Attributes:
        lr: The learning rate; 0 keeps the weights that training starts from.
    """

    lr: AtLeast0


@dataclass(frozen=True)
class Cosine:
    """A learning rate that rises linearly from 0, then falls along half a cosine.

    Attributes:
        lr: The learning rate at the end of the warmup.
        warmup_updates: The number of updates in which it rises.
        max_updates: The update at which it reaches `min_lr`.
        min_lr: The lowest learning rate after the warmup.
    """

    lr: Above0
    warmup_updates: Warmup
    max_updates: Updates
    min_lr: AtLeast0 = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError if the learning rate could not fall from `lr` to `min_lr`.

        It falls from the end of the warmup to `max_updates`, so there must be updates between them.
        """
        if self.warmup_updates >= self.max_updates:
            raise ValueError(
                f"warmup_updates {self.warmup_updates} must be below max_updates {self.max_updates}"
            )
        if self.min_lr > self.lr:
            raise ValueError(f"min_lr {self.min_lr} is above lr {self.lr}")


@dataclass(frozen=True)
class LrSchedule:
    """The learning-rate schedule; exactly one is set.

    Attributes:
        inverse_sqrt: Decay with the inverse square root of the update.
        noam: The schedule of the Transformer's paper.
        constant: The same learning rate throughout.
        cosine: Decay along half a cosine.
    """

    inverse_sqrt: InverseSqrt | None = None
    noam: Noam | None = None
    constant: Constant | None = None
    cosine: Cosine | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless there is one schedule."""
        check_exactly_one(self)

    @property
    def warmup_updates(self) -> int:
        """The number of updates in which the learning rate rises; 0 if it is constant."""
        schedule = self.inverse_sqrt or self.noam or self.cosine
        if schedule is None:
            return 0
        return schedule.warmup_updates


def check_exactly_one(settings: Any, *names: str) -> None:
    """Raise ValueError unless exactly one of some settings is set, that is, is not None.

    Args:
        settings: A dataclass of settings.
        names: The names of the settings to look at; all fields of the dataclass by default.
    """
    if not names:
        names = tuple(field.name for field in fields(settings))
    set_names = [name for name in names if getattr(settings, name) is not None]
    if len(set_names) != 1:
        raise ValueError(f"needs exactly one of {', '.join(names)}")
