"""Beam search over a step function, independent of any model.

Shapes: B sentences, K hypotheses each (the beam), N = B x K, V tokens of the vocabulary, L tokens
of the outputs so far, BOS included.
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
from bleuprint.model.backends import IS_PORTABLE
from bleuprint.runtime.errors import UserError

# The number of source positions times hypotheses that are decoded at once. Bounds memory; does
# not change results.
BATCH_TOKENS = 16384

# The most continuations that native/search.cpp finds, which sorts them by insertion.
_MOST = 64

State = TypeVar("State", bound="Reorderable")


class Reorderable(Protocol):
    """A decoder's state, which can be reduced to some hypotheses and, as they end, sentences."""

    def reorder(self: State, hypotheses: Tensor, sentences: Tensor | None = None) -> State: ...


Step = Callable[[Tensor, State], tuple[Tensor, State]]


class SpecialTokens(NamedTuple):
    """The ids of BOS, EOS and UNK."""

    bos: int
    eos: int
    unk: int


@dataclass(frozen=True)
class Hypothesis:
    """A finished output, without BOS and EOS.

    `log_prob` includes EOS; `score` is `log_prob` divided by the length penalty. `is_cut`: the
    output ended at its maximum length, where the model preferred another token to EOS.
    """

    tokens: list[int]
    score: float
    log_prob: float
    is_cut: bool = field(default=False, compare=False)


# The best outputs of each sentence, best first.
NBest = list[list[Hypothesis]]


def length_penalty(length: int, settings: Decode) -> float:
    """The divisor of log-probabilities; `length` includes EOS.

    ((5 + length) / 6)^alpha (gnmt: Wu et al. 2016, equation 14), or length^alpha (length: fairseq).
    """
    penalty = settings.length_penalty
    base = (5 + length) / 6 if penalty.kind == "gnmt" else length
    return float(base**penalty.alpha)


def max_output_lengths(lengths: Lengths, settings: Decode, max_positions: int) -> Lengths:
    """The maximum output lengths for sources of these lengths; both include EOS."""
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
    """Search for the `best` outputs of each of B sentences; returns fewer if fewer exist.

    `step` takes the last tokens (N,) and the state, and returns logits (N, V) and the next state;
    in the first step N is B, afterwards B x K. `max_lengths` (B,) are the maximum output lengths,
    EOS included: an output of that length is ended, whatever the other settings.

    An output ends if EOS is among the K best continuations (so that a beam of 1 is greedy search);
    the beam stays K wide without it. A sentence is finished after K such outputs, as in fairseq, or
    as soon as no running hypothesis can score higher than the last of the `best` outputs. The
    latter changes no result: log-probabilities only fall, and the penalty is largest at the maximum
    length. Raises UserError if the model returns NaN.
    """
    beam = settings.beam
    finished = _Finished(len(max_lengths), best, settings)
    sentences = torch.arange(len(max_lengths), device=max_lengths.device)
    scores = torch.zeros(len(max_lengths), 1, device=max_lengths.device)
    outputs = torch.full((len(max_lengths), 1, 1), special.bos, device=max_lengths.device)
    limits = frozenset(max_lengths.tolist())
    while len(sentences):
        count, width, length = outputs.shape
        logits, state = step(outputs[:, :, -1].reshape(-1), state)
        logs = torch.log_softmax(logits.float(), -1).view(count, width, -1)
        if logs[:, :, 0].isnan().any():  # all are if one is
            raise UserError("the model is broken: its probabilities are NaN")
        at_limit = max_lengths[sentences] == length
        cut = would_continue(logs, at_limit, special.eos) if length in limits else None
        mask_forbidden(logs, outputs, at_limit, special, settings)

        values, picked = _greatest(logs, scores, min(2 * beam, logs[0].numel()))
        parents = torch.div(picked, logs.size(-1), rounding_mode="floor")
        tokens = picked % logs.size(-1)
        ends = tokens == special.eos
        finished.add(sentences, outputs, values[:, :beam], parents, ends[:, :beam], cut)

        scores, ranks = values.masked_fill(ends, -torch.inf).topk(min(beam, values.size(1)))
        parents, tokens = parents.gather(1, ranks), tokens.gather(1, ranks)
        outputs = outputs.gather(1, parents[:, :, None].expand(-1, -1, length))
        outputs = torch.cat((outputs, tokens[:, :, None]), dim=2)

        running = finished.running(sentences, scores, max_lengths)
        rows = parents + torch.arange(count, device=parents.device)[:, None] * width
        state = state.reorder(rows[running].flatten(), running if len(running) < count else None)
        sentences, scores, outputs = sentences[running], scores[running], outputs[running]
    return finished.best


def _greatest(logs: Tensor, scores: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The `most` greatest of logs (B, K, V) + scores (B, K), and their places in K x V.

    Of equal ones C++ takes the first, torch any: so portable arithmetic is torch's everywhere.
    """
    library = None if IS_PORTABLE else native.library()
    if library is None or logs.device.type != "cpu" or most > _MOST:
        return logs.add_(scores[:, :, None]).flatten(1).topk(most)
    values, places = (
        logs.new_empty(len(logs), most),
        scores.new_empty(len(logs), most, dtype=torch.long),
    )
    given = logs.contiguous(), scores.contiguous(), *logs.shape, most
    library.greatest(*native.c_arguments(*given, values, places))
    return values, places


def would_continue(logs: Tensor, at_limit: Tensor, eos: int) -> Tensor:
    """Which outputs (B, K) at their maximum length have a more probable next token than EOS.

    `logs` (B, K, V): the model's log-probabilities; `at_limit` (B,): sentences at that length.
    """
    continues = torch.zeros(logs.shape[:2], dtype=torch.bool, device=logs.device)
    continues[at_limit] = logs[at_limit].argmax(-1) != eos
    return continues


def mask_forbidden(
    logs: Tensor, outputs: Tensor, at_limit: Tensor, special: SpecialTokens, settings: Decode
) -> None:
    """Set the log-probabilities (B, K, V) of tokens that must not follow outputs (B, K, L) to -inf.

    `at_limit` (B,): sentences that can only end. A hypothesis without any other allowed token can
    end as well.
    """
    too_short, any_at_limit = outputs.size(2) <= settings.min_len, bool(at_limit.any())
    if settings.allow_unk and not (too_short or any_at_limit or settings.no_repeat_ngram_size):
        return
    eos_logs = logs[:, :, special.eos].clone()
    if too_short:
        logs[:, :, special.eos] = -torch.inf
    if not settings.allow_unk:
        logs[:, :, special.unk] = -torch.inf
    if settings.no_repeat_ngram_size:
        _mask_repetition(logs, outputs, settings.no_repeat_ngram_size)
    if any_at_limit:
        logs[at_limit] = -torch.inf
    stuck = logs.amax(-1) == -torch.inf
    logs[:, :, special.eos] = torch.where(stuck, eos_logs, logs[:, :, special.eos])


def _mask_repetition(logs: Tensor, outputs: Tensor, size: int) -> None:
    """Forbid tokens that would repeat an n-gram of `size` tokens of the same output."""
    if outputs.size(2) <= size:  # no n-gram of that size yet
        return
    ngrams = outputs[:, :, 1:].unfold(2, size, 1)
    recent = outputs[:, :, None, outputs.size(2) - size + 1 :]
    repeated = (ngrams[..., :-1] == recent).all(-1)
    row, hypothesis, ngram = repeated.nonzero(as_tuple=True)
    logs[row, hypothesis, ngrams[row, hypothesis, ngram, -1]] = -torch.inf


class _Finished:
    """The finished outputs: the best of each sentence, and how many there were."""

    def __init__(self, sentences: int, most: int, settings: Decode) -> None:
        self.best: NBest = [[] for _ in range(sentences)]
        self._count = [0] * sentences
        self._most, self._settings = most, settings

    def add(
        self,
        sentences: Tensor,
        outputs: Tensor,
        values: Tensor,
        parents: Tensor,
        ends: Tensor,
        cut: Tensor | None = None,
    ) -> None:
        """Add the candidates (B, K) marked by `ends`; `parents` are their rows of outputs.

        `cut` (B, K): the outputs that the maximum length ends; None if it ends none in this step.
        """
        rows, ranks = (ends & values.isfinite()).nonzero(as_tuple=True)
        if not len(rows):
            return
        penalty = length_penalty(outputs.size(2), self._settings)
        tokens = outputs[rows, parents[rows, ranks], 1:].tolist()
        logs, indices = values[rows, ranks].tolist(), sentences[rows].tolist()
        is_cut = [False] * len(rows) if cut is None else cut[rows, parents[rows, ranks]].tolist()
        for sentence, log, output, of_limit in zip(indices, logs, tokens, is_cut, strict=True):
            self._count[sentence] += 1
            # of equal scores the one found first stays first
            hypothesis = Hypothesis(output, log / penalty, log, of_limit)
            insort(self.best[sentence], hypothesis, key=lambda each: -each.score)
            del self.best[sentence][self._most :]

    def running(self, sentences: Tensor, scores: Tensor, max_lengths: Tensor) -> Tensor:
        """The rows whose best running hypothesis, of `scores` (B, K), may change the result."""
        rows = []
        highest = scores.max(dim=1).values.tolist()
        limits = max_lengths[sentences].tolist()
        for row, sentence in enumerate(sentences.tolist()):
            best = self.best[sentence]
            bound = highest[row] / length_penalty(limits[row], self._settings)
            beaten = len(best) == self._most and _is_beaten(bound, best)
            ended = self._count[sentence] >= self._settings.beam or highest[row] == -torch.inf
            if not (beaten or ended):
                rows.append(row)
        return torch.tensor(rows, dtype=torch.long, device=sentences.device)


def _is_beaten(bound: float, best: list[Hypothesis]) -> bool:
    return bound <= best[-1].score
