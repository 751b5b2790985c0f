"""Scores of given translations, by one model and by an ensemble: those of search, and by hand."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import systems
from bleuprint.dataset.batch import PairIds
from bleuprint.dataset.subwords.vocabulary import BOS, EOS
from bleuprint.decoding import engine, forced_decoding
from bleuprint.decoding.engine import Engine
from bleuprint.decoding.ensemble import Ensemble, models_of
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.transformer import Transformer

SOURCES = [[5, 6, 7, EOS], [8, EOS], [9, 10, 11, 12, 13, EOS]]
VOCABULARY_SIZE = 20


def model_with_seed(seed):
    """Return an untrained model whose probabilities are far from equal, as a trained model's."""
    torch.manual_seed(seed)
    model = Transformer(systems.model(norm="pre"), VOCABULARY_SIZE, VOCABULARY_SIZE).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


@pytest.fixture(scope="module", params=["model", "ensemble"])
def decoder(request):
    """Return a model, or an ensemble of three models."""
    if request.param == "model":
        return model_with_seed(0)
    return Ensemble([model_with_seed(seed) for seed in (0, 1, 2)])


@dataclass(frozen=True)
class ScoredTranslation:
    """A translation with its score by search, and the scores of its tokens by forced decoding.

    Attributes:
        name: Which translation it is, for messages.
        token_ids: The ids of its tokens, without EOS.
        log_prob: Its log-probability by search.
        forced_log_probs: The log-probability of each token by forced decoding.
    """

    name: str
    token_ids: list[int]
    log_prob: float
    forced_log_probs: list[float]


@pytest.fixture(scope="module")
def translations(decoder):
    """Return three translations of each sentence, scored by search and by forced decoding.

    The beam has four hypotheses, which change places while they grow. Forced decoding gets all
    translations at once, of several lengths, so that it pads them.
    """
    search = Engine(decoder, systems.decode(beam=4, max_len_b=4))
    source_lengths = np.array([len(source) for source in SOURCES])
    outputs_of_sources = search.search(SOURCES, source_lengths, best=3)
    names = []
    sources = []
    hypotheses = []
    for number, (source, outputs) in enumerate(zip(SOURCES, outputs_of_sources, strict=True), 1):
        for rank, output in enumerate(outputs, 1):
            names.append(f"translation {rank} of sentence {number}")
            sources.append(source)
            hypotheses.append(output)
    targets = [[*hypothesis.tokens, EOS] for hypothesis in hypotheses]
    forced = token_log_probs(decoder, sources, targets)
    translations = []
    for name, hypothesis, log_probs in zip(names, hypotheses, forced, strict=True):
        translation = ScoredTranslation(name, hypothesis.tokens, hypothesis.log_prob, log_probs)
        translations.append(translation)
    return translations


def test_the_search_finds_three_translations_of_each_sentence(translations):
    """So the tests below compare the scores of nine translations."""
    sentences = 3

    assert len(translations) == 3 * sentences


def test_forced_decoding_scores_each_token_and_eos(translations):
    for translation in translations:
        tokens_and_eos = len(translation.token_ids) + 1
        assert len(translation.forced_log_probs) == tokens_and_eos, translation.name


def test_search_and_forced_decoding_give_a_translation_the_same_log_probability(
    translations,
):
    """Forced decoding scores the tokens of a given translation; the search adds them while it runs.

    `translations` are three of each sentence, by a model and by an ensemble.
    """
    for translation in translations:
        total = sum(translation.forced_log_probs)
        assert translation.log_prob == pytest.approx(total, abs=1e-4), translation.name


SOURCE = SOURCES[0]
TARGET = [17, 3, 4, EOS]
# The decoder predicts each token of TARGET from the tokens before it.
TARGET_INPUT = [BOS, 17, 3, 4]


def mean_probabilities(decoder):
    """Return the probabilities of the next token that a model or each model of an ensemble gives.

    Returns:
        Their mean over the models, a tensor (positions in TARGET, vocabulary) of float64.
    """
    source = torch.tensor([SOURCE])
    target_input = torch.tensor([TARGET_INPUT])
    models = models_of(decoder)
    total = torch.zeros(len(TARGET), VOCABULARY_SIZE, dtype=torch.float64)
    with torch.inference_mode():
        for model in models:
            logits = model(source, target_input)[0]
            # PAD and BOS, the first two ids, never occur in texts.
            logits[:, :2] = -torch.inf
            total += logits.double().softmax(-1)
    return total / len(models)


def test_a_search_step_gives_the_mean_probabilities_of_the_models(decoder):
    """`decoder` is a model or an ensemble, which averages the probabilities of its models.

    The expected means are computed from the models one by one.
    """
    expected = mean_probabilities(decoder)

    with torch.inference_mode():
        state = decoder.init_cache(torch.tensor([SOURCE]))
        for position, token in enumerate(TARGET_INPUT):
            log_probs, state = decoder.step(torch.tensor([token]), state)

            probabilities = log_probs.double().softmax(-1)[0]
            torch.testing.assert_close(
                probabilities,
                expected[position],
                atol=1e-6,
                rtol=1e-5,
                msg=lambda message, position=position: f"position {position}: {message}",
            )


def test_forced_decoding_gives_the_mean_probabilities_of_the_models(decoder):
    """`decoder` is a model or an ensemble, which averages the probabilities of its models.

    The expected means are computed from the models one by one.
    """
    expected_log_probs = []
    for probabilities, token in zip(mean_probabilities(decoder), TARGET, strict=True):
        expected_log_probs.append(math.log(probabilities[token]))

    (log_probs,) = token_log_probs(decoder, [SOURCE], [TARGET])

    assert log_probs == pytest.approx(expected_log_probs, abs=1e-5)


def loss_on_two_pairs(monkeypatch, max_positions):
    """Compute the loss on a test set of two pairs, with a stand-in for the model.

    The longest sentence has 5 tokens. The targets have 3 and 2 tokens, which forced decoding gives
    the log-probabilities -1, -0.5 and -0.25, and -2 and -4.

    Args:
        monkeypatch: Replaces forced decoding.
        max_positions: The length of the longest sentence that the model can read.
    """
    pairs = PairIds(source=[[5, 6, 7, 8, EOS], [9, EOS]], target=[[5, 6, EOS], [7, EOS]])

    def read_ids(corpus, name, rows):
        assert corpus.sets[name].pairs == 2
        assert name == "test.x"
        assert rows.tolist() == [0, 1]
        return pairs

    def token_log_probs(_, sources, targets):
        assert sources == pairs.source
        assert targets == pairs.target
        return [[-1.0, -0.5, -0.25], [-2.0, -4.0]]

    monkeypatch.setattr(forced_decoding, "read_ids", read_ids)
    monkeypatch.setattr(forced_decoding, "token_log_probs", token_log_probs)
    corpus = SimpleNamespace(sets={"test.x": SimpleNamespace(pairs=2)})
    model = SimpleNamespace(settings=SimpleNamespace(max_positions=max_positions))
    return forced_decoding.reference_loss(model, corpus, "test.x")


def test_the_loss_on_references_is_summed_over_their_tokens(monkeypatch):
    loss = loss_on_two_pairs(monkeypatch, max_positions=5)

    assert loss == {"nats": 1 + 0.5 + 0.25 + 2 + 4, "tokens": 3 + 2}


def test_a_test_set_with_a_sentence_that_is_too_long_for_the_model_has_no_loss(monkeypatch):
    assert loss_on_two_pairs(monkeypatch, max_positions=4) is None


def test_a_test_set_without_sentences_has_no_translations(monkeypatch):
    """Batches are translated in several threads, also if there are none."""
    monkeypatch.setattr(engine, "_batches_at_once", lambda _: 4)

    assert list(engine._map_in_threads(None, [], torch.device("cpu"))) == []
