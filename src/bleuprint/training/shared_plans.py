"""The plan of an epoch, which the training processes of one machine share.

To plan an epoch takes time and, for a while, about 40 bytes of memory a sentence pair. So the first
process of a machine that needs a plan writes it to a file, and all processes map this file into
memory: 4 bytes a pair, once for the machine. The file is removed as soon as all of them have it
open; the operating system keeps its content until they have ended. So a kill leaves a file behind
only if it comes while processes still wait for the plan, and the next start removes that.

The plan does not depend on the process that computes it. A process that does not find it computes
it again, so that nothing but memory and time depends on these files.
"""

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bleuprint.config.system import Train
from bleuprint.dataset.batching import Lengths, plan_epoch
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.epoch_plan import EpochPlan
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.locks import FileLock

# A function that returns the batches of an epoch, which is given by its number, from 0.
PlanOfEpoch = Callable[[int], EpochPlan]

# The folder of the plans in the work folder of a training; each machine has a folder in it.
_PLANS_FOLDER = "plans"
# The name of the lock in the folder of a machine.
_LOCK_FILE = "lock"
# The bits of the random number that names a start of a training; a float64 represents it exactly.
_LAUNCH_BITS = 48


@dataclass(frozen=True)
class EpochPlanner:
    """Plans the epochs of a training in the memory of this process.

    Attributes:
        corpus: The corpus.
        settings: The settings of the training.
        seed: The seed of the training.
    """

    corpus: BinaryCorpus
    settings: Train
    seed: int

    def __call__(self, epoch: int) -> EpochPlan:
        """Divide the training set into the batches of an epoch.

        Args:
            epoch: The number of the epoch, from 0.
        """
        return plan_epoch(
            self._lengths(self.corpus.source),
            self._lengths(self.corpus.target),
            self.settings.max_tokens,
            self.seed,
            epoch,
            self.settings.sentences_per_update,
        )

    def _lengths(self, language: str) -> Lengths:
        """Return the lengths of the training sentences in a language in tokens, (pairs,).

        As 32-bit integers, they take half the memory of numpy's default integers.

        Args:
            language: The code of the language.
        """
        sentences = self.corpus.side("train", language)
        lengths = np.empty(len(sentences), np.int32)
        start = 0
        for part in sentences.length_parts():
            lengths[start : start + len(part)] = part
            start += len(part)
        return lengths


class SharedPlans:
    """The plans of a training's epochs, in files that the processes of one machine share."""

    def __init__(self, planner: PlanOfEpoch, folder: Path, launch: str, processes: int) -> None:
        """Prepare to read plans from a folder, and to write those that it lacks.

        Args:
            planner: Computes the plan of an epoch.
            folder: The folder of the plans on this machine. All processes give the same one.
            launch: A name for this start of the training, the same in all processes. The names of
                files begin with it, so that files of an earlier start are recognized.
            processes: The number of training processes on this machine.
        """
        self._planner = planner
        self._folder = folder
        self._launch = launch
        self._processes = processes

    def __call__(self, epoch: int) -> EpochPlan:
        """Return the plan of an epoch, which another process of this machine may have computed.

        Each process asks for an epoch once.

        Args:
            epoch: The number of the epoch, from 0.

        Raises:
            UserError: The file system has no locks.
            OSError: The operating system reports an error, such as a full disk.
        """
        with self._locked():
            earlier_readers = self._readers_so_far(epoch)
            path = self._path(epoch, earlier_readers)
            if earlier_readers == 0:
                self._remove_files_of_earlier_starts()
                self._write(self._planner(epoch), path)
            plan = EpochPlan.read(path)
            readers = earlier_readers + 1
            if readers == self._processes:
                # All have mapped the file, whose content stays until they unmap it.
                path.unlink()
            else:
                path.replace(self._path(epoch, readers))
        return plan

    def close(self) -> None:
        """Remove plans that not all processes have read, when the training of this process ends."""
        with suppress(OSError), self._locked():
            for path in self._folder.glob(f"{self._launch}-*"):
                path.unlink()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep the other processes of this machine out of the folder during a `with` block."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self._folder / _LOCK_FILE):
            yield

    def _readers_so_far(self, epoch: int) -> int:
        """Return how many processes have read the plan of an epoch; 0 if it does not exist yet.

        The name of the file tells. There is no name for all processes, since the last one removes
        the file.
        """
        for readers in range(1, self._processes):
            if self._path(epoch, readers).exists():
                return readers
        return 0

    def _path(self, epoch: int, readers: int) -> Path:
        """Return the file of the plan of an epoch, such as `5f1c-0.2` after two processes read it.

        Each process that has read the plan renames the file, so that its name counts the readers.

        Args:
            epoch: The number of the epoch, from 0.
            readers: How many processes have read the plan; 0 while it is written.
        """
        return self._folder / f"{self._launch}-{epoch}.{readers}"

    def _write(self, plan: EpochPlan, path: Path) -> None:
        """Write a plan to a file, which is removed again if that fails.

        Args:
            plan: The plan.
            path: The file.
        """
        try:
            plan.write(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _remove_files_of_earlier_starts(self) -> None:
        """Remove the files that a killed start of the training has left on this machine."""
        for path in self._folder.iterdir():
            # NFS renames a removed file that is still mapped into memory, to a name such as
            # `.nfs0000a1`, and refuses to remove it under that name. It vanishes when it is closed.
            is_removed_already = path.name.startswith(".")
            is_of_this_start = path.name.startswith(f"{self._launch}-")
            if path.name != _LOCK_FILE and not is_of_this_start and not is_removed_already:
                path.unlink()


@contextmanager
def epoch_plans(planner: PlanOfEpoch, work_folder: Path, group: Group) -> Iterator[PlanOfEpoch]:
    """Return how the processes of a training get the plans of epochs, for a `with` block.

    All processes of the training must call this at the same point. On a machine with one process,
    that process keeps the plan in its memory.

    Args:
        planner: Computes the plan of an epoch.
        work_folder: The folder of the training on the disk.
        group: The processes of the training.
    """
    launch = f"{int(group.broadcast(secrets.randbits(_LAUNCH_BITS))):012x}"
    if group.local_size == 1:
        yield planner
        return
    # Machines that share a file system do not share files: to remove a file that another machine
    # has mapped would end its processes (NFS).
    folder = work_folder / _PLANS_FOLDER / socket.gethostname()
    plans = SharedPlans(planner, folder, launch, group.local_size)
    try:
        yield plans
    finally:
        plans.close()
