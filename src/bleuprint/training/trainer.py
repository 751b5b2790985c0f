"""Training one system on one corpus with one seed.

A training can be stopped at any time and continues from its last checkpoint. Any number of
processes train together, each with its own `Trainer`.
"""

import math
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from bleuprint.dataset.batching import Position
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.model.weights import load_weights, named_weights
from bleuprint.runtime.distributed.gpus import describe_device_memory
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import Interrupted, UserError
from bleuprint.training import checkpoint
from bleuprint.training.data_loader import LocalUpdate, local_updates, prefetch
from bleuprint.training.disk_room import CheckpointSize, check_room
from bleuprint.training.dry_run import dry_run
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.history import EarlyEnd
from bleuprint.training.job import Job
from bleuprint.training.memory_advice import lower_max_tokens
from bleuprint.training.observer import Observer, Status
from bleuprint.training.train_state import TrainState
from bleuprint.training.train_step import (
    OutOfMemory,
    PendingUpdate,
    TrainStep,
    UpdateStats,
    detect_out_of_memory,
)
from bleuprint.training.validation import Validator

# The approximate number of points on a training curve.
_CURVE_POINTS = 200
# The number of updates between two points, if the length of the training is not known.
_CURVE_INTERVAL = 50
# Batches are never full. If max_tokens is a tenth above the tokens of an update for each process,
# most of the time each process has one batch; if it is a quarter above, some processes have none.
_ENOUGH_TOKENS_FACTOR = 1.1
_TOO_MANY_TOKENS_FACTOR = 1.25


class _UncountedUpdate(NamedTuple):
    """An update that the device may still compute, and that the state does not count yet.

    Attributes:
        pending: The update.
        position: The position in the plan of batches after it.
    """

    pending: PendingUpdate
    position: Position


class Trainer:
    """One process's part in a training.

    A GPU computes an update while the next one is prepared. So the statistics of an update are read
    and counted one update later, or when they are needed: before a validation and a checkpoint.

    Attributes:
        model: The model that is trained.
        state: The state of the training.
    """

    def __init__(
        self, job: Job, group: Group, folder: Path, fingerprints: Fingerprints, observer: Observer
    ) -> None:
        """Create the model, and load the newest checkpoint, if there is one.

        Args:
            job: The run to train.
            group: The processes of the training.
            folder: The folder of the checkpoints.
            fingerprints: The fingerprints of the training.
            observer: The observer of the training, which is called on rank 0 only.

        Raises:
            UserError: The model does not fit into memory, or a checkpoint cannot be used.
        """
        self._job = job
        self._group = group
        self._folder = folder
        self._fingerprints = fingerprints
        self._observer = observer if group.is_main else Observer()
        self._settings = job.system.train
        self._corpus = BinaryCorpus(job.corpus_folder)
        source_vocabulary = self._corpus.segmentation(self._corpus.source).vocabulary
        target_vocabulary = self._corpus.segmentation(self._corpus.target).vocabulary
        torch.manual_seed(job.run.seed)
        try:
            with detect_out_of_memory():
                model = Transformer(
                    job.system.model, len(source_vocabulary), len(target_vocabulary)
                )
                self.model = model.to(group.device)
                self._train_step = TrainStep(self.model, self._settings, job.run.seed, group)
        except OutOfMemory:
            raise UserError(
                f"systems.{job.run.system}: the model and its optimizer do not fit into the "
                f"memory of {group.device} ({describe_device_memory(group.device)}): "
                f"lower model.d_model ({job.system.model.d_model}), d_ff or the number of layers"
            ) from None
        self.state = TrainState.initial(count_parameters(self.model))
        self._uncounted: _UncountedUpdate | None = None
        self._resume()

    def run(self) -> None:
        """Train until a stopping condition is met.

        Raises:
            Interrupted: The process received SIGTERM; a checkpoint is saved.
            UserError: The training diverged, or there is not enough memory or disk space.
        """
        with self._observed(), _on_sigterm() as signals:
            if self.state.is_finished(self._settings):
                # It was killed after its last checkpoint, before superfluous ones were removed.
                self._prune(is_finished=True)
                self._report_early_end()
                return
            dry_run(self._train_step, self._corpus, self._settings, self._group)
            self._check_room()
            self._warn_if_idle()
            self._run_updates(signals)

    def _run_updates(self, signals: Sequence[int]) -> None:
        """Train from the current position on, until a stopping condition is met.

        Args:
            signals: The numbers of the signals that the process has received.
        """
        validator = Validator(self._corpus, self._job.split_folder, self._settings.max_tokens)
        plan = local_updates(
            self._corpus,
            self._job.system,
            self._job.run.seed,
            self.state.position,
            self._group,
        )
        with closing(prefetch(plan)) as updates:
            for local in self._report_waiting(updates):
                is_save_due = self._run_update(local, validator)
                is_stopped = self._group.any(bool(signals))
                if is_stopped:
                    self._count_update()
                is_finished = self.state.is_finished(self._settings)
                if is_save_due or is_stopped or is_finished:
                    self._save(is_finished)
                if is_finished:
                    self._report_early_end()
                    return
                if is_stopped:
                    raise self._interruption()

    def _run_update(self, local: LocalUpdate, validator: Validator) -> bool:
        """Begin an update, and validate the model if a validation is due.

        The state does not count the update yet, since a GPU may still compute it. It is counted
        here only if a validation or a checkpoint is due after it, or if it is the last update.

        Args:
            local: This process's share of the update.
            validator: The validator of the training.

        Returns:
            Whether a checkpoint is due.
        """
        is_begun = self._begin_update(local)
        # The number of this update, or of the update before, if this one was skipped.
        update = self.state.update
        if self._uncounted is not None:
            update += 1
        is_validation_due = is_begun and update % self._settings.validate_interval == 0
        is_save_due = is_begun and update % self._settings.save_interval == 0
        state_after = replace(self.state, update=update, position=local.position)
        if is_validation_due or is_save_due or state_after.is_finished(self._settings):
            self._count_update()
        # A finished training is validated in any case.
        is_finished = self.state.is_finished(self._settings)
        if (is_validation_due or is_finished) and not self.state.is_validated:
            self._validate(validator)
        return is_save_due

    def _interruption(self) -> Interrupted:
        """Return the exception of a training that SIGTERM has stopped."""
        run = self._job.run
        return Interrupted(
            f"train {run.system} {run.corpus}, seed {run.seed}: stopped by SIGTERM: saved at "
            f"update {self.state.update}; the same command continues from there"
        )

    @property
    def early_end(self) -> EarlyEnd | None:
        """Return why the training ended before its last update or epoch; None if it did not."""
        return self.state.early_end(self._settings, self._expected_updates)

    def _report_early_end(self) -> None:
        """Tell the observer if the training ended early, and why that may have been too early."""
        early_end = self.early_end
        if early_end is None:
            return
        self._observer.warned(str(early_end))
        if early_end.warning:
            self._observer.warned(f"warning: {early_end.warning}")

    def _report_waiting(self, updates: Iterator[LocalUpdate]) -> Iterator[LocalUpdate]:
        """Yield the same updates, and tell the observer how long each was waited for."""
        start_time = time.monotonic()
        for local in updates:
            self._observer.waited(time.monotonic() - start_time)
            yield local
            start_time = time.monotonic()

    def _begin_update(self, local: LocalUpdate) -> bool:
        """Begin an update of the weights, then count the one before, which a GPU has computed.

        Returns:
            Whether the update was begun; False if it ran out of memory and was skipped.
        """
        number = self.state.update + 1
        if self._uncounted is not None:
            # The update before was begun, but the state does not count it yet.
            number += 1
        try:
            pending = self._train_step.update(number, local)
        except OutOfMemory:
            self._count_update()
            self._skip_update()
            self.state.position = local.position
            return False
        self._count_update()
        self._uncounted = _UncountedUpdate(pending, local.position)
        return True

    def _count_update(self) -> None:
        """Count the update that was begun last, once its statistics are known.

        Raises:
            UserError: The training diverged.
        """
        if self._uncounted is None:
            return
        uncounted = self._uncounted
        self._uncounted = None
        stats = self._train_step.read_stats(uncounted.pending)
        state = self.state
        state.update += 1
        state.position = uncounted.position
        state.source_tokens += stats.source_tokens
        state.target_tokens += stats.target_tokens
        state.flops += stats.flops
        state.interval = {
            "loss": state.interval["loss"] + stats.loss,
            "tokens": state.interval["tokens"] + stats.target_tokens,
        }
        self._observer.updated(state, stats)
        self._record_point(stats)

    def _skip_update(self) -> None:
        """Skip an update that ran out of memory; a second one ends the training, after saving."""
        self.state.skipped += 1
        message = (
            f"update {self.state.update + 1} did not fit into the memory of {self._group.device}: "
        )
        advice = lower_max_tokens(self._settings)
        if self.state.skipped > 1:
            self._save(is_finished=False)
            raise UserError(f"{message}a second one; {advice}")
        self._observer.warned(f"{message}skipped; if it happens again, {advice}")
        self._observer.skipped(self.state)

    def _record_point(self, stats: UpdateStats) -> None:
        """Add a point to the training curve, at regular intervals and at the last update."""
        state = self.state
        interval = _CURVE_INTERVAL
        if self._expected_updates:
            interval = max(1, self._expected_updates // _CURVE_POINTS)
        is_last = state.update == self._expected_updates
        if state.update % interval != 0 and not is_last:
            return
        point = {
            "loss": state.interval["loss"] / state.interval["tokens"],
            "learning_rate": stats.learning_rate,
            "gradient_norm": stats.grad_norm,
        }
        state.curve.append({"update": state.update, "tokens": state.target_tokens, **point})
        state.interval = {"loss": 0.0, "tokens": 0}
        self._observer.recorded(state, point)

    @cached_property
    def _expected_updates(self) -> int | None:
        """Return the approximate number of updates of the training; None if it is not known."""
        lengths = self._corpus.side("train", self._corpus.target).lengths
        return self._settings.update_limit(int(lengths.sum()), len(lengths))

    def _validate(self, validator: Validator) -> None:
        """Validate the model, and record the result.

        Raises:
            UserError: It does not fit into memory, or the loss is not finite.
        """
        update = self.state.update
        device = self._group.device
        try:
            with detect_out_of_memory():
                metrics = validator.validate(self.model, self._group)
        except OutOfMemory:
            raise UserError(
                f"validation after update {update} does not fit into the memory of {device} "
                f"({describe_device_memory(device)}): {lower_max_tokens(self._settings)}"
            ) from None
        if not math.isfinite(metrics["loss"]):
            raise UserError(
                f"the validation loss after update {update} is {metrics['loss']}: "
                "lower the learning rate (train.lr_schedule) or lengthen its warmup"
            )
        self.state.validations.append({"update": update, **metrics})
        self._observer.validated(self.state, metrics)

    def _warn_if_idle(self) -> None:
        """Warn if updates have fewer batches than there are processes, so that some are idle."""
        settings = self._settings
        processes = self._group.size
        source_lengths = self._corpus.side("train", self._corpus.source).lengths
        target_lengths = self._corpus.side("train", self._corpus.target).lengths
        tokens_per_pair = np.maximum(source_lengths, target_lengths).mean()
        # With fewer max_tokens, updates of tokens_per_update consist of other batches.
        effect = ", of updates with other sentences"
        update_tokens = settings.tokens_per_update
        if settings.sentences_per_update is not None:
            effect = ""
            update_tokens = settings.sentences_per_update * tokens_per_pair
        assert update_tokens is not None
        is_idle = settings.max_tokens * processes > _TOO_MANY_TOKENS_FACTOR * update_tokens
        if processes > 1 and is_idle:
            max_tokens = _ENOUGH_TOKENS_FACTOR * update_tokens / processes
            self._observer.warned(
                f"updates of {update_tokens:,.0f} tokens have fewer batches of train.max_tokens "
                f"({settings.max_tokens}) than there are processes ({processes}), so some "
                f"processes are idle: {max_tokens:.0f} would give each a batch{effect}"
            )

    def _check_room(self) -> None:
        """Warn if the checkpoints may not fit on the disk.

        Raises:
            UserError: They cannot fit; on all processes.
        """
        with self._group.raise_together():
            if not self._group.is_main:
                return
            checkpoint_size = CheckpointSize(
                weights=_size_in_bytes(named_weights(self.model)),
                optimizer=_size_in_bytes(self._train_step.optimizer.state_dict()),
            )
            warnings = check_room(
                self._folder,
                self._job.run.models_folder / "checkpoints",
                self._settings,
                self._expected_updates,
                checkpoint_size,
            )
            for warning in warnings:
                self._observer.warned(warning)

    def _save(self, is_finished: bool) -> None:
        """Save a checkpoint, and remove those that the settings do not keep.

        Args:
            is_finished: Whether the training is finished.
        """
        if self._group.is_main:
            self._observer.saving(self.state)
            checkpoint.save(
                self._folder,
                self.state.update,
                named_weights(self.model),
                self._train_step.optimizer.state_dict(),
                {**asdict(self.state), "fingerprint": self._fingerprints.combined},
            )
            self._prune(is_finished)
            self._observer.saved(self.state)
        # The other processes wait: they must not end while the checkpoint is being written.
        self._group.barrier()

    def _prune(self, is_finished: bool) -> None:
        """Remove the checkpoints that the settings do not keep.

        Args:
            is_finished: Whether the training is finished.
        """
        if self._group.is_main:
            ranking = self.state.ranking(self._settings.validation_metric)
            checkpoint.prune(self._folder, self._settings, ranking, is_finished)

    def _resume(self) -> None:
        """Continue from the newest intact checkpoint that rank 0 finds, or start without one.

        Raises:
            UserError: Another process does not find the same checkpoint.
        """
        latest = None
        if self._group.is_main:
            latest = checkpoint.load_latest(self._folder)
        # All processes learn the update of the checkpoint; -1 means that there is none.
        update = int(self._group.broadcast(-1 if latest is None else latest.update))
        if update < 0:
            self._start()
            return
        path = checkpoint.checkpoint_path(self._folder, update)
        with self._group.raise_together():
            if not path.exists():
                raise UserError(
                    f"{path}: missing on {socket.gethostname()}, but rank 0 continues from it: "
                    "machines that train together share one folder"
                )
            latest = latest or checkpoint.load(path)
        if self._group.differs((path / checkpoint.HASHES).read_text()):
            raise UserError(
                f"{self._folder}: checkpoint {update} is not the same on all of the "
                f"{self._group.size} processes: train in one folder that they share, or copy "
                f"{path.name} from one machine to all"
            )
        load_weights(self.model, latest.model)
        self._train_step.optimizer.load_state_dict(latest.optimizer)
        self.state = TrainState.from_dict(latest.state)
        self._observer.warned(f"continuing from update {latest.update} in {self._folder}")

    def _start(self) -> None:
        """Copy the weights that the training starts from, unless it starts from random ones."""
        messages = self._job.initialize(self.model, self._corpus)
        for message in messages:
            self._observer.warned(message)
        if messages:
            # With 16 bits, this renews the optimizer's copy of the weights.
            self._train_step.optimizer.load_state_dict({})

    @contextmanager
    def _observed(self) -> Iterator[None]:
        """Report the start and the end of the training to the observer."""
        self._observer.started(self.state, self._expected_updates)
        status: Status = "FAILED"
        try:
            yield
            status = "FINISHED"
        except (Interrupted, KeyboardInterrupt):
            status = "KILLED"
            raise
        finally:
            self._observer.ended(self.state, status)


def _size_in_bytes(tensors: Mapping[str, torch.Tensor]) -> int:
    """Return the size of all elements of some tensors, in bytes."""
    return sum(tensor.numel() * tensor.itemsize for tensor in tensors.values())


@contextmanager
def _on_sigterm() -> Iterator[Sequence[int]]:
    """Collect SIGTERM, a cluster's warning, in a list instead of ending the process.

    Once one was received, further ones are ignored until the process has ended, because clusters
    repeat the signal.
    """
    received: list[int] = []
    previous_handler = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if received else previous_handler)
