"""Beam search over a step function, independent of any model.

An output ends if EOS is among the `beam` best continuations (so that a beam of 1 is greedy search);
another continuation takes its place in the beam. A sentence is finished after `beam` such outputs,
as in fairseq, or as soon as no running hypothesis can score higher than the last of the outputs
that are asked for. The latter changes no result: log-probabilities only fall, and the length
penalty is largest at the maximum length.

Dimensions in shapes:

- sentences: the sentences that are still being decoded
- beam: the hypotheses of a sentence; 1 in the first step
- hypotheses: the hypotheses of all sentences, sentences x beam
- vocabulary: the tokens of the target vocabulary
- output_len: the tokens of the outputs so far, BOS included
- candidates: the candidates to continue a sentence
"""

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from bleuprint import native
from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import Lengths
from bleuprint.model.backends import native_continuations
from bleuprint.runtime.errors import UserError

# The number of source positions times hypotheses that are decoded at once. Bounds memory; does
# not change results.
BATCH_TOKENS = 16384

State = TypeVar("State", bound="Reorderable")


class Reorderable(Protocol):
    """The state of a decoder, such as its key-value cache."""

    def reorder(self: State, hypotheses: Tensor, sentences: Tensor | None = None) -> State:
        """Keep the hypotheses that a search continues, and drop all others.

        Args:
            hypotheses: The hypotheses to keep, as indices into the current hypotheses of all
                sentences. An index may occur twice.
            sentences: The sentences to keep, as indices into the current sentences; None keeps
                all.
        """


# One step of a decoder: from the last tokens (hypotheses,) and the state to logits (hypotheses,
# vocabulary) and the next state.
Step = Callable[[Tensor, State], tuple[Tensor, State]]


class SpecialTokens(NamedTuple):
    """The ids of BOS, EOS and UNK."""

    bos: int
    eos: int
    unk: int


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation that a search has found.

    Attributes:
        tokens: Its token ids, without BOS and EOS.
        score: `log_prob` divided by the length penalty.
        log_prob: The log-probability of its tokens and EOS.
        is_cut: Whether the maximum length ended it, while the model preferred another token to EOS.
    """

    tokens: list[int]
    score: float
    log_prob: float
    is_cut: bool = field(default=False, compare=False)


# The best outputs of each sentence, best first.
NBest = list[list[Hypothesis]]


def length_penalty(length: int, settings: Decode) -> float:
    """Return the length penalty, by which the log-probability of an output is divided.

    It is ((5 + length) / 6)^alpha for the setting `gnmt` (Wu et al. 2016, equation 14), and
    length^alpha for the setting `length` (as in fairseq).

    Args:
        length: The number of tokens, EOS included.
        settings: The settings of the search.
    """
    penalty = settings.length_penalty
    base = (5 + length) / 6 if penalty.kind == "gnmt" else length
    return float(base**penalty.alpha)


def max_output_lengths(lengths: Lengths, settings: Decode, max_positions: int) -> Lengths:
    """Return the maximum output length of each sentence: max_len_a * source length + max_len_b.

    Args:
        lengths: The lengths of the sources in tokens, EOS included.
        settings: The settings of the search, with `max_len_a` and `max_len_b`.
        max_positions: The length of the longest output that the model can decode, EOS included.

    Returns:
        The maximum lengths in tokens, EOS included.
    """
    # The settings count tokens without EOS, in sources and in outputs.
    tokens = np.floor((lengths - 1) * settings.max_len_a).astype(np.int64)
    limits: Lengths = np.minimum(tokens + settings.max_len_b + 1, max_positions)
    return limits


@torch.inference_mode()
def beam_search(
    step: Step[State],
    state: State,
    max_lengths: Tensor,
    special: SpecialTokens,
    settings: Decode,
    best: int = 1,
) -> NBest:
    """Search for the most probable translations of several sentences by beam search.

    Each step adds one token to the `beam` best unfinished outputs of each sentence. A sentence is
    finished when no further step can improve its best outputs.

    Args:
        step: One step of the decoder: from the last token of each hypothesis to the logits of the
            next. The first step has one hypothesis for each sentence, later ones have `beam`.
        state: The decoder's state before the first step, such as a key-value cache.
        max_lengths: The maximum output length of each sentence, EOS included, (sentences,).
        special: The ids of special tokens.
        settings: The settings of the search.
        best: How many outputs to return for each sentence.

    Returns:
        The best outputs of each sentence, best first. There may be fewer.

    Raises:
        UserError: The model returns NaN.
    """
    finished = _FinishedOutputs(len(max_lengths), best, settings)
    device = max_lengths.device
    sentences = torch.arange(len(max_lengths), device=device)  # (sentences,), the running ones
    scores = torch.zeros(len(max_lengths), 1, device=device)  # (sentences, beam), log-probabilities
    outputs = torch.full((len(max_lengths), 1, 1), special.bos, device=device)  # (sentences, 1, 1)
    limits = frozenset(max_lengths.tolist())
    while len(sentences):
        count, width, length = outputs.shape
        logits, state = step(outputs[:, :, -1].reshape(-1), state)
        log_probs = checked_log_probs(logits).view(count, width, -1)
        is_at_limit = max_lengths[sentences] == length
        has_limit = length in limits
        is_cut = would_continue(log_probs, is_at_limit, special.eos) if has_limit else None
        mask_forbidden(log_probs, outputs, is_at_limit, special, settings)
        # Each hypothesis has one candidate that ends. So of twice as many candidates as the beam
        # is wide, at least `beam` do not end and can be continued.
        candidates = _best_candidates(log_probs, scores, 2 * settings.beam)
        is_end = candidates.tokens == special.eos
        finished.add(sentences, outputs, candidates, is_end, is_cut)
        running_scores = candidates.scores.masked_fill(is_end, -torch.inf)
        scores, ranks = running_scores.topk(min(settings.beam, running_scores.size(1)))
        parents = candidates.parents.gather(1, ranks)
        outputs = _extend(outputs, parents, candidates.tokens.gather(1, ranks))
        # Go on with the sentences that are not finished.
        running = finished.running_rows(sentences, scores, max_lengths)
        hypotheses = parents + torch.arange(count, device=device)[:, None] * width
        kept_sentences = running if len(running) < count else None
        state = state.reorder(hypotheses[running].flatten(), kept_sentences)
        sentences = sentences[running]
        scores = scores[running]
        outputs = outputs[running]
    return finished.best


def checked_log_probs(logits: Tensor) -> Tensor:
    """Return the log-probabilities of logits in float32, after checking that they are not NaN.

    Args:
        logits: The logits of the next token of each hypothesis, (hypotheses, vocabulary).

    Raises:
        UserError: Some are NaN.
    """
    log_probs = torch.log_softmax(logits.float(), -1)
    # All tokens of a row are NaN if one is: softmax divides by their sum.
    if log_probs[:, 0].isnan().any():
        raise UserError(
            "the model is broken: its probabilities are NaN. Look for a diverging loss in the "
            "training log"
        )
    return log_probs


class _Candidates(NamedTuple):
    """The best ways to continue the hypotheses of each sentence by one token, best first.

    Attributes:
        scores: The log-probability of the output with the new token, (sentences, candidates).
        parents: The number of the hypothesis that is continued, from 0 in each sentence,
            (sentences, candidates).
        tokens: The new token, (sentences, candidates).
    """

    scores: Tensor
    parents: Tensor
    tokens: Tensor


def _best_candidates(log_probs: Tensor, scores: Tensor, count: int) -> _Candidates:
    """Find the best ways to continue the hypotheses of each sentence by one token.

    Args:
        log_probs: Log-probabilities of the next token of each hypothesis, (sentences, beam,
            vocabulary); may be changed.
        scores: Log-probabilities of the hypotheses, (sentences, beam).
        count: How many candidates to return for each sentence, if there are so many.
    """
    vocabulary = log_probs.size(-1)
    count = min(count, log_probs[0].numel())
    best_scores, places = _greatest(log_probs, scores, count)
    # A place is: number of the hypothesis x size of the vocabulary + token.
    parents = torch.div(places, vocabulary, rounding_mode="floor")
    return _Candidates(best_scores, parents, places % vocabulary)


def _greatest(log_probs: Tensor, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the greatest sums of a hypothesis's score and a token's log-probability.

    Args:
        log_probs: Log-probabilities of the next token of each hypothesis, (sentences, beam,
            vocabulary); may be changed.
        scores: Log-probabilities of the hypotheses, (sentences, beam).
        count: How many sums to return for each sentence, at most beam x vocabulary.

    Returns:
        The sums, greatest first, and their places, both (sentences, count). The place of a sum is
        the number of its hypothesis times the size of the vocabulary, plus its token.
    """
    library = native_continuations(log_probs, count)
    if library is None:
        # In place: another tensor for the sums would take as much memory as the log-probabilities.
        return log_probs.add_(scores[:, :, None]).flatten(1).topk(count)
    sums = log_probs.new_empty(len(log_probs), count)
    places = scores.new_empty(len(log_probs), count, dtype=torch.long)
    sentences, beam, vocabulary = log_probs.shape
    arguments = [
        log_probs.contiguous(),
        scores.contiguous(),
        sentences,
        beam,
        vocabulary,
        count,
        sums,  # Written by C++.
        places,  # Written by C++.
    ]
    library.greatest(*native.c_arguments(*arguments))
    return sums, places


def _extend(outputs: Tensor, parents: Tensor, tokens: Tensor) -> Tensor:
    """Continue outputs by one token each.

    Args:
        outputs: The tokens of all hypotheses so far, (sentences, beam, output length).
        parents: The number of the hypothesis that each new one continues, (sentences, beam).
        tokens: The new token of each new hypothesis, (sentences, beam).

    Returns:
        The new outputs, (sentences, beam, output length + 1).
    """
    # `gather` needs an index for each token of the output.
    indices = parents[:, :, None].expand(-1, -1, outputs.size(2))
    return torch.cat((outputs.gather(1, indices), tokens[:, :, None]), dim=2)


def would_continue(log_probs: Tensor, is_at_limit: Tensor, eos: int) -> Tensor:
    """Find the outputs that their maximum length cuts: the model would not end them by EOS now.

    Args:
        log_probs: The model's log-probabilities of the next token, (sentences, beam, vocabulary).
        is_at_limit: Which sentences have outputs of their maximum length, (sentences,).
        eos: The id of EOS.

    Returns:
        True for outputs at their maximum length whose most probable next token is not EOS,
        (sentences, beam).
    """
    continues = torch.zeros(log_probs.shape[:2], dtype=torch.bool, device=log_probs.device)
    continues[is_at_limit] = log_probs[is_at_limit].argmax(-1) != eos
    return continues


def mask_forbidden(
    log_probs: Tensor,
    outputs: Tensor,
    is_at_limit: Tensor,
    special: SpecialTokens,
    settings: Decode,
) -> None:
    """Set the log-probabilities of tokens that must not follow an output to -inf.

    An output of its maximum length must end. Others must not end before `min_len`, contain UNK
    unless `allow_unk` is set, or repeat an n-gram of `no_repeat_ngram_size` tokens. An output for
    which no token is left may end after all.

    Args:
        log_probs: Log-probabilities of the next token, (sentences, beam, vocabulary); changed in
            place.
        outputs: The tokens so far, with BOS, (sentences, beam, output length).
        is_at_limit: Which sentences have outputs of their maximum length, (sentences,).
        special: The ids of special tokens.
        settings: The settings of the search.
    """
    # `outputs` has BOS and no EOS, so its length is that of an output that would end now.
    is_too_short = outputs.size(2) <= settings.min_len
    has_limit = bool(is_at_limit.any())
    ngram_size = settings.no_repeat_ngram_size
    if settings.allow_unk and not (is_too_short or has_limit or ngram_size):
        return  # Nothing is forbidden.
    eos_log_probs = log_probs[:, :, special.eos].clone()
    if is_too_short:
        log_probs[:, :, special.eos] = -torch.inf
    if not settings.allow_unk:
        log_probs[:, :, special.unk] = -torch.inf
    if ngram_size:
        _mask_repetition(log_probs, outputs, ngram_size)
    if has_limit:
        log_probs[is_at_limit] = -torch.inf
    # Outputs without any allowed token, also those at their maximum length, get EOS back.
    is_stuck = log_probs.amax(-1) == -torch.inf
    log_probs[:, :, special.eos] = torch.where(
        is_stuck, eos_log_probs, log_probs[:, :, special.eos]
    )


def _mask_repetition(log_probs: Tensor, outputs: Tensor, ngram_size: int) -> None:
    """Forbid tokens that would repeat an n-gram of the same output.

    With n-grams of 3 tokens, after `a b c a b` the token `c` is forbidden.

    Args:
        log_probs: Log-probabilities of the next token, (sentences, beam, vocabulary). Those of
            forbidden tokens are set to -inf.
        outputs: The tokens so far, (sentences, beam, output length). They begin with BOS, which
            belongs to no n-gram.
        ngram_size: The number of tokens of an n-gram.
    """
    length = outputs.size(2)
    if length <= ngram_size:
        return  # There is no n-gram of that size yet.
    # All n-grams so far, from the token after BOS: (sentences, beam, n-grams, ngram_size).
    ngrams = outputs[:, :, 1:].unfold(2, ngram_size, 1)
    # The next token would form an n-gram with the last ngram_size - 1 tokens.
    recent = outputs[:, :, None, length - ngram_size + 1 :]
    # The last token of an n-gram would repeat it if its other tokens are these last tokens.
    is_repeated = (ngrams[..., :-1] == recent).all(-1)  # (sentences, beam, n-grams)
    row, hypothesis, ngram = is_repeated.nonzero(as_tuple=True)
    last_tokens = ngrams[row, hypothesis, ngram, -1]
    log_probs[row, hypothesis, last_tokens] = -torch.inf


class _FinishedOutputs:
    """Collects the finished outputs of a beam search, and tells when a sentence is finished.

    Attributes:
        best: The best outputs of each sentence so far, best first.
    """

    def __init__(self, sentences: int, best: int, settings: Decode) -> None:
        """Start without outputs.

        Args:
            sentences: The number of sentences.
            best: How many outputs to keep for each sentence.
            settings: The settings of the search.
        """
        self.best: NBest = [[] for _ in range(sentences)]
        # How many outputs of each sentence have ended, whether they are among the best or not.
        self._ended = [0] * sentences
        self._kept = best  # How many outputs to keep.
        self._settings = settings

    def add(
        self,
        sentences: Tensor,
        outputs: Tensor,
        candidates: _Candidates,
        is_end: Tensor,
        is_cut: Tensor | None = None,
    ) -> None:
        """Add the outputs that end in this step.

        These are the outputs whose next token may be EOS, if EOS is among the `beam` best
        candidates of the sentence.

        Args:
            sentences: The numbers of the sentences that are still searched, (sentences,).
            outputs: The tokens so far, with BOS, (sentences, beam, output length).
            candidates: The best ways to continue these outputs, (sentences, candidates).
            is_end: Which candidates continue an output by EOS, (sentences, candidates).
            is_cut: Which outputs are ended by their maximum length, (sentences, beam); None if none
                are.
        """
        beam = self._settings.beam
        is_output = is_end[:, :beam] & candidates.scores[:, :beam].isfinite()
        rows, ranks = is_output.nonzero(as_tuple=True)
        if not len(rows):
            return
        # `outputs` has BOS and no EOS, so its length is that of the outputs with EOS.
        penalty = length_penalty(outputs.size(2), self._settings)
        parents = candidates.parents[rows, ranks]
        # As lists, each of which takes one transfer from a GPU, instead of one for each number.
        tokens = outputs[rows, parents, 1:].tolist()
        log_probs = candidates.scores[rows, ranks].tolist()
        numbers = sentences[rows].tolist()
        cuts = [False] * len(rows) if is_cut is None else is_cut[rows, parents].tolist()
        for sentence, output, log_prob, cut in zip(numbers, tokens, log_probs, cuts, strict=True):
            self._ended[sentence] += 1
            # `insort` keeps the best first. Of equal scores, the output that was added first is.
            hypothesis = Hypothesis(output, log_prob / penalty, log_prob, cut)
            insort(self.best[sentence], hypothesis, key=lambda finished: -finished.score)
            del self.best[sentence][self._kept :]

    def running_rows(self, sentences: Tensor, scores: Tensor, max_lengths: Tensor) -> Tensor:
        """Return the sentences that are not finished, as indices into `sentences`.

        A sentence is finished when `beam` outputs have ended, when no hypothesis is left, or when
        no hypothesis can become better than the outputs that it has.

        Args:
            sentences: The numbers of the sentences that are still searched, (sentences,).
            scores: The log-probabilities of their hypotheses, (sentences, beam).
            max_lengths: The maximum output length of every sentence, by its number.
        """
        rows = []
        highest_scores = scores.max(dim=1).values.tolist()
        limits = max_lengths[sentences].tolist()
        for row, sentence in enumerate(sentences.tolist()):
            highest = highest_scores[row]
            if self._ended[sentence] >= self._settings.beam or highest == -torch.inf:
                continue
            # No output can score higher: log-probabilities only fall with each token, and the
            # length penalty, by which they are divided, is largest at the maximum length.
            bound = highest / length_penalty(limits[row], self._settings)
            best = self.best[sentence]
            if len(best) == self._kept and _is_beaten(bound, best):
                continue
            rows.append(row)
        return torch.tensor(rows, dtype=torch.long, device=sentences.device)


def _is_beaten(bound: float, best: list[Hypothesis]) -> bool:
    """Return whether an output with a score of at most `bound` cannot enter the best outputs.

    Args:
        bound: The highest score that the output can have.
        best: The best outputs, best first, as many as are asked for.
    """
    return bound <= best[-1].score
