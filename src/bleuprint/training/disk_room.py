"""The room on disk that the checkpoints of a training need, known before its first update."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bleuprint.config.system import Train
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import size
from bleuprint.training import checkpoint


@dataclass(frozen=True)
class CheckpointSize:
    """The bytes of a checkpoint: of its weights, and of the optimizer's state beside them."""

    weights: int
    optimizer: int

    @property
    def total(self) -> int:
        """The bytes of all of it; its JSON files are small."""
        return self.weights + self.optimizer


@dataclass(frozen=True)
class Kept:
    """How many checkpoints a training has at its end: at least, and at most.

    The best ones may be among the last ones, which only the training shows.
    """

    least: int
    most: int


def checkpoints_kept(settings: Train, updates: int | None) -> Kept:
    """How many checkpoints `train.keep` leaves of a training of `updates`; None: unknown."""
    keep = settings.keep
    if updates is None:
        return Kept(least=max(keep.last, keep.best, 1), most=max(keep.last + keep.best, 1))
    saved = -(-updates // settings.checkpoint_every)  # the last update is saved, too
    last = min(keep.last, saved)
    best = min(keep.best, updates // settings.validate_every)
    milestones = updates // keep.every if keep.every else 0
    least = max(last, best, milestones, 1)
    return Kept(least=least, most=max(least, min(last + best + milestones, saved)))


def check_room(
    work: Path, exported: Path, settings: Train, updates: int | None, one: CheckpointSize
) -> Iterator[str]:
    """Yield a warning if the checkpoints may not fit on the disk.

    While a checkpoint is written, those before it are still there. At the end the weights of the
    kept ones are copied.

    Args:
        work: The folder of the checkpoints, of which some may exist already.
        exported: The folder that the weights are copied to at the end.
        settings: The settings of the training.
        updates: The expected number of updates; None if unknown.
        one: The size of one checkpoint.

    Raises:
        UserError: The checkpoints cannot fit.
    """
    kept = checkpoints_kept(settings, updates)
    existing = sum(_bytes_in(path) for path in checkpoint.paths(work))
    moving_averages = 0 if settings.ema is None else 1
    work_disk, export_disk = _existing(work), _existing(exported)
    is_one_disk = work_disk.stat().st_dev == export_disk.stat().st_dev

    def at_work(count: int) -> int:
        """The bytes that `count` kept checkpoints need on the disk of `work`."""
        while_saving = (count + 1) * one.total
        at_the_end = count * one.total
        if is_one_disk:
            at_the_end += at_export(count)
        return max(while_saving, at_the_end) - existing

    def at_export(count: int) -> int:
        """The bytes that the copies of their weights need."""
        return (count + moving_averages) * one.weights

    yield from _compare(work_disk, at_work(kept.least), at_work(kept.most), settings)
    if not is_one_disk:
        yield from _compare(export_disk, at_export(kept.least), at_export(kept.most), settings)


def _compare(folder: Path, least: int, most: int, settings: Train) -> Iterator[str]:
    """Yield a warning if `most` bytes are not free, and raise UserError if `least` are not."""
    free = shutil.disk_usage(folder).free
    if free >= most:
        return
    needed = size(least) if free < least else f"up to {size(most)}"
    keep = settings.keep
    message = (
        f"the checkpoints of this training need {needed} more, but {folder} has {size(free)} free: "
        f"make room there, or lower train.keep (last: {keep.last}, best: {keep.best}, every: "
        f"{keep.every})"
    )
    if free < least:
        raise UserError(message)
    yield message


def _existing(folder: Path) -> Path:
    """The folder, or the first one above it that exists."""
    absolute = folder.absolute()
    return next(each for each in (absolute, *absolute.parents) if each.is_dir())


def _bytes_in(folder: Path) -> int:
    """The bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
