"""Follow a training: print its progress, measure its duration, and log it to MLflow.

`TrainingLog` is the observer that the stage train passes to the trainer.
"""

import sys
from functools import partial
from pathlib import Path

from bleuprint.config.experiment import Settings
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.progress import Progress
from bleuprint.tracking.datasets import describe_datasets
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
    """Prints the progress of a training, logs it to MLflow, and measures its duration.

    Attributes:
        stopwatch: Measures the training; it saves durations in the training's work folder.
    """

    # Both are created when the training starts. Messages can come earlier.
    _tracker: Tracker
    _progress: Progress | None = None

    def __init__(
        self, settings: Settings, job: Job, fingerprints: Fingerprints, group: Group, folder: Path
    ) -> None:
        """Prepare to follow a training, which may have been interrupted before.

        Args:
            settings: The settings of the experiment.
            job: What is trained: a system on a corpus with a seed.
            fingerprints: Hashes of all that decides the result of the training.
            group: The processes of the training.
            folder: The work folder of the training; the stopwatch continues the durations in it.
        """
        self._settings = settings
        self._job = job
        self._fingerprints = fingerprints
        corpus = settings.corpus(job.run.corpus)
        machine = describe_machine(group, text_libraries(corpus))
        memory_of_process = partial(peak_memory, group.device)
        self.stopwatch = Stopwatch(folder, machine, memory_of_process)

    def started(self, state: TrainState, expected_updates: int | None) -> None:
        """Start the MLflow run, the progress bar and the stopwatch; the trainer calls this first.

        Args:
            state: The state of the training: that of its last checkpoint if it was interrupted.
            expected_updates: The approximate number of updates; None if it is not known.
        """
        run = self._job.run
        description = RunDescription.for_run(
            settings=self._settings,
            run=run,
            # One hash of everything that decides the result: settings, code, data, first weights.
            fingerprint=self._fingerprints.combined,
            parameters=state.parameters,
            datasets=describe_datasets(run.corpus, self._fingerprints.data),
        )
        self._tracker = Tracker(description)
        label = f"train {run.system} {run.corpus}, seed {run.seed}"
        self._progress = Progress(label, expected_updates, "updates", state.update)
        self.stopwatch.start()

    def waited(self, seconds: float) -> None:
        """Measure how long the trainer waited for the data of an update, in seconds."""
        self.stopwatch.waited(seconds)

    def updated(self, state: TrainState, stats: UpdateStats) -> None:  # noqa: ARG002
        """Count an update, and show its loss and the speed of the training in the progress bar.

        Args:
            state: The state of the training after the update.
            stats: The loss of the update, summed over its target tokens, and their number.
        """
        tokens_per_second = self.stopwatch.count_update(stats.target_tokens)
        if self._progress:
            loss_per_token = stats.loss / stats.target_tokens
            note = f"loss {loss_per_token:.3f}, {tokens_per_second:,.0f} tokens/s"
            self._progress.advance(note=note)

    def recorded(self, state: TrainState, point: dict[str, float]) -> None:
        """Log metrics of the last updates, such as their mean loss, together with their speed.

        Args:
            state: The state of the training after these updates.
            point: The metrics by name.
        """
        metrics = {}
        for name, value in {**point, **self.stopwatch.take_rates()}.items():
            metrics[f"train/{name}"] = value
        self._tracker.log(state.update, metrics)

    def validated(self, state: TrainState, metrics: dict[str, float]) -> None:
        """Log the results of a validation, and print them.

        Args:
            state: The state of the training at the validation.
            metrics: The results by name, such as `loss`.
        """
        # The speed of the training is measured without validations.
        self.stopwatch.exclude_pause()
        validation_metrics = {f"valid/{name}": value for name, value in metrics.items()}
        self._tracker.log(state.update, validation_metrics)
        results = ", ".join(f"{name} {value:.3f}" for name, value in metrics.items())
        run = self._job.run
        self.warned(f"{run.system} {run.corpus}, update {state.update}: validation {results}")

    def skipped(self, state: TrainState) -> None:
        """Log how many updates were skipped so far, after one more was skipped."""
        self._tracker.log(state.update, {"train/skipped": state.skipped})

    def warned(self, message: str) -> None:
        """Print a message to stderr, above the progress bar if it is shown already."""
        if self._progress:
            self._progress.say(message)
        else:
            print(message, file=sys.stderr, flush=True)

    def saving(self, state: TrainState) -> None:  # noqa: ARG002
        """Save the durations; the trainer calls this before it writes a checkpoint.

        In this order, the saved durations include all updates that the checkpoint contains, even if
        the process is killed before the checkpoint is complete.
        """
        self.stopwatch.save()

    def saved(self, state: TrainState) -> None:  # noqa: ARG002
        """Exclude the time in which a checkpoint was written from the measured speed."""
        self.stopwatch.exclude_pause()

    def ended(self, state: TrainState, status: Status) -> None:  # noqa: ARG002
        """Close the progress bar, and end the MLflow run.

        Args:
            state: The state of the training at its end.
            status: How the training has ended: FINISHED, FAILED or KILLED.
        """
        if self._progress:
            self._progress.close()
        self._tracker.close(status)
