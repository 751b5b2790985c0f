"""Forced decoding: the log-probabilities of given translations."""

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch

from bleuprint.dataset.batch import Batch, PairIds, Sentence, read_ids
from bleuprint.dataset.batching import batch_by_size
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.decoding.ensemble import ModelOrEnsemble, label_log_probs
from bleuprint.decoding.translation_record import ReferenceLoss

# Positions a side in one batch; does not change results.
_BATCH_TOKENS = 4096


def reference_loss(model: ModelOrEnsemble, corpus: BinaryCorpus, name: str) -> ReferenceLoss | None:
    """The loss on a set; None if a sentence is longer than `max_positions`."""
    pairs = read_ids(corpus, name, np.arange(corpus.sets[name].pairs))
    if max(map(len, chain(*pairs)), default=0) > model.settings.max_positions:
        return None
    logs = token_log_probs(model, pairs.source, pairs.target)
    return {"nats": -math.fsum(chain.from_iterable(logs)), "tokens": sum(map(len, logs))}


@torch.inference_mode()
def token_log_probs(
    model: ModelOrEnsemble, sources: Sequence[Sentence], targets: Sequence[Sentence]
) -> list[list[float]]:
    """The log-probability of each target token, EOS included, for pairs of ids with EOS."""
    source, target = (np.array(list(map(len, side)), dtype=np.int64) for side in (sources, targets))
    longest = int(max(source.max(initial=1), target.max(initial=1)))
    order = np.lexsort((target, source))
    result: list[list[float]] = [[] for _ in sources]
    for rows in batch_by_size(source, target, order, max(_BATCH_TOKENS, longest)):
        indices = rows.tolist()
        pairs = PairIds([sources[row] for row in indices], [targets[row] for row in indices])
        batch = Batch.from_ids(pairs).to(model.device)
        logs = label_log_probs(model, batch)
        parts = torch.split(logs, batch.lengths[:, 1].tolist())
        for row, part in zip(indices, parts, strict=True):
            result[row] = part.tolist()
    return result
