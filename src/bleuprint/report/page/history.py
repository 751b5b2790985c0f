"""How a training went: the points of its curves, as curves.json holds them."""

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
    """The training at an update: `loss` (nats a token, smoothed if the training is) is the mean
    since the point before; `gradient_norm` is of this update, before clipping.
    """

    update: int
    loss: float
    learning_rate: float
    gradient_norm: float


@dataclass(frozen=True)
class Validation:
    """On the validation set, greedily translated: `loss` in nats a token, without smoothing."""

    update: int
    loss: float
    bleu: float


@dataclass(frozen=True)
class History:
    training: tuple[Point, ...]
    validation: tuple[Validation, ...]

    @property
    def best(self) -> Validation | None:
        """The validation of the lowest loss, of equals the first; None where there was none."""
        return min(self.validation, key=lambda one: one.loss, default=None)


def history(cell: Cell, root: Path) -> History | None:
    """What curves.json of a cell says; None where there is no such file."""
    path = root / cell.results / "curves.json"
    if not path.exists():
        return None
    content = read_object(path, ("training", "validation"))
    names = "update", "loss", "learning_rate", "gradient_norm"
    try:
        return History(
            tuple(Point(**{name: one[name] for name in names}) for one in content["training"]),
            tuple(Validation(**one) for one in content["validation"]),
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
