"""What a training took and cost: durations, tokens a second, hardware, FLOPs by time.

The durations are saved beside the checkpoints; they are no part of the training's state.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bleuprint.runtime.files import write_json
from bleuprint.runtime.schema import read_record
from bleuprint.tracking.hardware import paper_flops, peak_flops
from bleuprint.tracking.timings import TrainingCost
from bleuprint.training.train_state import TrainState

DURATIONS = "durations.json"


@dataclass(frozen=True)
class _Durations:
    """The content of durations.json; the fields are those of Stopwatch."""

    seconds: float = 0.0
    peak_memory: int = 0
    machines: list[dict[str, Any]] = field(default_factory=list)


class Stopwatch:
    """Measures a training across restarts.

    `seconds`: the total time. `peak_memory`: the most that a process of it took until a checkpoint,
    in bytes. `machines`: those it ran on.
    """

    def __init__(self, folder: Path, machine: dict[str, Any], memory: Callable[[], int]) -> None:
        """`memory`: the peak memory of this process so far."""
        self._path, self._machine, self._memory = folder / DURATIONS, machine, memory
        saved = _Durations()
        if self._path.exists():
            remedy = "remove it: the time measured until now is then not counted"
            saved = read_record(_Durations, self._path, remedy)
        self.seconds = self._before = saved.seconds
        self.peak_memory = saved.peak_memory
        self.machines = saved.machines
        self._tokens, self._interval_tokens = 0, 0
        self._interval_seconds = self._interval_waited = 0.0
        # of the update under way the wait, of those ended and not counted the time and the wait
        self._wait: float | None = None
        self._ended = deque[tuple[float, float]]()
        self._began = self._mark = time.monotonic()

    def start(self) -> None:
        """Begin to measure."""
        self._began = self._mark = time.monotonic()

    def waited(self, seconds: float) -> None:
        """An update begins, whose data was waited for until now: the one before has ended."""
        if self._wait is not None:
            self._end(time.monotonic() - seconds)
        self._wait = seconds

    def _end(self, now: float) -> None:
        self._ended.append((now - self._mark, self._wait or 0.0))
        self._mark, self._wait = now, None

    def update(self, tokens: int) -> float:
        """Count an update; returns the target tokens per second since the start.

        It is the one under way, or, where figures come late, the first that has ended.
        """
        if self._machine not in self.machines:
            self.machines.append(self._machine)
        now = time.monotonic()
        if not self._ended:
            self._end(now)
        seconds, waited = self._ended.popleft()
        self._interval_seconds += seconds
        self._interval_waited += waited
        self._interval_tokens += tokens
        self._tokens += tokens
        return self._tokens / max(now - self._began, 1e-9)

    def point(self) -> dict[str, float]:
        """Of the updates since the last call, without validation and checkpoints in between.

        The target tokens per second, and `waiting`, the share of the time in which the trainer
        waited for data, from 0 to 1; a device that works ahead of it was idle for at most that.
        """
        seconds = max(self._interval_seconds, 1e-9)
        rate, waiting = self._interval_tokens / seconds, self._interval_waited / seconds
        self._interval_tokens, self._interval_seconds, self._interval_waited = 0, 0.0, 0.0
        return {"tokens_per_second": rate, "waiting": waiting}

    def pause(self) -> None:
        """Exclude the time since the last update from what `point` returns."""
        self._mark = time.monotonic()
        self._ended.clear()  # updates that were skipped

    def save(self) -> None:
        """Write durations.json, before a checkpoint is written."""
        self.seconds = self._before + time.monotonic() - self._began
        self.peak_memory = max(self.peak_memory, self._memory())
        names = "seconds", "peak_memory", "machines"
        write_json(self._path, {name: getattr(self, name) for name in names})

    def cost(self, state: TrainState, precision: str) -> TrainingCost:
        """The durations and the hardware of a training; of a resumed one, all its machines.

        The cost by time and the MFU are by published rates, and missing for unlike machines. Rates
        measured on the device would be as noisy as the time: with them, the costs of one training
        alone and beside other work differed fivefold.
        """
        seconds, by_time = max(self.seconds, 1e-9), dict[str, Any]()
        names = "device", "processes", "threads", "commit", "versions"
        values = {name: list(dict.fromkeys(each[name] for each in self.machines)) for name in names}
        joined: dict[str, Any] = {
            name: of[0] if len(of) == 1 else " + ".join(map(str, of)) for name, of in values.items()
        }
        if all(len(values[name]) == 1 for name in names[:3]):
            device, devices = joined["device"], joined["processes"]
            sustained, peak = paper_flops(device), peak_flops(device, precision)
            by_time = {
                "devices": devices,
                "sustained_flops": sustained,
                "flops_by_time": sustained and seconds * devices * sustained,
                "peak_flops": peak,
                "mfu": peak and round(state.flops / (seconds * devices * peak), 4),
            }
        return TrainingCost(
            seconds=round(self.seconds, 3),
            tokens_per_second=round(state.target_tokens / seconds, 1),
            peak_memory=self.peak_memory or None,
            **joined,
            **by_time,
        )
