"""Running a stage's step whole or in shards."""

from pathlib import Path

from bleuprint.shard import Shard
from bleuprint.step import Step, run_step


def run_sharded(step: Step, folder: Path, shards: int = 1, workers: int = 1) -> None:
    """All of it at once for one shard; else shard by shard, last one first, then gathered."""
    if shards == 1:
        run_step(step, folder, None, workers)
        return
    for shard in reversed(Shard.all(shards)):
        run_step(step, folder, shard, workers)
    run_step(step, folder, shards, workers)
