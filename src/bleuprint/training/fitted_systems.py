"""Two systems whose trainings are fitted to a text: a laptop finishes both in half an hour.

How long a training takes on this machine is forecast from a few timed updates.
"""

import time
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import torch

from bleuprint.config.system import Model, System, Train
from bleuprint.dataset.batch import PairIds, Sentence
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.model.flops import training_flops
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.training.data_loader import batch_class
from bleuprint.training.train_step import TrainStep

# Seconds of one core for the updates of each training. Preparation, validation, translation and
# the report take what is left of half an hour.
_SECONDS = 1200
# More epochs bring nothing, even over a text of some hundred pairs.
_MOST_EPOCHS = 100
_VALIDATIONS = 20
# Target tokens per update by the target tokens of the text, up to and including the key, so that a
# pass over the text has several dozen updates.
_UPDATE = {50_000: 750, 500_000: 1000}
_LARGEST_UPDATE = 1500
# Dropout by the target tokens of the text: small texts overfit sooner.
_DROPOUT = {250_000: 0.3, 1_000_000: 0.2}
# Updates that are timed for a forecast, and their tokens at most: some seconds in all.
_TIMED_UPDATES = 4
_TIMED_TOKENS = 2500
# A validation computes the loss of each token and translates greedily: it takes about 1.3 times as
# long a token as training.
_VALIDATION_COST = 1.3
# Portable arithmetic took 1.09 to 1.19 times as long, and a second training on another core slows
# the first one down.
_PORTABLE_COST = 1.25


class _Size(NamedTuple):
    """`flops`: sustained by one core in portable arithmetic; `lr`: at the end of the warmup."""

    d_model: int
    flops: float
    lr: float


_SIZES = {"small": _Size(128, 4.5e10, 0.002), "medium": _Size(256, 5.5e10, 0.0012)}


@dataclass(frozen=True)
class TextSize:
    """A training text: `pairs` of `source` and `target` subwords on average, EOS included.

    `vocabulary`: the number of different subwords.
    """

    pairs: int
    source_length: float
    target_length: float
    vocabulary_size: int

    @property
    def tokens(self) -> float:
        """The target tokens of a pass."""
        return self.pairs * self.target_length

    def flops(self, model: Model) -> float:
        """Floating-point operations of training on a pair."""
        lengths = round(self.source_length), round(self.target_length)
        return float(training_flops(model, self.vocabulary_size, *lengths))


def fitted_systems_yaml(text: TextSize, portable: bool = True) -> str:
    """The section `systems` of params.yaml for a text: small, and medium, twice as wide.

    `portable`: trains in one thread, so that both train side by side, and not on a GPU.
    """
    arithmetic = (
        "\n    arithmetic: portable # on CPUs; remove it to train on a GPU" if portable else ""
    )
    size = next((size for most, size in _UPDATE.items() if text.tokens <= most), _LARGEST_UPDATE)
    size = min(size, int(text.tokens) // 2)  # of some hundred short pairs
    dropout = next((rate for most, rate in _DROPOUT.items() if text.tokens <= most), 0.1)
    small, medium = (_train(text, size, each) for each in _SIZES.values())
    return f"""\
systems:
  small:{arithmetic}
    model:
      encoder_layers: 3
      decoder_layers: 3
      d_model: {_SIZES["small"].d_model}
      d_ff: 512
      heads: 4
      dropout: {{embedding: {dropout}, residual: {dropout}}}
    train:
      tokens_per_update: {size}
      max_tokens: {size}
{small}
      # early stopping: validations without improvement; the best checkpoints are averaged
      patience: 5
      keep_last: 1
      keep_best: 4
      clip_norm: 1.0
    average: {{best: 4}}
    decode: {{beam: 5}}
  medium:
    like: small
    model: {{d_model: {_SIZES["medium"].d_model}}}
    train:
{medium}
"""


def _train(text: TextSize, update: int, size: _Size) -> str:
    """The settings of a training that depend on its length."""
    model = Model(3, 3, size.d_model, 512, 4)
    pairs = min(_SECONDS * size.flops / text.flops(model), _MOST_EPOCHS * text.pairs)
    every = max(1, round(pairs * text.target_length / update / _VALIDATIONS))
    updates = every * _VALIDATIONS
    most_epochs = updates * update / text.tokens
    digits = 0 if most_epochs > 10 else 1
    return f"""\
      max_updates: {updates} # {most_epochs:.{digits}f} epochs
      validate_interval: {every}
      save_interval: {every}
      lr_schedule: {{inverse_sqrt: {{lr: {size.lr}, warmup_updates: {min(500, every * 3)}}}}}"""


def epochs_in_updates(train: Train, text: TextSize, updates: int) -> float:
    """Return how many times a training of some updates reads the text."""
    epochs = updates * _update_pairs(train, text) / text.pairs
    if train.max_epochs is None:
        return epochs
    # The last update of an epoch may be smaller than the others.
    return min(epochs, float(train.max_epochs))


def training_seconds(
    system: System, text: TextSize, valid_pairs: int, updates: int, threads: int
) -> float:
    """Forecast how long a training takes on this machine's processor, without a GPU.

    Args:
        system: The system to train.
        text: The size of the training text.
        valid_pairs: The number of sentence pairs in the validation set.
        updates: The number of updates.
        threads: The threads that the training may use.

    Returns:
        The time in seconds.
    """
    train = system.train
    validated_pairs = valid_pairs / train.validate_interval
    pairs = _update_pairs(train, text) + _VALIDATION_COST * validated_pairs
    cost = _PORTABLE_COST if system.arithmetic == "portable" else 1.0
    return updates * pairs * cost * seconds_per_pair(system, text, threads)


def _update_pairs(train: Train, text: TextSize) -> float:
    """Return the number of sentence pairs in an update."""
    if train.tokens_per_update is not None:
        return train.tokens_per_update / text.target_length
    return float(train.update_size[1])


def seconds_per_pair(system: System, text: TextSize, threads: int) -> float:
    """Return how long training takes for a sentence pair, in the fastest of some updates.

    Counts the time of the processor: other programs that run now may not run then.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    train = system.train
    group = Group(0, 1, torch.device("cpu"))
    model = Transformer(system.model, text.vocabulary_size, text.vocabulary_size).train()
    step = TrainStep(model, train, 1, group)
    source_length = round(text.source_length)
    target_length = round(text.target_length)
    tokens = min(train.max_tokens, _TIMED_TOKENS)
    pairs = max(1, tokens // max(source_length, target_length))
    random = Random(1)
    sources = _random_sentences(random, pairs, source_length, text.vocabulary_size)
    targets = _random_sentences(random, pairs, target_length, text.vocabulary_size)
    layout = batch_class(system.model, train, group.device)
    batch = layout.from_ids(PairIds(sources, targets))
    times = []
    for update in range(1, _TIMED_UPDATES + 1):
        began = time.process_time()
        step.optimizer.zero_grad()
        step.accumulate_gradient([batch], update, 0, round(pairs * text.target_length))
        step.optimizer.step(0.0, step.optimizer.grad_norm())
        times.append((time.process_time() - began) / threads)
    return min(times) / pairs


def _random_sentences(random: Random, count: int, length: int, vocabulary: int) -> list[Sentence]:
    """Return sentences of `length` token ids, the last of which is EOS."""
    ids = range(EOS + 1, vocabulary)
    return [[*random.choices(ids, k=length - 1), EOS] for _ in range(count)]
