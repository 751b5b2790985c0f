"""Forced decoding: the log-probabilities of given translations.

`reference_loss` computes the loss of the references, `token_log_probs` that of any translations.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch

from bleuprint.dataset.batch import Batch, PairIds, Sentence, read_ids
from bleuprint.dataset.batching import batch_by_size
from bleuprint.dataset.binarized import BinaryCorpus, Lengths
from bleuprint.decoding.ensemble import ModelOrEnsemble, label_log_probs
from bleuprint.decoding.translation_record import ReferenceLoss

# Positions of each side in one batch; does not change results.
_BATCH_TOKENS = 4096


def reference_loss(model: ModelOrEnsemble, corpus: BinaryCorpus, name: str) -> ReferenceLoss | None:
    """Compute the loss of a model on the reference translations of a test set.

    The loss is the negative log-likelihood: low if the model expects the references.

    Args:
        model: The model.
        corpus: The binarized corpus.
        name: The name of the set in the corpus, such as `test.news`.

    Returns:
        The loss in nats, summed over the tokens of the references, and their number. None if a
        sentence is longer than the model's `max_positions`.
    """
    pairs = read_ids(corpus, name, np.arange(corpus.sets[name].pairs))
    longest = _lengths(pairs.source + pairs.target).max(initial=0)
    if longest > model.settings.max_positions:
        return None
    log_probs = []
    for sentence_log_probs in token_log_probs(model, pairs.source, pairs.target):
        log_probs += sentence_log_probs
    # `fsum` rounds only once, so the result does not depend on the order of the sentences.
    return {"nats": -math.fsum(log_probs), "tokens": len(log_probs)}


@torch.inference_mode()
def token_log_probs(
    model: ModelOrEnsemble, sources: Sequence[Sentence], targets: Sequence[Sentence]
) -> list[list[float]]:
    """Compute the log-probability that a model gives to each token of existing translations.

    This is forced decoding: the decoder reads the given translation, not its own output.

    Args:
        model: The model.
        sources: The token ids of the source sentences, with EOS.
        targets: The token ids of their translations, with EOS.

    Returns:
        For each translation, the log-probabilities of its tokens, EOS included.
    """
    source_lengths = _lengths(sources)
    target_lengths = _lengths(targets)
    longest = int(max(source_lengths.max(initial=1), target_lengths.max(initial=1)))
    # Sort by source length, then by target length, so that batches have little padding. The last
    # key of `lexsort` is the first one to sort by.
    order = np.lexsort((target_lengths, source_lengths))
    batch_tokens = max(_BATCH_TOKENS, longest)
    log_probs: list[list[float]] = [[] for _ in sources]
    for batch_rows in batch_by_size(source_lengths, target_lengths, order, batch_tokens):
        rows = batch_rows.tolist()
        pairs = PairIds([sources[row] for row in rows], [targets[row] for row in rows])
        batch = Batch.from_ids(pairs).to(model.device)
        # The tokens of all sentences follow each other; split them by sentence.
        batch_log_probs = label_log_probs(model, batch)
        lengths_in_batch = batch.lengths[:, 1].tolist()  # Column 1 contains target lengths.
        sentences = torch.split(batch_log_probs, lengths_in_batch)
        for row, sentence_log_probs in zip(rows, sentences, strict=True):
            log_probs[row] = sentence_log_probs.tolist()
    return log_probs


def _lengths(sentences: Sequence[Sentence]) -> Lengths:
    """Return the length of each sentence in tokens."""
    return np.array([len(sentence) for sentence in sentences], dtype=np.int64)
