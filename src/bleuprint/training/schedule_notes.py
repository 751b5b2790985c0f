"""Notes on settings of a training that are valid one by one, but do not fit each other."""

from collections.abc import Iterator
from pathlib import Path

from bleuprint.config import paths
from bleuprint.config.corpus import Corpus
from bleuprint.config.experiment import Settings
from bleuprint.config.system import System, Train
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.runtime.errors import UserError
from bleuprint.training.lr_schedule import learning_rate

# The default of warmup_updates.
_WARMUP = 4000


def schedule_notes(settings: Settings, root: Path = Path()) -> Iterator[str]:
    """All notes, one line each, with the systems that each applies to.

    The updates of `max_epochs` are known once the corpus is prepared.
    """
    systems_of = dict[str, list[str]]()
    for corpus_name, corpus in settings.corpora.items():
        for name, system in settings.systems_on(corpus_name).items():
            updates, source = _updates(system.train, corpus_name, corpus, root)
            for note in system_notes(system, updates, source):
                names = systems_of.setdefault(note, [])
                if name not in names:
                    names.append(name)
    for note, names in systems_of.items():
        yield f"systems.{', '.join(names)}: {note}"


def system_notes(system: System, updates: int | None, source: str) -> Iterator[str]:
    """The notes on one system.

    Args:
        system: Its settings.
        updates: The most updates that its training may have; None if they are not known.
        source: The setting that says how many, with its value.
    """
    train = system.train
    if updates is not None:
        yield from _of_warmup(train, updates, source)
        yield from _of_cosine(system, updates, source)
        yield from _of_intervals(train, updates, source)
        yield from _of_averages(system, updates, source)
    yield from _of_patience(train, updates, source)
    decode = system.decode
    if decode.max_len_a == 0 and decode.min_length > decode.max_len_b:
        yield (
            f"decode.min_length {decode.min_length} is above max_len_b {decode.max_len_b}, with "
            "max_len_a 0: no output can be that long"
        )


def _updates(train: Train, name: str, corpus: Corpus, root: Path) -> tuple[int | None, str]:
    """The most updates of a training, and the setting that limits them."""
    by_updates = train.max_updates, f"max_updates {train.max_updates or 0:,}"
    if train.max_epochs is None:
        return by_updates
    path = paths.folder(name, "statistics", root) / paths.STATISTICS
    try:
        side = CorpusStatistics.read(path).sets["train"][corpus.target]
    except (UserError, KeyError, FileNotFoundError):  # not prepared, or by another version
        return by_updates
    # EOS counts in updates, and not in statistics
    updates = train.most_updates(side.tokens + side.sentences, side.sentences)
    if updates == train.max_updates:
        return by_updates
    return updates, f"the {updates:,} updates of max_epochs {train.max_epochs:,} on {name}"


def _of_warmup(train: Train, updates: int, source: str) -> Iterator[str]:
    warmup = train.lr_schedule.warmup_updates
    if warmup >= updates and warmup:
        default = " (the default)" if warmup == _WARMUP else ""
        yield (
            f"train.lr_schedule: warmup_updates {warmup:,}{default} is not below {source}: the "
            "learning rate rises until the end. Lower warmup_updates"
        )


def _of_cosine(system: System, updates: int, source: str) -> Iterator[str]:
    cosine = system.train.lr_schedule.cosine
    if cosine is None or cosine.max_updates == updates:
        return
    where = f"train.lr_schedule.cosine.max_updates {cosine.max_updates:,} is"
    if cosine.max_updates < updates:
        rest = updates - cosine.max_updates
        follows = "have learning rate 0 and change nothing"
        if cosine.min_lr:
            follows = f"have learning rate min_lr, {cosine.min_lr:g}"
        yield f"{where} below {source}: the last {rest:,} updates {follows}. Set both to one number"
        return
    last = learning_rate(system.train.lr_schedule, updates, system.model.d_model)
    yield (
        f"{where} above {source}: training ends at learning rate {last:.2g}, before the cosine "
        f"reaches {cosine.min_lr:g}. Set both to one number"
    )


def _of_intervals(train: Train, updates: int, source: str) -> Iterator[str]:
    if train.validate_every > updates:
        yield (
            f"train.validate_every {train.validate_every:,} is above {source}: the one validation "
            "is at the end"
        )
    if train.checkpoint_every > updates:
        yield (
            f"train.checkpoint_every {train.checkpoint_every:,} is above {source}: the one "
            "checkpoint is at the end; a training that is stopped before begins anew"
        )
    if train.keep.every > updates:
        yield f"train.keep.every {train.keep.every:,} is above {source}: it keeps no checkpoint"


def _of_averages(system: System, updates: int, source: str) -> Iterator[str]:
    ema = system.train.ema
    if system.average.ema and ema is not None and 1 / (1 - ema) > updates:
        yield (
            f"train.ema {ema:g} averages about the last {1 / (1 - ema):,.0f} updates, more than "
            f"{source}: the first, random weights count almost as much as the last. Lower ema"
        )
    if updates == system.train.max_updates:
        return  # refused before
    try:
        system.check_average(updates)
    except ValueError as error:
        yield f"{error} (with {source})"


def _of_patience(train: Train, updates: int | None, source: str) -> Iterator[str]:
    if train.patience is None:
        return
    # the first validation is the best so far
    earliest = (1 + train.patience) * train.validate_every
    settings = f"train.patience {train.patience} with validate_every {train.validate_every:,}"
    warmup = train.lr_schedule.warmup_updates
    if updates is not None and earliest > updates:
        yield f"{settings} cannot end a training before update {earliest:,}, after {source}"
    elif earliest < warmup:
        yield (
            f"{settings} may end the training at update {earliest:,}, before warmup is over "
            f"(warmup_updates {warmup:,}). Raise patience or validate_every"
        )
