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
from bleuprint.model.transformer import Cache, Transformer
from bleuprint.model.weights import load_model


class EnsembleCache:
    """The key-value caches of an ensemble's models."""

    def __init__(self, caches: list[Cache]) -> None:
        """Combine the caches, in the order of the models."""
        self.caches = caches

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "EnsembleCache":
        """Keep the hypotheses that a search continues, in the cache of each model.

        Args:
            hypotheses: The hypotheses to keep, as indices into the current hypotheses of all
                sentences.
            sentences: The sentences to keep, as indices into the current sentences; None keeps
                all.
        """
        return EnsembleCache([cache.reorder(hypotheses, sentences) for cache in self.caches])


class Ensemble:
    """Several checkpoints of one training run that translate together like one model.

    The probability of the next token is the mean of the models' probabilities.

    Attributes:
        models: The models, oldest first.
        settings: The settings of each model's shape.
        projection: The newest model's projection to the vocabulary, which tells its size.
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
        """Encode source sentences by each model, and prepare the key-value caches of a search.

        Args:
            source: The ids of the source sentences, with EOS, (sentences, source length).
        """
        return EnsembleCache([model.init_cache(source) for model in self.models])

    def step(self, tokens: Tensor, cache: EnsembleCache) -> tuple[Tensor, EnsembleCache]:
        """Compute the log-probabilities of the next token of each hypothesis of a search.

        Args:
            tokens: The id of each hypothesis's last token, (hypotheses,).
            cache: The keys and values of the tokens before; the ones of `tokens` are added.

        Returns:
            The log-probabilities, (hypotheses, vocabulary), and the cache.
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
    """Load a model, or the models of an ensemble, whichever a folder contains.

    Args:
        folder: The folder that the stage `average` wrote. The folder of an ensemble contains a
            folder for each of its checkpoints, named by its update.
        corpus: The corpus whose text is to be translated.

    Raises:
        UserError: A file is missing or damaged, or the corpus has other vocabularies than the model
            was trained on.
    """
    averaged = ModelDescription.read(folder).averaged
    if averaged is None or not averaged.is_ensemble:
        return load_model(folder, corpus)
    return Ensemble([load_model(folder / str(update), corpus) for update in averaged.updates])


def models_of(decoder: ModelOrEnsemble) -> Sequence[Transformer]:
    """Return the models of an ensemble, oldest first, or the one model."""
    return decoder.models if isinstance(decoder, Ensemble) else [decoder]


def label_log_probs(decoder: ModelOrEnsemble, batch: Batch) -> Tensor:
    """Compute the log-probability that a model gives to each target token of a batch.

    An ensemble's probability is the mean of its models' probabilities.

    Args:
        decoder: The model, or an ensemble.
        batch: Source and target sentences, padded to one length. Its labels are the target tokens.

    Returns:
        The log-probabilities, in the order of the labels, (labels,).
    """
    model_log_probs = []
    for model in models_of(decoder):
        log_probs = model.log_probs(model.label_states(batch))  # (labels, vocabulary)
        model_log_probs.append(log_probs.gather(1, batch.labels[:, None])[:, 0])
    return _log_mean(model_log_probs)


def _log_mean(log_probs: list[Tensor]) -> Tensor:
    """Return the logarithm of the mean of several models' probabilities.

    Args:
        log_probs: The logarithms of the probabilities, one tensor for each model.
    """
    if len(log_probs) == 1:
        return log_probs[0]
    # log(sum / n) = log(sum) - log(n). `logsumexp` adds probabilities without underflow.
    log_sum = torch.logsumexp(torch.stack(log_probs), 0)
    return log_sum - math.log(len(log_probs))
