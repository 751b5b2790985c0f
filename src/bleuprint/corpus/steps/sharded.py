"""The work of a stage on the training text of a corpus, whole or in shards.

Such a stage is a `Step`: it sifts the training text, or a shard of it, into a folder of its own,
and then gathers what the shards left, in the order of their numbers, into the stage's output. A
corpus that is not sharded is one shard.
"""

import dataclasses
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from bleuprint.corpus.steps.shard import Shard
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder
from bleuprint.text.parallel import Block, TextFolder

_SETTINGS = "settings"


class Step(Protocol):
    """The work of one stage on one corpus, its training text in shards."""

    def sift(self, shard: Shard, part: Path, workers: int) -> None:
        """Do the work on a shard of train, and leave what comes of it in the folder `part`."""

    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Make the stage's output of what the shards left, and of the sets held out."""


def run_step(step: Step, shards: Path, work: Shard | int | None, workers: int) -> None:
    """Do a stage's work: a shard of it, the gathering of so many shards, or all (None).

    What shards leave lies in folders below `shards`.
    """
    with _alone(shards, work):
        _run_step(step, shards, work, workers)


@contextmanager
def _alone(shards: Path, work: Shard | int | None) -> Iterator[None]:
    """Raise UserError if another process is at the same work."""
    shards.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(shards / f"{work if isinstance(work, Shard) else 'all'}.lock", timeout=0):
            yield
    except Timeout:
        raise UserError(f"{shards}: another process is at work on the same") from None


def _run_step(step: Step, shards: Path, work: Shard | int | None, workers: int) -> None:
    if isinstance(work, Shard):
        _sift(step, work, shards / str(work), workers)
        return
    parts = [shards / str(shard) for shard in Shard.all(work or 1)]
    try:
        if work is None:
            _sift(step, Shard(), parts[0], workers)
        for part in parts:
            _check_part(part, step)
        step.gather(parts, workers)
    finally:
        for part in parts if work is None else ():
            shutil.rmtree(part, ignore_errors=True)


def _sift(step: Step, shard: Shard, folder: Path, workers: int) -> None:
    with whole_folder(folder) as part:
        step.sift(shard, part, workers)
        (part / _SETTINGS).write_text(_settings_of(step))


def _check_part(part: Path, step: Step) -> None:
    """Raise UserError unless a shard is there, and was made under the settings of now."""
    if not part.is_dir():
        raise UserError(f"{part}: no such shard to gather")
    if (part / _SETTINGS).read_text() != _settings_of(step):
        raise UserError(f"{part}: this shard was made under other settings; remove {part.parent}")


def _settings_of(step: Step) -> str:
    """A fingerprint of all that a step was told, but for where things lie."""
    names = (field.name for field in dataclasses.fields(step))  # type: ignore[arg-type]
    told = {name: getattr(step, name) for name in names}
    places = (Path, TextFolder)
    return fingerprint.of_settings(
        {name: value for name, value in told.items() if not isinstance(value, places)}
    )


def shard_blocks(before: TextFolder, shard: Shard) -> tuple[Iterator[Block], int]:
    """A shard of train, and how many pairs it has."""
    total = before.count("train")
    span = shard.span(total)
    return before.blocks("train", span), span.length(total)
