"""Beam search over a step function; it knows no model.

Shapes: B sentences, K hypotheses each (the beam), V units, L the longest output so far, its begin
symbol included.
"""

import math
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from bleuprint.config.system import Decode
from bleuprint.runtime.errors import UserError

State = TypeVar("State", bound="Reorderable")


class Reorderable(Protocol):
    """A decoder's state: rows can be picked, for hypotheses and (when some end) for sentences."""

    def reorder(self: State, hypotheses: Tensor, sentences: Tensor | None = None) -> State: ...


Step = Callable[[Tensor, State], tuple[Tensor, State]]


class Symbols(NamedTuple):
    """The units that are no words: what an output begins and ends with, and the unknown one."""

    begin: int
    end: int
    unknown: int


@dataclass(frozen=True)
class Hypothesis:
    """A finished output without its end symbol.

    `score` is its log-probability, end symbol included, divided by the penalty of its length.
    """

    words: list[int]
    score: float
    log_probability: float


def length_penalty(length: int, settings: Decode) -> float:
    """What log-probabilities are divided by; `length` counts the end symbol.

    ((5 + length) / 6)^alpha (gnmt: Wu et al. 2016, equation 14), or length^alpha (length: fairseq).
    """
    penalty = settings.length_penalty
    base = (5 + length) / 6 if penalty.kind == "gnmt" else length
    return float(base**penalty.alpha)


@torch.inference_mode()
def beam_search(
    step: Step[State],
    state: State,
    limits: Tensor,
    symbols: Symbols,
    settings: Decode,
    best: int = 1,
) -> list[list[Hypothesis]]:
    """The `best` outputs found for each of B sentences, best first; fewer if so many do not exist.

    `step` takes the last words (N,) and the state, and gives logits (N, V) with the next state;
    at first N is B, afterwards B x K. `limits` (B,) is the longest output of each sentence,
    its end symbol included: what reaches its limit is ended there, whatever else is asked. An
    ending counts if it is among the K best continuations (so a beam of 1 is greedy search); the
    beam stays K wide without it. A sentence is done after K endings, which is part of what the
    search is (fairseq's, too), or as soon as no running hypothesis can overtake the last of the
    `best` endings, which changes nothing: log-probabilities only fall, and the penalty is largest
    at the limit. Raises UserError if the model gives NaN.
    """
    beam = settings.beam
    finished = _Finished(len(limits), best, settings)
    sentences = torch.arange(len(limits), device=limits.device)
    scores = torch.zeros(len(limits), 1, device=limits.device)
    words = torch.full((len(limits), 1, 1), symbols.begin, device=limits.device)
    while len(sentences):
        count, width, length = words.shape
        logits, state = step(words[:, :, -1].reshape(-1), state)
        logs = torch.log_softmax(logits.float(), -1).view(count, width, -1)
        _forbid(logs, words, limits[sentences] == length, symbols, settings)
        totals = logs.add_(scores[:, :, None])

        values, picked = totals.flatten(1).topk(min(2 * beam, totals[0].numel()))
        parents = torch.div(picked, totals.size(-1), rounding_mode="floor")
        units = picked % totals.size(-1)
        ends = units == symbols.end
        finished.add(sentences, words, values[:, :beam], parents, ends[:, :beam])

        scores, ranks = values.masked_fill(ends, -torch.inf).topk(min(beam, values.size(1)))
        parents, units = parents.gather(1, ranks), units.gather(1, ranks)
        words = words.gather(1, parents[:, :, None].expand(-1, -1, length))
        words = torch.cat((words, units[:, :, None]), dim=2)

        going = finished.unfinished(sentences, scores, limits)
        rows = parents + torch.arange(count, device=parents.device)[:, None] * width
        state = state.reorder(rows[going].flatten(), going if len(going) < count else None)
        sentences, scores, words = sentences[going], scores[going], words[going]
    return finished.best


def _forbid(logs: Tensor, words: Tensor, last: Tensor, symbols: Symbols, settings: Decode) -> None:
    """Set the log-probabilities (B, K, V) of what must not follow words (B, K, L) to -inf.

    Sentences at their limit, as `last` (B,) says, can but end; so can a hypothesis to which the
    settings leave nothing.
    """
    early, ends = words.size(2) <= settings.min_length, bool(last.any())
    if settings.allow_unk and not (early or ends or settings.no_repeat_ngram):
        return
    ending = logs[:, :, symbols.end].clone()
    if early:
        logs[:, :, symbols.end] = -torch.inf
    if not settings.allow_unk:
        logs[:, :, symbols.unknown] = -torch.inf
    if settings.no_repeat_ngram:
        _forbid_repetition(logs, words, settings.no_repeat_ngram)
    if ends:
        logs[last] = -torch.inf
    stuck = logs.amax(-1) == -torch.inf
    logs[:, :, symbols.end] = torch.where(stuck, ending, logs[:, :, symbols.end])


def _forbid_repetition(logs: Tensor, words: Tensor, size: int) -> None:
    """Forbid what would end a run of `size` words that a hypothesis has had before."""
    runs = words[:, :, 1:].unfold(2, size, 1) if words.size(2) > size else None
    if runs is None:  # no run of that size yet
        return
    recent = words[:, :, None, words.size(2) - size + 1 :]
    again = (runs[..., :-1] == recent).all(-1)
    row, hypothesis, run = again.nonzero(as_tuple=True)
    logs[row, hypothesis, runs[row, hypothesis, run, -1]] = -torch.inf


class _Finished:
    """The endings found so far: the best of each sentence, and how many there were."""

    def __init__(self, sentences: int, most: int, settings: Decode) -> None:
        self.best: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self._count = [0] * sentences
        self._most, self._settings = most, settings

    def add(
        self, sentences: Tensor, words: Tensor, values: Tensor, parents: Tensor, ends: Tensor
    ) -> None:
        """Take in the candidates (B, K) that `ends` marks, continuing words (B, K, L)."""
        rows, ranks = (ends & values.isfinite()).nonzero(as_tuple=True)
        if not len(rows):
            return
        penalty = length_penalty(words.size(2), self._settings)
        found = words[rows, parents[rows, ranks], 1:].tolist()
        logs, owners = values[rows, ranks].tolist(), sentences[rows].tolist()
        for owner, log, output in zip(owners, logs, found, strict=True):
            self._count[owner] += 1
            # of equals the one found first stays before
            insort(self.best[owner], Hypothesis(output, log / penalty, log), key=_descending)
            del self.best[owner][self._most :]

    def unfinished(self, sentences: Tensor, scores: Tensor, limits: Tensor) -> Tensor:
        """The rows whose best running hypothesis (of scores (B, K)) may still come to count."""
        rows = []
        running = scores.max(dim=1).values.tolist()
        if any(map(math.isnan, running)):
            raise UserError("the model is broken: its probabilities are no numbers (NaN)")
        longest = limits[sentences].tolist()
        for row, sentence in enumerate(sentences.tolist()):
            best = self.best[sentence]
            bound = running[row] / length_penalty(longest[row], self._settings)
            beaten = len(best) == self._most and _beaten(bound, best)
            ended = self._count[sentence] >= self._settings.beam or running[row] == -torch.inf
            if not (beaten or ended):
                rows.append(row)
        return torch.tensor(rows, dtype=torch.long, device=sentences.device)


def _beaten(bound: float, best: list[Hypothesis]) -> bool:
    return bound <= best[-1].score


def _descending(hypothesis: Hypothesis) -> float:
    return -hypothesis.score
