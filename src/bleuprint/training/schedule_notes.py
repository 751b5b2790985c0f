"""Notes on training settings that are valid one by one, but do not fit each other.

A note is a message that `bleuprint check` and a training print without stopping.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.config.optimization import InverseSqrt
from bleuprint.config.system import System, Train
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.runtime.errors import UserError
from bleuprint.training.lr_schedule import learning_rate

# The default of warmup_updates, which a note marks, since the user has not written it. The schedule
# `noam` has the same default.
_DEFAULT_WARMUP_UPDATES = InverseSqrt.warmup_updates


class UpdateLimit(NamedTuple):
    """The number of updates after which a training ends at the latest.

    Attributes:
        updates: The number of updates.
        description: How notes name this number, with the setting that it comes from: `max_updates
            10,000`, or `the 9,500 updates of max_epochs 20 on CORPUS`.
    """

    updates: int
    description: str


def schedule_notes(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """Yield notes on settings of training that do not fit together, for all systems.

    An example is a warmup that is longer than the training. Each note is one line, which begins
    with the systems that it applies to, so that systems with the same settings share one note.

    Args:
        settings: The settings of the experiment.
        root: The folder of the project. It contains the statistics of the corpora that have been
            prepared, from which the number of updates in `max_epochs` is computed.
    """
    system_names_by_note: dict[str, list[str]] = {}
    for corpus_name, corpus in settings.corpora.items():
        for system_name, system in settings.trained_systems_on(corpus_name).items():
            limit = _update_limit(system.train, corpus_name, corpus, root)
            for note in system_notes(system, limit):
                system_names = system_names_by_note.setdefault(note, [])
                if system_name not in system_names:
                    system_names.append(system_name)
    for note, system_names in system_names_by_note.items():
        yield f"systems.{', '.join(system_names)}: {note}"


def system_notes(system: System, limit: UpdateLimit | None) -> Iterator[str]:
    """Yield notes on settings of one system, each of which is valid, but which do not fit together.

    Args:
        system: The settings of the system.
        limit: After how many updates the training ends at the latest. If it is None, this is not
            known, and the settings that would be compared with it are not checked.
    """
    train = system.train
    if limit is not None:
        yield from _warmup_notes(train, limit)
        yield from _cosine_notes(system, limit)
        yield from _interval_notes(train, limit)
        yield from _ema_notes(system, limit)
        yield from _average_notes(system, limit)
    yield from _patience_notes(train, limit)
    yield from _length_notes(system)


def _update_limit(train: Train, corpus_name: str, corpus: Corpus, root: Path) -> UpdateLimit | None:
    """Return after how many updates a training ends at the latest; None if this is not known.

    It ends at `max_updates` or after `max_epochs`, whichever comes first. The number of updates in
    an epoch is computed from the statistics of the corpus. Before the corpus is prepared, there are
    no statistics, and only `max_updates` is known.

    Args:
        train: The settings of the training.
        corpus_name: The name of the corpus.
        corpus: The settings of the corpus.
        root: The folder of the project.
    """
    limit = None
    if train.max_updates is not None:
        limit = UpdateLimit(train.max_updates, f"max_updates {train.max_updates:,}")
    if train.max_epochs is None:
        return limit
    path = paths.corpus_folder(corpus_name, "corpus_stats", root) / paths.STATISTICS
    try:
        statistics = CorpusStatistics.read(path)
        target = statistics.sets["train"][corpus.target]
    except (UserError, KeyError, FileNotFoundError):
        # The corpus has not been prepared, or another version of this program prepared it.
        return limit
    # The statistics count tokens without EOS, which training adds to each sentence.
    tokens_with_eos = target.tokens + target.sentences
    updates = train.update_limit(tokens_with_eos, target.sentences)
    if updates is None or updates == train.max_updates:
        return limit  # `max_updates` comes first.
    description = f"the {updates:,} updates of max_epochs {train.max_epochs:,} on {corpus_name}"
    return UpdateLimit(updates, description)


def _warmup_notes(train: Train, limit: UpdateLimit) -> Iterator[str]:
    """Yield a note if training ends before the warmup does, so that the learning rate only rises.

    Usually this is a mistake: a schedule is meant to lower the learning rate towards the end.
    """
    warmup_updates = train.lr_schedule.warmup_updates
    if warmup_updates == 0 or warmup_updates < limit.updates:
        return
    # The user may not know this value, because params.yaml need not contain it.
    default = " (the default)" if warmup_updates == _DEFAULT_WARMUP_UPDATES else ""
    yield (
        f"train.lr_schedule: warmup_updates {warmup_updates:,}{default} must be below "
        f"{limit.description}, or the learning rate rises until the end. Lower warmup_updates"
    )


def _cosine_notes(system: System, limit: UpdateLimit) -> Iterator[str]:
    """Yield a note if the cosine schedule ends before the training, or after it.

    The learning rate should reach its minimum at the last update.
    """
    cosine = system.train.lr_schedule.cosine
    if cosine is None or cosine.max_updates == limit.updates:
        return
    setting = f"train.lr_schedule.cosine.max_updates {cosine.max_updates:,}"
    if cosine.max_updates < limit.updates:
        remaining_updates = limit.updates - cosine.max_updates
        effect = "have learning rate 0 and change nothing"
        if cosine.min_lr > 0:
            effect = f"have learning rate min_lr, {cosine.min_lr:g}"
        yield (
            f"{setting} is below {limit.description}, so the last {remaining_updates:,} updates "
            f"{effect}. Set both to the same number"
        )
        return
    final_lr = learning_rate(system.train.lr_schedule, limit.updates, system.model.d_model)
    yield (
        f"{setting} is above {limit.description}, so training ends at learning rate "
        f"{final_lr:.2g}, before the cosine reaches {cosine.min_lr:g}. Set both to the same number"
    )


def _interval_notes(train: Train, limit: UpdateLimit) -> Iterator[str]:
    """Yield a note on each interval in updates that is longer than the whole training.

    There are three intervals: between validations, between checkpoints, and between checkpoints
    that are kept forever.
    """
    if train.validate_interval > limit.updates:
        yield (
            f"train.validate_interval {train.validate_interval:,} is above {limit.description}, so "
            "the training validates only at its end. Lower validate_interval"
        )
    if train.save_interval > limit.updates:
        yield (
            f"train.save_interval {train.save_interval:,} is above {limit.description}, so the "
            "training saves only at its end. If it is stopped earlier, it has to start again. "
            "Lower save_interval"
        )
    if train.keep_interval > limit.updates:
        yield (
            f"train.keep_interval {train.keep_interval:,} is above {limit.description}, so it has "
            "no effect. Lower keep_interval"
        )


def _ema_notes(system: System, limit: UpdateLimit) -> Iterator[str]:
    """Yield a note if the moving average of the weights spans more updates than the training has.

    Such an average still contains a large part of the first weights, which translate badly.
    """
    decay = system.train.ema
    if decay is None or not system.average.ema:
        return
    # An exponential moving average spans about the last 1 / (1 - decay) updates.
    averaged_updates = 1 / (1 - decay)
    if averaged_updates > limit.updates:
        yield (
            f"train.ema {decay:g} averages about the last {averaged_updates:,.0f} updates, more "
            f"than {limit.description}, so the first, random weights count almost as much as the "
            "last. Lower ema"
        )


def _average_notes(system: System, limit: UpdateLimit) -> Iterator[str]:
    """Yield a note if the training saves fewer checkpoints than `average` asks for.

    If the limit is `max_updates`, this was an error when the settings were read. Here it is found
    for a limit that depends on the size of the corpus.
    """
    if limit.updates == system.train.max_updates:
        return
    try:
        system.check_average(limit.updates)
    except ValueError as error:
        yield f"{error} (with {limit.description})"


def _patience_notes(train: Train, limit: UpdateLimit | None) -> Iterator[str]:
    """Yield a note if early stopping can never end the training, or can end it in the warmup.

    Early stopping ends a training after `patience` validations without a better score.
    """
    if train.patience is None:
        return
    # The first validation is always the best one so far, so it does not count: the training can end
    # after `patience` more validations.
    earliest_end = (1 + train.patience) * train.validate_interval
    settings = f"train.patience {train.patience} with validate_interval {train.validate_interval:,}"
    warmup_updates = train.lr_schedule.warmup_updates
    if limit is not None and earliest_end > limit.updates:
        yield (
            f"{settings} has no effect: it can end a training at update {earliest_end:,} or later, "
            f"but the limit is {limit.description}. Lower patience or validate_interval"
        )
    elif earliest_end < warmup_updates:
        yield (
            f"{settings} may end the training at update {earliest_end:,}, before the warmup ends "
            f"(warmup_updates {warmup_updates:,}). Raise patience or validate_interval"
        )


def _length_notes(system: System) -> Iterator[str]:
    """Yield a note if the shortest allowed translation is longer than the longest allowed one.

    A translation has at least `min_len` tokens, and at most `max_len_a` times the source length
    plus `max_len_b`.
    """
    decode = system.decode
    # If max_len_a is not 0, the longest length depends on the source, and may be enough.
    if decode.max_len_a == 0 and decode.min_len > decode.max_len_b:
        yield (
            f"decode.min_len {decode.min_len} is above max_len_b {decode.max_len_b}, and max_len_a "
            "is 0, so no output can be that long. Lower min_len or raise max_len_b"
        )
