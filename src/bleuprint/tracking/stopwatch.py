"""The durations of a training, saved beside its checkpoints; they are no part of its state."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bleuprint.runtime.files import read_object, write_json

DURATIONS = "durations.json"


class Stopwatch:
    """Measures a training across restarts.

    `seconds`: the total time. `peak_memory`: the most that a process of it took until a checkpoint,
    in bytes. `rates`: by update, the target tokens per second since the previous
    point of the training curve, without validation and checkpoints. `machines`: those it ran on.
    """

    def __init__(self, folder: Path, machine: dict[str, Any], memory: Callable[[], int]) -> None:
        """`memory`: the peak memory of this process so far."""
        self._path, self._machine, self._memory = folder / DURATIONS, machine, memory
        self.seconds, self.peak_memory = 0.0, 0
        self.rates: dict[int, float] = {}
        self.machines: list[dict[str, Any]] = []
        self._before, self._tokens = 0.0, 0
        self._interval_tokens, self._interval_seconds = 0, 0.0
        self._began = self._mark = time.monotonic()
        if self._path.exists():
            saved = read_object(self._path, ("seconds", "rates", "machines"))
            self.peak_memory = saved.get("peak_memory", 0)
            self.seconds = self._before = saved["seconds"]
            self.rates = {int(update): rate for update, rate in saved["rates"].items()}
            self.machines = saved["machines"]

    def start(self, update: int) -> None:
        """Start after `update`, which may precede the last one that was measured."""
        self.rates = {at: rate for at, rate in self.rates.items() if at <= update}
        self._began = self._mark = time.monotonic()

    def update(self, tokens: int) -> float:
        """Count an update; returns the target tokens per second since the start."""
        if self._machine not in self.machines:
            self.machines.append(self._machine)
        now = time.monotonic()
        self._interval_seconds += now - self._mark
        self._interval_tokens += tokens
        self._tokens += tokens
        self._mark = now
        return self._tokens / max(now - self._began, 1e-9)

    def point(self, update: int) -> float:
        """End an interval at `update`; returns its target tokens per second."""
        rate = self._interval_tokens / max(self._interval_seconds, 1e-9)
        self.rates[update] = rate
        self._interval_tokens, self._interval_seconds = 0, 0.0
        return rate

    def pause(self) -> None:
        """Exclude the time since the last update from the rates."""
        self._mark = time.monotonic()

    def save(self, update: int) -> None:
        """Write durations.json, before the checkpoint of `update` is written."""
        self.seconds = self._before + time.monotonic() - self._began
        self.peak_memory = max(self.peak_memory, self._memory())
        names = "seconds", "peak_memory", "rates", "machines"
        measured = {name: getattr(self, name) for name in names}
        write_json(self._path, {"update": update, **measured})
