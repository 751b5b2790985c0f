"""Forced decoding: the log-probabilities of translations that are given."""

from collections.abc import Sequence

import numpy as np
import torch

from bleuprint.dataset.batch import Batch, PairIds, Sentence
from bleuprint.dataset.batching import batch_by_size
from bleuprint.model.transformer import Transformer

# Positions a side that are read at once; it changes no result.
_BATCH_TOKENS = 4096


@torch.inference_mode()
def log_probabilities(
    model: Transformer, sources: Sequence[Sentence], targets: Sequence[Sentence]
) -> list[list[float]]:
    """For each pair of ids, both with EOS, the log-probability of each unit of the target."""
    source, target = (np.array(list(map(len, side)), dtype=np.int64) for side in (sources, targets))
    longest = int(max(source.max(initial=1), target.max(initial=1)))
    order = np.lexsort((target, source))
    found: list[list[float]] = [[] for _ in sources]
    for rows in batch_by_size(source, target, order, max(_BATCH_TOKENS, longest)):
        chosen = rows.tolist()
        sides = PairIds([sources[row] for row in chosen], [targets[row] for row in chosen])
        batch = Batch.from_ids(sides).to(model.device)
        hidden = model.decode(batch.target, *model.encode(batch.source, batch.has_padding))
        words = hidden.flatten(0, 1).index_select(0, batch.label_positions)
        logs = model.log_probs(words).gather(1, batch.labels[:, None])[:, 0]
        parts = torch.split(logs, [length for _, length in batch.lengths])
        for row, part in zip(chosen, parts, strict=True):
            found[row] = part.tolist()
    return found
