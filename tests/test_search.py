"""Beam search against exhaustive search over a tiny language, without a network."""

import itertools
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from bleuprint.search import Hypothesis, beam_search, length_penalty

BEGIN, END, UNITS = 0, 1, 5


@dataclass
class Histories:
    """The state of a toy decoder: which sentence a row is of, and all its words so far."""

    sentence: Tensor
    words: Tensor

    def select(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "Histories":
        del sentences  # no row is shared here
        return Histories(self.sentence[hypotheses], self.words[hypotheses])


def logits_of(sentence: int, words: tuple[int, ...]) -> Tensor:
    """Made-up logits that depend on the sentence and on every word before."""
    generator = torch.Generator().manual_seed(hash((sentence, words)) % 2**31)
    logits = torch.randn(UNITS, generator=generator) * 2
    logits[BEGIN] = -torch.inf
    return logits


def step(last: Tensor, state: Histories) -> tuple[Tensor, Histories]:
    words = torch.cat((state.words, last[:, None]), dim=1)
    rows = zip(state.sentence.tolist(), words.tolist(), strict=True)
    logits = torch.stack([logits_of(sentence, tuple(row)) for sentence, row in rows])
    return logits, Histories(state.sentence, words)


def search(sentences: list[int], limits: list[int], beam: int, alpha: float) -> list[Hypothesis]:
    start = Histories(torch.tensor(sentences), torch.empty(len(sentences), 0, dtype=torch.long))
    return beam_search(
        step, start, torch.tensor(limits), begin=BEGIN, end=END, beam=beam, alpha=alpha
    )


def exhaustive(sentence: int, limit: int, alpha: float) -> Hypothesis:
    """The best of all outputs of up to `limit` units, END included."""
    best = Hypothesis([], -float("inf"))
    for length in range(limit):
        for words in itertools.product(range(2, UNITS), repeat=length):
            score, history = 0.0, (BEGIN,)
            for word in (*words, END):
                score += float(logits_of(sentence, history).log_softmax(-1)[word])
                history += (word,)
            score /= length_penalty(length + 1, alpha)
            if score > best.score:
                best = Hypothesis(list(words), score)
    return best


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("limit", [1, 2, 4])
def test_a_wide_beam_finds_what_exhaustive_search_finds(alpha: float, limit: int) -> None:
    sentences = [11, 12, 13]
    found = search(sentences, [limit] * 3, beam=UNITS**limit, alpha=alpha)
    for sentence, hypothesis in zip(sentences, found, strict=True):
        expected = exhaustive(sentence, limit, alpha)
        assert hypothesis.words == expected.words
        assert hypothesis.score == pytest.approx(expected.score, abs=1e-5)


def test_a_beam_of_one_is_greedy() -> None:
    for sentence in range(20):
        history, words = (BEGIN,), []
        while len(words) < 7:
            word = int(logits_of(sentence, history).argmax())
            if word == END:
                break
            words.append(word)
            history += (word,)
        (found,) = search([sentence], [8], beam=1, alpha=0.6)
        assert found.words == words


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_company_and_order_change_nothing(beam: int) -> None:
    sentences, limits = list(range(12)), [3 + s % 5 for s in range(12)]
    together = search(sentences, limits, beam, 0.6)
    for sentence, limit, expected in zip(sentences, limits, together, strict=True):
        (alone,) = search([sentence], [limit], beam, 0.6)
        assert alone.words == expected.words
    backwards = search(sentences[::-1], limits[::-1], beam, 0.6)
    assert [h.words for h in backwards[::-1]] == [h.words for h in together]


def test_the_limit_counts_the_end() -> None:
    for hypothesis in search(list(range(10)), [3] * 10, beam=2, alpha=0.6):
        assert len(hypothesis.words) <= 2


def test_penalty_by_hand() -> None:
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 1.0) == 2.0
