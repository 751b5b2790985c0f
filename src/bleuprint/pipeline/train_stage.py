"""The stage train: its processes, checks before it starts, the training, its outputs."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path

import torch

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.config.paths import Run
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.arithmetic import check_portable
from bleuprint.model.precision import check_precision
from bleuprint.runtime import environment
from bleuprint.runtime.distributed.group import Group, init_process_group
from bleuprint.runtime.distributed.launch import start_processes
from bleuprint.runtime.distributed.ranks import is_launched
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import write_json
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.wording import counted
from bleuprint.tracking.hardware import describe_machine
from bleuprint.tracking.timings import training_cost_file
from bleuprint.tracking.training_log import TrainingLog
from bleuprint.training.fingerprints import Fingerprints, work_folder
from bleuprint.training.job import Job, job_for_run
from bleuprint.training.outputs import export_checkpoints, export_results
from bleuprint.training.schedule_notes import system_notes
from bleuprint.training.trainer import Trainer


def train_run(run: Run) -> None:
    """Train one run, in the processes that the machine or the user sets, and write its outputs.

    A training continues from its newest checkpoint if there is one. Raises UserError at an error in
    params.yaml, Interrupted, after saving, on SIGTERM.
    """
    environment.timeout_seconds()
    if not is_launched():
        job_for_run(run, load_resolved_settings())  # refuses wrong settings before the start
    start_processes()
    group = init_process_group()
    with group.raise_together():
        settings = load_resolved_settings()
        job = job_for_run(run, settings)
        fingerprints = Fingerprints.from_job(job)
    check_training(job, fingerprints, group)
    with _locked(work_folder(job, fingerprints), group):
        work = work_folder(job, fingerprints)  # another run may just have had this training
        log = TrainingLog(settings, job, fingerprints, group, work)
        work.mkdir(parents=True, exist_ok=True)
        trainer = Trainer(job, group, work, fingerprints, log)
        if group.is_main:
            print(_start(job, trainer, group), file=sys.stderr, flush=True)
            for note in _notes_on_epochs(job):
                print_message(note, "note")
        trainer.run()
        if group.is_main:
            export_checkpoints(job, work, fingerprints, run.models_folder / "checkpoints")
            export_results(trainer.state, fingerprints, run.results_folder, trainer.early_end)
            cost = log.stopwatch.cost(trainer.state, job.system.train.precision)
            write_json(training_cost_file(run, fingerprints.combined), asdict(cost))
    group.close()


def _start(job: Job, trainer: Trainer, group: Group) -> str:
    """What is trained, and on what."""
    train, machine = job.system.train, describe_machine(group)
    setting, size = train.update_size
    ends = [counted(train.max_updates, "update")] if train.max_updates is not None else []
    ends += [counted(train.max_epochs, "epoch")] if train.max_epochs is not None else []
    of = "target token" if setting == "tokens_per_update" else "sentence"
    threads = f" with {counted(machine['threads'], 'thread')}" if group.device.type == "cpu" else ""
    device = f"{machine['processes']} x {machine['device']}{threads}"
    return (
        f"train {job.run.system} {job.run.corpus}, seed {job.run.seed}: "
        f"{trainer.state.parameters:,} parameters, {' or '.join(ends) or 'patience'}; updates of "
        f"{counted(size, of)} in {train.precision} on {device}"
    )


def _notes_on_epochs(job: Job) -> Iterator[str]:
    """Notes on settings that do not fit the updates of `max_epochs`, known only now."""
    train = job.system.train
    if train.max_epochs is None:
        return
    corpus = BinaryCorpus(job.corpus_folder)
    lengths = corpus.side("train", corpus.target).lengths
    updates = train.update_limit(int(lengths.sum()), len(lengths))
    if updates != train.max_updates:
        source = f"the {updates:,} updates of max_epochs {train.max_epochs:,}"
        for note in system_notes(job.system, updates, source):
            yield f"systems.{job.run.system}: {note}"


def check_training(job: Job, fingerprints: Fingerprints, group: Group) -> None:
    """Raise UserError if the training cannot start, on all processes and with the same message.

    Each process compares the bytes of the corpus that it reads with the recorded hashes, and these
    with the hashes of process 0.
    """
    setting = f"systems.{job.run.system}.train.precision"
    with group.raise_together():
        if job.system.arithmetic == "portable":
            check_portable(job.run.system, group.size)
        check_precision(setting, job.system.train.precision, group.device)
        corpus = BinaryCorpus(job.corpus_folder)
        corpus.verify()
    _check_same(job, fingerprints, group)
    with group.raise_together():
        _check_lengths(job, corpus)
        _check_size(job, corpus)


def _check_same(job: Job, fingerprints: Fingerprints, group: Group) -> None:
    """Raise UserError, which names host, rank and file, if a process has other data than rank 0."""
    if group.size == 1:
        return
    for what, mark in {**fingerprints.by_name(), "version of torch": torch.__version__}.items():
        marks = group.gather(mark)
        others = [rank for rank in range(group.size) if marks[rank] != marks[0]]
        if not others:
            continue
        hashes = job.file_hashes(what)
        texts = group.gather("".join(f"{sha[:16]} {name}\n" for name, sha in hashes.items()))
        file = _first_other_file(texts[0], texts[others[0]])
        where = f" ({file} differs)" if file else ""
        raise UserError(
            f"{group.process_names()[others[0]]} does not have the same {what} "
            f"as process 0{where}: "
            "processes train together from one folder, or from identical copies"
        )


def _first_other_file(ours: str, theirs: str) -> str | None:
    """The first file whose line `HASH NAME` is in one of two texts alone."""
    own_lines, other_lines = ours.splitlines(), theirs.splitlines()
    for line in [*own_lines, *other_lines]:
        if line not in own_lines or line not in other_lines:
            return line.partition(" ")[2]
    return None


def _check_lengths(job: Job, corpus: BinaryCorpus) -> None:
    """Raise UserError if a set has no sentences, or one that is too long for the model."""
    train = job.system.train
    for name in corpus.sets:
        limit, most = "model.max_positions", job.system.model.max_positions
        if name == "train" and train.max_tokens < most:
            limit, most = "train.max_tokens", train.max_tokens
        # references of test sets are not read by the model
        for language in (corpus.source, corpus.target)[: 1 if name.startswith("test.") else 2]:
            lengths = corpus.side(name, language).lengths
            if not len(lengths) and not name.startswith("test."):
                raise UserError(f"corpus {job.run.corpus}: {name}.{language} has no sentences")
            if (longest := int(lengths.max(initial=0))) > most:
                raise UserError(
                    f"corpus {job.run.corpus}: line {int(lengths.argmax()) + 1} of {name}."
                    f"{language} has {longest} tokens with EOS, and {limit} of "
                    f"{job.run.system} is {most}: raise it, or lower filter.length.max"
                )


def _check_size(job: Job, corpus: BinaryCorpus) -> None:
    """Raise UserError if train has less than an update, or its epochs make too few checkpoints."""
    train, (setting, update) = job.system.train, job.system.train.update_size
    source, target = (corpus.side("train", each).lengths for each in (corpus.source, corpus.target))
    by_tokens, tokens = train.tokens_per_update is not None, int(target.sum())
    size, what = (tokens, "target token") if by_tokens else (len(target), "pair")
    if size >= update:
        try:
            job.system.check_average(updates := train.update_limit(tokens, len(target)))
        except ValueError as error:
            raise UserError(
                f"{job.run.system} on {job.run.corpus}: train.max_epochs {train.max_epochs} are "
                f"at most {counted(updates or 0, 'update')}, too few: {error}"
            ) from None
        return
    # a batch must hold the longest sentence, and an update a batch
    smallest = int(max(source.max(), target.max())) if by_tokens else 1
    value = max(size // 10, smallest)
    lower = f"lower train.{setting} ({update})"
    if by_tokens and train.max_tokens > value:
        lower += f" and train.max_tokens ({train.max_tokens})"
    advice = f"{lower} to {value}, for example" if value <= size else "set sentences_per_update: 1"
    raise UserError(
        f"corpus {job.run.corpus}: train has {counted(size, what)}, less than one update of "
        f"{job.run.system}: {advice}"
    )


def _locked(work: Path, group: Group) -> AbstractContextManager[object]:
    """Keep other processes from a training; wait for one that has it.

    Raises UserError instead if the training has several processes, which would time out waiting.
    """
    if not group.is_main:
        return nullcontext()
    work.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(work.with_name(f"{work.suffix}.lock"))  # of all runs with this training
    held = f"{work}: another process is running this training"
    return lock.acquire_or_notify(held, wait=group.size == 1)
