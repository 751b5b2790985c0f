"""Ensembles: the mean of the models' probabilities, computed by hand."""

import pytest
import torch

import systems
from bleuprint.dataset.subwords.vocabulary import BOS, EOS
from bleuprint.decoding.ensemble import Ensemble
from bleuprint.model.transformer import Transformer

SOURCE = torch.tensor([[5, 6, 7, EOS], [8, 9, EOS, 0]])


def model(seed: int, **shape: object) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(systems.model(**shape), 20, 20).eval()


@torch.inference_mode()
def probabilities(decoder: Transformer | Ensemble, words: list[int]) -> list[torch.Tensor]:
    """Of each next word, after each of `words`; an ensemble gives their logarithms."""
    state, found = decoder.init_cache(SOURCE), []
    for word in words:
        logits, state = decoder.step(torch.tensor([word] * 2), state)
        found.append(logits.exp() if isinstance(decoder, Ensemble) else logits.softmax(-1))
    return found


def test_probabilities_are_averaged() -> None:
    models = [model(1), model(2, d_model=16, heads=2), model(3, norm="pre")]
    apart = [probabilities(one, [BOS, 7, 8]) for one in models]
    together = probabilities(Ensemble(models), [BOS, 7, 8])
    for place, found in enumerate(together):
        expected = sum(each[place].double() for each in apart) / 3
        assert found.double().sum(1).tolist() == pytest.approx([1, 1], abs=1e-5)
        torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=1e-5)


def test_a_model_thrice_is_that_model() -> None:
    one = model(4)
    alone, thrice = probabilities(one, [BOS, 5]), probabilities(Ensemble([one] * 3), [BOS, 5])
    torch.testing.assert_close(alone, thrice, atol=1e-6, rtol=1e-5)


def test_the_shortest_limit_holds() -> None:
    models = [model(1), model(2, max_positions=9), model(3)]
    assert Ensemble(models).settings.max_positions == 9


def test_rows_are_picked_in_all_models() -> None:
    ensemble = Ensemble([model(1), model(2)])
    with torch.inference_mode():
        states = []
        for _ in range(2):
            _, state = ensemble.step(torch.tensor([BOS, BOS]), ensemble.init_cache(SOURCE))
            states.append(state)
        picked = states[0].reorder(torch.tensor([1]), torch.tensor([1]))
        found, _ = ensemble.step(torch.tensor([7]), picked)
        whole, _ = ensemble.step(torch.tensor([7, 7]), states[1])
    assert found[0].tolist() == pytest.approx(whole[1].tolist(), abs=1e-5)
