"""Beam search over a step function, independent of any model.

An output ends if EOS is among the `beam` best continuations (so that a beam of 1 is greedy search);
another continuation takes its place in the beam. A sentence is finished after `beam` such outputs,
as in fairseq, or as soon as no hypothesis can enter its best outputs, which changes no result.

Dimensions in shapes:

- sentences: the sentences that are still being decoded
- beam: the hypotheses of a sentence; 1 in the first step
- hypotheses: the hypotheses of all sentences, sentences x beam
- vocabulary: the tokens of the target vocabulary
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

# How many source positions times hypotheses to decode at once: bounds memory, not results.
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

    Each further token lowers the log-probability of an output, so that a search without a penalty
    prefers short outputs. It is ((5 + length) / 6)^alpha for the setting `gnmt` (Wu et al. 2016,
    equation 14), and length^alpha for the setting `length` (as in fairseq).

    Args:
        length: The number of tokens of the output, EOS included.
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
    # The formula counts tokens without EOS, in sources and in outputs; `lengths` and the result
    # include EOS.
    source_tokens = lengths - 1
    max_tokens = np.floor(source_tokens * settings.max_len_a).astype(np.int64) + settings.max_len_b
    max_lengths: Lengths = np.minimum(max_tokens + 1, max_positions)
    return max_lengths


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

    Each step adds one token to the `beam` best unfinished outputs ("hypotheses") of each sentence,
    until no further step can improve its best finished outputs.

    Args:
        step: One step of the decoder: from the last token of each hypothesis to the logits of the
            next. The first step has one hypothesis for each sentence, later ones have `beam`.
        state: The decoder's state before the first step, such as a key-value cache.
        max_lengths: The maximum output length of each sentence, EOS included, (sentences,).
        special: The ids of special tokens.
        settings: The settings of the search.
        best: How many outputs to return for each sentence, at most; the search may find fewer.

    Returns:
        The best outputs of each sentence, best first.
    """
    device = max_lengths.device
    finished = _FinishedOutputs(len(max_lengths), best, settings)
    # Each sentence begins with one hypothesis, which consists of BOS and has the log-probability 0.
    sentences = torch.arange(len(max_lengths), device=device)  # The unfinished ones.
    outputs = torch.full((len(max_lengths), 1, 1), special.bos, device=device)
    scores = torch.zeros(len(max_lengths), 1, device=device)
    all_limits = frozenset(max_lengths.tolist())  # On the CPU, to ask without waiting for a GPU.
    while len(sentences):
        # Outputs are (sentences, beam, length). They have BOS in place of EOS, so `length` counts
        # EOS, as `max_lengths` does.
        sentence_count, beam, length = outputs.shape
        logits, state = step(outputs[:, :, -1].reshape(-1), state)
        log_probs = checked_log_probs(logits).view(sentence_count, beam, -1)
        is_at_limit = max_lengths[sentences] == length
        has_limit = length in all_limits
        is_cut = find_cut_outputs(log_probs, is_at_limit, special.eos) if has_limit else None
        mask_forbidden(log_probs, outputs, is_at_limit, special, settings)
        # At most one candidate of each hypothesis ends, by EOS. So of twice as many candidates as
        # there are hypotheses in the beam, enough do not end to fill the next beam.
        candidates = _best_candidates(log_probs, scores, 2 * settings.beam)
        is_end = candidates.tokens == special.eos
        finished.add(sentences, outputs, candidates, is_end, is_cut)
        next_beam = _best_unfinished(candidates, is_end, settings.beam)
        outputs = _extend(outputs, next_beam.parents, next_beam.tokens)
        # Parents are numbered within their sentence, the decoder's hypotheses over all sentences.
        first_of_sentence = torch.arange(sentence_count, device=device)[:, None] * beam
        hypotheses = first_of_sentence + next_beam.parents
        # Go on with the rows of the sentences that are not finished.
        rows = finished.running_rows(sentences, next_beam.scores, max_lengths)
        kept_sentences = rows if len(rows) < sentence_count else None  # None keeps all.
        state = state.reorder(hypotheses[rows].flatten(), kept_sentences)
        sentences = sentences[rows]
        scores = next_beam.scores[rows]
        outputs = outputs[rows]
    return finished.best


def checked_log_probs(logits: Tensor) -> Tensor:
    """Return the log-probabilities of logits in float32, after checking that they are not NaN.

    Args:
        logits: The logits of the next token of each hypothesis, (hypotheses, vocabulary).

    Raises:
        UserError: Some are NaN.
    """
    log_probs = torch.log_softmax(logits.float(), -1)
    # Softmax divides by the sum over all tokens, so one NaN makes a whole row NaN. It is enough to
    # look at the first token of each row.
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


def _best_unfinished(candidates: _Candidates, is_end: Tensor, beam: int) -> _Candidates:
    """Return the best candidates that do not end their output: those that the search continues.

    Args:
        candidates: The best ways to continue the hypotheses, (sentences, candidates).
        is_end: Which candidates continue an output by EOS, (sentences, candidates).
        beam: How many candidates to return for each sentence, if there are so many.
    """
    scores_without_ends = candidates.scores.masked_fill(is_end, -torch.inf)
    scores, columns = scores_without_ends.topk(min(beam, is_end.size(1)))
    parents = candidates.parents.gather(1, columns)
    tokens = candidates.tokens.gather(1, columns)
    return _Candidates(scores, parents, tokens)


def _extend(outputs: Tensor, parents: Tensor, tokens: Tensor) -> Tensor:
    """Continue outputs by one token each.

    From the outputs `a b` and `a c`, the parents 1 and 1 and the tokens `d` and `e` make `a c d`
    and `a c e`.

    Args:
        outputs: The tokens of all hypotheses so far, (sentences, beam, output length).
        parents: The number, from 0, of the output that each new one continues, (sentences, beam).
        tokens: The token to append to each, (sentences, beam).

    Returns:
        The new outputs, (sentences, beam, output length + 1).
    """
    # `gather` needs an index for each token of the output.
    indices = parents[:, :, None].expand(-1, -1, outputs.size(2))
    parent_outputs = outputs.gather(1, indices)
    return torch.cat((parent_outputs, tokens[:, :, None]), dim=2)


def find_cut_outputs(log_probs: Tensor, is_at_limit: Tensor, eos: int) -> Tensor:
    """Find the outputs that end only because they have reached their maximum length.

    At that length the search forces EOS. If the model prefers another token, the output is cut.

    Args:
        log_probs: The model's log-probabilities of the next token, (sentences, beam, vocabulary).
        is_at_limit: Which sentences have outputs of their maximum length, (sentences,).
        eos: The id of EOS.

    Returns:
        True for outputs at their maximum length whose most probable next token is not EOS,
        (sentences, beam).
    """
    is_cut = torch.zeros(log_probs.shape[:2], dtype=torch.bool, device=log_probs.device)
    is_cut[is_at_limit] = log_probs[is_at_limit].argmax(-1) != eos
    return is_cut


def mask_forbidden(
    log_probs: Tensor,
    outputs: Tensor,
    is_at_limit: Tensor,
    special: SpecialTokens,
    settings: Decode,
) -> None:
    """Set the log-probabilities of tokens that must not follow an output to -inf.

    An output that has reached its maximum length must end. Other outputs must not end before
    `min_len`, must not contain UNK unless `allow_unk` is set, and must not repeat an n-gram of
    `no_repeat_ngram_size` tokens. If these rules forbid every token, EOS is allowed again.

    Args:
        log_probs: Log-probabilities of the next token, (sentences, beam, vocabulary); changed in
            place.
        outputs: The tokens so far, with BOS, (sentences, beam, output length).
        is_at_limit: Which sentences have outputs of their maximum length, (sentences,).
        special: The ids of special tokens.
        settings: The settings of the search.
    """
    token_count = outputs.size(2) - 1  # Without BOS.
    is_too_short = token_count < settings.min_len
    some_must_end = bool(is_at_limit.any())
    ngram_size = settings.no_repeat_ngram_size
    forbids_tokens = is_too_short or some_must_end or ngram_size or not settings.allow_unk
    if not forbids_tokens:
        return
    eos_log_probs = log_probs[:, :, special.eos].clone()  # To allow EOS again, at the end.
    if is_too_short:
        log_probs[:, :, special.eos] = -torch.inf
    if not settings.allow_unk:
        log_probs[:, :, special.unk] = -torch.inf
    if ngram_size:
        _mask_repetition(log_probs, outputs, ngram_size)
    if some_must_end:
        log_probs[is_at_limit] = -torch.inf
    # Allow EOS again where every token is forbidden, such as at the maximum length.
    has_no_token = log_probs.amax(-1) == -torch.inf
    log_probs[:, :, special.eos] = torch.where(
        has_no_token, eos_log_probs, log_probs[:, :, special.eos]
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
    # If an earlier n-gram begins with these tokens, its last token would repeat it.
    begins_with_recent = (ngrams[..., :-1] == recent).all(-1)  # (sentences, beam, n-grams)
    sentence, hypothesis, ngram = begins_with_recent.nonzero(as_tuple=True)
    forbidden_tokens = ngrams[sentence, hypothesis, ngram, -1]
    log_probs[sentence, hypothesis, forbidden_tokens] = -torch.inf


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
        self._ended_count = [0] * sentences  # Also counts outputs that are not among the best.
        self._max_kept = best
        self._settings = settings

    def add(
        self,
        sentences: Tensor,
        outputs: Tensor,
        candidates: _Candidates,
        is_end: Tensor,
        is_cut: Tensor | None = None,
    ) -> None:
        """Add the outputs that end in this step, and keep the best of each sentence.

        An output ends if its continuation by EOS is among the `beam` best candidates of its
        sentence. EOS at a lower rank is ignored: greedy search, with a beam of 1, then ends an
        output only if EOS is its most probable token.

        Args:
            sentences: The numbers of the sentences that are still searched, (sentences,).
            outputs: The tokens so far, with BOS, (sentences, beam, output length).
            candidates: The best ways to continue these outputs, (sentences, candidates).
            is_end: Which candidates continue an output by EOS, (sentences, candidates).
            is_cut: Which outputs are ended by their maximum length, (sentences, beam); None if none
                are.
        """
        beam = self._settings.beam
        # A candidate with the score -inf is forbidden; a short list of candidates contains some.
        is_ended = is_end[:, :beam] & candidates.scores[:, :beam].isfinite()
        rows, ranks = is_ended.nonzero(as_tuple=True)
        if not len(rows):
            return
        # `outputs` has BOS in place of EOS, so its length counts EOS, as the penalty requires.
        penalty = length_penalty(outputs.size(2), self._settings)
        parents = candidates.parents[rows, ranks]
        # Each `tolist` is one transfer from a GPU; reading single numbers would take one for each.
        ended_sentences = sentences[rows].tolist()
        ended_tokens = outputs[rows, parents, 1:].tolist()  # Without BOS.
        ended_log_probs = candidates.scores[rows, ranks].tolist()
        ended_cuts = [False] * len(rows) if is_cut is None else is_cut[rows, parents].tolist()
        for sentence, tokens, log_prob, cut in zip(
            ended_sentences, ended_tokens, ended_log_probs, ended_cuts, strict=True
        ):
            self._ended_count[sentence] += 1
            hypothesis = Hypothesis(tokens, log_prob / penalty, log_prob, cut)
            # The list stays sorted, best first; of equal scores, the earlier output comes first.
            insort(self.best[sentence], hypothesis, key=lambda finished: -finished.score)
            del self.best[sentence][self._max_kept :]

    def running_rows(self, sentences: Tensor, scores: Tensor, max_lengths: Tensor) -> Tensor:
        """Return the sentences that must be searched further, as indices into `sentences`.

        A sentence is finished when `beam` outputs have ended, when it has no hypothesis left, or
        when none of its hypotheses can still become one of its best outputs.

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
            has_enough_outputs = self._ended_count[sentence] >= self._settings.beam
            has_no_hypothesis = highest == -torch.inf
            if has_enough_outputs or has_no_hypothesis:
                continue
            # The highest score that any hypothesis can reach: log-probabilities only fall with each
            # token, and the penalty that divides them is largest at the maximum length.
            bound = highest / length_penalty(limits[row], self._settings)
            best = self.best[sentence]
            if len(best) == self._max_kept and _is_beaten(bound, best):
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
