"""Ensembles: the mean of the models' probabilities, computed by hand."""

import numpy as np
import pytest
import torch

import systems
from bleuprint.dataset.subwords.vocabulary import BOS, EOS
from bleuprint.decoding.engine import TorchEngine
from bleuprint.decoding.ensemble import Ensemble
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.transformer import Transformer

SOURCE = torch.tensor([[5, 6, 7, EOS], [8, 9, EOS, 0]])
SOURCES = [[5, 6, 7, EOS], [8, 9, EOS]]


def model(seed: int) -> Transformer:
    torch.manual_seed(seed)
    made = Transformer(systems.model(norm="pre"), 20, 20).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2)  # far from even probabilities
    return made


@pytest.fixture(scope="module")
def models() -> list[Transformer]:
    return [model(seed) for seed in (1, 2, 3)]


@torch.inference_mode()
def probabilities(decoder: Transformer | Ensemble, words: list[int]) -> list[torch.Tensor]:
    """Of each next word, after each of `words`."""
    state, found = decoder.init_cache(SOURCE), []
    for word in words:
        logits, state = decoder.step(torch.tensor([word] * 2), state)  # type: ignore[arg-type]
        found.append(logits.exp() if isinstance(decoder, Ensemble) else logits.softmax(-1))
    return found


def test_probabilities_are_averaged(models: list[Transformer]) -> None:
    apart = [probabilities(one, [BOS, 7, 8]) for one in models]
    together = probabilities(Ensemble(models), [BOS, 7, 8])
    for place, found in enumerate(together):
        expected = sum(each[place].double() for each in apart) / 3
        assert found.double().sum(1).tolist() == pytest.approx([1, 1], abs=1e-5)
        torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=1e-5)


def test_the_search_adds_up_what_forced_decoding_gives(models: list[Transformer]) -> None:
    """Also as hypotheses are reordered; forced decoding averages those of `forward`."""
    ensemble, lengths = Ensemble(models), np.array(list(map(len, SOURCES)))
    found = TorchEngine(ensemble, systems.decode(beam=4, max_len_b=4)).search(SOURCES, lengths, 3)
    for source, outputs in zip(SOURCES, found, strict=True):
        targets = [[*output.tokens, EOS] for output in outputs]
        for output, scores in zip(
            outputs, token_log_probs(ensemble, [source] * len(targets), targets), strict=True
        ):
            assert sum(scores) == pytest.approx(output.log_prob, abs=1e-4)
    given = [7, 8, EOS]
    (scores,) = token_log_probs(ensemble, SOURCES[:1], [given])
    with torch.no_grad():
        logits = [one(torch.tensor(SOURCES[:1]), torch.tensor([[BOS, 7, 8]]))[0] for one in models]
    for each in logits:
        each[:, :2] = -torch.inf  # PAD and BOS, which texts lack
    mean = sum(each.softmax(-1) for each in logits) / 3
    assert scores == pytest.approx([float(mean[i, t].log()) for i, t in enumerate(given)], abs=1e-5)
