"""Scores of given translations, by one model and by an ensemble: those of search, and by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import systems
from bleuprint.dataset.batch import PairIds
from bleuprint.dataset.subwords.vocabulary import BOS, EOS
from bleuprint.decoding import engine, forced_decoding
from bleuprint.decoding.engine import TorchEngine
from bleuprint.decoding.ensemble import Ensemble, models_of
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.transformer import Transformer

SOURCES = [[5, 6, 7, EOS], [8, EOS], [9, 10, 11, 12, 13, EOS]]


def model(seed):
    torch.manual_seed(seed)
    made = Transformer(systems.model(norm="pre"), 20, 20).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2)  # far from even probabilities
    return made


@pytest.fixture(scope="module", params=[1, 3])
def decoder(request):
    models = [model(seed) for seed in range(request.param)]
    return models[0] if len(models) == 1 else Ensemble(models)


def test_the_search_adds_up_what_forced_decoding_gives(decoder):
    """Also as hypotheses are reordered."""
    lengths = np.array(list(map(len, SOURCES)))
    engine = TorchEngine(decoder, systems.decode(beam=4, max_len_b=4))
    found = engine.search(SOURCES, lengths, best=3)
    sources = [source for source, outputs in zip(SOURCES, found, strict=True) for _ in outputs]
    outputs = [output for outputs in found for output in outputs]
    scores = token_log_probs(decoder, sources, [[*output.tokens, EOS] for output in outputs])
    assert len(scores) == 9
    for output, each in zip(outputs, scores, strict=True):
        assert len(each) == len(output.tokens) + 1
        assert sum(each) == pytest.approx(output.log_prob, abs=1e-4)


def test_probabilities_are_the_mean_of_the_models(decoder):
    """Those of `forward`, beside forced decoding and single steps."""
    given, source = [17, 3, 4, EOS], torch.tensor(SOURCES[:1])
    with torch.inference_mode():
        target = torch.tensor([[BOS, *given[:-1]]])
        logits = [one(source, target)[0] for one in models_of(decoder)]
        for each in logits:
            each[:, :2] = -torch.inf  # PAD and BOS, which texts lack
        mean = sum(each.double().softmax(-1) for each in logits) / len(logits)
        state = decoder.init_cache(source)
        for place, token in enumerate([BOS, *given[:-1]]):
            step, state = decoder.step(torch.tensor([token]), state)
            found = step.double().softmax(-1)[0]
            torch.testing.assert_close(found, mean[place], atol=1e-6, rtol=1e-5)
    (scores,) = token_log_probs(decoder, SOURCES[:1], [given])
    assert scores == pytest.approx([float(mean[i, t].log()) for i, t in enumerate(given)], abs=1e-5)


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
    monkeypatch.setattr(engine, "_threads", lambda _: 4)
    assert list(engine._map_in_threads(None, [], torch.device("cpu"))) == []
