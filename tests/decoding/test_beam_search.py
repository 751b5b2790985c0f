"""Beam search against exhaustive search over a tiny language, without a network."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import systems
from bleuprint.decoding import beam_search as search_module
from bleuprint.decoding.beam_search import (
    Hypothesis,
    SpecialTokens,
    beam_search,
    length_penalty,
    max_output_lengths,
)
from bleuprint.runtime.errors import UserError

BEGIN, END, UNKNOWN, UNITS = 0, 1, 2, 5


@dataclass
class Histories:
    """The state of a toy decoder: which sentence a row is of, and all its words so far."""

    sentence: Tensor
    words: Tensor

    def reorder(self, hypotheses, sentences=None):
        del sentences  # no row is shared here
        return Histories(self.sentence[hypotheses], self.words[hypotheses])


def logits_of(sentence, words):
    """Made-up logits that depend on the sentence and on every word before."""
    generator = torch.Generator().manual_seed(hash((sentence, words)) % 2**31)
    logits = torch.randn(UNITS, generator=generator) * 2
    logits[BEGIN] = -torch.inf
    return logits


def step(last, state):
    words = torch.cat((state.words, last[:, None]), dim=1)
    rows = zip(state.sentence.tolist(), words.tolist(), strict=True)
    logits = torch.stack([logits_of(sentence, tuple(row)) for sentence, row in rows])
    return logits, Histories(state.sentence, words)


def find(sentences, limits, settings, best=1):
    start = Histories(torch.tensor(sentences), torch.empty(len(sentences), 0, dtype=torch.long))
    symbols = SpecialTokens(BEGIN, END, UNKNOWN)
    return beam_search(step, start, torch.tensor(limits), symbols, settings, best)


def log_probability(sentence, words):
    """The log-probability of an output with EOS, by definition."""
    total, history = 0.0, (BEGIN,)
    for word in (*words, END):
        total += float(logits_of(sentence, history).log_softmax(-1)[word])
        history += (word,)
    return total


def exhaustive(sentence, limit, settings):
    """All outputs of up to `limit` units, END included, that the settings allow; best first."""
    found = []
    for length in range(min(settings.min_len, limit - 1), limit):
        for each in itertools.product(range(2, UNITS), repeat=length):
            words, size = list(each), settings.no_repeat_ngram_size
            runs = [each[i : i + size] for i in range(length - size + 1)] if size else []
            if len(set(runs)) < len(runs) or (UNKNOWN in words and not settings.allow_unk):
                continue
            log = log_probability(sentence, words)
            found.append(Hypothesis(words, log / length_penalty(length + 1, settings), log))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


def same(found, expected):
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)


@pytest.mark.parametrize("penalty", ["gnmt", "length"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("limit", [1, 2, 4])
def test_a_wide_beam_finds_what_exhaustive_search_finds(alpha, limit, penalty):
    settings = systems.decode(beam=UNITS**limit, alpha=alpha, kind=penalty)
    sentences = [11, 12, 13]
    for sentence, found in zip(sentences, find(sentences, [limit] * 3, settings), strict=True):
        same(found, exhaustive(sentence, limit, settings)[:1])


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"min_len": 2},
        {"min_len": 9},
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 2},
        {"allow_unk": False},
        {"allow_unk": False, "no_repeat_ngram_size": 1, "min_len": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("best", [1, 6, 200])
def test_the_n_best_are_those_of_exhaustive_search(asked, best):
    settings = systems.decode(beam=UNITS**4, **asked)
    sentences, limits = [21, 22, 23], [4, 3, 4]
    found = find(sentences, limits, settings, best)
    for sentence, limit, hypotheses in zip(sentences, limits, found, strict=True):
        same(hypotheses, exhaustive(sentence, limit, settings)[:best])


@pytest.mark.parametrize("beam", [1, 3, UNITS**3])
def test_an_output_is_cut_if_only_its_limit_ended_it(beam):
    """It has as many words as the limit lets it, and the likeliest next one is not END."""
    sentences, limits = list(range(40)), [2, 3, 4, 3] * 10
    found, cut = find(sentences, limits, systems.decode(beam=beam), best=beam), []
    for sentence, limit, outputs in zip(sentences, limits, found, strict=True):
        for each in outputs:
            likeliest = int(logits_of(sentence, (BEGIN, *each.tokens)).argmax())
            assert each.is_cut == (len(each.tokens) + 1 == limit and likeliest != END)
            cut.append((len(each.tokens) + 1 == limit, each.is_cut))
    assert {*cut} == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("beam", [2, 5])
def test_an_n_best_list_is_sorted_and_free_of_duplicates(beam):
    settings = systems.decode(beam=beam)
    for hypotheses in find(list(range(20)), [6] * 20, settings, best=beam):
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert len(scores) == beam
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(hypothesis.tokens) for hypothesis in hypotheses}) == beam


def test_with_nothing_left_to_say_an_output_ends():
    """Nine words are required, but there are three and none may be repeated."""
    settings = systems.decode(beam=3, no_repeat_ngram_size=1, min_len=9)
    for (best,) in find(list(range(10)), [12] * 10, settings):
        assert sorted(best.tokens) == [2, 3, 4]


@pytest.mark.parametrize("beam", [1, 2, 3])
@pytest.mark.parametrize("penalty", ["gnmt", "length"])
@pytest.mark.parametrize("best", [1, 2])
def test_to_stop_early_loses_nothing(monkeypatch, beam, penalty, best):
    settings = systems.decode(beam=beam, alpha=1.0, kind=penalty)
    sentences = list(range(60))
    limits = [3 + 2 * (sentence % 4) for sentence in sentences]
    early = find(sentences, limits, settings, min(best, beam))
    # a bound that is never reached: each search continues to its last output
    monkeypatch.setattr(search_module, "_is_beaten", lambda *_: False)
    late = find(sentences, limits, settings, min(best, beam))
    for one, other in zip(early, late, strict=True):
        same(one, other)


@pytest.mark.parametrize("row", [0, 1])
def test_nan_in_any_hypothesis_is_told(row):
    def broken(last, state):
        logits, state = step(last, state)
        if state.words.size(1) == 2:
            logits[row, UNKNOWN] = torch.nan
        return logits, state

    start = Histories(torch.tensor([0]), torch.empty(1, 0, dtype=torch.long))
    symbols, settings = SpecialTokens(BEGIN, END, UNKNOWN), systems.decode(beam=3)
    with pytest.raises(UserError, match="probabilities are NaN"):
        beam_search(broken, start, torch.tensor([6]), symbols, settings, 1)


def test_penalty_by_hand():
    assert length_penalty(1, systems.decode(alpha=0.6)) == 1.0
    assert length_penalty(7, systems.decode(alpha=1.0)) == 2.0
    assert length_penalty(9, systems.decode(kind="length", alpha=0.5)) == 3.0
    assert length_penalty(9, systems.decode(kind="length", alpha=0.0)) == 1.0


@pytest.mark.parametrize(
    ("kind", "alpha", "length", "divisor"),
    [
        # the base of gnmt is (5 + length) / 6
        ("gnmt", 0.0, 7, 1.0),
        ("gnmt", 0.5, 19, 2.0),
        ("gnmt", 2.0, 7, 4.0),
        ("gnmt", 3.0, 13, 27.0),
        ("length", 1.0, 9, 9.0),
        ("length", 2.0, 5, 25.0),
    ],
)
def test_the_penalty_grows_with_the_alpha_of_the_settings(kind, alpha, length, divisor):
    found = length_penalty(length, systems.decode(kind=kind, alpha=alpha))
    assert found == pytest.approx(divisor)


@pytest.mark.parametrize(
    ("factor", "extra", "most", "limits"),
    [
        # of sources of 0, 5 and 9 tokens, which are 1 longer with EOS, as are the limits
        (0, 4, 100, [5, 5, 5]),
        (0.5, 4, 100, [5, 7, 9]),
        (1, 0, 100, [1, 6, 10]),
        (1.5, 2, 100, [3, 10, 16]),
        (1.5, 2, 12, [3, 10, 12]),
        (1.5, 2, 7, [3, 7, 7]),
        (3, 10, 100, [11, 26, 38]),
    ],
)
def test_maximum_output_lengths_by_hand(factor, extra, most, limits):
    settings = systems.decode(max_len_a=factor, max_len_b=extra)
    found = max_output_lengths(np.array([1, 6, 10]), settings, most)
    assert found.tolist() == limits
