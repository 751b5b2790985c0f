"""An ensemble of models that decodes like one model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bleuprint.config.system import Model
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.transformer import Transformer


@dataclass
class EnsembleCache:
    """The cache of each model."""

    caches: list[KVCache]

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "EnsembleCache":
        return EnsembleCache([cache.reorder(hypotheses, sentences) for cache in self.caches])


class Ensemble:
    """Models with one vocabulary whose probabilities of the next token are averaged."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        self._models = models
        self.settings: Model = min(
            (model.settings for model in models), key=lambda settings: settings.max_positions
        )
        self.device = models[0].device

    def init_cache(self, source: Tensor) -> EnsembleCache:
        """The caches before the first target token, for source ids (B, S)."""
        return EnsembleCache([model.init_cache(source) for model in self._models])

    def step(self, tokens: Tensor, cache: EnsembleCache) -> tuple[Tensor, EnsembleCache]:
        """Log-probabilities (N, V) of the token after `tokens` (N,), and the updated caches."""
        logs, caches = [], []
        for model, own in zip(self._models, cache.caches, strict=True):
            logits, updated = model.step(tokens, own)
            logs.append(torch.log_softmax(logits.float(), -1))
            caches.append(updated)
        mean = torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs))
        return mean, EnsembleCache(caches)
