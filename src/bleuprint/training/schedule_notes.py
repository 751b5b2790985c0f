"""Warnings about training settings that are valid one by one, but do not fit each other."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.config.system import System, Train
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.runtime.errors import UserError
from bleuprint.training.lr_schedule import learning_rate

# The default of warmup_updates, which a message marks, since the user has not written it.
_DEFAULT_WARMUP_UPDATES = 4000


def schedule_notes(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """Yield the warnings about all systems, one line each, with the systems that it applies to.

    The number of updates in `max_epochs` is only known for a corpus that has been prepared.

    Args:
        settings: The settings of the experiment.
        root: The folder of the project.
    """
    system_names_by_warning: dict[str, list[str]] = {}
    for corpus_name, corpus in settings.corpora.items():
        for system_name, system in settings.trained_systems_on(corpus_name).items():
            max_updates, limit = _update_limit(system.train, corpus_name, corpus, root)
            for warning in system_notes(system, max_updates, limit):
                system_names = system_names_by_warning.setdefault(warning, [])
                if system_name not in system_names:
                    system_names.append(system_name)
    for warning, system_names in system_names_by_warning.items():
        yield f"systems.{', '.join(system_names)}: {warning}"


def system_notes(system: System, max_updates: int | None, limit: str) -> Iterator[str]:
    """Yield warnings about settings of one system that do not fit each other.

    Args:
        system: The settings of the system.
        max_updates: The number of updates after which the training ends at the latest; None if it
            is not known.
        limit: The words for `max_updates` in messages. They name the setting that ends the
            training, which may be `max_epochs`: `max_updates 10,000`, or `the 9,500 updates of
            max_epochs 20 on CORPUS`.
    """
    train = system.train
    if max_updates is not None:
        yield from _warmup_warnings(train, max_updates, limit)
        yield from _cosine_warnings(system, max_updates, limit)
        yield from _interval_warnings(train, max_updates, limit)
        yield from _ema_warnings(system, max_updates, limit)
        yield from _average_warnings(system, max_updates, limit)
    yield from _patience_warnings(train, max_updates, limit)
    yield from _length_warnings(system)


def _update_limit(
    train: Train, corpus_name: str, corpus: Corpus, root: Path
) -> tuple[int | None, str]:
    """Return the largest possible number of updates, and the words for this limit in messages.

    Training ends at `max_updates` or after `max_epochs`, whichever comes first. The number of
    updates in an epoch comes from the statistics of the prepared corpus; until there are any, only
    `max_updates` counts.
    """
    max_updates = train.max_updates
    updates_limit = f"max_updates {max_updates or 0:,}"
    if train.max_epochs is None:
        return max_updates, updates_limit
    path = paths.corpus_folder(corpus_name, "corpus_stats", root) / paths.STATISTICS
    try:
        statistics = CorpusStatistics.read(path)
        target = statistics.sets["train"][corpus.target]
    except (UserError, KeyError, FileNotFoundError):
        # The corpus has not been prepared, or another version of this program prepared it.
        return max_updates, updates_limit
    # The statistics count tokens without the end symbol, which training adds to each sentence.
    tokens_with_eos = target.tokens + target.sentences
    first_limit = train.update_limit(tokens_with_eos, target.sentences)
    if first_limit == max_updates:
        return max_updates, updates_limit
    epochs_limit = (
        f"the {first_limit:,} updates of max_epochs {train.max_epochs:,} on {corpus_name}"
    )
    return first_limit, epochs_limit


def _warmup_warnings(train: Train, max_updates: int, limit: str) -> Iterator[str]:
    """Warn if training ends before the warmup does, so that the learning rate never decays."""
    warmup_updates = train.lr_schedule.warmup_updates
    if warmup_updates == 0 or warmup_updates < max_updates:
        return
    default = " (the default)" if warmup_updates == _DEFAULT_WARMUP_UPDATES else ""
    yield (
        f"train.lr_schedule: warmup_updates {warmup_updates:,}{default} is not below {limit}: the "
        "learning rate rises until the end. Lower warmup_updates"
    )


def _cosine_warnings(system: System, max_updates: int, limit: str) -> Iterator[str]:
    """Warn if the cosine schedule and the training do not end at the same update."""
    cosine = system.train.lr_schedule.cosine
    if cosine is None or cosine.max_updates == max_updates:
        return
    setting = f"train.lr_schedule.cosine.max_updates {cosine.max_updates:,}"
    if cosine.max_updates < max_updates:
        remaining_updates = max_updates - cosine.max_updates
        effect = "have learning rate 0 and change nothing"
        if cosine.min_lr:
            effect = f"have learning rate min_lr, {cosine.min_lr:g}"
        yield (
            f"{setting} is below {limit}: the last {remaining_updates:,} updates {effect}. "
            "Set both to one number"
        )
    else:
        final_lr = learning_rate(system.train.lr_schedule, max_updates, system.model.d_model)
        yield (
            f"{setting} is above {limit}: training ends at learning rate {final_lr:.2g}, before "
            f"the cosine reaches {cosine.min_lr:g}. Set both to one number"
        )


def _interval_warnings(train: Train, max_updates: int, limit: str) -> Iterator[str]:
    """Warn if training ends before the first validation or checkpoint is due."""
    if train.validate_interval > max_updates:
        yield (
            f"train.validate_interval {train.validate_interval:,} is above {limit}: the one "
            "validation is at the end"
        )
    if train.save_interval > max_updates:
        yield (
            f"train.save_interval {train.save_interval:,} is above {limit}: the one "
            "checkpoint is at the end; a training that is stopped before begins anew"
        )
    if train.keep_interval > max_updates:
        yield (
            f"train.keep_interval {train.keep_interval:,} is above {limit}: it keeps no checkpoint"
        )


def _ema_warnings(system: System, max_updates: int, limit: str) -> Iterator[str]:
    """Warn if the exponential moving average of the weights still contains the random weights."""
    decay = system.train.ema
    if decay is None or not system.average.ema:
        return
    # The weights of an exponential moving average have a mean age of about 1 / (1 - decay) updates.
    averaged_updates = 1 / (1 - decay)
    if averaged_updates > max_updates:
        yield (
            f"train.ema {decay:g} averages about the last {averaged_updates:,.0f} updates, more "
            f"than {limit}: the first, random weights count almost as much as the last. Lower ema"
        )


def _average_warnings(system: System, max_updates: int, limit: str) -> Iterator[str]:
    """Warn if the training saves fewer checkpoints than are averaged."""
    if max_updates == system.train.max_updates:
        return  # The settings are checked against max_updates when they are read.
    try:
        system.check_average(max_updates)
    except ValueError as error:
        yield f"{error} (with {limit})"


def _patience_warnings(train: Train, max_updates: int | None, limit: str) -> Iterator[str]:
    """Warn if early stopping can never end the training, or can end it during the warmup."""
    if train.patience is None:
        return
    # The first validation always gives the best score so far. The training ends after `patience`
    # more validations without a better one.
    earliest_end = (1 + train.patience) * train.validate_interval
    settings = f"train.patience {train.patience} with validate_interval {train.validate_interval:,}"
    warmup_updates = train.lr_schedule.warmup_updates
    if max_updates is not None and earliest_end > max_updates:
        yield f"{settings} cannot end a training before update {earliest_end:,}, after {limit}"
    elif earliest_end < warmup_updates:
        yield (
            f"{settings} may end the training at update {earliest_end:,}, before warmup is over "
            f"(warmup_updates {warmup_updates:,}). Raise patience or validate_interval"
        )


def _length_warnings(system: System) -> Iterator[str]:
    """Warn if the shortest allowed output is longer than the longest allowed output.

    The longest output has max_len_a * source length + max_len_b tokens.
    """
    decode = system.decode
    if decode.max_len_a == 0 and decode.min_len > decode.max_len_b:
        yield (
            f"decode.min_len {decode.min_len} is above max_len_b {decode.max_len_b}, with "
            "max_len_a 0: no output can be that long"
        )
