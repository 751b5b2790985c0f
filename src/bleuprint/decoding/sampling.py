"""Sampling: each token of an output is drawn from the model's distribution.

Tokens are drawn from the whole vocabulary (Edunov et al. 2018, unrestricted) or from the `top_k`
most probable tokens, whose probabilities are scaled to sum to 1 (Fan et al. 2018).

Dimensions in shapes: `sentences` have one hypothesis each, `vocabulary` is the number of tokens of
the vocabulary, `output_len` the number of tokens of the outputs so far, BOS included.
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
    checked_log_probs,
    find_cut_outputs,
    length_penalty,
    mask_forbidden,
)


class Sampler:
    """Gives each sentence of a text its own random numbers, for sampling its translation.

    They depend only on the seed and the sentence's number in the text, so that translations do not
    depend on how sentences are grouped into batches.

    Attributes:
        top_k: From how many of the most probable tokens to draw the next; None draws from all.
    """

    def __init__(self, seed: str, top_k: int | None) -> None:
        """Start at the first sentence of a text.

        Args:
            seed: Any text, from which the random numbers are computed.
            top_k: From how many of the most probable tokens to draw; None draws from all.
        """
        self.top_k = top_k
        self._seed = seed
        self._next_sentence = 0

    def randoms(self, count: int) -> list[Random]:
        """Return a random number generator for each of the next `count` sentences of the text.

        Its seed contains the sentence's number in the text, so that a sentence gets the same random
        numbers however the text is divided into batches.
        """
        first = self._next_sentence
        self._next_sentence += count
        return [Random(f"{self._seed} {number}") for number in range(first, first + count)]


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
    """Translate sentences by sampling: each next token is drawn with the model's probability.

    Tokens that the settings forbid, such as the end of a short output, are not drawn.

    Args:
        step: One step of the decoder: from the last token of each output to the logits of the next.
        state: The decoder's state before the first step, such as a key-value cache.
        max_lengths: The maximum output length of each sentence, EOS included, (sentences,).
        special: The ids of special tokens.
        settings: The settings of the search, such as the limits of outputs.
        top_k: From how many of the most probable tokens to draw; None draws from all.
        randoms: A random number generator for each sentence; each token takes one number.

    Returns:
        For each sentence, a list of one output.

    Raises:
        UserError: The model returns NaN.
    """
    device = max_lengths.device
    finished: NBest = [[] for _ in range(len(max_lengths))]
    # The unfinished sentences, and the output of each, (sentences, length), with its score.
    sentences = torch.arange(len(max_lengths), device=device)
    outputs = torch.full((len(max_lengths), 1), special.bos, device=device)
    output_log_probs = torch.zeros(len(max_lengths), device=device)
    while len(sentences):
        length = outputs.size(1)  # `outputs` has BOS in place of EOS, so this counts EOS.
        logits, state = step(outputs[:, -1], state)
        log_probs = checked_log_probs(logits)
        is_at_limit = max_lengths[sentences] == length
        # A view with a beam of one output for each sentence; masking it also masks `log_probs`.
        beam_log_probs = log_probs[:, None]
        is_cut = find_cut_outputs(beam_log_probs, is_at_limit, special.eos)[:, 0].tolist()
        mask_forbidden(beam_log_probs, outputs[:, None], is_at_limit, special, settings)
        numbers = [randoms[sentence].random() for sentence in sentences.tolist()]
        tokens = _draw(log_probs, numbers, top_k)
        output_log_probs = output_log_probs + log_probs.gather(1, tokens[:, None])[:, 0]
        penalty = length_penalty(length, settings)
        is_end = tokens == special.eos
        for row in is_end.nonzero().flatten().tolist():
            output = outputs[row, 1:].tolist()  # Without BOS.
            log_prob = float(output_log_probs[row])
            hypothesis = Hypothesis(output, log_prob / penalty, log_prob, is_cut[row])
            finished[int(sentences[row])] = [hypothesis]
        unfinished = (~is_end).nonzero().flatten()
        kept_sentences = unfinished if len(unfinished) < len(is_end) else None
        state = state.reorder(unfinished, kept_sentences)
        sentences = sentences[unfinished]
        outputs = torch.cat((outputs, tokens[:, None]), dim=1)[unfinished]
        output_log_probs = output_log_probs[unfinished]
    return finished


def _draw(log_probs: Tensor, numbers: Sequence[float], top_k: int | None) -> Tensor:
    """Draw the next token of each sentence from the model's distribution.

    The interval from 0 to 1 is divided into a part for each token, as long as its probability. A
    random number draws the token whose part it falls into. With the probabilities 0.2, 0.5 and 0.3,
    the parts end at 0.2, 0.7 and 1.0, so the number 0.6 draws the second token.

    Args:
        log_probs: Log-probabilities of the next token, (sentences, vocabulary).
        numbers: A random number from 0 to 1 for each sentence.
        top_k: From how many of the most probable tokens to draw; None draws from all.

    Returns:
        The tokens, (sentences,).
    """
    top_tokens = None
    if top_k is not None and top_k < log_probs.size(1):
        log_probs, top_tokens = log_probs.topk(top_k)
    # Where each token's part ends. In float64, since float32 loses rare tokens in the sum.
    ends = log_probs.double().exp().cumsum(-1)
    # The parts of the allowed tokens may sum to less than 1, so the numbers are scaled to the sum.
    total = ends[:, -1:]
    places = torch.tensor(numbers, dtype=ends.dtype, device=ends.device)[:, None] * total
    # A token with probability 0 has an empty part, which ends where the part before it ends. With
    # `right`, the search goes past equal ends, so that such a token is never drawn.
    choices = torch.searchsorted(ends, places, right=True)
    # Rounding may put a number behind the last part.
    choices = choices.clamp_(max=log_probs.size(1) - 1)
    if top_tokens is not None:
        choices = top_tokens.gather(1, choices)
    return choices[:, 0]
