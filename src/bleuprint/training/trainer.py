"""Training one system on one corpus: any number of processes, killed and resumed at any moment."""

import math
import signal
import socket
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import torch

from bleuprint.dataset.batch import Batch, PairIds, Sentence
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.model.weights import load_weights, named_weights
from bleuprint.runtime.distributed.group import Group
from bleuprint.runtime.errors import Interrupted, UserError
from bleuprint.training import checkpoint
from bleuprint.training.data_loader import Share, shares
from bleuprint.training.job import Fingerprints, Job
from bleuprint.training.observer import Observer, Status
from bleuprint.training.train_state import State
from bleuprint.training.train_step import Learner, Outcome, OutOfMemory, for_memory
from bleuprint.training.validation import Validator

# Points on a training curve, about: enough to draw, few enough to store.
_CURVE_POINTS = 200
# Updates between two points where the length of the training is unknown.
_CURVE_EVERY = 50
# Tokens of sentences that fill a batch without padding.
_SHORT = 16


class Trainer:
    """One process's part in a training."""

    def __init__(
        self, job: Job, group: Group, folder: Path, marks: Fingerprints, observer: Observer
    ) -> None:
        """`observer` is called on rank 0 alone; checkpoints are kept in `folder`."""
        self._job, self._group, self._folder, self._marks = job, group, folder, marks
        self._observer = observer if group.is_main else Observer()
        self._settings = job.system.train
        self._corpus = BinaryCorpus(job.corpus)
        torch.manual_seed(job.cell.seed)
        sizes = (
            len(self._corpus.segmentation(language).vocabulary)
            for language in (self._corpus.source, self._corpus.target)
        )
        try:
            self.model = Transformer(job.system.model, *sizes).to(group.device)
            self._learner = Learner(self.model, self._settings, job.cell.seed, group)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not for_memory(error):
                raise
            raise UserError(
                f"the model and its optimizer do not fit into the memory of {group.device}: lower "
                f"model.d_model ({job.system.model.d_model}), d_ff or the number of layers"
            ) from None
        self.state = State.new(count_parameters(self.model))
        self._warned = False
        self._resume()

    def run(self) -> None:
        """Train until a condition to stop is met.

        Raises Interrupted, after saving, when SIGTERM came.
        """
        state, settings = self.state, self._settings
        with self._observed(), _on_sigterm() as signals:
            if state.finished(settings):
                # killed after its last checkpoint, before the others were removed
                self._prune(finished=True)
                return
            self._dry_run()
            validator = Validator(self._corpus, self._job.texts, settings.max_tokens)
            with closing(self._shares()) as updates:
                for share in updates:
                    made = self._update(share)
                    due = made and state.update % settings.validate_every == 0
                    if (due or state.finished(settings)) and not state.validated:
                        self._validate(validator)
                    finished, stop = state.finished(settings), self._group.any(bool(signals))
                    due = made and state.update % settings.checkpoint_every == 0
                    if due or stop or finished:
                        self._save(finished)
                    if finished:
                        return
                    if stop:
                        raise Interrupted(
                            f"stopped by SIGTERM: saved at update {state.update}; "
                            "the same command continues from there"
                        )

    def _shares(self) -> Generator[Share, None, None]:
        return shares(
            self._corpus, self._job.system, self._job.cell.seed, self.state.position, self._group
        )

    def _update(self, share: Share) -> bool:
        """Update the weights; False if the update ran out of memory and was left out."""
        state = self.state
        self._warn_of_idle(share)
        try:
            outcome = self._learner.update(state.update + 1, share)
        except OutOfMemory:
            self._skip()
            made = False
        else:
            state.update += 1
            state.source_tokens += outcome.source_tokens
            state.target_tokens += outcome.target_tokens
            state.flops += outcome.flops
            state.interval = {
                "loss": state.interval["loss"] + outcome.loss,
                "tokens": state.interval["tokens"] + outcome.target_tokens,
            }
            self._observer.updated(state, outcome)
            self._record(outcome)
            made = True
        state.position = share.position
        return made

    def _skip(self) -> None:
        """Skip an update that ran out of memory. A second one aborts the training, after saving."""
        self.state.skipped += 1
        what = (
            f"update {self.state.update + 1} did not fit into the memory of {self._group.device}: "
        )
        lower = f"lower train.max_tokens ({self._settings.max_tokens})"
        if self.state.skipped > 1:
            self._save(finished=False)
            raise UserError(f"{what}the second; {lower}")
        self._observer.warned(f"{what}left out; should that happen again, {lower}")
        self._observer.skipped(self.state)

    def _record(self, outcome: Outcome) -> None:
        """Add a point to the training curve, at regular updates."""
        state, expected = self.state, self._expected_updates
        every = max(1, expected // _CURVE_POINTS) if expected else _CURVE_EVERY
        if state.update % every and state.update != expected:
            return
        point = {
            "loss": state.interval["loss"] / state.interval["tokens"],
            "learning_rate": outcome.rate,
            "gradient_norm": outcome.norm,
        }
        state.curve.append({"update": state.update, "tokens": state.target_tokens, **point})
        state.interval = {"loss": 0.0, "tokens": 0}
        self._observer.recorded(state, point)

    @cached_property
    def _expected_updates(self) -> int | None:
        """About how many updates there will be, if the settings limit them."""
        settings = self._settings
        if settings.max_updates is not None or settings.max_epochs is None:
            return settings.max_updates
        tokens = int(self._corpus.side("train", self._corpus.target).lengths.sum())
        return -(-tokens * settings.max_epochs // settings.tokens_per_update)

    def _validate(self, validator: Validator) -> None:
        # compiled layers would be compiled once more for each length of output
        with torch.compiler.set_stance("force_eager"):
            measures = validator.measure(self.model, self._group)
        if not math.isfinite(measures["loss"]):
            raise UserError(
                f"the validation loss after update {self.state.update} is {measures['loss']}: "
                "lower the learning rate (train.lr_schedule) or lengthen its warmup"
            )
        self.state.validations.append({"update": self.state.update, **measures})
        self._observer.validated(self.state, measures)

    def _dry_run(self) -> None:
        """Run the batches that take the most memory; raises UserError if one does not fit."""
        self.model.train()
        for batch in self._largest_batches():
            self._learner.try_out(batch)

    def _largest_batches(self) -> Iterator[Batch]:
        """The full batches that take the most memory: for attention those of the longest
        sentences, for the projection to the vocabulary those without padding.
        """
        corpus, tokens = self._corpus, self._settings.max_tokens
        source, target = (
            int(corpus.side("train", language).lengths.max())
            for language in (corpus.source, corpus.target)
        )
        short = min(_SHORT, source, target)
        for one, other in ((source, target), (short, short)):
            pairs = max(1, tokens // max(one, other))
            sources: list[Sentence] = [[EOS] * one for _ in range(pairs)]
            sources[0] = [EOS] * max(1, one - 1)  # some kernels differ where there is padding
            yield Batch.from_ids(PairIds(sources, [[EOS] * other] * pairs))

    def _warn_of_idle(self, share: Share) -> None:
        """Warn, once, that an update has fewer batches than there are processes."""
        count, size = len(share.update.batches), self._group.size
        rest = share.update.tokens < self._settings.tokens_per_update // 2  # of the last epoch
        if count < size and not rest and not self._warned:
            self._warned = True
            self._observer.warned(
                f"update {self.state.update + 1} has fewer batches ({count}) than there are "
                f"processes ({size}), of which some idle: lower train.max_tokens "
                f"({self._settings.max_tokens})"
            )

    def _save(self, finished: bool) -> None:
        if self._group.is_main:
            self._observer.saving(self.state)
            checkpoint.save(
                self._folder,
                self.state.update,
                named_weights(self.model),
                self._learner.optimizer.tensors(),
                {**asdict(self.state), "fingerprint": self._marks.all},
            )
            self._prune(finished)
            self._observer.saved(self.state)
        self._group.barrier()

    def _prune(self, finished: bool) -> None:
        if self._group.is_main:
            settings = self._settings
            ranking = self.state.ranking(settings.validation_metric)
            every = settings.checkpoint_every
            checkpoint.prune(self._folder, settings.keep, every, ranking, finished)

    def _resume(self) -> None:
        """Continue from the newest whole checkpoint that rank 0 finds, if there is one."""
        found = checkpoint.latest(self._folder) if self._group.is_main else None
        update = int(self._group.broadcast(found.update if found else -1))
        if update < 0:
            return
        if found is None:
            found = self._load(update)
        if found.state["fingerprint"] != self._marks.all:
            raise UserError(f"{self._folder}: holds checkpoints of another training; remove it")
        if self._group.differs("".join(found.state["sha256"].values())):
            raise UserError(
                f"{self._folder}: checkpoint {update} is not the same on all of the "
                f"{self._group.size} processes: machines that train together share one folder"
            )
        load_weights(self.model, found.model)
        self._learner.optimizer.load(found.optimizer)
        self.state = State.of(found.state)
        self._observer.warned(f"continuing from update {found.update} in {self._folder}")

    def _load(self, update: int) -> checkpoint.Checkpoint:
        path = checkpoint.path_of(self._folder, update)
        if not path.exists():
            raise UserError(
                f"{path}: not there on {socket.gethostname()}, and process 0 goes on from it: "
                "machines that train together share one folder"
            )
        return checkpoint.load(path)

    @contextmanager
    def _observed(self) -> Iterator[None]:
        """Report the start, and how the training ends."""
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


@contextmanager
def _on_sigterm() -> Iterator[list[int]]:
    """A list to which SIGTERM, a cluster's warning, is appended instead of ending the process."""
    received: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, previous)
