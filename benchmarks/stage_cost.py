"""Measures what a command and its descendants take: CPU seconds, memory and room on the disk.

CPU seconds are those of the operating system, and hold on a machine that others use as well, which
time on the clock does not. Memory is the proportional set size (PSS): a page that n processes share
counts as 1/n for each. It is sampled, so that a shorter peak than SAMPLE_SECONDS may be missed.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import psutil

SAMPLE_SECONDS = 0.5
# The disk is sampled once in so many samples of the memory.
SAMPLES_PER_DISK_SAMPLE = 4


@dataclass(frozen=True)
class StageCost:
    """What a command and its descendants took.

    Attributes:
        seconds: Time on the clock.
        cpu_seconds: CPU seconds of all processes together.
        main_cpu_seconds: CPU seconds of the first process alone: work that is not shared out.
        memory_bytes: The peak of the summed proportional set sizes of all processes.
        processes: The largest number of processes at one time.
        disk_bytes: By how much the files have grown at the end.
        peak_disk_bytes: The most by which they had grown at any time.
    """

    seconds: float
    cpu_seconds: float
    main_cpu_seconds: float
    memory_bytes: int
    processes: int
    disk_bytes: int
    peak_disk_bytes: int


def measure(command: list[str], folder: Path, environment: dict[str, str], data: Path) -> StageCost:
    """Run a command to its end, and return what it took. If it fails, this process exits.

    Args:
        command: The command.
        folder: The folder in which it runs.
        environment: Its environment variables.
        data: The folder whose files it writes.
    """
    bytes_before = stored_bytes(data)
    start = time.monotonic()
    process = Popen(command, cwd=folder, env=environment)
    watcher = Watcher(process, lambda: stored_bytes(data))
    watcher.start()
    # The usage that wait4 returns covers the process and all descendants that it has waited for.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    watcher.join()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}")
    bytes_after = stored_bytes(data)
    return StageCost(
        seconds=round(seconds, 2),
        cpu_seconds=round(usage.ru_utime + usage.ru_stime, 2),
        main_cpu_seconds=round(watcher.main_cpu_seconds, 2),
        memory_bytes=watcher.memory_bytes,
        processes=watcher.processes,
        disk_bytes=bytes_after - bytes_before,
        peak_disk_bytes=max(watcher.disk_bytes, bytes_after) - bytes_before,
    )


class Watcher(threading.Thread):
    """Watches the processes of a command until it ends.

    Attributes:
        main_cpu_seconds: The CPU seconds of the first process so far.
        memory_bytes: The peak of the summed memory so far.
        processes: The largest number of processes so far.
        disk_bytes: The largest size of the files so far.
    """

    def __init__(self, process: "Popen[bytes]", disk_usage: Callable[[], int]) -> None:
        """Prepare to watch a process.

        Args:
            process: The first process of the command.
            disk_usage: Returns the size of the files that the command writes, in bytes.
        """
        super().__init__()
        self._process = process
        self._disk_usage = disk_usage
        self.main_cpu_seconds = 0.0
        self.memory_bytes = 0
        self.processes = 0
        self.disk_bytes = 0

    def run(self) -> None:
        """Take samples until the process ends."""
        samples = 0
        # wait4 in the main thread sets `returncode`.
        while self._process.returncode is None:
            self._sample_processes()
            if samples % SAMPLES_PER_DISK_SAMPLE == 0:
                self.disk_bytes = max(self.disk_bytes, self._disk_usage())
            samples += 1
            time.sleep(SAMPLE_SECONDS)

    def _sample_processes(self) -> None:
        """Take a sample of the memory and CPU time of all processes of the command."""
        try:
            root = psutil.Process(self._process.pid)
            family = [root, *root.children(recursive=True)]
            times = root.cpu_times()
        except psutil.Error:
            return  # it has ended
        self.main_cpu_seconds = times.user + times.system
        self.processes = max(self.processes, len(family))
        total = 0
        for member in family:
            try:
                total += member.memory_full_info().pss
            except psutil.Error:
                continue  # it has ended since the list was made
        self.memory_bytes = max(self.memory_bytes, total)


def stored_bytes(folder: Path) -> int:
    """Return the bytes that the files of a folder occupy; hard links to one file count once.

    Args:
        folder: The folder, which may not exist.
    """
    size_of_inode: dict[int, int] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                status = Path(parent, name).lstat()
            except FileNotFoundError:
                continue  # it was removed since the list was made
            # The unit of st_blocks is always 512 bytes.
            size_of_inode[status.st_ino] = status.st_blocks * 512
    return sum(size_of_inode.values())
