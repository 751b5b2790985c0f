"""Measures the memory that the plan of an epoch takes in the training processes of one machine.

    python benchmarks/planned_epochs.py --pairs 1000000 --processes 1 2 4

Each process plans an epoch as a training does, and reads all of its batches. The lengths of the
pairs are drawn as in limits.py. What is printed, in bytes a pair, is the growth of each process's
proportional set size (PSS, in which a page that n processes share counts as 1/n) and of its own
pages (USS), in the end: of what it frees, it keeps most for later, as a training does.
"""

import argparse
import json
import os
import secrets
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import psutil

from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.epoch_plan import EpochPlan
from bleuprint.training.shared_plans import SharedPlans
from limits import BATCH_TOKENS, random_lengths

SEED = 1
# glibc's thresholds as a training sets them (bleuprint.runtime.reexec): it keeps freed memory.
THRESHOLDS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


class Planner:
    """Plans epochs of pairs whose lengths are in two files, as those of a corpus are."""

    def __init__(self, folder: Path) -> None:
        """Remember where the lengths are.

        Args:
            folder: The folder of the files.
        """
        self._folder = folder

    def __call__(self, epoch: int) -> EpochPlan:
        """Plan an epoch.

        Args:
            epoch: The number of the epoch, from 0.
        """
        source = self._lengths("source")
        target = self._lengths("target")
        return plan_epoch(source, target, BATCH_TOKENS, SEED, epoch)

    def _lengths(self, side: str) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
        """Return the lengths of a side's sentences, which their ends give, as in a corpus."""
        ends = np.asarray(np.load(self._folder / f"{side}.npy", mmap_mode="r"))
        return np.diff(ends, prepend=0).astype(np.int32)


def main() -> None:
    """Measure each number of processes, and print the results as JSON, one line each."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    arguments = parser.parse_args()
    for name in THRESHOLDS:
        os.environ[name] = str(4 << 30)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, target = random_lengths(arguments.pairs)
        np.save(folder / "source.npy", source.cumsum())
        np.save(folder / "target.npy", target.cumsum())
        for processes in arguments.processes:
            print(json.dumps(measure(folder, arguments.pairs, processes)), flush=True)


def measure(folder: Path, pairs: int, processes: int) -> dict[str, object]:
    """Let processes plan the same epoch, and return what it took.

    Args:
        folder: The folder of the lengths.
        pairs: The number of sentence pairs.
        processes: The number of processes.
    """
    context = get_context("spawn")
    barrier = context.Barrier(processes)
    results: Queue[dict[str, float]] = context.Queue()
    launch = secrets.token_hex(6)
    started = []
    for _ in range(processes):
        process = context.Process(
            target=plan_and_measure, args=(folder, launch, processes, pairs, barrier, results)
        )
        process.start()
        started.append(process)
    of_processes = [results.get() for _ in started]
    for process in started:
        process.join()
    of_processes.sort(key=lambda result: -result["uss"])
    return {"pairs": pairs, "processes": processes, "bytes_per_pair": of_processes}


def plan_and_measure(
    folder: Path,
    launch: str,
    processes: int,
    pairs: int,
    barrier: Barrier,
    results: "Queue[dict[str, float]]",
) -> None:
    """Get the plan of an epoch, read all batches, and send the growth of this process's memory.

    Args:
        folder: The folder of the lengths; the plans get a folder in it.
        launch: A name for this start.
        processes: The number of processes.
        pairs: The number of sentence pairs.
        barrier: Where the processes wait for each other, so that all are measured at one time.
        results: The queue of the results.
    """
    planner = Planner(folder)
    planner_or_shared = (
        planner if processes == 1 else SharedPlans(planner, folder / "plans", launch, processes)
    )
    barrier.wait()
    before = psutil.Process().memory_full_info()
    start = time.process_time()
    plan = planner_or_shared(0)
    pairs_read = sum(len(rows) for rows in plan)
    assert pairs_read == pairs
    seconds = time.process_time() - start
    barrier.wait()
    after = psutil.Process().memory_full_info()
    barrier.wait()
    results.put(
        {
            "pss": round((after.pss - before.pss) / pairs, 1),
            "uss": round((after.uss - before.uss) / pairs, 1),
            "cpu_seconds": round(seconds, 2),
        }
    )


if __name__ == "__main__":
    main()
