"""Two systems whose trainings are fitted to a text: a laptop finishes both in half an hour.

`bleuprint new-corpus` writes them into params.yaml. How long a training takes on this machine is
forecast from a few timed updates.
"""

import math
import time
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
import torch

from bleuprint.config.system import Model, System, Train
from bleuprint.dataset.batch import PairIds, Sentence
from bleuprint.dataset.batching import PlannedBatch, PlannedUpdate, Position
from bleuprint.dataset.packed_batch import TrainingBatch
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.model.flops import training_flops
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.training.data_loader import LocalUpdate, batch_class
from bleuprint.training.train_step import TrainStep

# The time of one core for the updates of each training. Preparation, validation, translation and
# the report take the rest of half an hour.
_TRAINING_SECONDS = 1200
# More epochs improve nothing, even over a text of some hundred pairs.
_MAX_EPOCHS = 100
# The number of validations of a training.
_VALIDATIONS = 20
# The longest warmup in updates; a short training has one of this number of validation intervals.
_MAX_WARMUP_UPDATES = 500
_WARMUP_INTERVALS = 3
# A validation computes the loss of each token and translates greedily: for each token this takes
# about 1.3 times as long as training.
_VALIDATION_COST = 1.3
# Portable arithmetic took 1.09 to 1.19 times as long, and a second training on another core slows
# the first one down.
_PORTABLE_COST = 1.25
# The updates that are timed for a forecast, and their largest number of tokens: some seconds in
# all.
_TIMED_UPDATES = 4
_MAX_TIMED_TOKENS = 2500


class _SizeClass(NamedTuple):
    """Settings for training texts up to a certain size.

    Attributes:
        max_target_tokens: The number of target tokens in the largest text of this class.
        tokens_per_update: The number of target tokens in an update. It is so low that an epoch has
            several dozen updates.
        dropout: The dropout probability, higher for small texts, which overfit sooner.
    """

    max_target_tokens: float
    tokens_per_update: int
    dropout: float


_SIZE_CLASSES = (
    _SizeClass(max_target_tokens=50_000, tokens_per_update=750, dropout=0.3),
    _SizeClass(max_target_tokens=250_000, tokens_per_update=1000, dropout=0.3),
    _SizeClass(max_target_tokens=500_000, tokens_per_update=1000, dropout=0.2),
    _SizeClass(max_target_tokens=1_000_000, tokens_per_update=1500, dropout=0.2),
    _SizeClass(max_target_tokens=math.inf, tokens_per_update=1500, dropout=0.1),
)


class _ModelSize(NamedTuple):
    """The size of a model, with what follows from it.

    Attributes:
        d_model: The number of dimensions of embeddings and hidden states.
        flops_per_second: The floating-point operations per second with which one core trains it.
        lr: The learning rate at the end of the warmup.
    """

    d_model: int
    flops_per_second: float
    lr: float


_SMALL = _ModelSize(d_model=128, flops_per_second=4.5e10, lr=0.002)
_MEDIUM = _ModelSize(d_model=256, flops_per_second=5.5e10, lr=0.0012)


@dataclass(frozen=True)
class TextSize:
    """The size of a training text.

    Attributes:
        pairs: The number of sentence pairs.
        source_length: The mean number of source subwords of a pair, EOS included.
        target_length: The mean number of target subwords of a pair, EOS included.
        vocabulary_size: The number of subwords in the vocabulary.
    """

    pairs: int
    source_length: float
    target_length: float
    vocabulary_size: int

    @property
    def tokens(self) -> float:
        """Return the number of target tokens in the whole text, that is, in an epoch."""
        return self.pairs * self.target_length

    def flops_per_pair(self, model: Model) -> float:
        """Return how many floating-point operations the training on one sentence pair takes.

        Args:
            model: The settings of the model's shape.
        """
        flops = training_flops(
            model,
            self.vocabulary_size,
            round(self.source_length),
            round(self.target_length),
        )
        return float(flops)


def fitted_systems_yaml(text: TextSize, is_portable: bool = True) -> str:
    """Return the section `systems` of params.yaml with two systems whose settings fit a text.

    They are `small` and `medium`, a model that is twice as wide. Both are trained in about half an
    hour, so that new users soon see results on their own text.

    Args:
        text: The size of the training text.
        is_portable: Whether to use portable arithmetic. It gives the same result on all processors.
            It needs one thread per training, so that two trainings can run at once, and cannot use
            a GPU.
    """
    arithmetic = ""
    if is_portable:
        arithmetic = "\n    arithmetic: portable # on CPUs; remove it to train on a GPU"
    size_class = _size_class(text)
    # At most half of the text, so that even an epoch over a tiny text has two updates.
    tokens_per_update = min(size_class.tokens_per_update, int(text.tokens) // 2)
    dropout = size_class.dropout
    return f"""\
systems:
  small:{arithmetic}
    model:
      encoder_layers: 3
      decoder_layers: 3
      d_model: {_SMALL.d_model}
      d_ff: 512
      heads: 4
      dropout: {{embedding: {dropout}, residual: {dropout}}}
    train:
      tokens_per_update: {tokens_per_update}
      max_tokens: {tokens_per_update}
{_duration_settings(text, tokens_per_update, _SMALL)}
      # early stopping: validations without improvement; the best checkpoints are averaged
      patience: 5
      keep_last: 1
      keep_best: 4
      clip_norm: 1.0
    average: {{best: 4}}
    decode: {{beam: 5}}
  medium:
    like: small
    model: {{d_model: {_MEDIUM.d_model}}}
    train:
{_duration_settings(text, tokens_per_update, _MEDIUM)}
"""


def _size_class(text: TextSize) -> _SizeClass:
    """Return the size class of a text, which decides its dropout and the size of its updates."""
    # The classes are sorted by size, so the first one with room for the text is the right one.
    for size_class in _SIZE_CLASSES:
        if text.tokens <= size_class.max_target_tokens:
            return size_class
    raise AssertionError("the last size class has no limit")


def _duration_settings(text: TextSize, tokens_per_update: int, size: _ModelSize) -> str:
    """Return the settings that decide how long a training takes, as lines of params.yaml.

    The training gets as many updates as one core computes in 20 minutes, but at most 100 epochs.

    Args:
        text: The size of the training text.
        tokens_per_update: The number of target tokens in an update.
        size: The size of the model.
    """
    # The same shape as in `fitted_systems_yaml`.
    model = Model(encoder_layers=3, decoder_layers=3, d_model=size.d_model, d_ff=512, heads=4)
    affordable_flops = _TRAINING_SECONDS * size.flops_per_second
    affordable_pairs = affordable_flops / text.flops_per_pair(model)
    pairs = min(affordable_pairs, _MAX_EPOCHS * text.pairs)
    updates = pairs * text.target_length / tokens_per_update
    interval = max(1, round(updates / _VALIDATIONS))
    # A multiple of the interval, so that the last update is validated and saved as well.
    max_updates = interval * _VALIDATIONS
    warmup_updates = min(_MAX_WARMUP_UPDATES, interval * _WARMUP_INTERVALS)
    epochs = max_updates * tokens_per_update / text.tokens
    digits = 0 if epochs > 10 else 1  # `45 epochs`, but `2.5 epochs`.
    return f"""\
      max_updates: {max_updates} # {epochs:.{digits}f} epochs
      validate_interval: {interval}
      save_interval: {interval}
      lr_schedule: {{inverse_sqrt: {{lr: {size.lr}, warmup_updates: {warmup_updates}}}}}"""


def epochs_in_updates(train: Train, text: TextSize, updates: int) -> float:
    """Return how often a training has seen its text after a number of updates.

    The result is a fraction: 2.5 epochs are two and a half.

    Args:
        train: The settings of the training.
        text: The size of the training text.
        updates: The number of updates.
    """
    epochs = updates * _mean_pairs_per_update(train, text) / text.pairs
    if train.max_epochs is None:
        return epochs
    # The last update of an epoch may be smaller than the mean, so the result may be too high.
    return min(epochs, float(train.max_epochs))


def training_seconds(
    system: System, text: TextSize, valid_pairs: int, updates: int, threads: int
) -> float:
    """Predict how long a training takes on the processor of this machine, without a GPU.

    This takes some seconds, because a few updates are run and timed.

    Args:
        system: The system to train.
        text: The size of the training text.
        valid_pairs: The number of sentence pairs in the validation set.
        updates: The number of updates.
        threads: The number of threads that the training may use.

    Returns:
        The time in seconds.
    """
    train = system.train
    # A validation after 100 updates costs as much as a hundredth of it after each update. Its cost
    # is measured in pairs, too: as many as could be trained on in the same time.
    validation_pairs = _VALIDATION_COST * valid_pairs / train.validate_interval
    pairs_per_update = _mean_pairs_per_update(train, text) + validation_pairs
    slowdown = _PORTABLE_COST if system.arithmetic == "portable" else 1.0
    return updates * pairs_per_update * slowdown * seconds_per_pair(system, text, threads)


def _mean_pairs_per_update(train: Train, text: TextSize) -> float:
    """Return the mean number of sentence pairs in an update.

    The settings give the size of an update in target tokens or in sentence pairs.
    """
    if train.tokens_per_update is not None:
        return train.tokens_per_update / text.target_length
    assert train.sentences_per_update is not None
    return float(train.sentences_per_update)


def seconds_per_pair(system: System, text: TextSize, threads: int) -> float:
    """Measure how many seconds the training on one sentence pair takes on this processor.

    A model with random weights is trained for a few updates, on random sentences whose lengths are
    the mean lengths of the text. The fastest update counts.

    The clock counts the processor time of this process only, so that other programs that run now do
    not matter. This time is the sum over all threads, so it is divided by their number.

    Args:
        system: The system to train.
        text: The size of the training text.
        threads: The number of threads that the training may use.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    group = Group(0, 1, torch.device("cpu"))  # One process, which has rank 0.
    model = Transformer(system.model, text.vocabulary_size, text.vocabulary_size).train()
    step = TrainStep(model, system.train, seed=1, group=group)
    pairs = _random_pairs(text, min(system.train.max_tokens, _MAX_TIMED_TOKENS))
    batch = batch_class(system.model, system.train, group.device).from_ids(pairs)
    update = _one_batch_update(batch)
    update_seconds = []
    for number in range(1, _TIMED_UPDATES + 1):
        start_time = time.process_time()
        step.update(number, update)
        update_seconds.append((time.process_time() - start_time) / threads)
    # The fastest update, because the first ones also load libraries and allocate memory.
    return min(update_seconds) / len(pairs.source)


def _one_batch_update(batch: TrainingBatch) -> LocalUpdate:
    """Return an update of the weights that consists of one batch, for a single process.

    The batch does not come from a training set, so its rows and its position are invented.
    """
    rows = np.arange(len(batch.lengths))
    target_tokens = int(batch.lengths[:, 1].sum())  # Column 0 has the source lengths.
    return LocalUpdate(
        update=PlannedUpdate([PlannedBatch(epoch=0, rows=rows)], target_tokens),
        batch_indices=range(1),
        batches=[[batch]],
        position=Position(),
    )


def _random_pairs(text: TextSize, max_tokens: int) -> PairIds:
    """Return random sentence pairs whose source and target have the mean lengths of a text.

    Args:
        text: The size of the text.
        max_tokens: The largest number of source tokens in all pairs, and of target tokens.
    """
    source_length = round(text.source_length)
    target_length = round(text.target_length)
    pair_count = max(1, max_tokens // max(source_length, target_length))
    random = Random(1)
    sources = _random_sentences(random, pair_count, source_length, text.vocabulary_size)
    targets = _random_sentences(random, pair_count, target_length, text.vocabulary_size)
    return PairIds(sources, targets)


def _random_sentences(
    random: Random, count: int, length: int, vocabulary_size: int
) -> list[Sentence]:
    """Return sentences of `length` token ids: random ones, and EOS at the end."""
    # The first ids, up to EOS, belong to tokens such as PAD, which do not occur inside a sentence.
    ordinary_ids = range(EOS + 1, vocabulary_size)
    sentences: list[Sentence] = []
    for _ in range(count):
        sentences.append([*random.choices(ordinary_ids, k=length - 1), EOS])
    return sentences
