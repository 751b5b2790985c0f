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

from bleuprint.config.experiment import Settings, load_resolved_settings
from bleuprint.config.paths import Run
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.arithmetic import check_portable
from bleuprint.model.precision import check_precision
from bleuprint.runtime import environment
from bleuprint.runtime.distributed.group import Group, init_process_group
from bleuprint.runtime.distributed.launch import hold_gpus_of_training, start_processes
from bleuprint.runtime.distributed.ranks import is_launched
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.wording import counted
from bleuprint.serving.pretrained_models import import_named_models
from bleuprint.tracking.hardware import describe_machine
from bleuprint.tracking.timings import training_cost_file
from bleuprint.tracking.training_log import TrainingLog
from bleuprint.training.fingerprints import Fingerprints, work_folder
from bleuprint.training.job import Job, job_for_run
from bleuprint.training.outputs import export_checkpoints, export_results
from bleuprint.training.schedule_notes import UpdateLimit, system_notes
from bleuprint.training.trainer import Trainer

# How much of a SHA-256 is compared to find the file that differs between two processes.
_HASH_CHARACTERS = 16


def train_run(run: Run) -> None:
    """Train a model and write its checkpoints, its results and its cost.

    The training may use several processes: one per GPU, or as many as the user wants. Each of them
    runs this function. A training that was interrupted continues from its newest checkpoint.

    Args:
        run: The system, the corpus and the seed of the training.

    Raises:
        UserError: The settings or the data do not allow the training.
        Interrupted: SIGTERM arrived; the training has saved a checkpoint.
    """
    # The results of these two calls are not needed. But at a mistake of the user they raise
    # UserError now, and not in each of several processes.
    environment.timeout_seconds()
    if not is_launched():
        _checked_job(run, load_resolved_settings())
    with hold_gpus_of_training():
        # For several processes, this one starts them, waits, and ends here with their exit status.
        start_processes()
        _train_as_member(run)


def _checked_job(run: Run, settings: Settings) -> Job:
    """Return the job of a training, after importing the pretrained model that it may start from.

    Args:
        run: The system, the corpus and the seed of the training.
        settings: The settings of the experiment.

    Raises:
        UserError: The settings do not fit the files, or the pretrained model cannot be imported.
    """
    train_settings = settings.system_on(run.system, run.corpus).train
    import_named_models(train_settings, ["runs", run.system, run.corpus, "train"])
    return job_for_run(run, settings)


def _train_as_member(run: Run) -> None:
    """Train a model in one of the processes of its training.

    Args:
        run: The system, the corpus and the seed of the training.
    """
    group = init_process_group()
    # If one process raises an error in this block, all raise it, so that none waits for another.
    with group.raise_together():
        settings = load_resolved_settings()
        job = _checked_job(run, settings)
        # Hashes of the settings, the data and the code. They name the folder of the training.
        fingerprints = Fingerprints.from_job(job)
    check_training(job, fingerprints, group)
    with _lock_work_folder(work_folder(job, fingerprints), group):
        # While this process waited for the lock, another one may have run the same training for a
        # system with another name. Then this call returns the folder of that training.
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
    """Return the line of text that is printed at the start: the model, the limits and the device.

    An example is `train small own, seed 1: 4,000,000 parameters, 9,000 updates; updates of 4,096
    target tokens in float32 on 1 x cpu with 2 threads`.

    Args:
        job: The settings and data of the training.
        trainer: The trainer, which has built the model.
        group: The processes of the training.
    """
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
    """Yield notes on settings that do not fit the number of updates in a training by epochs.

    An example is a warmup that is longer than the training. `bleuprint check` gives such notes, but
    without the prepared text it does not know how many updates an epoch has.

    Args:
        job: The settings and data of the training.
    """
    train = job.system.train
    if train.max_epochs is None:
        return
    corpus = BinaryCorpus(job.corpus_folder)
    target = corpus.side("train", corpus.target)
    updates = train.update_limit(target.token_count, len(target))
    # If `max_updates` ends the training earlier, `bleuprint check` has given the notes already.
    if updates is None or updates == train.max_updates:
        return
    description = f"the {updates:,} updates of max_epochs {train.max_epochs:,}"
    for note in system_notes(job.system, UpdateLimit(updates, description)):
        yield f"systems.{job.run.system}: {note}"


def check_training(job: Job, fingerprints: Fingerprints, group: Group) -> None:
    """Check, before a training starts, its settings, its data and its device.

    Each process of the training calls this. The processes may run on several machines, so they also
    check that they have read the same settings and data.

    Args:
        job: The settings and data of the training.
        fingerprints: The hashes of the settings and data that this process has read.
        group: The processes of the training.

    Raises:
        UserError: The training cannot start. If one process finds an error, all of them raise it.
    """
    setting = f"systems.{job.run.system}.train.precision"
    # In such a block, an error in one process is raised in all of them. Otherwise the other
    # processes would wait for it without end.
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

    Args:
        job: The settings and data of the training.
        fingerprints: The hashes of the settings and data that this process has read.
        group: The processes, which may run on several machines.

    Raises:
        UserError: A process differs from process 0. The message names its machine and, if a file
            differs, the file.
    """
    if group.size == 1:
        return
    compared = {**fingerprints.by_name(), "version of torch": torch.__version__}
    for name, value in compared.items():
        # Every process gets the values of all processes.
        values = group.gather(value)
        rank = _first_differing_rank(values)
        if rank is None:
            continue
        # All processes come here, since all have compared the same values. This matters, as
        # `gather` waits until each of them calls it.
        file_lists = group.gather(_list_file_hashes(job, name))
        file = _first_differing_file(file_lists[0], file_lists[rank])
        file_text = f" ({file} differs)" if file else ""
        raise UserError(
            f"{group.process_names()[rank]} does not have the same {name} as process 0"
            f"{file_text}. Start all processes in one folder, or in identical copies of it"
        )


def _list_file_hashes(job: Job, name: str) -> str:
    """Return a text with a line `HASH FILE` for each file that a training reads.

    Args:
        job: The settings and data of the training.
        name: Which files: `data` for the corpus, or `start` for the weights to start from. For any
            other name, the text is empty.
    """
    lines = []
    for file_name, sha256 in job.file_hashes(name).items():
        # The start of a hash is enough to tell two files apart, and keeps the message short that
        # the processes exchange.
        lines.append(f"{sha256[:_HASH_CHARACTERS]} {file_name}\n")
    return "".join(lines)


def _first_differing_rank(values: Sequence[str]) -> int | None:
    """Return the number of the first process whose value differs from the value of process 0.

    Args:
        values: The value of each process, by its number.

    Returns:
        The number; None if all processes have the same value.
    """
    for rank, value in enumerate(values):
        if value != values[0]:
            return rank
    return None


def _first_differing_file(first_list: str, second_list: str) -> str | None:
    """Return the first file that differs between two processes, by their lists of file hashes.

    Args:
        first_list: The list of one process, with a line `HASH NAME` for each file.
        second_list: The list of the other process.

    Returns:
        The name of the file; None if both lists are equal.
    """
    first_lines = first_list.splitlines()
    second_lines = second_list.splitlines()
    for line in [*first_lines, *second_lines]:
        # The file is missing in one list, or has another hash there.
        if line not in first_lines or line not in second_lines:
            return line.partition(" ")[2]
    return None


def _check_sentence_lengths(job: Job, corpus: BinaryCorpus) -> None:
    """Check that all sentences fit into the model and into a batch, and that there are sentences.

    Args:
        job: The settings and data of the training.
        corpus: The prepared corpus, with the training text, the validation set and test sets.

    Raises:
        UserError: A sentence has too many tokens, or the training text or the validation set has
            no sentences.
    """
    train = job.system.train
    for set_name in corpus.sets:
        limit_name = "model.max_positions"
        limit = job.system.model.max_positions
        # `max_tokens` limits the batches of the training text.
        if set_name == "train" and train.max_tokens < limit:
            limit_name = "train.max_tokens"
            limit = train.max_tokens
        is_test_set = set_name.startswith("test.")
        # The model reads both sides of training and validation text, but only the source of a test
        # set. Its references may be longer.
        languages = [corpus.source]
        if not is_test_set:
            languages.append(corpus.target)
        for language in languages:
            sentences = corpus.side(set_name, language)
            if len(sentences) == 0 and not is_test_set:
                raise UserError(f"corpus {job.run.corpus}: {set_name}.{language} has no sentences")
            longest = sentences.longest
            if longest > limit:
                line_number = int(sentences.lengths.argmax()) + 1
                raise UserError(
                    f"corpus {job.run.corpus}: line {line_number} of {set_name}.{language} has "
                    f"{longest} tokens with EOS, but {limit_name} of {job.run.system} is {limit}. "
                    f"Raise {limit_name}, or lower filter.length.max"
                )


def _check_update_size(job: Job, corpus: BinaryCorpus) -> None:
    """Check that the training text is large enough for one update and for all checkpoints.

    Each update of the weights reads a number of target tokens or sentence pairs from the settings.
    At the end, several checkpoints are averaged, so there must be enough updates to write them.

    Args:
        job: The settings and data of the training.
        corpus: The prepared corpus.

    Raises:
        UserError: The text is smaller than one update, or `max_epochs` ends the training before
            there are enough checkpoints.
    """
    train = job.system.train
    _, update_size = train.update_size
    target = corpus.side("train", corpus.target)
    target_tokens = target.token_count
    pair_count = len(target)
    is_in_tokens = train.tokens_per_update is not None
    text_size = target_tokens if is_in_tokens else pair_count
    if text_size < update_size:
        unit = "target token" if is_in_tokens else "pair"
        raise UserError(
            f"corpus {job.run.corpus}: train has {counted(text_size, unit)}, less than one update "
            f"of {job.run.system}. {_update_size_advice(job, corpus, text_size)}"
        )
    updates = train.update_limit(target_tokens, pair_count)
    try:
        job.system.check_average(updates)
    except ValueError as error:
        raise UserError(
            f"{job.run.system} on {job.run.corpus}: train.max_epochs {train.max_epochs} gives too "
            f"few updates ({updates or 0:,}): {error}"
        ) from None


def _update_size_advice(job: Job, corpus: BinaryCorpus, text_size: int) -> str:
    """Return advice for a training text that is smaller than one update: which setting to lower.

    Args:
        job: The settings and data of the training.
        corpus: The prepared corpus.
        text_size: The size of the training text, in the unit in which the settings give the size of
            an update: target tokens or sentence pairs.

    Returns:
        A sentence such as `Lower train.tokens_per_update (4096) to 120, for example`.
    """
    train = job.system.train
    setting, update_size = train.update_size
    is_in_tokens = train.tokens_per_update is not None
    # An update contains at least one batch, and a batch must hold the longest sentence.
    smallest_size = 1
    if is_in_tokens:
        for language in (corpus.source, corpus.target):
            smallest_size = max(smallest_size, corpus.side("train", language).longest)
    # A tenth of the text, so that an epoch has ten updates.
    suggested_size = max(text_size // 10, smallest_size)
    if suggested_size > text_size:
        # The source may have a sentence that is longer than all target sentences together.
        return "Set sentences_per_update: 1"
    advice = f"Lower train.{setting} ({update_size})"
    if is_in_tokens and train.max_tokens > suggested_size:
        advice += f" and train.max_tokens ({train.max_tokens})"
    return f"{advice} to {suggested_size}, for example"


def _lock_work_folder(work: Path, group: Group) -> AbstractContextManager[object]:
    """Return a lock on the folder of a training, to be held in a `with` block.

    Two systems with the same training share its folder. If the stages of both run at the same time,
    the second one prints a note and waits until the first one has finished.

    Args:
        work: The folder of the training, such as `work/trainings/small.own.1.0123456789abcdef`.
        group: The processes of the training. Only the main one takes the lock.

    Raises:
        UserError: Another stage holds the lock, and this training has several processes. Then it
            cannot wait: the connections of the other processes to the main one would time out.
    """
    if not group.is_main:
        return nullcontext()
    work.parent.mkdir(parents=True, exist_ok=True)
    # The suffix of the folder's name is a hash of the settings and data. Named after it alone, the
    # lock is the same for all systems with this training.
    lock = FileLock(work.with_name(f"{work.suffix}.lock"))
    held = f"{work}: another process is running this training"
    return lock.acquire_or_notify(held, should_wait=group.size == 1)
