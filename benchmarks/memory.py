"""The resident memory of a command and its processes over time, as a picture and a JSON file.

    python benchmarks/memory.py reports/memory -- python stages/train.py small multi30k-de-en 1

Writes memory.svg and memory.json. Memory is the sum of the resident sets of the command and of its
descendants, read every second. Where the command's log names updates (a training), a sample counts
the updates done by then, and the memory after the first 200 is compared with that at the end; of
other commands, that after a tenth of the time.
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

WARM_UP = 200  # updates
_UPDATES = re.compile(r": ([\d,]+) updates,|^update ([\d,]+):", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """Memory in bytes after `seconds`; `updates`: those of the log's last line that has them."""

    seconds: float
    updates: int
    memory: int


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="path of the outputs without suffix")
    parser.add_argument("command", nargs="+", help="after --")
    given = parser.parse_args()
    status, samples = measure(given.command)
    warm, last = warmed_up(samples), samples[-1]
    facts = {
        "command": given.command,
        "status": status,
        "after_warm_up": asdict(warm),
        "at_the_end": asdict(last),
        "peak": max(sample.memory for sample in samples),
        "samples": [asdict(sample) for sample in samples[:: max(1, len(samples) // 200)]],
    }
    given.out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
    draw(samples, given.out.with_suffix(".svg"))
    print(
        f"{warm.memory / 1e9:.2f} GB after {warm.seconds:.0f} s ({warm.updates:,} updates), "
        f"{last.memory / 1e9:.2f} GB after {last.seconds:.0f} s ({last.updates:,} updates): "
        f"{last.memory / warm.memory - 1:+.1%}; peak {facts['peak'] / 1e9:.2f} GB"
    )
    sys.exit(status)


def measure(command: list[str]) -> tuple[int, list[Sample]]:
    """Run the command; returns its exit status and its samples, the last while it still ran."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    updates = [0]
    reader = threading.Thread(target=follow, args=(process.stderr, updates))
    reader.start()
    began, samples = time.monotonic(), []
    while process.poll() is None:
        if memory := resident(process.pid):
            samples.append(Sample(time.monotonic() - began, updates[-1], memory))
        time.sleep(1)
    reader.join()
    return process.returncode, samples


def follow(log: IO[str], updates: list[int]) -> None:
    """Repeat a log on stderr and append the updates that it names."""
    for line in log:
        print(line, end="", file=sys.stderr, flush=True)
        if found := _UPDATES.search(line):
            updates.append(int((found[1] or found[2]).replace(",", "")))


def resident(pid: int) -> int:
    """The resident memory of a process and its descendants in bytes; 0 once it has ended."""
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
            continue
    return total


def warmed_up(samples: list[Sample]) -> Sample:
    after = [sample for sample in samples if sample.updates >= WARM_UP]
    return after[0] if after else samples[len(samples) // 10]


def draw(samples: list[Sample], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    by_update = samples[-1].updates > 0
    axes.plot(
        [sample.updates if by_update else sample.seconds for sample in samples],
        [sample.memory / 1e9 for sample in samples],
    )
    axes.set_xlabel("updates" if by_update else "seconds")
    axes.set_ylabel("resident memory, GB")
    axes.set_ylim(bottom=0)
    figure.savefig(path)


if __name__ == "__main__":
    main()
