"""A system whose mask shows it the future fails contrastive tests; one trained soundly passes."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import systems
from bleuprint.contrast.outcomes import TokenPair, outcomes
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.model.attention import Attention
from bleuprint.model.transformer import Transformer
from bleuprint.training.loss import batch_loss
from contrasts import Data

WORDS = range(4, 16)
ATTEND: Callable[..., Tensor] = Attention._attend


def sentences(count: int, seed: int) -> list[list[int]]:
    """Five different words each."""
    rng = random.Random(seed)
    return [rng.sample(WORDS, 5) for _ in range(count)]


def translation(source: list[int]) -> list[int]:
    """Each word by its own, in reverse."""
    return [WORDS[(word * 5) % len(WORDS)] for word in reversed(source)]


def leaky(self: Attention, *given: Any, diagonal: int, **named: Any) -> Tensor:
    """Attention whose causal mask is shifted by `diagonal`."""
    query, key, value, _, *causal = given
    if any(causal):
        ones = torch.ones(query.size(2), key.size(2), dtype=torch.bool)
        return ATTEND(self, query, key, value, ones.tril(diagonal))
    return ATTEND(self, *given, **named)


def trained() -> Transformer:
    """A micro-system after 250 updates."""
    torch.manual_seed(1)
    shape = systems.model(
        encoder_layers=1, decoder_layers=1, d_model=32, d_ff=64, heads=2, d_k=16, d_v=16
    )
    model = Transformer(shape, 16, 16)
    optimizer = torch.optim.Adam(model.parameters(), 0.005)
    for update in range(250):
        sources = sentences(32, update)
        ids = [[*source, EOS] for source in sources], [[*translation(s), EOS] for s in sources]
        optimizer.zero_grad()
        loss = batch_loss(model, Batch.from_ids(PairIds(*ids)), 0.0) / (32 * 6)
        loss.backward()
        optimizer.step()
    return model.eval()


def accuracies(model: Transformer) -> dict[str, float]:
    """Of 60 pairs each: two words swapped, a word that is not in the source."""
    pairs: dict[str, list[TokenPair]] = {"word order": [], "word": []}
    for source in sentences(60, 1000):
        right = translation(source)
        other = next(word for word in WORDS if word not in right)
        wrong = {
            "word order": [*right[:2], right[3], right[2], right[4]],
            "word": [*right[:2], other, *right[3:]],
        }
        for name, words in wrong.items():
            texts = (" ".join(map(str, each)) for each in (source, right, words))
            pairs[name].append(TokenPair(*texts))
    found = outcomes(model, Data(), pairs)["phenomena"]  # type: ignore[arg-type]
    return {each["name"]: 1 - len(each["failed"]) / each["pairs"] for each in found}


@pytest.mark.parametrize(("diagonal", "sound"), [(0, True), (9, False), (1, False)])
def test_a_mask_that_shows_the_future_fails(
    diagonal: int, sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a mask (9), or with one shifted by a position (1), a system copies what it reads.

    It sees both translations, and their order does not tell it which one is right; where the future
    is hidden, as in translating, it has learnt nothing.
    """
    with monkeypatch.context() as patch:
        patch.setattr(
            Attention,
            "_attend",
            lambda self, *given, **named: leaky(self, *given, diagonal=diagonal, **named),
        )
        model = trained()
        in_training = accuracies(model)
    in_translating = accuracies(model)
    if sound:
        assert in_training == in_translating and min(in_training.values()) > 0.95
    else:
        assert in_training["word order"] < 0.75
        assert max(in_translating.values()) < 0.75
