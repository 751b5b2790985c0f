"""Runs a stage on the training text of a corpus, whole or in shards.

A stage is a `Step`: it processes each shard of the training text into a folder of its own, then
gathers the shards, in the order of their numbers, into its output. Without shards, the training
text is one shard.
"""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from filelock import Timeout

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.corpus.steps.ledger import read_ledger
from bleuprint.corpus.steps.shard import Shard
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder
from bleuprint.runtime.locks import FileLock
from bleuprint.text.parallel import Block, TextFolder

_SETTINGS = "settings"


@dataclass(frozen=True)
class Step(ABC):
    """One stage on one corpus: it reads the folder `before`, and writes `output` and `ledger`."""

    stage: ClassVar[str]
    corpus: str
    before: TextFolder
    output: Path
    ledger: Path

    @abstractmethod
    def process_shard(self, shard: Shard, part: Path, workers: int) -> None:
        """Process a shard of train into the folder `part`."""

    @abstractmethod
    def gather(self, parts: Sequence[Path], workers: int) -> None:
        """Write the stage's output from the shards in `parts` and the held-out sets."""


def run_step(step: Step, shards: Path, work: Shard | int | None, workers: int) -> None:
    """Process one shard, gather a number of shards, or do both for the whole text (None).

    Shards are kept in folders below `shards`. Raises UserError if another process does the same.
    """
    shards.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(shards / f"{work if isinstance(work, Shard) else 'all'}.lock", timeout=0):
            _run_step(step, shards, work, workers)
    except Timeout:
        raise UserError(f"{shards}: another process is writing these shards") from None


def run_and_print(step: Step, shards: Path, work: Shard | int | None, workers: int) -> None:
    """Run a step, and print what each rule did to train unless `work` is one shard."""
    run_step(step, shards, work, workers)
    if not isinstance(work, Shard):
        train = read_ledger(step.ledger)["train"]
        print(f"{step.stage} {step.corpus}: {train.summary}")


def _run_step(step: Step, shards: Path, work: Shard | int | None, workers: int) -> None:
    if isinstance(work, Shard):
        _process_shard(step, work, shards / str(work), workers)
        return
    parts = [shards / str(shard) for shard in Shard.all(work or 1)]
    try:
        if work is None:
            _process_shard(step, Shard(), parts[0], workers)
        for part in parts:
            if not part.is_dir():
                raise UserError(f"{part}: no such shard to gather")
            if (part / _SETTINGS).read_text() != settings_sha256(step):
                raise UserError(
                    f"{part}: this shard was made under other settings; remove {part.parent}"
                )
        step.gather(parts, workers)
    finally:
        if work is None:
            shutil.rmtree(parts[0], ignore_errors=True)


def _process_shard(step: Step, shard: Shard, folder: Path, workers: int) -> None:
    with whole_folder(folder) as part:
        step.process_shard(shard, part, workers)
        (part / _SETTINGS).write_text(settings_sha256(step))


def settings_sha256(step: Step) -> str:
    """The fingerprint of the settings of a step: its fields except paths."""
    values = {field.name: getattr(step, field.name) for field in fields(step)}
    kept = {n: value for n, value in values.items() if not isinstance(value, Path | TextFolder)}
    return fingerprint.of_settings(kept)


def shard_blocks(before: TextFolder, shard: Shard) -> tuple[Iterator[Block], int]:
    """The blocks of a shard of train, and its number of pairs."""
    total = before.count("train")
    start, stop = shard.bounds(total)
    return before.blocks("train", start, stop), (total if stop is None else stop) - start


def step_files(
    name: str, corpus: Corpus, before: str, after: str, root: Path, stage: str = ""
) -> tuple[str, TextFolder, Path, Path]:
    """The corpus of a step, its input, its output and its ledger; `stage` is `after` if empty."""
    text = TextFolder(paths.folder(name, before, root), corpus.source, corpus.target)
    return name, text, paths.folder(name, after, root), paths.ledger(name, stage or after, root)
