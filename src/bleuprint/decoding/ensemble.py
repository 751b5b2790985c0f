"""An ensemble of checkpoints, which decodes like one model."""

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
    """The cache of each model."""

    def __init__(self, caches: list[KVCache]) -> None:
        self.caches = caches

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "EnsembleCache":
        return EnsembleCache([cache.reorder(hypotheses, sentences) for cache in self.caches])


class Ensemble:
    """Models of one training: the mean of their probabilities of the next token."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        """`models`: oldest first."""
        self.models = models
        self.settings, self.projection = models[-1].settings, models[-1].projection

    @property
    def device(self) -> torch.device:
        return self.models[-1].device

    def to(self, device: torch.device) -> "Ensemble":
        return Ensemble([model.to(device) for model in self.models])

    def init_cache(self, source: Tensor) -> EnsembleCache:
        """The caches before the first target token, for source ids (B, S)."""
        return EnsembleCache([model.init_cache(source) for model in self.models])

    def step(self, tokens: Tensor, cache: EnsembleCache) -> tuple[Tensor, EnsembleCache]:
        """Log-probabilities (N, V) of the token after `tokens` (N,), and the cache with these."""
        steps = [
            model.step(tokens, own) for model, own in zip(self.models, cache.caches, strict=True)
        ]
        logs = [torch.log_softmax(logits.float(), -1) for logits, _ in steps]
        return _log_mean(logs), EnsembleCache([own for _, own in steps])


ModelOrEnsemble = Transformer | Ensemble


def load_model_or_ensemble(folder: Path, corpus: BinaryCorpus) -> ModelOrEnsemble:
    """The model that the stage average wrote into `folder`, or its ensemble; raises as load_model.

    An ensemble has a folder for each checkpoint, named by its update.
    """
    averaged = ModelDescription.read(folder).averaged
    if averaged is None or not averaged.is_ensemble:
        return load_model(folder, corpus)
    return Ensemble([load_model(folder / str(update), corpus) for update in averaged.updates])


def models_of(decoder: ModelOrEnsemble) -> Sequence[Transformer]:
    """The models of an ensemble, oldest first, or the one model."""
    return decoder.models if isinstance(decoder, Ensemble) else [decoder]


def label_log_probs(decoder: ModelOrEnsemble, batch: Batch) -> Tensor:
    """The log-probability (N) of each label of a batch."""
    logs = []
    for model in models_of(decoder):
        hidden = model.decode(batch.target, *model.encode(batch.source, batch.has_padding))
        labels = hidden.flatten(0, 1).index_select(0, batch.label_positions)
        logs.append(model.log_probs(labels).gather(1, batch.labels[:, None])[:, 0])
    return _log_mean(logs)


def _log_mean(logs: list[Tensor]) -> Tensor:
    """The logarithm of the mean of probabilities."""
    if len(logs) == 1:
        return logs[0]
    return torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs))
