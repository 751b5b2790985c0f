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

from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.schema import read_record
from bleuprint.tracking.hardware import paper_flops, peak_flops
from bleuprint.tracking.timings import TrainingCost
from bleuprint.training.train_state import TrainState

DURATIONS = "durations.json"
# The smallest duration that is divided by, so that an empty training has a rate.
_MIN_SECONDS = 1e-9
# The keys of a machine's description.
_MACHINE_KEYS = ("device", "processes", "threads", "commit", "versions")
# A cost is computed only if the machines of a training have equal values under these keys.
_COST_KEYS = ("device", "processes", "threads")


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
        """Start with the durations of earlier runs of the training, if it was interrupted before.

        Args:
            folder: The work folder of the training, in which the durations are saved.
            machine: This machine, as `describe_machine` returns it.
            memory: Returns the peak memory of this process so far, in bytes.
        """
        self._path = folder / DURATIONS
        self._machine = machine
        self._memory = memory
        saved = self._read_saved_durations()
        self.seconds = saved.seconds
        self.peak_memory = saved.peak_memory
        self.machines = saved.machines
        self._seconds_before_start = saved.seconds
        self._tokens = 0
        # Sums over the updates since the last call of `take_rates`.
        self._interval_tokens = 0
        self._interval_seconds = 0.0
        self._interval_waited_seconds = 0.0
        # How long the trainer waited for the data of the present update. None until the data came.
        self._waited_seconds: float | None = None
        # The updates that have ended, but whose tokens are not known yet, oldest first.
        self._ended_updates = deque[_EndedUpdate]()
        # When the training in this process and the present update started, by the monotonic clock.
        self._start_time = time.monotonic()
        self._update_start_time = self._start_time

    def _read_saved_durations(self) -> _Durations:
        """Read the durations that were saved with the last checkpoint; zeros if there is none."""
        if not self._path.exists():
            return _Durations()
        remedy = "Remove it. The time measured until now is then not counted"
        return read_record(_Durations, self._path, remedy)

    def start(self) -> None:
        """Begin to measure."""
        self._start_time = time.monotonic()
        self._update_start_time = self._start_time

    def waited(self, seconds: float) -> None:
        """Note that the data of the next update has come, and how long the trainer waited for it.

        This also ends the measurement of the previous update: it ended when the wait began.

        Args:
            seconds: How long the trainer has waited, until now.
        """
        if self._waited_seconds is not None:
            wait_start_time = time.monotonic() - seconds
            self._end_update(wait_start_time)
        self._waited_seconds = seconds

    def _end_update(self, end_time: float) -> None:
        """End the measurement of the present update, and begin the measurement of the next one.

        The duration is kept in a queue until `count_update` is called, when the number of tokens of
        the update is known.

        Args:
            end_time: When the update ended, by the monotonic clock, in seconds.
        """
        seconds = end_time - self._update_start_time
        self._ended_updates.append(_EndedUpdate(seconds, self._waited_seconds or 0.0))
        self._update_start_time = end_time
        self._waited_seconds = None

    def count_update(self, tokens: int) -> float:
        """Add the tokens and the duration of an update to the sums from which rates are computed.

        The trainer calls this once for each update, in their order. It may do so when later updates
        have begun, because a GPU computes while the trainer goes on. So the call is about the
        oldest update that is not counted yet.

        Args:
            tokens: The number of target tokens of the update.

        Returns:
            The target tokens per second since this process started to train.
        """
        if self._machine not in self.machines:
            self.machines.append(self._machine)
        now = time.monotonic()
        if not self._ended_updates:
            # The call is about the present update, which ends now.
            self._end_update(now)
        oldest_update = self._ended_updates.popleft()
        self._interval_seconds += oldest_update.seconds
        self._interval_waited_seconds += oldest_update.waited_seconds
        self._interval_tokens += tokens
        self._tokens += tokens
        return self._tokens / max(now - self._start_time, _MIN_SECONDS)

    def take_rates(self) -> dict[str, float]:
        """Return the speed of the updates since the last call, and begin a new interval.

        The time of validations and of writing checkpoints does not count.

        Returns:
            `tokens_per_second`: the number of target tokens per second.
            `waiting`: the share of the time in which the trainer waited for data, from 0 to 1. A
            GPU may still have been computing, so it was idle for at most this share.
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

    def exclude_pause(self) -> None:
        """Leave the time since the last update out of the rates, such as the time of a validation.

        The trainer has counted all updates before, except updates that it skipped for lack of
        memory.
        """
        self._update_start_time = time.monotonic()
        # Skipped updates are in the queue, but are never counted.
        self._ended_updates.clear()

    def save(self) -> None:
        """Write the durations so far to a file, so that a resumed training continues them."""
        self.seconds = self._seconds_before_start + time.monotonic() - self._start_time
        self.peak_memory = max(self.peak_memory, self._memory())
        content = {
            "seconds": self.seconds,
            "peak_memory": self.peak_memory,
            "machines": self.machines,
        }
        write_json(self._path, content)

    def cost(self, state: TrainState, precision: str) -> TrainingCost:
        """Return the duration, the hardware and the cost of the training, to be recorded.

        Args:
            state: The state of the training, which counts its tokens and operations.
            precision: The floating-point format of the training, such as `bfloat16`.
        """
        seconds = max(self.seconds, _MIN_SECONDS)
        machine = self._describe_machines()
        costs = self._costs_by_time(state.flops, seconds, precision)
        return TrainingCost(
            seconds=round(self.seconds, 3),
            tokens_per_second=round(state.target_tokens / seconds, 1),
            peak_memory=self.peak_memory or None,
            **machine,
            **costs,
        )

    def _distinct_values(self, key: str) -> list[Any]:
        """Return the values under one key of all machines on which the training has run, each once.

        Args:
            key: A key of the descriptions of machines, such as `device`.
        """
        values = [machine[key] for machine in self.machines]
        return list(dict.fromkeys(values))

    def _describe_machines(self) -> dict[str, Any]:
        """Return one description for all machines on which the training has run.

        A training that was interrupted may have been resumed on another machine. If the machines
        differ in a value, the values are joined as text: first 1 process, then 2 give `1 + 2`.
        """
        description: dict[str, Any] = {}
        for key in _MACHINE_KEYS:
            values = self._distinct_values(key)
            if len(values) == 1:
                description[key] = values[0]
            else:
                description[key] = " + ".join(str(value) for value in values)
        return description

    def _costs_by_time(self, flops: int, seconds: float, precision: str) -> dict[str, Any]:
        """Return the costs of the training that are computed from its duration.

        They are products of the duration and the FLOP/s of the device. These FLOP/s are published
        figures: measured ones depend on what else the machine does, by a factor of five in one
        experiment.

        Args:
            flops: The number of operations of the training, counted from the sizes of the model.
            seconds: The duration of the training.
            precision: The floating-point format of the training, such as `bfloat16`.

        Returns:
            Fields of `TrainingCost`. A cost is None if the FLOP/s of the device are not published.
            All fields are missing if the training has run on different machines.
        """
        # Of different machines, it is not known how long each of them was used.
        for key in _COST_KEYS:
            if len(self._distinct_values(key)) != 1:
                return {}
        machine = self.machines[0]
        # Each process uses one device.
        device_seconds = seconds * machine["processes"]
        sustained_flops = paper_flops(machine["device"])
        flops_by_time = None
        if sustained_flops is not None:
            flops_by_time = device_seconds * sustained_flops
        peak = peak_flops(machine["device"], precision)
        mfu = None  # Model FLOPs utilization: the share of the peak that the training has used.
        if peak is not None:
            mfu = round(flops / (device_seconds * peak), 4)
        return {
            "devices": machine["processes"],
            "sustained_flops": sustained_flops,
            "flops_by_time": flops_by_time,
            "peak_flops": peak,
            "mfu": mfu,
        }
