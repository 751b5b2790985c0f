"""Training one system on one corpus: any number of processes, killed and resumed at any moment."""

import math
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

from bleuprint import checkpoint, fingerprint
from bleuprint.batch import Batch, Sides
from bleuprint.batches import Position
from bleuprint.binary import CORPUS, BinaryCorpus
from bleuprint.cost import training_flops
from bleuprint.errors import Interrupted, UserError
from bleuprint.files import sha256_of
from bleuprint.layout import Cell
from bleuprint.machine import machine_of
from bleuprint.model import Transformer, count_parameters
from bleuprint.optimizer import FlatAdam
from bleuprint.processes import Group
from bleuprint.progress import Progress
from bleuprint.reader import shares
from bleuprint.schedule import inverse_square_root
from bleuprint.settings import System
from bleuprint.tracking import Description, Tracker
from bleuprint.validation import Validator

# The modules whose code decides what comes out of a training: part of its fingerprint.
CODE = (
    "batch",
    "batches",
    "binary",
    "bleu",
    "bpe",
    "characters",
    "checkpoint",
    "cost",
    "loss",
    "model",
    "moses",
    "optimizer",
    "pairs",
    "processes",
    "reader",
    "remembered",
    "schedule",
    "segmentation",
    "tokenizer",
    "train",
    "validation",
    "vocabulary",
    "workers",
)

# Points on a training curve, about: enough to draw, few enough to store.
_CURVE_POINTS = 200


@dataclass(frozen=True)
class Job:
    """One cell of the table to train: what, on what, and where it works."""

    experiment: str
    cell: Cell
    system: System
    corpus: Path
    texts: Path
    work: Path


@dataclass(frozen=True)
class Fingerprints:
    """What decides the result: settings (with the seed), code and data; `all` of them in one."""

    settings: str
    code: str
    data: str

    @classmethod
    def of(cls, job: Job) -> "Fingerprints":
        settings = fingerprint.of_settings(job.system.model, job.system.train, job.cell.seed)
        corpus = sha256_of(job.corpus / CORPUS)  # which holds the sums of all its files
        references = [sha256_of(path) for path in sorted(job.texts.glob("valid.*"))]
        return cls(
            settings, fingerprint.of_code(CODE), fingerprint.of_settings(corpus, *references)
        )

    @property
    def all(self) -> str:
        return fingerprint.of_settings(self.settings, self.code, self.data)


@dataclass
class State:
    """What a training knows of itself beside its weights; all of it is in each checkpoint.

    Tokens and operations are those it was trained on; `position` counts tokens as planned, before
    BPE-dropout.
    """

    parameters: int
    update: int
    position: Position
    source_tokens: int
    target_tokens: int
    flops: int
    seconds: float
    machines: list[dict[str, Any]]
    interval: dict[str, float]
    curve: list[dict[str, float]]
    validations: list[dict[str, float]]

    @classmethod
    def new(cls, parameters: int) -> "State":
        interval = {"loss": 0.0, "tokens": 0}
        return cls(parameters, 0, Position(), 0, 0, 0, 0.0, [], interval, [], [])

    @classmethod
    def of(cls, saved: dict[str, Any]) -> "State":
        fields = {name: saved[name] for name in cls.__dataclass_fields__}
        return cls(**{**fields, "position": Position(**saved["position"])})


def train(job: Job, group: Group) -> tuple[Path, State, Fingerprints]:
    """Train to the end, from the newest checkpoint if there is one.

    Returns the work folder that holds the kept checkpoints, the final state and the
    fingerprints. Raises Interrupted, after saving, when told to stop by SIGTERM, and UserError
    before anything else where the corpus is damaged.
    """
    _verify(job.corpus, group)
    marks = Fingerprints.of(job)
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
        torch.manual_seed(job.cell.seed)
        sizes = (
            len(self._corpus.segmentation(language).vocabulary)
            for language in (self._corpus.source, self._corpus.target)
        )
        self.model = Transformer(job.system.model, *sizes).to(group.device)
        self._optimizer = FlatAdam(self.model, self._settings)
        self.state = State.new(count_parameters(self.model))
        self._stop = False
        self._resume()

    def run(self) -> None:
        """Train until the last update."""
        settings, state, seed = self._settings, self.state, self._job.cell.seed
        if state.update >= settings.updates:
            return
        validator = Validator(self._corpus, self._job.texts, settings.batch_tokens)
        if (machine := machine_of(self._group)) not in state.machines:
            state.machines.append(machine)
        self.model.train()
        what = f"train {self._job.cell.system} {self._job.cell.corpus}"
        with (
            self._tracked() as tracker,
            _terminable(self._on_signal),
            closing(shares(self._corpus, settings, seed, state.position, self._group)) as stream,
            Progress(
                what, settings.updates, "updates", state.update, silent=not self._group.first
            ) as progress,
        ):
            began, tokens = time.monotonic(), state.target_tokens
            before = state.seconds
            while state.update < settings.updates:
                stop = self._advance(*next(stream))
                state.seconds = before + time.monotonic() - began
                rate = (state.target_tokens - tokens) / (time.monotonic() - began)
                note = f"loss {state.interval['last']:.3f}, {rate:,.0f} tokens/s"
                progress.advance(note=note)
                self._record(tracker, rate)
                if state.update % settings.validate_every == 0 or state.update == settings.updates:
                    self._validate(validator, tracker, progress)
                state.seconds = before + time.monotonic() - began
                if state.update % settings.checkpoint_every == 0 or stop:
                    self._save()
                if stop:
                    raise Interrupted(
                        f"told to stop: saved at update {state.update} of {settings.updates}; "
                        "the same command goes on from there"
                    )

    def _advance(self, share: list[list[Sides]], position: Position) -> bool:
        """Make one update; True if any process has been told to stop."""
        settings, state = self._settings, self.state
        self._optimizer.clear()
        batches = [[Batch.of(part, self._group.device) for part in parts] for parts in share]
        source_tokens, tokens, flops = self._count(chain.from_iterable(batches))
        totals = torch.zeros(2, dtype=torch.float64, device=self._group.device)
        for number, parts in enumerate(batches):
            totals[0] += self._learn(parts, self._group.rank + number * self._group.size, tokens)
        totals[1] = float(self._stop)
        self._group.sum(totals)
        self._group.sum(self._optimizer.gradient)
        loss, norm = float(totals[0]) / tokens, self._optimizer.norm()
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise UserError(
                f"the loss of update {state.update + 1} is {loss}, its gradient's norm {norm}: "
                f"lower train.learning_rate ({settings.learning_rate}) or lengthen train.warmup "
                f"({settings.warmup})"
            )
        state.update += 1
        state.position = position
        rate = inverse_square_root(state.update, settings.learning_rate, settings.warmup)
        self._optimizer.step(rate, norm)
        state.source_tokens += source_tokens
        state.target_tokens += tokens
        state.flops += flops
        state.interval = {
            "loss": state.interval["loss"] + float(totals[0]),
            "tokens": state.interval["tokens"] + tokens,
            "last": loss,
            "learning_rate": rate,
            "gradient_norm": norm,
        }
        return bool(totals[1])

    def _count(self, batches: Iterable[Batch]) -> list[int]:
        """Source tokens, target tokens and FLOPs of these batches and all other processes'."""
        model, vocabulary = self._job.system.model, self.model.projection.out_features
        lengths = [pair for batch in batches for pair in batch.lengths]
        flops = sum(training_flops(model, vocabulary, *pair) for pair in lengths)
        counts = [sum(source for source, _ in lengths), sum(target for _, target in lengths), flops]
        shared = self._group.sum(torch.tensor(counts, device=self._group.device))
        result: list[int] = shared.tolist()
        return result

    def _learn(self, batch: list[Batch], place: int, tokens: int) -> float:
        """Add the gradient of the batch at `place` in an update of `tokens`; its summed loss."""
        # Dropout depends on the batch's place in the training, not on the process that has it.
        seeds = np.random.SeedSequence((self._job.cell.seed, self.state.update, place))
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]) >> 1)
        half = self._settings.precision == "bfloat16"
        total = 0.0
        for part in batch:
            with torch.autocast(self._group.device.type, torch.bfloat16, enabled=half):
                loss = part.loss(self.model, self._settings.label_smoothing)
            torch.autograd.backward(loss / tokens)
            total += float(loss.detach())
        return total

    def _record(self, tracker: Tracker | None, rate: float) -> None:
        """Put a point on the curve, now and then."""
        state = self.state
        every = max(1, self._settings.updates // _CURVE_POINTS)
        if state.update % every and state.update != self._settings.updates:
            return
        point = {
            "loss": state.interval["loss"] / state.interval["tokens"],
            "learning_rate": state.interval["learning_rate"],
            "gradient_norm": state.interval["gradient_norm"],
        }
        state.curve.append({"update": state.update, "tokens": state.target_tokens, **point})
        state.interval = {**state.interval, "loss": 0.0, "tokens": 0}
        if tracker:
            metrics = {f"train/{name}": value for name, value in point.items()}
            tracker.log(state.update, {**metrics, "train/tokens_per_second": rate})

    def _validate(self, validator: Validator, tracker: Tracker | None, progress: Progress) -> None:
        measures = validator.measure(self.model, self._group)
        self.state.validations.append({"update": self.state.update, **measures})
        if tracker:
            tracker.log(self.state.update, {f"valid/{k}": v for k, v in measures.items()})
            shown = ", ".join(f"{name} {value:.3f}" for name, value in measures.items())
            progress.say(f"update {self.state.update}: validation {shown}")

    def _save(self) -> None:
        if self._group.first:
            checkpoint.save(
                self._folder,
                self.state.update,
                checkpoint.weights(self.model),
                self._optimizer.tensors(),
                {**asdict(self.state), "fingerprint": self._marks.all},
            )
            checkpoint.prune(
                self._folder, self._settings.keep_last, self._settings.checkpoint_every
            )
        self._group.wait()

    def _resume(self) -> None:
        """Go on from the newest whole checkpoint, the same on every process."""
        if self._group.first:
            checkpoint.drop_damaged(self._folder)
        self._group.wait()
        found = checkpoint.latest(self._folder)
        if found is None:
            return
        if found.state["fingerprint"] != self._marks.all:
            raise UserError(f"{self._folder}: holds checkpoints of another training; remove it")
        checkpoint.load_weights(self.model, found.model)
        self._optimizer.load(found.optimizer)
        self.state = State.of(found.state)
        if self._group.first:
            print(f"going on from update {found.update} in {self._folder}", flush=True)

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


def _verify(corpus: Path, group: Group) -> None:
    """The first process reads the whole corpus; where it is damaged, all of them stop."""
    damage = None
    if group.first:
        try:
            BinaryCorpus(corpus).verify()
        except UserError as error:
            damage = error
    if group.sum(torch.tensor(float(damage is not None), device=group.device)):
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
