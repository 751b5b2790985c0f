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

# The vocabulary of the toy language: these three, and the words 3 and 4.
BEGIN = 0
END = 1
UNKNOWN = 2
VOCABULARY_SIZE = 5


@dataclass
class Histories:
    """The state of a toy decoder: the sentence of each row, and all its words so far."""

    sentence: Tensor
    words: Tensor

    def reorder(self, hypotheses, sentences=None):
        del sentences  # no row is shared here
        return Histories(self.sentence[hypotheses], self.words[hypotheses])


def logits_of(sentence, words):
    """Return random logits that depend only on the sentence and on every word before."""
    generator = torch.Generator().manual_seed(hash((sentence, words)) % 2**31)
    logits = torch.randn(VOCABULARY_SIZE, generator=generator) * 2
    logits[BEGIN] = -torch.inf
    return logits


def step(last, state):
    """Decode one step of the toy language: return logits after the last words, and the state."""
    words = torch.cat((state.words, last[:, None]), dim=1)
    rows = zip(state.sentence.tolist(), words.tolist(), strict=True)
    logits = torch.stack([logits_of(sentence, tuple(row)) for sentence, row in rows])
    return logits, Histories(state.sentence, words)


def search(sentences, limits, settings, best=1):
    """Search outputs of toy sentences.

    Args:
        sentences: The numbers of the sentences.
        limits: The maximum length of each output, END included.
        settings: The settings of the search.
        best: How many hypotheses to return for each sentence.

    Returns:
        The n-best list of each sentence.
    """
    start = Histories(torch.tensor(sentences), torch.empty(len(sentences), 0, dtype=torch.long))
    symbols = SpecialTokens(BEGIN, END, UNKNOWN)
    return beam_search(step, start, torch.tensor(limits), symbols, settings, best)


def log_probability(sentence, words):
    """Return the log-probability of an output and END: the sum over its tokens."""
    total = 0.0
    history = (BEGIN,)
    for word in [*words, END]:
        total += float(logits_of(sentence, history).log_softmax(-1)[word])
        history += (word,)
    return total


def is_allowed(words, settings):
    """Return whether the settings allow an output: its n-grams and unknown words."""
    if UNKNOWN in words and not settings.allow_unk:
        return False
    size = settings.no_repeat_ngram_size
    if not size:
        return True
    ngrams = [words[start : start + size] for start in range(len(words) - size + 1)]
    return len(set(ngrams)) == len(ngrams)


def exhaustive_search(sentence, limit, settings):
    """Return all outputs that the settings allow, best first.

    Args:
        sentence: The number of the sentence.
        limit: The maximum length of an output, END included.
        settings: The settings of the search.
    """
    hypotheses = []
    for length in range(min(settings.min_len, limit - 1), limit):
        for words in itertools.product(range(UNKNOWN, VOCABULARY_SIZE), repeat=length):
            if is_allowed(words, settings):
                log_prob = log_probability(sentence, words)
                score = log_prob / length_penalty(length + 1, settings)
                hypotheses.append(Hypothesis(list(words), score, log_prob))
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def assert_same_hypotheses(hypotheses, expected_hypotheses):
    """Compare the tokens, scores and log-probabilities of two n-best lists."""
    tokens = [hypothesis.tokens for hypothesis in hypotheses]
    assert tokens == [expected.tokens for expected in expected_hypotheses]
    for hypothesis, expected in zip(hypotheses, expected_hypotheses, strict=True):
        assert hypothesis.score == pytest.approx(expected.score, abs=1e-5)
        assert hypothesis.log_prob == pytest.approx(expected.log_prob, abs=1e-5)


@pytest.mark.parametrize("penalty", ["gnmt", "length"])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("limit", [1, 2, 4])
def test_a_beam_as_wide_as_the_search_space_finds_the_best_output(alpha, limit, penalty):
    """Such a beam keeps every output, so that the search cannot miss the best one.

    The model is a toy with 5 tokens. Its logits are random, but fixed for each sentence and
    history.
    """
    every_output = VOCABULARY_SIZE**limit
    settings = systems.decode(beam=every_output, alpha=alpha, kind=penalty)
    sentences = [11, 12, 13]

    results = search(sentences, [limit] * 3, settings)

    for sentence, hypotheses in zip(sentences, results, strict=True):
        (best, *_) = exhaustive_search(sentence, limit, settings)
        assert_same_hypotheses(hypotheses, [best])


@pytest.mark.parametrize(
    "constraints",
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
def test_the_n_best_list_equals_that_of_exhaustive_search(constraints, best):
    """With a beam that keeps every output, the n-best list is exact under each constraint.

    Exhaustive search lists all outputs of a toy model with 5 tokens that the constraints allow.
    """
    every_output = VOCABULARY_SIZE**4
    settings = systems.decode(beam=every_output, **constraints)
    sentences = [21, 22, 23]
    limits = [4, 3, 4]

    results = search(sentences, limits, settings, best)

    for sentence, limit, hypotheses in zip(sentences, limits, results, strict=True):
        expected = exhaustive_search(sentence, limit, settings)[:best]
        assert_same_hypotheses(hypotheses, expected)


@pytest.mark.parametrize("beam", [1, 3, VOCABULARY_SIZE**3])
def test_is_cut_marks_an_output_at_its_length_limit_if_end_is_not_its_likeliest_next_token(beam):
    """`is_cut` marks outputs that the search ended only because of the maximum length.

    A user is warned about such translations. END counts as a token, as in the limits.
    """
    sentences = list(range(40))
    limits = [2, 3, 4, 3] * 10  # END included

    results = search(sentences, limits, systems.decode(beam=beam), best=beam)

    combinations = set()
    for sentence, limit, hypotheses in zip(sentences, limits, results, strict=True):
        for hypothesis in hypotheses:
            is_at_limit = len(hypothesis.tokens) + 1 == limit
            likeliest = int(logits_of(sentence, (BEGIN, *hypothesis.tokens)).argmax())
            assert hypothesis.is_cut == (is_at_limit and likeliest != END)
            combinations.add((is_at_limit, hypothesis.is_cut))
    # All three cases occur: at the limit and cut, at the limit and complete, shorter.
    assert combinations == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("beam", [2, 5])
def test_an_n_best_list_is_sorted_by_score(beam):
    """The best hypothesis comes first. The list is as long as the beam."""
    results = search(list(range(20)), [6] * 20, systems.decode(beam=beam), best=beam)

    for hypotheses in results:
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert len(scores) == beam
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("beam", [2, 5])
def test_an_n_best_list_contains_no_output_twice(beam):
    results = search(list(range(20)), [6] * 20, systems.decode(beam=beam), best=beam)

    for hypotheses in results:
        assert len({tuple(hypothesis.tokens) for hypothesis in hypotheses}) == beam


def test_an_output_ends_before_its_minimum_length_if_no_token_is_allowed():
    """Nine tokens are required, but a toy vocabulary has three words and none may be repeated.

    The best output of each sentence contains each word once, in any order.
    """
    settings = systems.decode(beam=3, no_repeat_ngram_size=1, min_len=9)

    results = search(list(range(10)), [12] * 10, settings)

    for (best,) in results:
        assert sorted(best.tokens) == [2, 3, 4]


@pytest.mark.parametrize("beam", [1, 2, 3])
@pytest.mark.parametrize("penalty", ["gnmt", "length"])
@pytest.mark.parametrize("best", [1, 2])
def test_early_stopping_does_not_change_the_hypotheses(monkeypatch, beam, penalty, best):
    """The search of a sentence stops when no unfinished hypothesis can beat the finished ones.

    If this fails, the bound that decides so is wrong, and good translations are lost.
    """
    settings = systems.decode(beam=beam, alpha=1.0, kind=penalty)
    sentences = list(range(60))
    limits = [3 + 2 * (sentence % 4) for sentence in sentences]
    best = min(best, beam)

    with_early_stopping = search(sentences, limits, settings, best)
    # If no bound is ever reached, each search continues to its last output.
    monkeypatch.setattr(search_module, "_is_beaten", lambda *_: False)
    without_early_stopping = search(sentences, limits, settings, best)

    for early, complete in zip(with_early_stopping, without_early_stopping, strict=True):
        assert_same_hypotheses(early, complete)


@pytest.mark.parametrize("hypothesis", [0, 1])
def test_a_nan_logit_in_any_hypothesis_stops_the_search(hypothesis):
    """A model whose training diverged has NaN (not a number) among its logits.

    Here the logit of one token is NaN at the second step, in the first or the second hypothesis.
    """

    def step_with_nan(last, state):
        logits, state = step(last, state)
        is_second_step = state.words.size(1) == 2
        if is_second_step:
            logits[hypothesis, UNKNOWN] = torch.nan
        return logits, state

    start = Histories(torch.tensor([0]), torch.empty(1, 0, dtype=torch.long))
    symbols = SpecialTokens(BEGIN, END, UNKNOWN)
    settings = systems.decode(beam=3)

    with pytest.raises(UserError, match="probabilities are NaN"):
        beam_search(step_with_nan, start, torch.tensor([6]), symbols, settings, 1)


@pytest.mark.parametrize(
    ("length", "alpha", "divisor"),
    [(1, 0.6, 1.0), (7, 1.0, 2.0), (7, 0.0, 1.0), (19, 0.5, 2.0), (7, 2.0, 4.0), (13, 3.0, 27.0)],
)
def test_the_gnmt_penalty_divides_by_5_plus_length_over_6_to_the_power_of_alpha(
    length, alpha, divisor
):
    """The divisor is ((5 + length) / 6) ** alpha, as in GNMT (Wu et al. 2016), equation 14."""
    settings = systems.decode(kind="gnmt", alpha=alpha)

    assert length_penalty(length, settings) == divisor


@pytest.mark.parametrize(
    ("length", "alpha", "divisor"),
    [(9, 0.5, 3.0), (9, 0.0, 1.0), (9, 1.0, 9.0), (5, 2.0, 25.0)],
)
def test_the_length_penalty_divides_by_length_to_the_power_of_alpha(length, alpha, divisor):
    settings = systems.decode(kind="length", alpha=alpha)

    assert length_penalty(length, settings) == divisor


@pytest.mark.parametrize(
    ("max_len_a", "max_len_b", "max_positions", "limits"),
    [
        pytest.param(0, 4, 100, [5, 5, 5], id="constant"),
        pytest.param(0.5, 4, 100, [5, 7, 9], id="half the source, rounded down"),
        pytest.param(1, 0, 100, [1, 6, 10], id="as long as the source"),
        pytest.param(1.5, 2, 100, [3, 10, 16], id="longer than the source"),
        pytest.param(1.5, 2, 12, [3, 10, 12], id="12 positions"),
        pytest.param(1.5, 2, 7, [3, 7, 7], id="7 positions"),
        pytest.param(3, 10, 100, [11, 26, 38], id="three times the source and 10"),
    ],
)
def test_an_output_is_at_most_max_len_a_times_its_source_plus_max_len_b_tokens_long(
    max_len_a, max_len_b, max_positions, limits
):
    """Sources have 0, 5 and 9 tokens. EOS adds 1 to their lengths and to the limits."""
    source_lengths = np.array([0 + 1, 5 + 1, 9 + 1])
    settings = systems.decode(max_len_a=max_len_a, max_len_b=max_len_b)

    maximum_lengths = max_output_lengths(source_lengths, settings, max_positions)

    assert maximum_lengths.tolist() == limits
