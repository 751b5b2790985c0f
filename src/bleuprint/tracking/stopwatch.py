"""Measure what a training takes: its duration, tokens per second, waiting times and cost.

`Stopwatch` is called by training_log.py at each event of the trainer. The durations are saved next
to the checkpoints, so that a resumed training continues them; they are not part of its state.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bleuprint.runtime.files import write_json
from bleuprint.runtime.schema import read_record
from bleuprint.tracking.hardware import paper_flops, peak_flops
from bleuprint.tracking.timings import TrainingCost
from bleuprint.training.train_state import TrainState

DURATIONS = "durations.json"
# The smallest duration that is divided by, so that an empty training has a rate.
_MIN_SECONDS = 1e-9
# What is recorded of each machine. A cost is computed only if the first three are always equal.
_MACHINE_FACTS = ("device", "processes", "threads", "commit", "versions")
_COST_FACTS = ("device", "processes", "threads")


@dataclass(frozen=True)
class _Durations:
    """The content of durations.json.

    Attributes:
        seconds: The duration of the training until the last checkpoint.
        peak_memory: The peak memory of a process until the last checkpoint, in bytes.
        machines: The machines on which the training has run, as `describe_machine` returns them.
    """

    seconds: float = 0.0
    peak_memory: int = 0
    machines: list[dict[str, Any]] = field(default_factory=list)


class _EndedUpdate(NamedTuple):
    """The durations of an update that has ended.

    Attributes:
        seconds: The duration of the update, waiting included.
        waited_seconds: How long the trainer waited for the data of the update.
    """

    seconds: float
    waited_seconds: float


class Stopwatch:
    """Measures a training across restarts.

    The figures of an update, such as its tokens, may come later than its end, since a GPU works
    ahead. So ended updates wait in a queue until they are counted.

    Attributes:
        seconds: The duration of the training, until the last checkpoint.
        peak_memory: The peak memory of a process until the last checkpoint, in bytes.
        machines: The machines on which the training has run, as `describe_machine` returns them.
    """

    def __init__(self, folder: Path, machine: dict[str, Any], memory: Callable[[], int]) -> None:
        """Read the durations up to the last checkpoint, if there is one.

        Args:
            folder: The work folder of the training.
            machine: This machine, as `describe_machine` returns it.
            memory: Returns the peak memory of this process so far, in bytes.
        """
        self._path = folder / DURATIONS
        self._machine = machine
        self._memory = memory
        saved = _Durations()
        if self._path.exists():
            remedy = "remove it: the time measured until now is then not counted"
            saved = read_record(_Durations, self._path, remedy)
        self.seconds = saved.seconds
        self.peak_memory = saved.peak_memory
        self.machines = saved.machines
        self._seconds_before_start = saved.seconds
        self._tokens = 0
        # Sums over the updates since the last call of `point`.
        self._interval_tokens = 0
        self._interval_seconds = 0.0
        self._interval_waited_seconds = 0.0
        # How long the data of the present update was waited for; None before its data came.
        self._waited_seconds: float | None = None
        self._ended_updates = deque[_EndedUpdate]()
        # The start of this process's training, and of the present update.
        self._start_time = time.monotonic()
        self._update_start_time = self._start_time

    def start(self) -> None:
        """Begin to measure."""
        self._start_time = time.monotonic()
        self._update_start_time = self._start_time

    def waited(self, seconds: float) -> None:
        """Begin an update whose data has come. The update before has ended before the wait.

        Args:
            seconds: How long the data was waited for, until now.
        """
        if self._waited_seconds is not None:
            self._end_update(time.monotonic() - seconds)
        self._waited_seconds = seconds

    def _end_update(self, end_time: float) -> None:
        """Put the present update into the queue of ended updates.

        Args:
            end_time: When it ended, by the monotonic clock.
        """
        seconds = end_time - self._update_start_time
        self._ended_updates.append(_EndedUpdate(seconds, self._waited_seconds or 0.0))
        self._update_start_time = end_time
        self._waited_seconds = None

    def update(self, tokens: int) -> float:
        """Count an update: the first in the queue, or the present one if the queue is empty.

        Args:
            tokens: The number of target tokens of the update.

        Returns:
            The target tokens per second since the start of this process's training.
        """
        if self._machine not in self.machines:
            self.machines.append(self._machine)
        now = time.monotonic()
        if not self._ended_updates:
            self._end_update(now)
        ended_update = self._ended_updates.popleft()
        self._interval_seconds += ended_update.seconds
        self._interval_waited_seconds += ended_update.waited_seconds
        self._interval_tokens += tokens
        self._tokens += tokens
        return self._tokens / max(now - self._start_time, _MIN_SECONDS)

    def point(self) -> dict[str, float]:
        """Return rates of the updates since the last call, without validation and checkpoints.

        Returns:
            `tokens_per_second`: the number of target tokens per second.
            `waiting`: the share of the time in which the trainer waited for data, from 0 to 1. A
            GPU that works ahead of the trainer was idle for at most this share.
        """
        seconds = max(self._interval_seconds, _MIN_SECONDS)
        rates = {
            "tokens_per_second": self._interval_tokens / seconds,
            "waiting": self._interval_waited_seconds / seconds,
        }
        self._interval_tokens = 0
        self._interval_seconds = 0.0
        self._interval_waited_seconds = 0.0
        return rates

    def pause(self) -> None:
        """Exclude the time since the last update, such as a validation, from the rates."""
        self._update_start_time = time.monotonic()
        # Updates that were skipped for lack of memory have ended, but are never counted.
        self._ended_updates.clear()

    def save(self) -> None:
        """Write durations.json, before a checkpoint is written."""
        self.seconds = self._seconds_before_start + time.monotonic() - self._start_time
        self.peak_memory = max(self.peak_memory, self._memory())
        content = {
            "seconds": self.seconds,
            "peak_memory": self.peak_memory,
            "machines": self.machines,
        }
        write_json(self._path, content)

    def cost(self, state: TrainState, precision: str) -> TrainingCost:
        """Return the duration, the hardware and the cost of the training.

        Args:
            state: The state of the training, which counts its tokens and operations.
            precision: The name of the floating-point format of the training.
        """
        seconds = max(self.seconds, _MIN_SECONDS)
        machine = self._joined_machines()
        costs = self._costs_by_time(state.flops, seconds, precision)
        return TrainingCost(
            seconds=round(self.seconds, 3),
            tokens_per_second=round(state.target_tokens / seconds, 1),
            peak_memory=self.peak_memory or None,
            **machine,
            **costs,
        )

    def _values_of_machines(self, fact: str) -> list[Any]:
        """Return the different values that a fact, such as `device`, has on the machines."""
        values = [machine[fact] for machine in self.machines]
        return list(dict.fromkeys(values))

    def _joined_machines(self) -> dict[str, Any]:
        """Return the facts about the machines; different values are joined, such as `1 + 2`."""
        joined: dict[str, Any] = {}
        for fact in _MACHINE_FACTS:
            values = self._values_of_machines(fact)
            if len(values) == 1:
                joined[fact] = values[0]
            else:
                joined[fact] = " + ".join(str(value) for value in values)
        return joined

    def _costs_by_time(self, flops: int, seconds: float, precision: str) -> dict[str, Any]:
        """Return the figures of a training's cost that depend on its duration.

        They are computed with published rates. Rates that are measured on the device would be as
        noisy as the duration: they made the costs of one training, with and without other work on
        the machine, differ fivefold.

        Args:
            flops: The counted operations of the training.
            seconds: The duration of the training.
            precision: The name of the floating-point format of the training.

        Returns:
            The fields of `TrainingCost`; none if the training has run on different machines.
        """
        for fact in _COST_FACTS:
            if len(self._values_of_machines(fact)) != 1:
                return {}
        machine = self.machines[0]
        device_seconds = seconds * machine["processes"]
        sustained_flops = paper_flops(machine["device"])
        peak = peak_flops(machine["device"], precision)
        return {
            "devices": machine["processes"],
            "sustained_flops": sustained_flops,
            "flops_by_time": None if sustained_flops is None else device_seconds * sustained_flops,
            "peak_flops": peak,
            "mfu": None if peak is None else round(flops / (device_seconds * peak), 4),
        }
