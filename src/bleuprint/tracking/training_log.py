"""An observer of the trainer that prints progress, metrics durations and logs to MLflow."""

import sys
from functools import partial
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.progress import Progress
from bleuprint.tracking.datasets import datasets_of
from bleuprint.tracking.hardware import describe_machine, peak_memory, text_libraries
from bleuprint.tracking.runs import RunDescription
from bleuprint.tracking.stopwatch import Stopwatch
from bleuprint.tracking.tracker import Tracker
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.job import Job
from bleuprint.training.observer import Observer, Status
from bleuprint.training.train_state import TrainState
from bleuprint.training.train_step import UpdateStats


class TrainingLog(Observer):
    """Prints progress, logs to MLflow, and saves durations in the training's work folder."""

    _tracker: Tracker
    _progress: Progress | None = None  # before the start

    def __init__(
        self, settings: Settings, job: Job, fingerprints: Fingerprints, group: Group, folder: Path
    ) -> None:
        self._settings, self._job, self._fingerprints = settings, job, fingerprints
        machine = describe_machine(group, text_libraries(settings.corpus(job.run.corpus)))
        self.stopwatch = Stopwatch(folder, machine, partial(peak_memory, group.device))

    def started(self, state: TrainState, expected_updates: int | None) -> None:
        job = self._job
        description = RunDescription.for_run(
            self._settings,
            job.run,
            self._fingerprints.combined,
            state.parameters,
            datasets_of(job.run.corpus, self._fingerprints.data),
        )
        self._tracker = Tracker(description)
        label = f"train {job.run.system} {job.run.corpus}, seed {job.run.seed}"
        self._progress = Progress(label, expected_updates, "updates", state.update)
        self.stopwatch.start()

    def waited(self, seconds: float) -> None:
        self.stopwatch.waited(seconds)

    def updated(self, state: TrainState, stats: UpdateStats) -> None:  # noqa: ARG002
        rate = self.stopwatch.update(stats.target_tokens)
        if self._progress:
            loss = stats.loss / stats.target_tokens
            self._progress.advance(note=f"loss {loss:.3f}, {rate:,.0f} tokens/s")

    def recorded(self, state: TrainState, point: dict[str, float]) -> None:
        point = {**point, **self.stopwatch.point()}
        self._tracker.log(state.update, {f"train/{name}": value for name, value in point.items()})

    def validated(self, state: TrainState, metrics: dict[str, float]) -> None:
        self.stopwatch.pause()
        self._tracker.log(state.update, {f"valid/{name}": of for name, of in metrics.items()})
        shown = ", ".join(f"{name} {value:.3f}" for name, value in metrics.items())
        run = self._job.run
        self.warned(f"{run.system} {run.corpus}, update {state.update}: validation {shown}")

    def skipped(self, state: TrainState) -> None:
        self._tracker.log(state.update, {"train/skipped": state.skipped})

    def warned(self, message: str) -> None:
        if self._progress:
            self._progress.say(message)
        else:
            print(message, file=sys.stderr, flush=True)

    def saving(self, state: TrainState) -> None:  # noqa: ARG002
        self.stopwatch.save()

    def saved(self, state: TrainState) -> None:  # noqa: ARG002
        self.stopwatch.pause()

    def ended(self, state: TrainState, status: Status) -> None:  # noqa: ARG002
        if self._progress:
            self._progress.close()
        self._tracker.close(status)
