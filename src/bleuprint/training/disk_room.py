"""The disk space that the checkpoints of a training need, checked before its first update."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from bleuprint.config.system import Train
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import format_bytes
from bleuprint.runtime.rounding import divide_rounding_up
from bleuprint.training import checkpoint


@dataclass(frozen=True)
class CheckpointSize:
    """The size of one checkpoint.

    Attributes:
        weights: The size of the model weights, in bytes.
        optimizer: The size of the optimizer state, in bytes.
    """

    weights: int
    optimizer: int

    @property
    def total(self) -> int:
        """Return the size of the checkpoint in bytes, without its JSON files, which are small."""
        return self.weights + self.optimizer


@dataclass(frozen=True)
class KeptCheckpoints:
    """The smallest and the largest possible number of checkpoints at the end of a training.

    The number is not known in advance, because the last checkpoints may be among the best ones.

    Attributes:
        at_least: The smallest possible number.
        at_most: The largest possible number.
    """

    at_least: int
    at_most: int


def size_in_bytes(tensors: Mapping[str, Tensor]) -> int:
    """Return the size of all tensors together, in bytes."""
    return sum(tensor.numel() * tensor.itemsize for tensor in tensors.values())


def checkpoints_kept(settings: Train, updates: int | None) -> KeptCheckpoints:
    """Return the smallest and the largest possible number of checkpoints at the end of a training.

    A training keeps the last `keep_last` checkpoints, the best `keep_best` ones, and a milestone at
    each `keep_interval` updates. One checkpoint may be two or all three of these. With `keep_last`
    2 and `keep_best` 3, there are 3 checkpoints if the last two are also among the best, and 5 if
    they are not.

    Args:
        settings: The settings of the training.
        updates: The number of updates of the training. If it is None, the number is not known, and
            milestones are not counted.
    """
    if updates is None:
        # 1: the newest checkpoint is always kept.
        return KeptCheckpoints(
            at_least=max(settings.keep_last, settings.keep_best, 1),
            at_most=max(settings.keep_last + settings.keep_best, 1),
        )
    # A checkpoint is saved after each interval, and after the last update, even if that ends no
    # interval.
    saved = divide_rounding_up(updates, settings.save_interval)
    last = min(settings.keep_last, saved)
    validations = updates // settings.validate_interval
    best = min(settings.keep_best, validations)
    milestones = 0
    if settings.keep_interval:
        milestones = updates // settings.keep_interval
    # There are fewest if the last checkpoints are also the best ones and the milestones. The newest
    # checkpoint is kept in any case.
    at_least = max(last, best, milestones, 1)
    # There are most if no checkpoint is kept for two of these reasons.
    at_most = max(at_least, min(last + best + milestones, saved))
    return KeptCheckpoints(at_least, at_most)


@dataclass(frozen=True)
class _SpaceNeeds:
    """How much disk space the checkpoints of a training need.

    During the training, checkpoints with weights and optimizer state are written into its work
    folder. At the end, the weights alone are copied to an export folder.

    Attributes:
        checkpoint_size: The size of one checkpoint.
        has_moving_average: Whether the training keeps a moving average of the weights, which is
            exported as one more copy of the weights.
        is_one_disk: Whether the work folder and the export folder are on the same disk.
        existing_bytes: The size of the checkpoints that are in the work folder already.
    """

    checkpoint_size: CheckpointSize
    has_moving_average: bool
    is_one_disk: bool
    existing_bytes: int

    def bytes_at_work(self, kept_checkpoints: int) -> int:
        """Return how many more bytes the training needs on the disk of its work folder.

        It needs most either while it saves a checkpoint, or at its end, when the weights are copied
        to the export folder on the same disk.

        Args:
            kept_checkpoints: The number of checkpoints at the end of the training.
        """
        # One more: a checkpoint is written before the one that it replaces is deleted.
        bytes_while_saving = (kept_checkpoints + 1) * self.checkpoint_size.total
        bytes_at_end = kept_checkpoints * self.checkpoint_size.total
        if self.is_one_disk:
            bytes_at_end += self.bytes_at_export(kept_checkpoints)
        return max(bytes_while_saving, bytes_at_end) - self.existing_bytes

    def bytes_at_export(self, kept_checkpoints: int) -> int:
        """Return how many bytes the copied weights need in the export folder.

        Args:
            kept_checkpoints: The number of checkpoints at the end of the training.
        """
        copies = kept_checkpoints
        if self.has_moving_average:
            copies += 1
        return copies * self.checkpoint_size.weights


def check_room(
    work_folder: Path,
    export_folder: Path,
    settings: Train,
    updates: int | None,
    checkpoint_size: CheckpointSize,
) -> Iterator[str]:
    """Check, before a training, that its checkpoints fit on the disk.

    How many checkpoints the training will keep is known only within limits (`checkpoints_kept`). It
    is an error if the smallest possible number does not fit. If only the largest possible number
    does not fit, a warning is yielded.

    Args:
        work_folder: The folder in which the training keeps its checkpoints. It may contain some
            already, or not exist yet.
        export_folder: The folder to which the weights are copied at the end. It may be on another
            disk, or not exist yet.
        settings: The settings of the training.
        updates: The expected number of updates; None if it is not known.
        checkpoint_size: The size of one checkpoint.

    Raises:
        UserError: The checkpoints cannot fit.
    """
    kept = checkpoints_kept(settings, updates)
    existing_work_folder = _nearest_existing_folder(work_folder)
    existing_export_folder = _nearest_existing_folder(export_folder)
    work_disk = existing_work_folder.stat().st_dev
    export_disk = existing_export_folder.stat().st_dev
    needs = _SpaceNeeds(
        checkpoint_size=checkpoint_size,
        has_moving_average=settings.ema is not None,
        is_one_disk=work_disk == export_disk,
        existing_bytes=sum(_bytes_in(folder) for folder in checkpoint.paths(work_folder)),
    )
    yield from _check_free_bytes(
        existing_work_folder,
        least_bytes=needs.bytes_at_work(kept.at_least),
        most_bytes=needs.bytes_at_work(kept.at_most),
        settings=settings,
    )
    if not needs.is_one_disk:
        yield from _check_free_bytes(
            existing_export_folder,
            least_bytes=needs.bytes_at_export(kept.at_least),
            most_bytes=needs.bytes_at_export(kept.at_most),
            settings=settings,
        )


def _check_free_bytes(
    folder: Path, least_bytes: int, most_bytes: int, settings: Train
) -> Iterator[str]:
    """Warn, or raise an error, if a disk has too little free space for the checkpoints.

    Args:
        folder: An existing folder on the disk.
        least_bytes: The space that the checkpoints need in any case, in bytes.
        most_bytes: The space that they need at most, in bytes.
        settings: The settings of the training. The message says which of them save space.

    Yields:
        A warning if less than `most_bytes` is free.

    Raises:
        UserError: Less than `least_bytes` is free.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes >= most_bytes:
        return
    certainly_fails = free_bytes < least_bytes
    needed = format_bytes(least_bytes) if certainly_fails else f"up to {format_bytes(most_bytes)}"
    message = (
        f"the checkpoints of this training need {needed} more, but {folder} has "
        f"{format_bytes(free_bytes)} free. {_advice_to_save_space(settings)}"
    )
    if certainly_fails:
        raise UserError(message)
    yield message


def _advice_to_save_space(settings: Train) -> str:
    """Return a sentence that tells the user how to save space on a full disk.

    It names only settings that would have an effect, with their present values, such as `Make room
    there, or lower train.keep_last (5)`.
    """
    advice = ["Make room there"]
    if settings.keep_last > 1:  # At least one checkpoint is kept.
        advice.append(f"lower train.keep_last ({settings.keep_last})")
    if settings.keep_best > 0:
        advice.append(f"lower train.keep_best ({settings.keep_best})")
    if settings.keep_interval > 0:
        # One checkpoint is kept for each interval, so longer intervals keep fewer.
        advice.append(f"raise train.keep_interval ({settings.keep_interval})")
    return ", or ".join(advice)


def _nearest_existing_folder(folder: Path) -> Path:
    """Return a folder, or the nearest folder above it that exists.

    The operating system reports disks and their free space only for existing folders.
    """
    nearest = folder.absolute()
    while not nearest.is_dir():
        nearest = nearest.parent
    return nearest


def _bytes_in(folder: Path) -> int:
    """Return the total size of the files directly in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
