"""Several models that translate as one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bleuprint.config.system import Model
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.transformer import Transformer


@dataclass
class EnsembleState:
    """What each of the models keeps between steps."""

    states: list[KVCache]

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "EnsembleState":
        return EnsembleState([state.reorder(hypotheses, sentences) for state in self.states])


class Ensemble:
    """Models of one vocabulary whose probabilities of each next word are averaged."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        self._models = models
        longest = min(model.settings.max_positions for model in models)
        self.settings: Model = next(
            m.settings for m in models if m.settings.max_positions == longest
        )
        self.device = models[0].device

    def init_cache(self, source: Tensor) -> EnsembleState:
        """The state before the first target word, for source ids (B, S)."""
        return EnsembleState([model.init_cache(source) for model in self._models])

    def step(self, words: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """Log-probabilities (N, V) of the word after `words` (N,), and the state with them."""
        logs, states = [], []
        for model, own in zip(self._models, state.states, strict=True):
            logits, after = model.step(words, own)
            logs.append(torch.log_softmax(logits.float(), -1))
            states.append(after)
        mean = torch.logsumexp(torch.stack(logs), 0) - math.log(len(logs))
        return mean, EnsembleState(states)
