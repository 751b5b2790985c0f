"""native/search.cpp computes what torch does."""

import pytest
import torch

from bleuprint import native
from bleuprint.decoding import beam_search
from bleuprint.model import backends
from bleuprint.model.kv_cache import KVCache

needs_library = pytest.mark.usefixtures("native_library")


@needs_library
@pytest.mark.parametrize(("units", "most"), [(1000, 8), (64, 2), (67, 8), (3, 12)])
def test_the_greatest_are_those_of_topk(monkeypatch, units, most):
    torch.manual_seed(1)
    logs, scores = torch.randn(50, 4, units), torch.randn(50, 4)
    logs[torch.rand_like(logs) < 0.1] = -torch.inf
    logs[3] = -torch.inf
    found = beam_search._greatest(logs.clone(), scores, most)
    monkeypatch.setattr(native, "library", lambda: None)
    values, places = beam_search._greatest(logs, scores, most)
    assert torch.equal(found[0], values)
    is_token = values.isfinite()
    assert torch.equal(found[1][is_token], places[is_token])
    assert not is_token[3].any() and int(found[1].max()) < 4 * units


def cache(padding):
    """Two layers of three heads, d_k 8 and d_v 24, for 12 sources of up to 7 positions."""
    torch.manual_seed(2)
    source = [(torch.randn(12, 3, 7, 8), torch.randn(12, 3, 7, 24)) for _ in range(2)]
    lengths = torch.randint(1, 8, (12, 1, 1, 1))
    return KVCache(source, torch.arange(7) < lengths if padding else None)


def attend(state, steps=40):
    """What attention returns at each step, while hypotheses and sentences change."""
    generator, width, sentences, found = torch.Generator().manual_seed(3), 1, 12, []
    for step in range(steps):
        state.advance(sentences * width)
        for layer in range(2):
            # queries and keys as parts of one tensor, values of another, as rotation leaves them
            joint = torch.randn(sentences * width, 48, generator=generator)
            value = torch.randn(sentences * width, 72, generator=generator)
            found.append(state.self_attend(layer, joint[:, :24], joint[:, 24:], value))
            found.append(state.cross_attend(layer, joint[:, :24]))
        rows = torch.arange(sentences)
        if step % 4 == 3 and sentences > 2:
            rows = rows[torch.randperm(sentences, generator=generator)[:-1].sort().values]
        kept = torch.randint(width, (len(rows), 4), generator=generator) + rows[:, None] * width
        state = state.reorder(kept.flatten(), rows if len(rows) < sentences else None)
        sentences, width = len(rows), 4
    return found


@needs_library
@pytest.mark.parametrize(
    ("d_k", "d_v", "is_compiled"),
    [(8, 24, True), (12, 24, False), (8, 20, False), (12, 20, False)],
)
def test_sizes_that_fill_no_vector_of_eight_are_left_to_torch(d_k, d_v, is_compiled):
    """The compiled attention would write beyond its arrays."""
    state = KVCache([(torch.randn(2, 3, 5, d_k), torch.randn(2, 3, 5, d_v))], None)
    assert (state._library is not None) == is_compiled


@needs_library
@pytest.mark.parametrize("padding", [False, True])
def test_attention_is_that_of_torch(monkeypatch, padding):
    found = attend(cache(padding))
    monkeypatch.setattr(native, "library", lambda: None)
    for one, other in zip(found, attend(cache(padding)), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@needs_library
def test_portable_arithmetic_has_the_attention_of_torch(monkeypatch):
    monkeypatch.setattr(backends, "IS_PORTABLE", True)
    found = attend(cache(True), 3)
    monkeypatch.setattr(native, "library", lambda: None)
    assert all(map(torch.equal, found, attend(cache(True), 3)))
