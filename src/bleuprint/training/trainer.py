"""Training one system on one corpus with one seed.

A training can be stopped at any time and continues from its last checkpoint. Any number of
processes train together, each with its own `Trainer`.
"""

import math
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

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
from bleuprint.training.disk_room import CheckpointSize, check_room, size_in_bytes
from bleuprint.training.dry_run import dry_run
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.history import EarlyEnd
from bleuprint.training.job import Job
from bleuprint.training.memory_advice import lower_max_tokens, warning_of_idle_processes
from bleuprint.training.observer import Observer, Status
from bleuprint.training.shared_plans import EpochPlanner, PlanOfEpoch, epoch_plans
from bleuprint.training.sigterm import collect_sigterm
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


class _UncountedUpdate(NamedTuple):
    """An update of the weights that a GPU may still compute, and that the state does not count yet.

    Attributes:
        pending: The update, with the statistics that the GPU is to compute.
        position: How far the batches of the training have been read after this update.
    """

    pending: PendingUpdate
    position: Position


class Trainer:
    """One process's part in a training.

    A GPU computes an update while the next one is prepared. So the statistics of an update are read
    and counted one update later, or when they are needed: before a validation and a checkpoint.

    Attributes:
        model: The model that is trained.
        state: What a checkpoint stores apart from tensors, such as the number of updates.
    """

    def __init__(
        self, job: Job, group: Group, folder: Path, fingerprints: Fingerprints, observer: Observer
    ) -> None:
        """Create the model and its optimizer, and load the newest checkpoint, if there is one.

        Args:
            job: What is trained: the settings, the corpus and the seed.
            group: The processes that train together.
            folder: The folder of the checkpoints.
            fingerprints: Hashes of everything that decides the result.
            observer: Logs and prints what happens. Only the process with rank 0 uses it.

        Raises:
            UserError: The model does not fit into memory, or a checkpoint cannot be used.
        """
        self._job = job
        self._group = group
        self._folder = folder
        self._fingerprints = fingerprints
        # The other processes get the base class, which ignores all events.
        self._observer = observer if group.is_main else Observer()
        self._settings = job.system.train
        self._corpus = BinaryCorpus(job.corpus_folder)
        torch.manual_seed(job.run.seed)
        try:
            with detect_out_of_memory():
                self.model = self._create_model()
                self._train_step = TrainStep(self.model, self._settings, job.run.seed, group)
        except OutOfMemory:
            raise UserError(
                f"systems.{job.run.system}: the model and its optimizer do not fit into the "
                f"memory of {group.device}. {describe_device_memory(group.device)}. "
                f"Lower model.d_model ({job.system.model.d_model}), d_ff or the number of layers"
            ) from None
        self.state = TrainState.initial(count_parameters(self.model))
        self._uncounted: _UncountedUpdate | None = None
        self._load_checkpoint_or_first_weights()

    def _create_model(self) -> Transformer:
        """Create the model with random weights, on the device of this process.

        The sizes of its vocabularies are the sizes of the corpus's vocabularies.
        """
        source_vocabulary = self._corpus.segmentation(self._corpus.source).vocabulary
        target_vocabulary = self._corpus.segmentation(self._corpus.target).vocabulary
        model = Transformer(self._job.system.model, len(source_vocabulary), len(target_vocabulary))
        return model.to(self._group.device)

    def run(self) -> None:
        """Train until the last update or epoch, or until early stopping ends the training.

        Before the first update, this checks that the largest batches fit into memory, and that the
        checkpoints fit on the disk.

        Raises:
            Interrupted: The process received SIGTERM; a checkpoint is saved.
            UserError: The training diverged, or there is not enough memory or disk space.
        """
        with self._observed(), collect_sigterm() as signals:
            if self.state.is_finished(self._settings):
                # An earlier process was killed after it had saved the last checkpoint.
                self._remove_superfluous_checkpoints(is_finished=True)
                self._report_early_end()
                return
            dry_run(self._train_step, self._corpus, self._settings, self._group)
            self._check_disk_space()
            warning = warning_of_idle_processes(self._settings, self._corpus, self._group.size)
            if warning is not None:
                self._observer.warned(warning)
            self._run_updates(signals)

    def _run_updates(self, signals: Sequence[int]) -> None:
        """Train from the last checkpoint on, until the training ends or a process gets SIGTERM.

        Args:
            signals: The SIGTERM signals that the process has received. A signal handler adds to
                this list while the training runs; the training stops once it is not empty.

        Raises:
            Interrupted: A process received SIGTERM; a checkpoint is saved.
        """
        validator = Validator(self._corpus, self._job.split_folder, self._settings.max_tokens)
        planner = EpochPlanner(self._corpus, self._settings, self._job.run.seed)
        with (
            epoch_plans(planner, self._folder, self._group) as plan_of_epoch,
            closing(prefetch(self._local_updates(plan_of_epoch))) as updates,
        ):
            for local in self._report_waiting(updates):
                is_save_due = self._run_update(local, validator)
                # All processes stop together, after the same update, if any of them got a signal.
                is_stopped = self._group.any(bool(signals))
                if is_stopped:
                    # The weights in the checkpoint include the update that was just begun, so the
                    # state must count it.
                    self._count_update()
                is_finished = self.state.is_finished(self._settings)
                if is_save_due or is_stopped or is_finished:
                    self._save(is_finished)
                if is_finished:
                    self._report_early_end()
                    return
                if is_stopped:
                    raise self._interruption()

    def _local_updates(self, plan_of_epoch: PlanOfEpoch) -> Generator[LocalUpdate, None, None]:
        """Return this process's share of all further updates.

        Args:
            plan_of_epoch: Returns the batches of an epoch.
        """
        return local_updates(
            self._corpus,
            self._job.system,
            self._job.run.seed,
            self.state.position,
            self._group,
            plan_of_epoch,
        )

    def _run_update(self, local: LocalUpdate, validator: Validator) -> bool:
        """Begin an update of the weights, and validate the model if a validation is due.

        A GPU may still compute the update when this returns; the next call then adds it to the
        state. If a validation or a checkpoint is due after it, or if it is the last update, it is
        added to the state here, after waiting for the GPU.

        Args:
            local: This process's share of the update.
            validator: The validator of the training.

        Returns:
            Whether a checkpoint is due.
        """
        # False if the update ran out of memory and was skipped. Then nothing is due after it.
        is_begun = self._begin_update(local)
        update = self._begun_updates
        is_validation_due = is_begun and update % self._settings.validate_interval == 0
        is_save_due = is_begun and update % self._settings.save_interval == 0
        # Whether the training ends depends on the state as it will be once the update is counted.
        state_after = replace(self.state, update=update, position=local.position)
        if is_validation_due or is_save_due or state_after.is_finished(self._settings):
            self._count_update()
        # The weights at the end of a training are validated in any case.
        is_finished = self.state.is_finished(self._settings)
        if (is_validation_due or is_finished) and not self.state.is_validated:
            self._validate(validator)
        return is_save_due

    def _interruption(self) -> Interrupted:
        """Return the error that ends the process after SIGTERM has stopped the training."""
        run = self._job.run
        return Interrupted(
            f"train {run.system} {run.corpus}, seed {run.seed}: stopped by SIGTERM and saved at "
            f"update {self.state.update}. To continue, run the same command again"
        )

    @property
    def early_end(self) -> EarlyEnd | None:
        """Return why early stopping ended the training; None if it did not."""
        return self.state.early_end(self._settings, self._expected_updates)

    def _report_early_end(self) -> None:
        """Tell the observer if early stopping ended the training, and if that may be too early."""
        early_end = self.early_end
        if early_end is None:
            return
        self._observer.warned(str(early_end))
        if early_end.warning:
            self._observer.warned(f"warning: {early_end.warning}")

    def _report_waiting(self, updates: Iterator[LocalUpdate]) -> Iterator[LocalUpdate]:
        """Yield updates, and tell the observer how long the training waited for each of them.

        The batches of the updates are read ahead by a thread, which may be too slow.

        Args:
            updates: This process's share of each update.
        """
        start_time = time.monotonic()
        for local in updates:
            self._observer.waited(time.monotonic() - start_time)
            yield local
            start_time = time.monotonic()

    def _begin_update(self, local: LocalUpdate) -> bool:
        """Begin an update of the weights, then add the previous update to the state.

        In this order, a GPU already computes this update while the CPU reads the statistics of the
        previous one.

        Args:
            local: This process's share of the update.

        Returns:
            Whether the update was begun; False if it ran out of memory and was skipped.
        """
        try:
            pending = self._train_step.update(self._begun_updates + 1, local)
        except OutOfMemory:
            self._count_update()
            self._skip_update()
            # The sentences of the skipped update are not read again.
            self.state.position = local.position
            return False
        self._count_update()
        self._uncounted = _UncountedUpdate(pending, local.position)
        return True

    @property
    def _begun_updates(self) -> int:
        """Return the number of updates, including one that the state does not count yet."""
        if self._uncounted is None:
            return self.state.update
        return self.state.update + 1

    def _count_update(self) -> None:
        """Count the last update in the training's state: its tokens, its loss and its FLOPs.

        A GPU may still compute an update when the next one is prepared. So an update is counted
        only when its loss is needed, and this waits until the GPU has computed the loss. Without
        such an update, this does nothing.

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
        """Record that an update ran out of memory and is skipped.

        One such update in a training hardly matters. A second one means that memory is too small.

        Raises:
            UserError: It is the second one of the training; a checkpoint is saved.
        """
        self.state.skipped += 1
        number = self.state.update + 1
        problem = f"update {number} did not fit into the memory of {self._group.device}"
        advice = lower_max_tokens(self._settings)
        if self.state.skipped > 1:
            self._save(is_finished=False)
            raise UserError(f"{problem}. It is the second such update. {advice}")
        self._observer.warned(f"{problem} and is skipped. If this happens again: {advice}")
        self._observer.skipped(self.state)

    def _record_point(self, stats: UpdateStats) -> None:
        """Add a point to the training curve, if one is due after this update.

        Points are due at regular intervals and at the last update. The loss of a point is the mean
        over all updates since the previous point.

        Args:
            stats: The statistics of the update.
        """
        state = self.state
        interval = _CURVE_INTERVAL
        if self._expected_updates:
            # So the curve gets about 200 points, however long the training is.
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
        """Return about how many updates the training has, if early stopping does not end it sooner.

        None if the settings contain no other end than early stopping.
        """
        target = self._corpus.side("train", self._corpus.target)
        return self._settings.update_limit(target.token_count, len(target))

    def _validate(self, validator: Validator) -> None:
        """Validate the model, and add the result to the state.

        Args:
            validator: Computes the loss and the BLEU score of the validation set.

        Raises:
            UserError: The validation does not fit into memory, or the loss is not finite.
        """
        update = self.state.update
        device = self._group.device
        try:
            with detect_out_of_memory():
                metrics = validator.validate(self.model, self._group)
        except OutOfMemory:
            raise UserError(
                f"validation after update {update} does not fit into the memory of {device}. "
                f"{describe_device_memory(device)}. {lower_max_tokens(self._settings)}"
            ) from None
        if not math.isfinite(metrics["loss"]):
            raise UserError(
                f"the validation loss after update {update} is {metrics['loss']}. "
                "Lower the learning rate (train.lr_schedule) or lengthen its warmup"
            )
        self.state.validations.append({"update": update, **metrics})
        self._observer.validated(self.state, metrics)

    def _check_disk_space(self) -> None:
        """Warn if the checkpoints of the training may not fit on the disk.

        Rank 0 checks it, for all processes.

        Raises:
            UserError: The checkpoints cannot fit. All processes raise it.
        """
        with self._group.raise_together():
            if not self._group.is_main:
                return
            checkpoint_size = CheckpointSize(
                weights=size_in_bytes(named_weights(self.model)),
                optimizer=size_in_bytes(self._train_step.optimizer.state_dict()),
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
        """Save a checkpoint, and remove the checkpoints that the settings do not keep.

        Rank 0 does this, while the other processes wait.

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
            self._remove_superfluous_checkpoints(is_finished)
            self._observer.saved(self.state)
        # The other processes wait here, so that none ends while the checkpoint is being written.
        self._group.barrier()

    def _remove_superfluous_checkpoints(self, is_finished: bool) -> None:
        """Remove the checkpoints that the settings do not keep, on rank 0 only.

        Args:
            is_finished: Whether the training is finished.
        """
        if self._group.is_main:
            ranking = self.state.ranking(self._settings.validation_metric)
            checkpoint.prune(self._folder, self._settings, ranking, is_finished)

    def _load_checkpoint_or_first_weights(self) -> None:
        """Continue from the newest intact checkpoint; without one, load the first weights.

        Raises:
            UserError: The processes do not find the same checkpoint.
        """
        latest = checkpoint.load_latest_on_all(self._folder, self._group)
        if latest is None:
            self._load_first_weights()
            return
        load_weights(self.model, latest.model)
        self._train_step.optimizer.load_state_dict(latest.optimizer)
        self.state = TrainState.from_dict(latest.state)
        self._observer.warned(f"continuing from update {latest.update} in {self._folder}")

    def _load_first_weights(self) -> None:
        """Copy the weights of `train.init_from` into the model, if the setting is given.

        Without it, the training starts from the model's random weights.
        """
        messages = self._job.initialize(self.model, self._corpus)
        for message in messages:
            self._observer.warned(message)
        if messages:
            # The weights were copied. In 16 bits, the optimizer has a copy of the old weights. It
            # renews the copy whenever it loads a state; an empty state changes nothing else.
            self._train_step.optimizer.load_state_dict({})

    @contextmanager
    def _observed(self) -> Iterator[None]:
        """Return a context for the training that tells the observer of its start and its end.

        The observer learns whether the training finished, was stopped by a signal, or failed.
        """
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
