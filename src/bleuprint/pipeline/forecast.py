"""The forecast of a training: its time, FLOPs, disk space and energy, from a short probe."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

import numpy as np

from bleuprint.config.experiment import Corpus, Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.config.system import System, Train
from bleuprint.dataset.batch import Batch, PairIds, Sentence
from bleuprint.dataset.batching import PlannedBatch, PlannedUpdate, Position, plan_updates
from bleuprint.dataset.binarized import CORPUS, BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import SPECIALS
from bleuprint.model.linear import check_bfloat16
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.pipeline.train_stage import job_of, work_folder
from bleuprint.runtime import environment
from bleuprint.runtime.distributed import slurm
from bleuprint.runtime.distributed.group import Group, gpu_count, init_process_group
from bleuprint.runtime.errors import UserError
from bleuprint.tracking.energy import joules
from bleuprint.training import checkpoint
from bleuprint.training.data_loader import LocalUpdate, local_updates
from bleuprint.training.job import Fingerprints
from bleuprint.training.train_step import OutOfMemory, TrainStep, detect_out_of_memory

# Tokens of a sentence if the corpus is not prepared yet; those of WMT have 25 to 30.
_LENGTH = 25
# Updates before the measurement, and its length: the seconds, and the updates at least.
_WARM_UP, _SECONDS, _UPDATES = 3, 4.0, 3
# FLOPs of an update, above which a CPU, which would take minutes, is measured on a part of it.
_MOST_FLOPS, _PART = 1e12, 512  # tokens
# A number is float32; a checkpoint has the weights and the two moments of Adam.
_NUMBER, _CHECKPOINT = 4, 12


@dataclass(frozen=True)
class Forecast:
    """What a training will take, from its update `done` on.

    `updates` is None if only the prepared corpus tells their number; then so are `seconds` and
    `joules`, the latter also on a machine that does not measure its energy. `flops`: of one update;
    `disk`: bytes in work/ and models/. `prepared`: whether the probe could read the corpus.
    """

    done: int
    updates: int | None
    seconds: float | None
    joules: float | None
    flops: float
    disk: int
    prepared: bool


@dataclass(frozen=True)
class _Speed:
    """Of an update: seconds, FLOPs, joules."""

    seconds: float
    flops: float
    joules: float | None

    def scaled(self, factor: float) -> "_Speed":
        used = None if self.joules is None else factor * self.joules
        return _Speed(factor * self.seconds, factor * self.flops, used)


def forecast(settings: Settings, cell: Cell, anew: bool = False) -> Forecast:
    """Train a few updates of a cell on this machine, and extrapolate to all of them.

    `anew`: from the first update on, whatever is in work/. Without the prepared corpus, the probe
    trains on sentences of random tokens. Validations, checkpoints and the exchange between
    processes are not included. Raises UserError if an update does not fit into memory.
    """
    system, group = settings.system_on(cell.system, cell.corpus), init_process_group()
    if system.train.precision == "bfloat16":
        check_bfloat16(group.device, f"systems.{cell.system}.train.precision bfloat16")
    path = folder(cell.corpus, "binary")
    corpus = BinaryCorpus(path) if (path / CORPUS).exists() else None
    sizes = _vocabularies(settings.corpus(cell.corpus), corpus)
    try:
        with detect_out_of_memory():
            model = Transformer(system.model, *sizes).to(group.device)
            step = TrainStep(model, system.train, cell.seed, group)
        part = 1.0 if group.device.type == "cuda" else _part(system.train, count_parameters(model))
        if part < 1.0:
            small = replace(
                system.train, tokens_per_update=_PART, sentences_per_update=None, max_tokens=_PART
            )
            speed = _measure(step, _random_updates(small, sizes), group).scaled(1.0 / part)
        elif corpus is None:
            speed = _measure(step, _random_updates(system.train, sizes), group)
        else:
            with closing(local_updates(corpus, system, cell.seed, Position(), group)) as updates:
                speed = _measure(step, updates, group)
    except OutOfMemory:
        raise UserError(
            f"systems.{cell.system}: an update does not fit into the memory of {group.device}: "
            f"lower train.max_tokens ({system.train.max_tokens})"
        ) from None
    total = _updates(system.train, corpus, cell.seed)
    done = _done(settings, cell) if corpus and not anew else 0
    left = None if total is None else max(0, total - done)
    return Forecast(
        done=done,
        updates=total,
        seconds=None if left is None else _start() + left * speed.seconds / _devices(),
        joules=None if left is None or speed.joules is None else left * speed.joules,
        flops=speed.flops,
        disk=_disk(system, count_parameters(model)),
        prepared=corpus is not None,
    )


def _part(train: Train, parameters: int) -> float:
    """The part of an update that is measured on a CPU.

    A training takes about 6 FLOPs for each parameter and token (Kaplan et al. 2020, section 2.1).
    """
    tokens = train.tokens_per_update or _LENGTH * (train.sentences_per_update or 0)
    return 1.0 if 6 * parameters * tokens < _MOST_FLOPS else min(1.0, _PART / tokens)


def _measure(step: TrainStep, updates: Iterator[LocalUpdate], group: Group) -> _Speed:
    """The mean of some updates, after those in which kernels are compiled and memory is taken."""
    for number, local in enumerate(islice(updates, _WARM_UP), 1):
        step.update(number, local)
    energy, began = joules(group.device), time.monotonic()
    flops, count = 0, 0
    for number, local in enumerate(updates, _WARM_UP + 1):
        flops += step.update(number, local).flops
        count += 1
        if count >= _UPDATES and time.monotonic() - began > _SECONDS:
            break
    seconds, now = time.monotonic() - began, joules(group.device)
    count = max(count, 1)
    # a counter that has wrapped around is smaller than before
    used = None if energy is None or now is None or now < energy else (now - energy) / count
    return _Speed(seconds / count, flops / count, used)


def _random_updates(train: Train, vocabularies: tuple[int, int]) -> Iterator[LocalUpdate]:
    """Updates of the size that `train` sets, in batches of at most max_tokens."""
    random, (source, target) = np.random.default_rng(1), vocabularies
    pairs = train.sentences_per_update or max(1, (train.tokens_per_update or 0) // _LENGTH)
    size = max(1, train.max_tokens // _LENGTH)
    while True:
        sizes = [min(size, pairs - first) for first in range(0, pairs, size)]
        batches = [
            [Batch.from_ids(PairIds(_sentences(random, n, source), _sentences(random, n, target)))]
            for n in sizes
        ]
        planned = [PlannedBatch(0, np.arange(n)) for n in sizes]
        update = PlannedUpdate(planned, pairs * _LENGTH)
        yield LocalUpdate(update, range(len(sizes)), batches, Position())


def _sentences(random: np.random.Generator, count: int, vocabulary: int) -> list[Sentence]:
    return list(random.integers(len(SPECIALS), vocabulary, (count, _LENGTH)))


def _vocabularies(corpus: Corpus, binary: BinaryCorpus | None) -> tuple[int, int]:
    """The sizes of both vocabularies, estimated if the corpus is not prepared."""
    if binary is not None:
        languages = binary.source, binary.target
        source, target = (len(binary.segmentation(each).vocabulary) for each in languages)
        return source, target
    units = corpus.vocabulary
    if units.sentencepiece is not None:
        return units.sentencepiece.size, units.sentencepiece.size
    size = units.bpe.num_merges if units.bpe else units.words.max_size if units.words else 0
    return len(SPECIALS) + size, len(SPECIALS) + size


def _updates(train: Train, corpus: BinaryCorpus | None, seed: int) -> int | None:
    """The most updates that a training can have; None if they depend on a corpus that is absent."""
    limits = [] if train.max_updates is None else [train.max_updates]
    if train.max_epochs is not None and corpus is not None:
        updates = plan_updates(
            corpus.side("train", corpus.source).lengths,
            corpus.side("train", corpus.target).lengths,
            tokens_per_update=train.tokens_per_update,
            sentences_per_update=train.sentences_per_update,
            max_tokens=train.max_tokens,
            seed=seed,
            start=Position(),
            epochs=train.max_epochs,
        )
        limits.append(sum(1 for _ in updates))
    return min(limits, default=None)


def _done(settings: Settings, cell: Cell) -> int:
    """The updates of the training that are in work/ already."""
    job = job_of(cell, settings)
    checkpoints = checkpoint.paths(work_folder(job, Fingerprints.from_job(job)))
    return max(map(checkpoint.update_of, checkpoints), default=0)


def _disk(system: System, parameters: int) -> int:
    """Bytes of the checkpoints in work/, and of those in models/ with their average."""
    keep = system.train.keep
    kept = keep.last + keep.best
    return parameters * (kept * _CHECKPOINT + (kept + 1) * _NUMBER)


def _devices() -> int:
    """Devices that train together; processes on CPUs share the cores of a machine."""
    gpus = gpu_count()
    return slurm.nodes() * (environment.processes() or gpus if gpus else 1)


@cache
def _start() -> float:
    """The seconds in which Python loads what a training needs."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import bleuprint.pipeline.train_stage"], check=True)
    return time.monotonic() - began
