"""Sampling: each token of an output is drawn from the model's distribution.

Drawn from all tokens (Edunov et al. 2018, unrestricted) or from the `top_k` most probable ones,
with their probabilities made to sum to 1 (Fan et al. 2018). Shapes as in beam_search.py, with one
hypothesis a sentence: N = B.
"""

from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from bleuprint.config.system import Decode
from bleuprint.decoding.beam_search import (
    Hypothesis,
    NBest,
    SpecialTokens,
    State,
    Step,
    length_penalty,
    mask_forbidden,
    would_continue,
)
from bleuprint.runtime.errors import UserError


class Sampler:
    """What sentences are drawn with: random numbers of their own for each of a text.

    They depend on `seed` and the sentence's number in the text, not on batches or threads.
    """

    def __init__(self, seed: str, top_k: int | None) -> None:
        self.top_k, self._seed, self._sentences = top_k, seed, 0

    def randoms(self, count: int) -> list[Random]:
        """Those of the next `count` sentences of the text."""
        first, self._sentences = self._sentences, self._sentences + count
        return [Random(f"{self._seed} {number}") for number in range(first, self._sentences)]


@torch.inference_mode()
def sample(
    step: Step[State],
    state: State,
    max_lengths: Tensor,
    special: SpecialTokens,
    settings: Decode,
    top_k: int | None,
    randoms: Sequence[Random],
) -> NBest:
    """Draw one output for each of B sentences, which needs a number of its `randoms` a token.

    `step`, `max_lengths` and the limits of `settings` are those of `beam_search`; a token that is
    not allowed has probability 0. `log_prob` is the model's, of all tokens. Raises UserError if the
    model returns NaN.
    """
    found: NBest = [[] for _ in range(len(max_lengths))]
    sentences = torch.arange(len(max_lengths), device=max_lengths.device)
    outputs = torch.full((len(max_lengths), 1), special.bos, device=max_lengths.device)
    sums = torch.zeros(len(max_lengths), device=max_lengths.device)
    while len(sentences):
        logits, state = step(outputs[:, -1], state)
        logs = torch.log_softmax(logits.float(), -1)
        if logs[:, 0].isnan().any():  # all are if one is
            raise UserError("the model is broken: its probabilities are NaN")
        at_limit = max_lengths[sentences] == outputs.size(1)
        cut = would_continue(logs[:, None], at_limit, special.eos)[:, 0].tolist()
        mask_forbidden(logs[:, None], outputs[:, None], at_limit, special, settings)
        tokens = _draw(logs, [randoms[row].random() for row in sentences.tolist()], top_k)
        sums = sums + logs.gather(1, tokens[:, None])[:, 0]
        ends = tokens == special.eos
        penalty = length_penalty(outputs.size(1), settings)
        for row in ends.nonzero().flatten().tolist():
            log = float(sums[row])
            hypothesis = Hypothesis(outputs[row, 1:].tolist(), log / penalty, log, cut[row])
            found[int(sentences[row])] = [hypothesis]
        outputs = torch.cat((outputs, tokens[:, None]), dim=1)
        running = (~ends).nonzero().flatten()
        state = state.reorder(running, running if len(running) < len(ends) else None)
        sentences, outputs, sums = sentences[running], outputs[running], sums[running]
    return found


def _draw(logs: Tensor, numbers: Sequence[float], top_k: int | None) -> Tensor:
    """The tokens (N,) that numbers from 0 to 1 select, by log-probabilities (N, V).

    Each token has a part of the interval as long as its probability.
    """
    tokens = None
    if top_k is not None and top_k < logs.size(1):
        logs, tokens = logs.topk(top_k)
    ends = logs.double().exp().cumsum(-1)
    places = torch.tensor(numbers, dtype=ends.dtype, device=ends.device)[:, None] * ends[:, -1:]
    # to the right of equal ends: a part of length 0 is never selected
    drawn = torch.searchsorted(ends, places, right=True).clamp_(max=logs.size(1) - 1)
    return (drawn if tokens is None else tokens.gather(1, drawn))[:, 0]
