"""How long a training will take on this machine, from a few of its updates."""

import math
import time
from collections.abc import Iterator
from random import Random

import torch

from bleuprint.config.system import System, Train
from bleuprint.dataset.batch import PairIds, Sentence
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.training.data_loader import batch_kind
from bleuprint.training.fitted_systems import TextSize
from bleuprint.training.train_step import TrainStep

# Updates that are timed, and their tokens at most: some seconds in all.
_UPDATES, _MOST_TOKENS = 4, 2500
# A token of a validation, whose loss is computed and which greedy search finds, takes about as long
# as one of a training.
_VALIDATION = 1.3
# A second training on another core, and portable arithmetic, which took 1.09 to 1.19 times as long.
_SLOWER = 1.25


def updates(train: Train, text: TextSize) -> int | None:
    """The most updates of a training on a text; None if patience alone ends it."""
    epochs = train.max_epochs and math.ceil(text.pairs * train.max_epochs / _pairs(train, text))
    return min((each for each in (train.max_updates, epochs) if each is not None), default=None)


def passes(train: Train, text: TextSize, updates: int) -> float:
    """How many times a training reads the text."""
    return updates * _pairs(train, text) / text.pairs


def seconds(system: System, text: TextSize, valid: int, updates: int, threads: int) -> float:
    """The seconds of a training on a CPU; `valid`: the pairs of the validation set."""
    train = system.train
    pairs = _pairs(train, text) + _VALIDATION * valid / train.validate_every
    slower = _SLOWER if system.arithmetic == "portable" else 1
    return updates * pairs * slower * seconds_of_pair(system, text, threads)


def _pairs(train: Train, text: TextSize) -> float:
    """The pairs of an update."""
    if train.tokens_per_update is not None:
        return train.tokens_per_update / text.target
    return float(train.update_size[1])


def seconds_of_pair(system: System, text: TextSize, threads: int) -> float:
    """The seconds that training takes for a pair, of the fastest of some updates.

    By the time of the processor: what else runs now may not run then.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    train, group = system.train, Group(0, 1, torch.device("cpu"))
    model = Transformer(system.model, text.vocabulary, text.vocabulary).train()
    step, kind = TrainStep(model, train, 1, group), batch_kind(system.model, train, group.device)
    longest = max(round(text.source), round(text.target))
    pairs = max(1, min(train.max_tokens, _MOST_TOKENS) // longest)
    batch = kind.from_ids(PairIds(*_sides(text, pairs)))

    def update(number: int) -> float:
        began = time.process_time()
        step.optimizer.zero_grad()
        step.accumulate_gradient([batch], number, 0, round(pairs * text.target))
        step.optimizer.step(0.0, step.optimizer.grad_norm())
        return (time.process_time() - began) / threads

    return min(map(update, range(1, _UPDATES + 1))) / pairs


def _sides(text: TextSize, pairs: int) -> Iterator[list[Sentence]]:
    random = Random(1)
    for length in (round(text.source), round(text.target)):
        ids = range(EOS + 1, text.vocabulary)
        yield [[*random.choices(ids, k=length - 1), EOS] for _ in range(pairs)]
