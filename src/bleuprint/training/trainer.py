"""Training one system on one corpus with one seed, resumable and on any number of processes."""

import math
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path

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

# Approximate number of points on a training curve.
_CURVE_POINTS = 200
# Batches are never full: with max_tokens a tenth above an update's tokens by process each has one
# batch, most of the time; with more some have none.
_ENOUGH, _FEW = 1.1, 1.25
# Updates between two points if the length of the training is unknown.
_CURVE_EVERY = 50


class Trainer:
    """One process's part in a training."""

    def __init__(
        self, job: Job, group: Group, folder: Path, fingerprints: Fingerprints, observer: Observer
    ) -> None:
        """`observer` is called on rank 0 only; checkpoints are kept in `folder`."""
        self._job, self._group, self._folder, self._fingerprints = job, group, folder, fingerprints
        self._observer = observer if group.is_main else Observer()
        self._settings = job.system.train
        self._corpus = BinaryCorpus(job.corpus_folder)
        torch.manual_seed(job.run.seed)
        sizes = (
            len(self._corpus.segmentation(language).vocabulary)
            for language in (self._corpus.source, self._corpus.target)
        )
        try:
            with detect_out_of_memory():
                self.model = Transformer(job.system.model, *sizes).to(group.device)
                self._train_step = TrainStep(self.model, self._settings, job.run.seed, group)
        except OutOfMemory:
            raise UserError(
                f"systems.{job.run.system}: the model and its optimizer do not fit into the "
                f"memory of {group.device} ({describe_device_memory(group.device)}): "
                f"lower model.d_model ({job.system.model.d_model}), d_ff or the number of layers"
            ) from None
        self.state = TrainState.initial(count_parameters(self.model))
        # an update whose figures are not counted yet, and the position after it
        self._pending: tuple[PendingUpdate, Position] | None = None
        self._resume()

    def run(self) -> None:
        """Train until a stopping condition is met.

        Raises Interrupted after SIGTERM, once a checkpoint is saved.
        """
        state, settings = self.state, self._settings
        with self._observed(), _on_sigterm() as signals:
            if state.finished(settings):
                # killed after its last checkpoint, before the others were removed
                self._prune(finished=True)
                self._say_early_end()
                return
            dry_run(self._train_step, self._corpus, settings, self._group)
            self._check_room()
            self._warn_if_idle()
            validator = Validator(self._corpus, self._job.split_folder, settings.max_tokens)
            plan = local_updates(
                self._corpus, self._job.system, self._job.run.seed, state.position, self._group
            )
            with closing(prefetch(plan)) as updates:
                for local in self._awaited(updates):
                    begun = self._begin(local)
                    update = state.update + (self._pending is not None)
                    validate = begun and update % settings.validate_interval == 0
                    save = begun and update % settings.save_interval == 0
                    after = replace(state, update=update, position=local.position)
                    if validate or save or after.finished(settings):
                        self._settle()
                    if (validate or state.finished(settings)) and not state.validated:
                        self._validate(validator)
                    if stop := self._group.any(bool(signals)):
                        self._settle()
                    finished = state.finished(settings)
                    if save or stop or finished:
                        self._save(finished)
                    if finished:
                        self._say_early_end()
                        return
                    if stop:
                        run = self._job.run
                        raise Interrupted(
                            f"train {run.system} {run.corpus}, seed {run.seed}: stopped by "
                            f"SIGTERM: saved at update {state.update}; "
                            "the same command continues from there"
                        )

    @property
    def early_end(self) -> EarlyEnd | None:
        """Why the training ended before its last update or epoch; None if it did not."""
        return self.state.early_end(self._settings, self._expected_updates)

    def _say_early_end(self) -> None:
        if (early_end := self.early_end) is None:
            return
        self._observer.warned(str(early_end))
        if early_end.warning:
            self._observer.warned(f"warning: {early_end.warning}")

    def _awaited(self, updates: Iterator[LocalUpdate]) -> Iterator[LocalUpdate]:
        """The same updates; the observer hears how long each was waited for."""
        began = time.monotonic()
        for local in updates:
            self._observer.waited(time.monotonic() - began)
            yield local
            began = time.monotonic()

    def _begin(self, local: LocalUpdate) -> bool:
        """Begin an update of the weights, then count the one before, which a GPU has computed.

        Returns False if it ran out of memory and was skipped.
        """
        number = self.state.update + 1 + (self._pending is not None)
        try:
            pending = self._train_step.update(number, local)
        except OutOfMemory:
            self._settle()
            self._skip()
            self.state.position = local.position
            return False
        self._settle()
        self._pending = pending, local.position
        return True

    def _settle(self) -> None:
        """Count the update that was begun, once its figures are here. Raises UserError."""
        if self._pending is None:
            return
        (pending, position), self._pending = self._pending, None
        stats, state = self._train_step.read_stats(pending), self.state
        state.update += 1
        state.position = position
        state.source_tokens += stats.source_tokens
        state.target_tokens += stats.target_tokens
        state.flops += stats.flops
        state.interval = {
            "loss": state.interval["loss"] + stats.loss,
            "tokens": state.interval["tokens"] + stats.target_tokens,
        }
        self._observer.updated(state, stats)
        self._record(stats)

    def _skip(self) -> None:
        """Skip an update that ran out of memory. A second one aborts the training, after saving."""
        self.state.skipped += 1
        message = (
            f"update {self.state.update + 1} did not fit into the memory of {self._group.device}: "
        )
        lower = lower_max_tokens(self._settings)
        if self.state.skipped > 1:
            self._save(finished=False)
            raise UserError(f"{message}a second one; {lower}")
        self._observer.warned(f"{message}skipped; if it happens again, {lower}")
        self._observer.skipped(self.state)

    def _record(self, stats: UpdateStats) -> None:
        """Add a point to the training curve at regular intervals."""
        state, expected = self.state, self._expected_updates
        every = max(1, expected // _CURVE_POINTS) if expected else _CURVE_EVERY
        if state.update % every and state.update != expected:
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
        lengths = self._corpus.side("train", self._corpus.target).lengths
        return self._settings.update_limit(int(lengths.sum()), len(lengths))

    def _validate(self, validator: Validator) -> None:
        try:
            with detect_out_of_memory():
                metrics = validator.validate(self.model, self._group)
        except OutOfMemory:
            raise UserError(
                f"validation after update {self.state.update} does not fit into the memory of "
                f"{self._group.device} ({describe_device_memory(self._group.device)}): "
                f"{lower_max_tokens(self._settings)}"
            ) from None
        if not math.isfinite(metrics["loss"]):
            raise UserError(
                f"the validation loss after update {self.state.update} is {metrics['loss']}: "
                "lower the learning rate (train.lr_schedule) or lengthen its warmup"
            )
        self.state.validations.append({"update": self.state.update, **metrics})
        self._observer.validated(self.state, metrics)

    def _warn_if_idle(self) -> None:
        """Warn if updates have too few batches for the processes, and say what has enough."""
        settings, size = self._settings, self._group.size
        sides = (
            self._corpus.side("train", each) for each in (self._corpus.source, self._corpus.target)
        )
        a_pair = np.maximum(*(side.lengths for side in sides)).mean()
        tokens = settings.tokens_per_update or (settings.sentences_per_update or 0) * a_pair
        other_updates = ", of updates with other sentences"
        if settings.sentences_per_update is not None:
            other_updates = ""
        if size > 1 and settings.max_tokens * size > _FEW * tokens:
            self._observer.warned(
                f"updates of {tokens:,.0f} tokens have fewer batches of train.max_tokens "
                f"({settings.max_tokens}) than there are processes ({size}), of which some are "
                f"idle: {_ENOUGH * tokens / size:.0f} would give each a batch{other_updates}"
            )

    def _check_room(self) -> None:
        """Warn if the checkpoints may not fit on the disk; raises UserError if they cannot."""
        with self._group.raise_together():
            if not self._group.is_main:
                return
            one = CheckpointSize(
                weights=_bytes_of(named_weights(self.model)),
                optimizer=_bytes_of(self._train_step.optimizer.state_dict()),
            )
            exported = self._job.run.models_folder / "checkpoints"
            updates = self._expected_updates
            for warning in check_room(self._folder, exported, self._settings, updates, one):
                self._observer.warned(warning)

    def _save(self, finished: bool) -> None:
        if self._group.is_main:
            self._observer.saving(self.state)
            checkpoint.save(
                self._folder,
                self.state.update,
                named_weights(self.model),
                self._train_step.optimizer.state_dict(),
                {**asdict(self.state), "fingerprint": self._fingerprints.combined},
            )
            self._prune(finished)
            self._observer.saved(self.state)
        self._group.barrier()

    def _prune(self, finished: bool) -> None:
        if self._group.is_main:
            settings = self._settings
            ranking = self.state.ranking(settings.validation_metric)
            checkpoint.prune(self._folder, settings, ranking, finished)

    def _resume(self) -> None:
        """Continue from the newest intact checkpoint that rank 0 finds, if any."""
        main = self._group.is_main
        latest = checkpoint.load_latest(self._folder) if main else None
        update = int(self._group.broadcast(latest.update if latest else -1))
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
        """Take the weights that the training starts from, unless they are random."""
        lines = self._job.initialize(self.model, self._corpus)
        for line in lines:
            self._observer.warned(line)
        if lines:
            self._train_step.optimizer.load_state_dict({})  # copies the weights, with 16 bits

    @contextmanager
    def _observed(self) -> Iterator[None]:
        """Report the start and the end of the training."""
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


def _bytes_of(tensors: Mapping[str, torch.Tensor]) -> int:
    """The bytes of all elements of the tensors."""
    return sum(tensor.numel() * tensor.itemsize for tensor in tensors.values())


@contextmanager
def _on_sigterm() -> Iterator[list[int]]:
    """Collect SIGTERM, a cluster's warning, in a list instead of ending the process.

    Once received, further ones are ignored until the process has ended: clusters repeat the signal.
    """
    received: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if received else previous)
