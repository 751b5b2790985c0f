"""The stage train: starts its processes, checks data and settings, trains, and writes the outputs.

`train_run` is the entry point. `check_training` refuses before the first update what would fail in
the middle of the training.
"""

import sys
from collections.abc import Iterator, Sequence
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
    """Train one run and write its outputs, in as many processes as the machine or the user sets.

    A training continues from its newest checkpoint if there is one.

    Args:
        run: The system, corpus and seed.

    Raises:
        UserError: The settings or the data do not allow the training.
        Interrupted: SIGTERM arrived; the training has saved a checkpoint.
    """
    # Refuse wrong settings before the processes start, which would each print the error.
    environment.timeout_seconds()
    if not is_launched():
        job_for_run(run, load_resolved_settings())
    start_processes()
    group = init_process_group()
    with group.raise_together():
        settings = load_resolved_settings()
        job = job_for_run(run, settings)
        fingerprints = Fingerprints.from_job(job)
    check_training(job, fingerprints, group)
    with _lock_work_folder(work_folder(job, fingerprints), group):
        # Another run may have written this training while we waited for the lock.
        work = work_folder(job, fingerprints)
        log = TrainingLog(settings, job, fingerprints, group, work)
        work.mkdir(parents=True, exist_ok=True)
        trainer = Trainer(job, group, work, fingerprints, log)
        if group.is_main:
            print(_describe_training(job, trainer, group), file=sys.stderr, flush=True)
            for note in _epoch_notes(job):
                print_message(note, "note")
        trainer.run()
        if group.is_main:
            export_checkpoints(job, work, fingerprints, run.models_folder / "checkpoints")
            export_results(trainer.state, fingerprints, run.results_folder, trainer.early_end)
            cost = log.stopwatch.cost(trainer.state, job.system.train.precision)
            write_json(training_cost_file(run, fingerprints.combined), asdict(cost))
    group.close()


def _describe_training(job: Job, trainer: Trainer, group: Group) -> str:
    """Return the line that says what is trained, until when, and on which device."""
    train = job.system.train
    limits = []
    if train.max_updates is not None:
        limits.append(counted(train.max_updates, "update"))
    if train.max_epochs is not None:
        limits.append(counted(train.max_epochs, "epoch"))
    # Without a limit, the training ends when the validation loss no longer improves.
    end = " or ".join(limits) or "patience"
    setting, size = train.update_size
    unit = "target token" if setting == "tokens_per_update" else "sentence"
    machine = describe_machine(group)
    device = f"{machine['processes']} x {machine['device']}"
    if group.device.type == "cpu":
        device += f" with {counted(machine['threads'], 'thread')}"
    return (
        f"train {job.run.system} {job.run.corpus}, seed {job.run.seed}: "
        f"{trainer.state.parameters:,} parameters, {end}; updates of "
        f"{counted(size, unit)} in {train.precision} on {device}"
    )


def _epoch_notes(job: Job) -> Iterator[str]:
    """Yield notes on settings that do not fit the number of updates in `max_epochs`.

    `bleuprint check` cannot give these notes: only the prepared text tells how many updates an
    epoch has.
    """
    train = job.system.train
    if train.max_epochs is None:
        return
    corpus = BinaryCorpus(job.corpus_folder)
    target_lengths = corpus.side("train", corpus.target).lengths
    updates = train.update_limit(int(target_lengths.sum()), len(target_lengths))
    # Notes on `max_updates` itself were given before.
    if updates != train.max_updates:
        source = f"the {updates:,} updates of max_epochs {train.max_epochs:,}"
        for note in system_notes(job.system, updates, source):
            yield f"systems.{job.run.system}: {note}"


def check_training(job: Job, fingerprints: Fingerprints, group: Group) -> None:
    """Check that a training can start, in all its processes.

    Each process compares the corpus that it reads with the recorded hashes, and all hashes with
    those of process 0.

    Args:
        job: The training.
        fingerprints: The hashes of its settings and data, in this process.
        group: The processes of the training.

    Raises:
        UserError: The training cannot start. All processes raise the same error.
    """
    setting = f"systems.{job.run.system}.train.precision"
    with group.raise_together():
        if job.system.arithmetic == "portable":
            check_portable(job.run.system, group.size)
        check_precision(setting, job.system.train.precision, group.device)
        corpus = BinaryCorpus(job.corpus_folder)
        corpus.verify()
    _check_equal_inputs(job, fingerprints, group)
    with group.raise_together():
        _check_sentence_lengths(job, corpus)
        _check_update_size(job, corpus)


def _check_equal_inputs(job: Job, fingerprints: Fingerprints, group: Group) -> None:
    """Check that all processes of a training have the same data, settings and version of torch.

    Raises:
        UserError: A process differs from process 0; the message names its host and a file.
    """
    if group.size == 1:
        return
    compared = {**fingerprints.by_name(), "version of torch": torch.__version__}
    for name, value in compared.items():
        values = group.gather(value)
        rank = _first_differing_rank(values)
        if rank is None:
            continue
        # All processes come here, since all have gathered the same values.
        file_lines = []
        for file_name, sha256 in job.file_hashes(name).items():
            file_lines.append(f"{sha256[:16]} {file_name}\n")
        file_lists = group.gather("".join(file_lines))
        file = _first_differing_file(file_lists[0], file_lists[rank])
        file_text = f" ({file} differs)" if file else ""
        raise UserError(
            f"{group.process_names()[rank]} does not have the same {name} as process 0"
            f"{file_text}: processes train together from one folder, or from identical copies"
        )


def _first_differing_rank(values: Sequence[str]) -> int | None:
    """Return the first process whose value differs from the one of process 0; None if none does."""
    for rank, value in enumerate(values):
        if value != values[0]:
            return rank
    return None


def _first_differing_file(first_list: str, second_list: str) -> str | None:
    """Return the first file that only one of two lists has with this hash.

    Args:
        first_list: A line `HASH NAME` for each file.
        second_list: The same, from another process.

    Returns:
        The name of the file; None if both lists are equal.
    """
    first_lines = first_list.splitlines()
    second_lines = second_list.splitlines()
    for line in [*first_lines, *second_lines]:
        if line not in first_lines or line not in second_lines:
            return line.partition(" ")[2]
    return None


def _check_sentence_lengths(job: Job, corpus: BinaryCorpus) -> None:
    """Check that no sentence is longer than the model or a batch allows, and that no set is empty.

    Raises:
        UserError: A sentence is too long, or train or valid has no sentences.
    """
    train = job.system.train
    for set_name in corpus.sets:
        limit_name = "model.max_positions"
        limit = job.system.model.max_positions
        if set_name == "train" and train.max_tokens < limit:
            limit_name = "train.max_tokens"
            limit = train.max_tokens
        is_test_set = set_name.startswith("test.")
        languages = [corpus.source]
        if not is_test_set:
            # The model reads both sides of train and valid, but not the references of a test set.
            languages.append(corpus.target)
        for language in languages:
            lengths = corpus.side(set_name, language).lengths
            if len(lengths) == 0 and not is_test_set:
                raise UserError(f"corpus {job.run.corpus}: {set_name}.{language} has no sentences")
            longest = int(lengths.max(initial=0))
            if longest > limit:
                line_number = int(lengths.argmax()) + 1
                raise UserError(
                    f"corpus {job.run.corpus}: line {line_number} of {set_name}.{language} has "
                    f"{longest} tokens with EOS, and {limit_name} of {job.run.system} is {limit}: "
                    "raise it, or lower filter.length.max"
                )


def _check_update_size(job: Job, corpus: BinaryCorpus) -> None:
    """Check that the training text has at least one update, and enough of them to average.

    Raises:
        UserError: It has less than one update, or `max_epochs` gives too few checkpoints.
    """
    train = job.system.train
    _, update_size = train.update_size
    target_lengths = corpus.side("train", corpus.target).lengths
    target_tokens = int(target_lengths.sum())
    pair_count = len(target_lengths)
    is_in_tokens = train.tokens_per_update is not None
    text_size = target_tokens if is_in_tokens else pair_count
    if text_size < update_size:
        unit = "target token" if is_in_tokens else "pair"
        raise UserError(
            f"corpus {job.run.corpus}: train has {counted(text_size, unit)}, less than one update "
            f"of {job.run.system}: {_update_size_advice(job, corpus, text_size)}"
        )
    updates = train.update_limit(target_tokens, pair_count)
    try:
        job.system.check_average(updates)
    except ValueError as error:
        raise UserError(
            f"{job.run.system} on {job.run.corpus}: train.max_epochs {train.max_epochs} are "
            f"at most {counted(updates or 0, 'update')}, too few: {error}"
        ) from None


def _update_size_advice(job: Job, corpus: BinaryCorpus, text_size: int) -> str:
    """Return which settings to lower for a training text that is smaller than one update.

    Args:
        job: The training.
        corpus: The prepared corpus.
        text_size: The size of the training text, in target tokens or in sentence pairs, as the
            size of an update.
    """
    train = job.system.train
    setting, update_size = train.update_size
    is_in_tokens = train.tokens_per_update is not None
    # A batch must hold the longest sentence, and an update holds at least one batch.
    smallest = 1
    if is_in_tokens:
        for language in (corpus.source, corpus.target):
            smallest = max(smallest, int(corpus.side("train", language).lengths.max()))
    # A tenth of the text is a small update, but leaves some updates in an epoch.
    value = max(text_size // 10, smallest)
    if value > text_size:
        return "set sentences_per_update: 1"
    advice = f"lower train.{setting} ({update_size})"
    if is_in_tokens and train.max_tokens > value:
        advice += f" and train.max_tokens ({train.max_tokens})"
    return f"{advice} to {value}, for example"


def _lock_work_folder(work: Path, group: Group) -> AbstractContextManager[object]:
    """Lock the folder of a training, so that no other stage runs the same training.

    Waits for another stage that runs it.

    Args:
        work: The folder of the training.
        group: The processes of the training. Only the main one holds the lock.

    Raises:
        UserError: Another stage runs the training, and this one has several processes: while the
            main one waited, the other ones would time out.
    """
    if not group.is_main:
        return nullcontext()
    work.parent.mkdir(parents=True, exist_ok=True)
    # The suffix is the fingerprint of the training, so systems with the same training share a lock.
    lock = FileLock(work.with_name(f"{work.suffix}.lock"))
    held = f"{work}: another process is running this training"
    return lock.acquire_or_notify(held, wait=group.size == 1)
