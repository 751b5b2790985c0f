"""The optimizer and the learning-rate schedule of a training; part of the settings in system.py."""

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
    """Adam (Kingma and Ba 2015) and SGD, with `weight_decay` added to the gradient, or AdamW
    (Loshchilov and Hutter 2019), with weights multiplied by 1 - learning rate * `weight_decay`.

    `betas` and `eps` are of Adam and AdamW, by default those of the paper; `momentum` is
    of SGD, by default 0, and torch's: velocity = momentum * velocity + gradient, weights -=
    learning rate * velocity.
    """

    name: Literal["adam", "adamw", "sgd"] = "adam"
    weight_decay: AtLeast0 = 0.0
    betas: tuple[Share, Share] | None = None
    eps: Above0 | None = None
    momentum: Share | None = None

    def __post_init__(self) -> None:
        for name, default in (("betas", (0.9, 0.98)), ("eps", 1e-9), ("momentum", 0.0)):
            used = (name == "momentum") == (self.name == "sgd")
            if not used and getattr(self, name) is not None:
                raise ValueError(f"name {self.name} has no {name}")
            if used and getattr(self, name) is None:
                object.__setattr__(self, name, default)


@dataclass(frozen=True)
class InverseSqrt:
    """Linear from `warmup_init_lr` to `lr` in `warmup_updates`, then lr * (warmup / update)^0.5.

    Without warmup (0) the decay begins at the first update, as with 1: lr * update^-0.5.
    """

    lr: Above0
    warmup_updates: Warmup = 4000
    warmup_init_lr: AtLeast0 = 0.0

    def __post_init__(self) -> None:
        if self.warmup_init_lr > self.lr:
            raise ValueError(f"warmup_init_lr {self.warmup_init_lr} is above lr {self.lr}")


@dataclass(frozen=True)
class Noam:
    """The paper's: `factor` * d_model^-0.5 * min(update^-0.5, update * warmup_updates^-1.5).

    Without warmup (0) it is the limit of the formula, factor * d_model^-0.5 * update^-0.5.
    """

    factor: Above0 = 1.0
    warmup_updates: Warmup = 4000


@dataclass(frozen=True)
class Constant:
    """The same learning rate for every update; 0 keeps the weights of a start."""

    lr: AtLeast0


@dataclass(frozen=True)
class Cosine:
    """Linear from 0 to `lr` in `warmup_updates`, then half a cosine down to `min_lr`."""

    lr: Above0
    warmup_updates: Warmup
    max_updates: Updates
    min_lr: AtLeast0 = 0.0

    def __post_init__(self) -> None:
        if self.warmup_updates >= self.max_updates:
            raise ValueError(
                f"warmup_updates {self.warmup_updates} must be below max_updates {self.max_updates}"
            )
        if self.min_lr > self.lr:
            raise ValueError(f"min_lr {self.min_lr} is above lr {self.lr}")


@dataclass(frozen=True)
class LrSchedule:
    """The learning-rate schedule: exactly one of these."""

    inverse_sqrt: InverseSqrt | None = None
    noam: Noam | None = None
    constant: Constant | None = None
    cosine: Cosine | None = None

    def __post_init__(self) -> None:
        check_one(self)

    @property
    def warmup_updates(self) -> int:
        """The updates in which the learning rate rises; 0 if it does not."""
        schedule = self.inverse_sqrt or self.noam or self.cosine
        return schedule.warmup_updates if schedule is not None else 0


def check_one(settings: Any, *names: str) -> None:
    """Raise ValueError unless exactly one of the fields is given; `names`: all by default."""
    names = names or tuple(field.name for field in fields(settings))
    if sum(getattr(settings, name) is not None for name in names) != 1:
        raise ValueError(f"needs one of {', '.join(names)}")
