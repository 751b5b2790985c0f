"""Draws the resident memory of a command and its processes over time, and writes it as JSON.

    python benchmarks/memory.py reports/memory -- python stages/train.py small multi30k-de-en 1

Writes memory.svg and memory.json. Memory is the sum of the resident sets of the command and all its
descendants, read every second. If the command's log names updates, as a training's log does, a
sample also has the number of updates done, and the memory after 200 updates is compared with the
memory at the end; for other commands, the memory after a tenth of the time is compared.
"""

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import psutil

WARM_UP_UPDATES = 200
MAX_WRITTEN_SAMPLES = 200
# Both forms in which the log of a training names the updates that are done.
_UPDATES = re.compile(r": ([\d,]+) updates,|^update ([\d,]+):", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """The memory of a command at one moment.

    Attributes:
        seconds: Time since the start.
        updates: The updates that the log has named so far; 0 if none.
        memory: Resident memory in bytes.
    """

    seconds: float
    updates: int
    memory: int


def main() -> None:
    """Run the command, write its memory, and exit with its status."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path, help="path of the outputs without suffix")
    parser.add_argument("command", nargs="+", help="after --")
    arguments = parser.parse_args()
    status, samples = sample_command(arguments.command)
    warm = sample_after_warm_up(samples)
    last = samples[-1]
    peak = max(sample.memory for sample in samples)
    step = max(1, len(samples) // MAX_WRITTEN_SAMPLES)
    facts = {
        "command": arguments.command,
        "status": status,
        "after_warm_up": asdict(warm),
        "at_the_end": asdict(last),
        "peak": peak,
        "samples": [asdict(sample) for sample in samples[::step]],
    }
    arguments.out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
    draw(samples, arguments.out.with_suffix(".svg"))
    print(
        f"{warm.memory / 1e9:.2f} GB after {warm.seconds:.0f} s ({warm.updates:,} updates), "
        f"{last.memory / 1e9:.2f} GB after {last.seconds:.0f} s ({last.updates:,} updates): "
        f"{last.memory / warm.memory - 1:+.1%}; peak {peak / 1e9:.2f} GB"
    )
    sys.exit(status)


def sample_command(command: list[str]) -> tuple[int, list[Sample]]:
    """Run a command, and sample its memory every second.

    A thread reads its log meanwhile, to know how many updates a training has done at each sample.

    Args:
        command: The command and its arguments.

    Returns:
        The exit status and the samples.
    """
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    updates = [0]
    log_reader = threading.Thread(target=follow_log, args=(process.stderr, updates))
    log_reader.start()
    start = time.monotonic()
    samples = []
    while process.poll() is None:
        memory = resident_memory(process.pid)
        has_ended = memory == 0
        if not has_ended:
            samples.append(Sample(time.monotonic() - start, updates[-1], memory))
        time.sleep(1)
    log_reader.join()
    return process.returncode, samples


def follow_log(log: IO[str], updates: list[int]) -> None:
    """Repeat each line of a log on stderr, and append the numbers of updates that it names.

    Args:
        log: The log of the command.
        updates: The numbers of updates, to which new ones are appended.
    """
    for line in log:
        print(line, end="", file=sys.stderr, flush=True)
        match = _UPDATES.search(line)
        if match:
            number = match[1] or match[2]
            updates.append(int(number.replace(",", "")))


def resident_memory(pid: int) -> int:
    """Return the resident memory of a process and its descendants in bytes; 0 once it has ended.

    Args:
        pid: The id of the process.
    """
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    total = 0
    for member in family:
        try:
            total += member.memory_info().rss
        except psutil.NoSuchProcess:
            continue  # ended since the list was made
    return total


def sample_after_warm_up(samples: list[Sample]) -> Sample:
    """Return the sample with which the memory at the end is compared.

    For a training, it is the first one after the warm-up updates; for another command, the one
    after a tenth of its time.

    Args:
        samples: All samples of a command, in order of time.
    """
    for sample in samples:
        if sample.updates >= WARM_UP_UPDATES:
            return sample
    return samples[len(samples) // 10]


def draw(samples: list[Sample], path: Path) -> None:
    """Draw memory over updates, or over time if no updates are known, as an SVG file.

    Args:
        samples: All samples of a command, in order of time.
        path: The SVG file.
    """
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    gigabytes = [sample.memory / 1e9 for sample in samples]
    if samples[-1].updates > 0:
        axes.plot([sample.updates for sample in samples], gigabytes)
        axes.set_xlabel("updates")
    else:
        axes.plot([sample.seconds for sample in samples], gigabytes)
        axes.set_xlabel("seconds")
    axes.set_ylabel("resident memory, GB")
    axes.set_ylim(bottom=0)
    figure.savefig(path)


if __name__ == "__main__":
    main()
