"""Training one system on one corpus: any number of processes, killed and resumed at any moment."""

import hashlib
import math
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from bleuprint import checkpoint
from bleuprint.batch import Batch, Sentence, Sides
from bleuprint.binary import BinaryCorpus
from bleuprint.errors import Interrupted, UserError
from bleuprint.job import Fingerprints, Job
from bleuprint.learner import Learner, Outcome, OutOfMemory, for_memory
from bleuprint.machine import machine_of
from bleuprint.model import Transformer, count_parameters
from bleuprint.processes import Group
from bleuprint.progress import Progress
from bleuprint.reader import Share, shares
from bleuprint.state import State
from bleuprint.tracking import Description, Tracker
from bleuprint.validation import Validator
from bleuprint.vocabulary import EOS

# Points on a training curve, about: enough to draw, few enough to store.
_CURVE_POINTS = 200
# Units of sentences that fill a batch to the brim.
_SHORT = 16
# Where nobody knows how long a training will be: updates from one point to the next.
_CURVE_EVERY = 50


def train(job: Job, group: Group) -> tuple[Path, State, Fingerprints]:
    """Train to the end, from the newest checkpoint if there is one.

    Returns the work folder that holds the kept checkpoints, the final state and the
    fingerprints. Raises Interrupted, after saving, when told to stop by SIGTERM, and UserError
    before anything else where the corpus is damaged, or does not go with the system.
    """
    _verify(job.corpus, group)
    marks = Fingerprints.of(job)
    _compare(marks, group)
    name = ".".join((*map(str, job.cell), marks.all[:16]))
    folder = job.work / "trainings" / name
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder, group):
        trainer = Trainer(job, group, folder, marks)
        trainer.run()
    return folder, trainer.state, marks


class Trainer:
    """One process's part in a training."""

    def __init__(self, job: Job, group: Group, folder: Path, marks: Fingerprints) -> None:
        self._job, self._group, self._folder, self._marks = job, group, folder, marks
        self._settings = job.system.train
        self._corpus = BinaryCorpus(job.corpus)
        _check_lengths(job, self._corpus)
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
        self._stop = self._warned = False
        self._resume()

    def run(self) -> None:
        """Train until a condition to stop is met."""
        settings, state, seed = self._settings, self.state, self._job.cell.seed
        if state.finished(settings):
            # it may have been killed after its last checkpoint, before the rest was done
            self._prune(finished=True)
            with self._tracked():
                return
        validator = Validator(self._corpus, self._job.texts, settings.batch_tokens)
        if (machine := machine_of(self._group)) not in state.machines:
            state.machines.append(machine)
        self.model.train()
        for batch in self._largest_batches():
            self._learner.try_out(batch)
        what = f"train {self._job.cell.system} {self._job.cell.corpus}"
        with (
            self._tracked() as tracker,
            _terminable(self._on_signal),
            closing(
                shares(self._corpus, self._job.system, seed, state.position, self._group)
            ) as stream,
            Progress(
                what, self._expected, "updates", state.update, silent=not self._group.first
            ) as progress,
        ):
            began, tokens, before = time.monotonic(), state.target_tokens, state.seconds
            for share in stream:
                self._warn_of_idle(share, progress)
                started = time.monotonic()
                try:
                    outcome = self._learner.update(state.update + 1, share)
                except OutOfMemory:
                    made = False
                    self._skip(tracker, progress)
                else:
                    made = True
                    self._add(outcome, time.monotonic() - started)
                    rate = (state.target_tokens - tokens) / (time.monotonic() - began)
                    note = f"loss {outcome.loss / outcome.target_tokens:.3f}, {rate:,.0f} tokens/s"
                    progress.advance(note=note)
                    self._record(outcome, tracker)
                state.position = share.position
                due = made and state.update % settings.validate_every == 0
                if (due or state.finished(settings)) and not state.validated:
                    self._validate(validator, tracker, progress)
                finished = state.finished(settings)
                stop = self._group.any(self._stop)
                state.seconds = before + time.monotonic() - began
                due = made and state.update % settings.checkpoint_every == 0
                if due or stop or finished:
                    self._save(finished)
                if finished:
                    break
                if stop:
                    raise Interrupted(
                        f"told to stop: saved at update {state.update}; "
                        "the same command goes on from there"
                    )

    def _add(self, outcome: Outcome, seconds: float) -> None:
        state = self.state
        state.update += 1
        state.source_tokens += outcome.source_tokens
        state.target_tokens += outcome.target_tokens
        state.flops += outcome.flops
        state.interval = {
            "loss": state.interval["loss"] + outcome.loss,
            "tokens": state.interval["tokens"] + outcome.target_tokens,
            "seconds": state.interval["seconds"] + seconds,
        }

    def _skip(self, tracker: Tracker | None, progress: Progress) -> None:
        """Go on without an update that did not fit; once, since a second one will not be the last.

        Raises UserError at the second, after saving.
        """
        self.state.skipped += 1
        what = (
            f"update {self.state.update + 1} did not fit into the memory of {self._group.device}: "
        )
        lower = f"lower train.batch_tokens ({self._settings.batch_tokens})"
        if self.state.skipped > 1:
            self._save(finished=False)
            raise UserError(f"{what}the second; {lower}")
        progress.say(f"{what}left out; should that happen again, {lower}")
        if tracker:
            tracker.log(self.state.update, {"train/skipped": self.state.skipped})

    def _record(self, outcome: Outcome, tracker: Tracker | None) -> None:
        """Put a point on the curve, now and then."""
        state, expected = self.state, self._expected
        every = max(1, expected // _CURVE_POINTS) if expected else _CURVE_EVERY
        if state.update % every and state.update != expected:
            return
        point = {
            "loss": state.interval["loss"] / state.interval["tokens"],
            "learning_rate": outcome.rate,
            "gradient_norm": outcome.norm,
        }
        state.curve.append({"update": state.update, "tokens": state.target_tokens, **point})
        rate = state.interval["tokens"] / max(state.interval["seconds"], 1e-9)
        state.rates.append(rate)
        state.interval = {"loss": 0.0, "tokens": 0, "seconds": 0.0}
        if tracker:
            metrics = {f"train/{name}": value for name, value in point.items()}
            tracker.log(state.update, {**metrics, "train/tokens_per_second": rate})

    @cached_property
    def _expected(self) -> int | None:
        """About how many updates there will be, if the settings tell: it takes all lengths' sum."""
        settings = self._settings
        if settings.updates is not None or settings.epochs is None:
            return settings.updates
        tokens = int(self._corpus.side("train", self._corpus.target).lengths.sum())
        return -(-tokens * settings.epochs // settings.tokens_per_update)

    def _validate(self, validator: Validator, tracker: Tracker | None, progress: Progress) -> None:
        # compiled layers would be compiled once more for each length of output
        with torch.compiler.set_stance("force_eager"):
            measures = validator.measure(self.model, self._group)
        if not math.isfinite(measures["loss"]):
            raise UserError(
                f"the validation loss after update {self.state.update} is {measures['loss']}: "
                "lower the learning rate (train.schedule) or lengthen its warmup"
            )
        self.state.validations.append({"update": self.state.update, **measures})
        if tracker:
            tracker.log(self.state.update, {f"valid/{k}": v for k, v in measures.items()})
            shown = ", ".join(f"{name} {value:.3f}" for name, value in measures.items())
            progress.say(f"update {self.state.update}: validation {shown}")

    def _largest_batches(self) -> Iterator[Batch]:
        """Full batches that take as much memory as any can: attention most of it where sentences
        are as long as the longest, the projection to the vocabulary where no position is lost.
        """
        corpus, tokens = self._corpus, self._settings.batch_tokens
        source, target = (
            int(corpus.side("train", language).lengths.max())
            for language in (corpus.source, corpus.target)
        )
        short = min(_SHORT, source, target)
        for one, other in ((source, target), (short, short)):
            pairs = max(1, tokens // max(one, other))
            sources: list[Sentence] = [[EOS] * one for _ in range(pairs)]
            sources[0] = [EOS] * max(1, one - 1)  # some kernels differ where there is padding
            yield Batch.of(Sides(sources, [[EOS] * other] * pairs))

    def _warn_of_idle(self, share: Share, progress: Progress) -> None:
        """Say, once, that there are more processes than batches in an update."""
        count, size = len(share.update.batches), self._group.size
        rest = share.update.tokens < self._settings.tokens_per_update // 2  # of the last epoch
        if count < size and not rest and not self._warned:
            self._warned = True
            progress.say(
                f"update {self.state.update + 1} has fewer batches ({count}) than there are "
                f"processes ({size}), of which some idle: lower train.batch_tokens "
                f"({self._settings.batch_tokens})"
            )

    def _save(self, finished: bool) -> None:
        if self._group.first:
            checkpoint.save(
                self._folder,
                self.state.update,
                checkpoint.weights(self.model),
                self._learner.optimizer.tensors(),
                {**asdict(self.state), "fingerprint": self._marks.all},
            )
            self._prune(finished)
        self._group.wait()

    def _prune(self, finished: bool) -> None:
        if self._group.first:
            settings = self._settings
            ranking = self.state.ranking(settings.measure)
            every = settings.checkpoint_every
            checkpoint.prune(self._folder, settings.keep, every, ranking, finished)

    def _resume(self) -> None:
        """Go on from the newest whole checkpoint, the one that the first process finds."""
        found = checkpoint.latest(self._folder) if self._group.first else None
        update = int(self._group.of_first(found.update if found else -1))
        if update < 0:
            return
        if found is None:
            found = self._load(update)
        if found.state["fingerprint"] != self._marks.all:
            raise UserError(f"{self._folder}: holds checkpoints of another training; remove it")
        if _differ("".join(found.state["sha256"].values()), self._group):
            raise UserError(
                f"{self._folder}: checkpoint {update} is not the same on all of the "
                f"{self._group.size} processes: machines that train together share one folder"
            )
        checkpoint.load_weights(self.model, found.model)
        self._learner.optimizer.load(found.optimizer)
        self.state = State.of(found.state)
        if self._group.first:
            print(f"going on from update {found.update} in {self._folder}", flush=True)

    def _load(self, update: int) -> checkpoint.Checkpoint:
        path = checkpoint.path_of(self._folder, update)
        if not path.exists():
            raise UserError(
                f"{path}: not there on {socket.gethostname()}, and process 0 goes on from it: "
                "machines that train together share one folder"
            )
        return checkpoint.load(path)

    @contextmanager
    def _tracked(self) -> Iterator[Tracker | None]:
        """The first process's line to MLflow, told how the training ended."""
        if not self._group.first:
            yield None
            return
        job = self._job
        description = Description(
            experiment=job.experiment,
            cell=job.cell,
            fingerprint=self._marks.all,
            data=self._marks.data,
            settings={
                "model": asdict(job.system.model),
                "train": asdict(job.system.train),
                "parameters": self.state.parameters,
            },
        )
        tracker, status = Tracker(description), "FAILED"
        try:
            yield tracker
            status = "FINISHED"
        except (Interrupted, KeyboardInterrupt):
            status = "KILLED"
            raise
        finally:
            tracker.close(status)

    def _on_signal(self, *_: object) -> None:
        self._stop = True


def _check_lengths(job: Job, corpus: BinaryCorpus) -> None:
    """Raise UserError where sentences are too long for the model, or too few for an update."""
    most, wanted = job.system.model.max_length, job.system.train.tokens_per_update
    for name in corpus.sets:
        # a reference may be as long as it likes
        for language in (corpus.source, corpus.target)[: 1 if name.startswith("test.") else 2]:
            lengths = corpus.side(name, language).lengths
            if not len(lengths) and not name.startswith("test."):
                raise UserError(f"corpus {job.cell.corpus}: {name}.{language} has no sentences")
            if (longest := int(lengths.max(initial=0))) > most:
                raise UserError(
                    f"corpus {job.cell.corpus}: line {int(lengths.argmax()) + 1} of {name}."
                    f"{language} has {longest} units, its end counted, and model.max_length of "
                    f"{job.cell.system} is {most}: raise it, or lower filter.length.max"
                )
    tokens = int(corpus.side("train", corpus.target).lengths.sum())
    if tokens < wanted:
        raise UserError(
            f"corpus {job.cell.corpus}: train has {tokens} target units, less than one update of "
            f"{job.cell.system}: lower train.tokens_per_update ({wanted})"
        )


def _compare(marks: Fingerprints, group: Group) -> None:
    """Raise UserError on all processes unless all have the same settings, code and data."""
    for what, mark in asdict(marks).items():
        if _differ(mark, group):
            raise UserError(
                f"the {group.size} processes do not have the same {what}: they train together from "
                "one folder, or from copies that are alike"
            )


def _differ(mark: str, group: Group) -> bool:
    """Whether a process has another mark than the first; all of them ask."""
    own = int(hashlib.sha256(mark.encode()).hexdigest()[:12], 16)  # 48 bits, which a float64 holds
    return group.any(own != group.of_first(own))


def _verify(corpus: Path, group: Group) -> None:
    """The first process reads the whole corpus; where it is damaged, all of them stop."""
    damage = None
    if group.first:
        try:
            BinaryCorpus(corpus).verify()
        except UserError as error:
            damage = error
    if group.any(damage is not None):
        raise damage or UserError(f"{corpus}: damaged")


@contextmanager
def _alone(folder: Path, group: Group) -> Iterator[None]:
    """Hold the work folder against a second training of the same cell."""
    if not group.first:
        yield
        return
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(f"{folder}: another process is training this cell") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _terminable(handler: Any) -> Iterator[None]:
    """SIGTERM, a cluster's warning, is heard between updates."""
    previous = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
