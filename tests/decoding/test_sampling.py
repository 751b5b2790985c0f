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

# The 0.999 quantile of the chi-square distribution by degrees of freedom.
CHI_SQUARE_99_9_QUANTILE = {1: 10.83, 2: 13.82, 3: 16.27, 12: 32.91}


def step_without_rare_tokens(last, state):
    """Decode one step with flat logits: the chi-square test needs frequent tokens."""
    logits, state = step(last, state)
    return logits / 4, state


def log_probs_after(*history):
    """Return the log-probabilities of the next token after some tokens of sentence 7."""
    return (logits_of(7, (BEGIN, *history)) / 4).log_softmax(-1)


def sample_outputs(count, limit=1, top_k=None, **decode):
    """Sample outputs of sentence 7 of the toy language.

    Args:
        count: How many outputs.
        limit: The maximum number of tokens of an output, without END.
        top_k: How many tokens to draw from; None draws from all.
        decode: Settings of decoding.
    """
    sentences = torch.full((count,), 7)
    outputs = sample(
        step_without_rare_tokens,
        Histories(sentences, torch.empty(count, 0, dtype=torch.long)),
        torch.full((count,), limit + 1),
        SpecialTokens(BEGIN, END, UNKNOWN),
        systems.decode(**decode),
        top_k,
        [Random(f"test {number}") for number in range(count)],
    )
    return [output for (output,) in outputs]


def chi_square(observed, expected):
    """Return the chi-square statistic of observed and expected counts."""
    assert sum(observed) == pytest.approx(sum(expected))
    statistic = 0.0
    for observed_count, expected_count in zip(observed, expected, strict=True):
        statistic += (observed_count - expected_count) ** 2 / expected_count
    return statistic


@pytest.mark.parametrize(
    ("top_k", "token_count"),
    [
        # Four of five tokens can follow BEGIN: all but BEGIN.
        (None, 4),
        (99, 4),
        (3, 3),
        (2, 2),
    ],
)
def test_first_tokens_are_sampled_with_the_models_probabilities(top_k, token_count):
    """Pearson's chi-square test compares counts of 2,500 samples with the model's probabilities.

    The statistic stays below the 99.9% quantile. With top_k, only the likeliest tokens are drawn.
    """
    sample_size = 2500
    probabilities = log_probs_after().exp()
    likeliest = probabilities.argsort(descending=True).tolist()[:token_count]

    first_tokens = []
    for output in sample_outputs(sample_size, top_k=top_k):
        tokens = [*output.tokens, END]  # An empty output begins with END.
        first_tokens.append(tokens[0])

    assert set(first_tokens) == set(likeliest)
    observed = [first_tokens.count(token) for token in likeliest]
    expected = probabilities[likeliest] / probabilities[likeliest].sum() * sample_size
    statistic = chi_square(observed, expected.tolist())
    assert statistic < CHI_SQUARE_99_9_QUANTILE[token_count - 1]


def test_is_cut_marks_a_sample_at_its_length_limit_if_end_is_not_its_likeliest_next_token():
    """`is_cut` marks outputs that end only because of the maximum length, here two tokens."""
    limit = 2
    for output in sample_outputs(200, limit=limit):
        likeliest = int(log_probs_after(*output.tokens).argmax())
        is_at_limit = len(output.tokens) == limit
        assert output.is_cut == (is_at_limit and likeliest != END)


def test_outputs_of_two_tokens_are_sampled_with_the_models_joint_probabilities():
    """Pearson's chi-square test compares counts of 2,500 outputs with products of probabilities.

    The statistic stays below the 99.9% quantile. The toy model has five tokens, of which BEGIN
    cannot follow.
    """
    sample_size = 2500
    first_probabilities = log_probs_after().exp()
    expected = {(END,): float(first_probabilities[END]) * sample_size}
    for first in range(UNKNOWN, 5):
        second_probabilities = log_probs_after(first).exp()
        for second in range(END, 5):
            joint_probability = first_probabilities[first] * second_probabilities[second]
            expected[first, second] = float(joint_probability) * sample_size
    # Chi-square needs more than five expected samples of each output.
    assert min(expected.values()) > 5

    outputs = sample_outputs(sample_size, limit=2)

    first_two = [tuple([*output.tokens, END][:2]) for output in outputs]
    observed = [first_two.count(tokens) for tokens in expected]
    degrees_of_freedom = 12  # 1 + 3 x 4 outputs, minus 1
    assert (
        chi_square(observed, list(expected.values())) < CHI_SQUARE_99_9_QUANTILE[degrees_of_freedom]
    )


def test_the_log_probability_of_a_sample_is_the_sum_over_its_tokens_and_end():
    """The expected sum adds the log-probability of each token, given the tokens before it."""
    for output in sample_outputs(2500, limit=2)[:50]:
        tokens = [*output.tokens, END]
        total = 0.0
        for position, token in enumerate(tokens):
            total += float(log_probs_after(*tokens[:position])[token])
        assert output.log_prob == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "alpha"),
    [("gnmt", 0.6), ("gnmt", 2.0), ("length", 0.5), ("length", 1.0)],
)
def test_the_score_is_the_log_probability_divided_by_the_length_penalty(kind, alpha):
    """The penalty is length ** alpha; for GNMT, ((5 + length) / 6) ** alpha. END counts too."""
    for output in sample_outputs(50, limit=4, kind=kind, alpha=alpha):
        length = len(output.tokens) + 1
        base = length
        if kind == "gnmt":
            base = (5 + length) / 6
        assert output.score == pytest.approx(output.log_prob / base**alpha)


def test_sampled_outputs_have_every_length_up_to_the_limit():
    lengths = {len(output.tokens) for output in sample_outputs(200, limit=4)}

    assert lengths == {0, 1, 2, 3, 4}


def test_sampled_outputs_have_at_least_the_minimum_length():
    lengths = {len(output.tokens) for output in sample_outputs(200, limit=4, min_len=3)}

    assert min(lengths) == 3


@pytest.mark.parametrize(("allow_unk", "has_unknown"), [(True, True), (False, False)])
def test_unknown_words_are_sampled_only_if_allow_unk_is_set(allow_unk, has_unknown):
    outputs = sample_outputs(200, limit=4, allow_unk=allow_unk)

    assert any(UNKNOWN in output.tokens for output in outputs) == has_unknown


def test_nan_logits_stop_sampling():
    """A model whose training diverged has NaN (not a number) among its logits."""

    def step_with_nan(last, state):
        return torch.full((len(last), 5), torch.nan), state

    with pytest.raises(UserError, match="probabilities are NaN"):
        sample(
            step_with_nan,
            Histories(torch.zeros(1, dtype=torch.long), torch.empty(1, 0, dtype=torch.long)),
            torch.tensor([3]),
            SpecialTokens(BEGIN, END, UNKNOWN),
            systems.decode(),
            None,
            [Random(1)],
        )


@pytest.fixture(params=[None, 4], ids=["all tokens", "top 4"])
def sample_texts(request, corpus, model):  # noqa: F811
    """A function that samples translations of the test set's 31 sentences.

    It takes the seed of the sampler, and lists of sentence numbers, which are texts that the same
    sampler translates one after the other; it returns the token ids of all translations.
    """
    source = corpus.binary.side("test.x", "de")

    def sample_texts(seed, texts):
        translator = Engine(model, DECODE, Sampler(seed, top_k=request.param))
        outputs = []
        for rows in texts:
            outputs += translator.search([source[row] for row in rows], source.lengths[rows])
        return [best.tokens for (best,) in outputs]

    return sample_texts


def test_sampled_translations_differ_and_an_empty_sentence_stays_empty(sample_texts):
    translations = sample_texts("1 text", [list(range(31))])

    assert translations[EMPTY] == []
    assert len({tuple(tokens) for tokens in translations}) > 20


def test_another_seed_samples_other_translations(sample_texts):
    rows = list(range(31))

    assert sample_texts("2 text", [rows]) != sample_texts("1 text", [rows])


def test_samples_do_not_depend_on_batches_parts_or_threads(sample_texts, monkeypatch):
    """A run that is repeated on another machine must draw the same translations.

    The 31 sentences are sampled at once, in batches of one sentence and three parts, and with three
    threads.
    """
    rows = list(range(31))
    translations = sample_texts("1 text", [rows])

    monkeypatch.setattr(engine, "BATCH_TOKENS", 1)  # one sentence in each batch
    in_three_parts = sample_texts("1 text", [rows[:7], rows[7:8], rows[8:]])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    by_three_threads = sample_texts("1 text", [rows])

    assert in_three_parts == translations
    assert by_three_threads == translations


def test_repeated_sentences_get_different_samples(sample_texts):
    """Else a sentence that occurs often in a text would be translated alike each time."""
    same_sentence = [0] * 12

    translations = sample_texts("1 text", [same_sentence])

    assert len({tuple(tokens) for tokens in translations}) > 3


def test_a_repeated_text_gets_different_samples(sample_texts):
    """One sampler translates the 31 sentences of a text, then the same text again."""
    rows = list(range(31))

    translations = sample_texts("1 text", [rows, rows])

    assert translations[31:] != translations[:31]


@pytest.mark.parametrize(
    ("random_number", "token"), [(0.0, 1), (0.24, 1), (0.26, 2), (0.74, 2), (0.76, 4), (1.0, 4)]
)
def test_a_token_of_probability_0_is_never_drawn(random_number, token):
    """A token is drawn if the number falls into its part of the interval from 0 to 1."""
    # Tokens 1, 2 and 4 have the parts up to 0.25, 0.75 and 1; tokens 0 and 3 have none.
    log_probs = torch.tensor([[0.0, 0.25, 0.5, 0.0, 0.25]]).log()

    assert _draw(log_probs, [random_number], top_k=None).tolist() == [token]


@pytest.mark.parametrize(("random_number", "token"), [(0.0, 2), (0.66, 2), (0.67, 4), (0.99, 4)])
def test_with_top_k_2_the_two_likeliest_tokens_share_the_probability(random_number, token):
    # The likeliest tokens, 2 and 4, have 0.5 and 0.25: two thirds and one third of their sum.
    log_probs = torch.tensor([[0.1, 0.05, 0.5, 0.1, 0.25]]).log()

    assert _draw(log_probs, [random_number], top_k=2).tolist() == [token]
