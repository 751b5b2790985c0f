"""The curves of a training, as curves.json holds them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bleuprint.config.paths import Cell
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object


@dataclass(frozen=True)
class Point:
    """The training at an update.

    `loss` (nats per token, with label smoothing if the training has it) is the mean since the
    point before; `gradient_norm` is of this update, before clipping.
    """

    update: int
    loss: float
    learning_rate: float
    gradient_norm: float


@dataclass(frozen=True)
class Validation:
    """On the validation set: `loss` in nats per token, without smoothing; BLEU of greedy search."""

    update: int
    loss: float
    bleu: float


@dataclass(frozen=True)
class History:
    training: tuple[Point, ...]
    validation: tuple[Validation, ...]

    @property
    def best(self) -> Validation | None:
        """The first validation of the lowest loss; None if there was none."""
        return min(self.validation, key=lambda each: each.loss, default=None)


def history(cell: Cell, root: Path) -> History | None:
    """The content of a cell's curves.json; None if there is no such file."""
    path = root / cell.results / "curves.json"
    if not path.exists():
        return None
    content = read_object(path, ("training", "validation"))
    names = "update", "loss", "learning_rate", "gradient_norm"
    try:
        return History(
            tuple(Point(**{name: each[name] for name in names}) for each in content["training"]),
            tuple(Validation(**each) for each in content["validation"]),
        )
    except (KeyError, TypeError):
        raise UserError(f"{path}: damaged, or of another version; run: dvc repro") from None


def thinned(
    line: Sequence[tuple[float, float]], points: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """x and y of a line in at most `points` points: each the mean of as many neighbours."""
    count = min(points, len(line))
    ends = [len(line) * i // count for i in range(count + 1)] if count else []
    groups = [line[start:end] for start, end in pairwise(ends)]
    means = [tuple(map(statistics.fmean, zip(*group, strict=True))) for group in groups]
    return tuple(x for x, _ in means), tuple(y for _, y in means)
