"""Sampling follows the model's probabilities, whatever is drawn together."""

from random import Random

import pytest
import torch
from test_beam_search import BEGIN, END, UNKNOWN, Histories, SpecialTokens, logits_of, step
from test_translate import DECODE, EMPTY, corpus, model  # noqa: F401

import systems
from bleuprint.decoding import engine
from bleuprint.decoding.engine import Engine
from bleuprint.decoding.sampling import Sampler, _draw, sample
from bleuprint.runtime.errors import UserError

# 0.999 quantile of chi-square by degrees of freedom
LARGEST = {1: 10.83, 2: 13.82, 3: 16.27, 12: 32.91}


def flat(last, state):
    """Logits of which none is rare, so that chi-square's approximation holds."""
    logits, state = step(last, state)
    return logits / 4, state


def logs_of(*history):
    return (logits_of(7, (BEGIN, *history)) / 4).log_softmax(-1)


def draw(count, limit=1, top_k=None, **decode):
    """Outputs of sentence 7 of the toy language, of up to `limit` tokens and EOS."""
    start = Histories(torch.full((count,), 7), torch.empty(count, 0, dtype=torch.long))
    given = SpecialTokens(BEGIN, END, UNKNOWN), systems.decode(**decode), top_k
    randoms = [Random(f"test {i}") for i in range(count)]
    found = sample(flat, start, torch.full((count,), limit + 1), *given, randoms)
    return [output for (output,) in found]


def chi_square(observed, expected):
    assert sum(observed) == pytest.approx(sum(expected))
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))


@pytest.mark.parametrize("top_k", [None, 3, 2, 99])
def test_first_tokens_have_the_models_probabilities(top_k):
    count = 2500
    probabilities = logs_of().exp()
    best = probabilities.argsort(descending=True).tolist()[: min(top_k or 99, 4)]
    first = [output.tokens[0] if output.tokens else END for output in draw(count, top_k=top_k)]
    assert set(first) == set(best)
    expected = probabilities[best] / probabilities[best].sum() * count
    statistic = chi_square([first.count(token) for token in best], expected.tolist())
    assert statistic < LARGEST[len(best) - 1]


def test_what_the_limit_ends_is_cut():
    for output in draw(200, limit=2):
        likeliest = int(logs_of(*output.tokens).argmax())
        assert output.is_cut == (len(output.tokens) == 2 and likeliest != END)


def test_whole_outputs_have_the_models_probabilities():
    """The second token depends on the first: their joint frequencies, and log_prob."""
    count = 2500
    outputs = draw(count, limit=2)
    pairs = [tuple([*output.tokens, END][:2]) for output in outputs]
    first = logs_of()
    expected = {(END,): float(first[END].exp()) * count}
    for one in range(2, 5):
        second = logs_of(one).exp()
        for two in range(1, 5):
            expected[one, two] = float(first[one].exp() * second[two]) * count
    observed = [pairs.count(pair) for pair in expected]
    assert min(expected.values()) > 5
    assert chi_square(observed, [*expected.values()]) < LARGEST[12]
    for output in outputs[:50]:
        tokens = [*output.tokens, END]
        total = sum(float(logs_of(*tokens[:i])[token]) for i, token in enumerate(tokens))
        assert output.log_prob == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "alpha"),
    [("gnmt", 0.6), ("gnmt", 2.0), ("length", 0.5), ("length", 1.0)],
)
def test_the_score_is_the_log_probability_divided_by_the_length_penalty(kind, alpha):
    for output in draw(50, limit=4, kind=kind, alpha=alpha):
        length = len(output.tokens) + 1
        base = length
        if kind == "gnmt":
            base = (5 + length) / 6
        assert output.score == pytest.approx(output.log_prob / base**alpha)


def test_the_limits_of_the_search_hold():
    assert {len(output.tokens) for output in draw(200, limit=4)} == {0, 1, 2, 3, 4}
    assert min(len(output.tokens) for output in draw(200, limit=4, min_len=3)) == 3
    assert any(UNKNOWN in output.tokens for output in draw(200, limit=4))
    assert not any(UNKNOWN in output.tokens for output in draw(200, limit=4, allow_unk=False))


def test_a_broken_model_is_named():
    with pytest.raises(UserError, match="probabilities are NaN"):
        sample(
            lambda last, state: (torch.full((len(last), 5), torch.nan), state),
            Histories(torch.zeros(1, dtype=torch.long), torch.empty(1, 0, dtype=torch.long)),
            *(torch.tensor([3]), SpecialTokens(BEGIN, END, UNKNOWN), systems.decode(), None),
            [Random(1)],
        )


@pytest.mark.parametrize("top_k", [None, 4])
def test_batches_change_nothing(corpus, model, monkeypatch, top_k):  # noqa: F811
    source = corpus.binary.side("test.x", "de")

    def drawn(seed, parts):
        translator = Engine(model, DECODE, Sampler(seed, top_k))
        found = []
        for part in parts:
            found += translator.search([source[i] for i in part], source.lengths[part])
        return [best.tokens for (best,) in found]

    rows = list(range(31))
    together = drawn("1 text", [rows])
    assert together[EMPTY] == [] and len({tuple(tokens) for tokens in together}) > 20
    assert drawn("2 text", [rows]) != together
    monkeypatch.setattr(engine, "BATCH_TOKENS", 1)
    assert drawn("1 text", [rows[:7], rows[7:8], rows[8:]]) == together
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert drawn("1 text", [rows]) == together
    # each sentence of a text is drawn by numbers of its own
    assert len({tuple(tokens) for tokens in drawn("1 text", [[0] * 12])}) > 3
    # and so is a second text of the same sentences
    assert drawn("1 text", [rows, rows])[31:] != together


@pytest.mark.parametrize(
    ("number", "token"), [(0.0, 1), (0.24, 1), (0.26, 2), (0.74, 2), (0.76, 4), (1.0, 4)]
)
def test_a_token_without_probability_is_never_drawn(number, token):
    """Of five tokens the first and the fourth have none; ends are 0, 0.25, 0.75, 0.75 and 1."""
    logs = torch.tensor([[0.0, 0.25, 0.5, 0.0, 0.25]]).log()
    assert _draw(logs, [number], None).tolist() == [token]


@pytest.mark.parametrize(("number", "token"), [(0.0, 2), (0.66, 2), (0.67, 4), (0.99, 4)])
def test_the_likeliest_tokens_share_the_probability(number, token):
    """The two likeliest of five have 0.5 and 0.25, two thirds and one third of their sum."""
    logs = torch.tensor([[0.1, 0.05, 0.5, 0.1, 0.25]]).log()
    assert _draw(logs, [number], 2).tolist() == [token]
