"""Scores of given translations: equal to the search's for its outputs, and one step by hand."""

import numpy as np
import pytest
import torch

import systems
from bleuprint.dataset.subwords.vocabulary import BOS, EOS
from bleuprint.decoding.engine import TorchEngine
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.transformer import Transformer

SOURCES = [[5, 6, 7, EOS], [8, EOS], [9, 10, 11, 12, 13, EOS]]


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(6)
    made = Transformer(systems.model(norm="pre"), 30, 30).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2)
    return made


def test_they_are_those_that_search_adds_up(model: Transformer) -> None:
    lengths = np.array(list(map(len, SOURCES)))
    engine = TorchEngine(model, systems.decode(beam=4, max_len_b=4))
    found = engine.search(SOURCES, lengths, best=3)
    sources = [source for source, outputs in zip(SOURCES, found, strict=True) for _ in outputs]
    outputs = [output for outputs in found for output in outputs]
    scores = token_log_probs(model, sources, [[*output.tokens, EOS] for output in outputs])
    assert len(scores) == 9
    for output, each in zip(outputs, scores, strict=True):
        assert len(each) == len(output.tokens) + 1
        assert sum(each) == pytest.approx(output.log_prob, abs=1e-4)


def test_they_are_those_of_single_steps(model: Transformer) -> None:
    given = [17, 3, 4, EOS]
    with torch.inference_mode():
        state, last, expected = model.init_cache(torch.tensor([SOURCES[0]])), BOS, []
        for word in given:
            logits, state = model.step(torch.tensor([last]), state)
            expected.append(float(logits.log_softmax(-1)[0, word]))
            last = word
    (found,) = token_log_probs(model, [SOURCES[0]], [given])
    assert found == pytest.approx(expected, abs=1e-5)
