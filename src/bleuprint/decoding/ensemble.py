"""An ensemble of checkpoints, which decodes like one model.

Dimensions in shapes: `batch` is the number of sentences, `source_len` their positions, `hypotheses`
those of a search, `vocabulary` the tokens of the target vocabulary.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from bleuprint.dataset.batch import Batch
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model.description import ModelDescription
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_model


class EnsembleCache:
    """The key-value caches of an ensemble's models."""

    def __init__(self, caches: list[KVCache]) -> None:
        """Combine the caches, in the order of the models."""
        self.caches = caches

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "EnsembleCache":
        """Keep some hypotheses of some sentences, as `KVCache.reorder`."""
        return EnsembleCache([cache.reorder(hypotheses, sentences) for cache in self.caches])


class Ensemble:
    """Models of one training, whose probabilities of the next token are averaged.

    Attributes:
        models: The models, oldest first.
        settings: The shape of each model.
        projection: The newest model's projection to the vocabulary, for its size.
    """

    def __init__(self, models: Sequence[Transformer]) -> None:
        """Combine models, oldest first."""
        self.models = models
        self.settings = models[-1].settings
        self.projection = models[-1].projection

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.models[-1].device

    def to(self, device: torch.device) -> "Ensemble":
        """Return the ensemble on a device."""
        return Ensemble([model.to(device) for model in self.models])

    def init_cache(self, source: Tensor) -> EnsembleCache:
        """Encode source ids (batch, source_len), and return the caches before the first step."""
        return EnsembleCache([model.init_cache(source) for model in self.models])

    def step(self, tokens: Tensor, cache: EnsembleCache) -> tuple[Tensor, EnsembleCache]:
        """Compute the log-probabilities of the next token of each hypothesis of a search.

        Args:
            tokens: The ids of each hypothesis's last token, (hypotheses,).
            cache: Keys and values of earlier tokens; it is changed.

        Returns:
            The log-probabilities, (hypotheses, vocabulary), and the cache, which includes `tokens`.
        """
        model_log_probs = []
        model_caches = []
        for model, model_cache in zip(self.models, cache.caches, strict=True):
            logits, next_cache = model.step(tokens, model_cache)
            model_log_probs.append(torch.log_softmax(logits.float(), -1))
            model_caches.append(next_cache)
        return _log_mean(model_log_probs), EnsembleCache(model_caches)


ModelOrEnsemble = Transformer | Ensemble


def load_model_or_ensemble(folder: Path, corpus: BinaryCorpus) -> ModelOrEnsemble:
    """Load what the stage average wrote: one model, or an ensemble.

    Args:
        folder: The folder of the model. That of an ensemble has a folder for each checkpoint, named
            by its update.
        corpus: The corpus whose text is to be translated.

    Raises:
        UserError: See `load_model`.
    """
    averaged = ModelDescription.read(folder).averaged
    if averaged is None or not averaged.is_ensemble:
        return load_model(folder, corpus)
    return Ensemble([load_model(folder / str(update), corpus) for update in averaged.updates])


def models_of(decoder: ModelOrEnsemble) -> Sequence[Transformer]:
    """Return the models of an ensemble, oldest first, or the one model."""
    return decoder.models if isinstance(decoder, Ensemble) else [decoder]


def label_log_probs(decoder: ModelOrEnsemble, batch: Batch) -> Tensor:
    """Return the log-probability of each label of a batch, (labels,), in the order of labels."""
    model_log_probs = []
    for model in models_of(decoder):
        log_probs = model.log_probs(model.label_states(batch))  # (labels, vocabulary)
        model_log_probs.append(log_probs.gather(1, batch.labels[:, None])[:, 0])
    return _log_mean(model_log_probs)


def _log_mean(log_probs: list[Tensor]) -> Tensor:
    """Return the logarithm of the mean of probabilities, from their logarithms."""
    if len(log_probs) == 1:
        return log_probs[0]
    return torch.logsumexp(torch.stack(log_probs), 0) - math.log(len(log_probs))
