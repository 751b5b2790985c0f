"""Beam search over a step function; it knows no model.

Shapes: B sentences, K hypotheses each (the beam), V units, L the longest output so far.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

State = TypeVar("State", bound="Selectable")


class Selectable(Protocol):
    """A decoder's state: rows can be picked, for hypotheses and (when some end) for sentences."""

    def select(self: State, hypotheses: Tensor, sentences: Tensor | None = None) -> State: ...


Step = Callable[[Tensor, State], tuple[Tensor, State]]


@dataclass(frozen=True)
class Hypothesis:
    """A finished output without its end symbol, and its length-normalised log-probability."""

    words: list[int]
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha: Wu et al. 2016, equation 14; `length` counts the end symbol."""
    return float(((5 + length) / 6) ** alpha)


@torch.inference_mode()
def beam_search(
    step: Step[State],
    state: State,
    limits: Tensor,
    *,
    begin: int,
    end: int,
    beam: int,
    alpha: float,
) -> list[Hypothesis]:
    """The best output found for each of B sentences.

    `step` takes the last words (N,) and the state, and gives logits (N, V) with the next state;
    at first N is B, afterwards B x K. `limits` (B,) is the longest output of each sentence,
    its end symbol included: what reaches its limit is ended there. An ending counts if it is
    among the K best continuations (so a beam of 1 is greedy search); the beam stays K wide
    without it. A sentence is done after K endings, or as soon as no running hypothesis can
    overtake the best ending: log-probabilities only fall and the penalty is largest at the
    limit, so that stopping early loses nothing.
    """
    finished = _Finished([None] * len(limits), [0] * len(limits), beam, alpha)
    sentences = torch.arange(len(limits), device=limits.device)
    scores = torch.zeros(len(limits), 1, device=limits.device)
    words = torch.full((len(limits), 1, 1), begin, device=limits.device)
    while len(sentences):
        count, width, length = words.shape
        logits, state = step(words[:, :, -1].reshape(-1), state)
        totals = scores[:, :, None] + torch.log_softmax(logits.float(), -1).view(count, width, -1)
        _only_end(totals, limits[sentences] == length, end)

        values, picked = totals.flatten(1).topk(min(2 * beam, totals[0].numel()))
        parents = torch.div(picked, totals.size(-1), rounding_mode="floor")
        units = picked % totals.size(-1)
        ends = units == end
        finished.add(sentences, words, values[:, :beam], parents, ends[:, :beam])

        scores, ranks = values.masked_fill(ends, -torch.inf).topk(min(beam, values.size(1)))
        parents, units = parents.gather(1, ranks), units.gather(1, ranks)
        words = words.gather(1, parents[:, :, None].expand(-1, -1, length))
        words = torch.cat((words, units[:, :, None]), dim=2)

        going = finished.unfinished(sentences, scores, limits)
        rows = parents + torch.arange(count, device=parents.device)[:, None] * width
        state = state.select(rows[going].flatten(), going if len(going) < count else None)
        sentences, scores, words = sentences[going], scores[going], words[going]
    return [hypothesis for hypothesis in finished.best if hypothesis is not None]


def _only_end(totals: Tensor, last: Tensor, end: int) -> None:
    """Leave nothing but the end symbol to the sentences (B,) that are at their limit."""
    others = torch.ones(totals.size(-1), dtype=torch.bool, device=totals.device)
    others[end] = False
    totals.masked_fill_(last[:, None, None] & others, -torch.inf)


@dataclass
class _Finished:
    """The endings found so far: the best of each sentence, and how many."""

    best: list[Hypothesis | None]
    count: list[int]
    beam: int
    alpha: float

    def add(
        self, sentences: Tensor, words: Tensor, values: Tensor, parents: Tensor, ends: Tensor
    ) -> None:
        """Take in the candidates (B, K) that `ends` marks, continuing words (B, K, L)."""
        endings = (ends & values.isfinite()).sum(1).tolist()
        top, places = values.masked_fill(~ends, -torch.inf).max(dim=1)
        normalised = (top / length_penalty(words.size(2), self.alpha)).tolist()
        for row, sentence in enumerate(sentences.tolist()):
            self.count[sentence] += endings[row]
            rival = self.best[sentence]
            if endings[row] and (rival is None or normalised[row] > rival.score):
                found: list[int] = words[row, parents[row, places[row]], 1:].tolist()
                self.best[sentence] = Hypothesis(found, normalised[row])

    def unfinished(self, sentences: Tensor, scores: Tensor, limits: Tensor) -> Tensor:
        """The rows whose best running hypothesis (of scores (B, K)) may still come to be best."""
        rows = []
        running = scores.max(dim=1).values.tolist()
        longest = limits[sentences].tolist()
        for row, sentence in enumerate(sentences.tolist()):
            rival = self.best[sentence]
            bound = running[row] / length_penalty(longest[row], self.alpha)
            if rival is None or (self.count[sentence] < self.beam and bound > rival.score):
                rows.append(row)
        return torch.tensor(rows, dtype=torch.long, device=sentences.device)
