"""What a clock measured of a cell: in no record, since it does not repeat."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bleuprint.files import read_object
from bleuprint.layout import Cell


@dataclass(frozen=True)
class Training:
    """How long a training took, and where; and what it cost by time.

    `devices` that each sustain `sustained_flops` a second (the `paper`'s figure, or `measured`)
    would have done `flops_by_time`; `mfu` is the share that they did of `peak_flops` a second
    (`known` or `measured`). `rates` are the target tokens a second at the curve's points. None is
    what is not known, or was not yet written down.
    """

    seconds: float
    device: str
    processes: int
    threads: int
    commit: str | None
    tokens_per_second: float
    devices: int | None = None
    sustained_flops: float | None = None
    sustained_from: str | None = None
    flops_by_time: float | None = None
    peak_flops: float | None = None
    peak_from: str | None = None
    mfu: float | None = None
    versions: str | None = None
    rates: Sequence[float] | None = None


@dataclass(frozen=True)
class Timing:
    """What was measured of a cell; None where nothing was."""

    training: Training | None
    translate_seconds: float | None


def timing(cell: Cell, root: Path = Path()) -> Timing:
    """What was measured when a cell was trained and translated, as far as it is there."""
    train, translate = ((root / cell.timings) / f"{n}.json" for n in ("train", "translate"))
    training = None
    if train.exists():
        fields = dataclasses.fields(Training)
        names = [field.name for field in fields]
        required = [field.name for field in fields if field.default is dataclasses.MISSING]
        measured = read_object(train, required)
        training = Training(**{name: measured[name] for name in names if name in measured})
    return Timing(
        training, read_object(translate, ("seconds",))["seconds"] if translate.exists() else None
    )
