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


def model(seed):
    torch.manual_seed(seed)
    made = Transformer(systems.model(norm="pre"), VOCABULARY_SIZE, VOCABULARY_SIZE).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2)  # far from even probabilities
    return made


@pytest.fixture(scope="module", params=[1, 3])
def decoder(request):
    models = [model(seed) for seed in range(request.param)]
    return models[0] if len(models) == 1 else Ensemble(models)


@dataclass(frozen=True)
class Scored:
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
    """Three translations of each sentence.

    The beam has four hypotheses, which change places while they grow. Forced decoding gets all
    translations at once, of several lengths, so that it pads them.
    """
    engine = Engine(decoder, systems.decode(beam=4, max_len_b=4))
    source_lengths = np.array([4, 2, 6])
    found = engine.search(SOURCES, source_lengths, best=3)
    names = []
    sources = []
    hypotheses = []
    for number, (source, outputs) in enumerate(zip(SOURCES, found, strict=True), 1):
        for rank, output in enumerate(outputs, 1):
            names.append(f"translation {rank} of sentence {number}")
            sources.append(source)
            hypotheses.append(output)
    targets = [[*hypothesis.tokens, EOS] for hypothesis in hypotheses]
    forced = token_log_probs(decoder, sources, targets)
    scored = []
    for name, hypothesis, log_probs in zip(names, hypotheses, forced, strict=True):
        scored.append(Scored(name, hypothesis.tokens, hypothesis.log_prob, log_probs))
    return scored


def test_the_search_finds_three_translations_of_each_sentence(translations):
    """Else the tests below would compare fewer."""
    assert len(translations) == 3 * 3


def test_forced_decoding_scores_each_token_and_eos(translations):
    for each in translations:
        tokens_and_eos = len(each.token_ids) + 1
        assert len(each.forced_log_probs) == tokens_and_eos, each.name


def test_the_search_adds_up_what_forced_decoding_gives(translations):
    for each in translations:
        total = sum(each.forced_log_probs)
        assert each.log_prob == pytest.approx(total, abs=1e-4), each.name


SOURCE = SOURCES[0]
TARGET = [17, 3, 4, EOS]
# What a decoder reads to give TARGET: each token after the one before it.
TARGET_INPUT = [BOS, 17, 3, 4]


def mean_probabilities(decoder):
    """The mean over the models of the probabilities that `forward` gives.

    Returns:
        A tensor [position in TARGET, token of the vocabulary] of float64.
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


def test_a_step_gives_the_mean_probabilities_of_the_models(decoder):
    expected = mean_probabilities(decoder)
    with torch.inference_mode():
        state = decoder.init_cache(torch.tensor([SOURCE]))
        for position, token in enumerate(TARGET_INPUT):
            log_probs, state = decoder.step(torch.tensor([token]), state)
            found = log_probs.double().softmax(-1)[0]
            torch.testing.assert_close(
                found,
                expected[position],
                atol=1e-6,
                rtol=1e-5,
                msg=lambda message, position=position: f"position {position}: {message}",
            )


def test_forced_decoding_gives_the_mean_probabilities_of_the_models(decoder):
    probabilities = mean_probabilities(decoder)
    (found,) = token_log_probs(decoder, [SOURCE], [TARGET])
    expected = []
    for position, token in enumerate(TARGET):
        expected.append(math.log(probabilities[position, token]))
    assert found == pytest.approx(expected, abs=1e-5)


def loss_of(monkeypatch, max_positions):
    """The loss of two pairs of up to five and three tokens, whose probabilities are known."""
    pairs = PairIds([[5, 6, 7, 8, EOS], [9, EOS]], [[5, 6, EOS], [7, EOS]])

    def read_ids(corpus, name, rows):
        assert (corpus.sets[name].pairs, name, rows.tolist()) == (2, "test.x", [0, 1])
        return pairs

    def token_log_probs(_, sources, targets):
        assert (sources, targets) == (pairs.source, pairs.target)
        return [[-1.0, -0.5, -0.25], [-2.0, -4.0]]

    monkeypatch.setattr(forced_decoding, "read_ids", read_ids)
    monkeypatch.setattr(forced_decoding, "token_log_probs", token_log_probs)
    corpus = SimpleNamespace(sets={"test.x": SimpleNamespace(pairs=2)})
    short = SimpleNamespace(settings=SimpleNamespace(max_positions=max_positions))
    return forced_decoding.reference_loss(short, corpus, "test.x")


def test_the_loss_of_references_is_the_sum_over_their_tokens(monkeypatch):
    assert loss_of(monkeypatch, 5) == {"nats": 7.75, "tokens": 5}


def test_sentences_beyond_the_last_position_have_no_loss(monkeypatch):
    assert loss_of(monkeypatch, 4) is None


def test_no_batches_have_no_translations(monkeypatch):
    monkeypatch.setattr(engine, "_batches_at_once", lambda _: 4)
    assert list(engine._map_in_threads(None, [], torch.device("cpu"))) == []
