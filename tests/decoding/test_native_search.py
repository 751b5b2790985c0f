"""The compiled search, native/search.cpp, computes what torch does."""

import pytest
import torch

from bleuprint import native
from bleuprint.decoding import beam_search
from bleuprint.model import backends
from bleuprint.model.kv_cache import KVCache

needs_library = pytest.mark.usefixtures("native_library")


@needs_library
@pytest.mark.parametrize(("vocabulary_size", "count"), [(1000, 8), (64, 2), (67, 8), (3, 12)])
def test_the_compiled_search_for_the_greatest_sums_equals_torch_topk(
    monkeypatch, vocabulary_size, count
):
    """A beam search continues the hypotheses with the greatest sums of score and next token."""
    beam = 4
    torch.manual_seed(1)
    log_probs = torch.randn(50, beam, vocabulary_size)
    scores = torch.randn(50, beam)
    log_probs[torch.rand_like(log_probs) < 0.1] = -torch.inf
    log_probs[3] = -torch.inf  # No token can continue any hypothesis of sentence 3.

    sums, places = beam_search._greatest(log_probs.clone(), scores, count)
    monkeypatch.setattr(native, "library", lambda: None)
    torch_sums, torch_places = beam_search._greatest(log_probs, scores, count)

    assert torch.equal(sums, torch_sums)
    is_possible = torch_sums.isfinite()
    # Among impossible tokens any may be chosen, but only places that exist.
    assert torch.equal(places[is_possible], torch_places[is_possible])
    assert not is_possible[3].any()
    assert int(places.max()) < beam * vocabulary_size


def make_cache(has_padding):
    """Make a cache of two layers with three heads, d_k 8 and d_v 24, of 12 sources."""
    torch.manual_seed(2)
    source = []
    for _ in range(2):
        keys = torch.randn(12, 3, 7, 8)
        values = torch.randn(12, 3, 7, 24)
        source.append((keys, values))
    lengths = torch.randint(1, 8, (12, 1, 1, 1))
    is_token = None
    if has_padding:
        is_token = torch.arange(7) < lengths
    return KVCache(source, is_token)


def attend(cache, steps=40):
    """Return the results of attention at each step of a search with random hypotheses.

    After each step four hypotheses of each sentence go on; after each fourth step a sentence ends.
    """
    generator = torch.Generator().manual_seed(3)
    width = 1
    sentence_count = 12
    results = []
    for step in range(steps):
        cache.advance(sentence_count * width)
        for layer in range(2):
            # Queries and keys are parts of one tensor, values of another, as rotation leaves them.
            joint = torch.randn(sentence_count * width, 48, generator=generator)
            value = torch.randn(sentence_count * width, 72, generator=generator)
            results.append(cache.self_attend(layer, joint[:, :24], joint[:, 24:], value))
            results.append(cache.cross_attend(layer, joint[:, :24]))
        rows = torch.arange(sentence_count)
        if step % 4 == 3 and sentence_count > 2:
            rows = rows[torch.randperm(sentence_count, generator=generator)[:-1].sort().values]
        kept = torch.randint(width, (len(rows), 4), generator=generator) + rows[:, None] * width
        cache = cache.reorder(kept.flatten(), rows if len(rows) < sentence_count else None)
        sentence_count = len(rows)
        width = 4
    return results


@needs_library
@pytest.mark.parametrize(
    ("d_k", "d_v", "is_compiled"),
    [(8, 24, True), (12, 24, False), (8, 20, False), (12, 20, False)],
)
def test_compiled_attention_is_used_only_if_d_k_and_d_v_are_multiples_of_8(d_k, d_v, is_compiled):
    """With other sizes the compiled attention would write beyond its arrays."""
    cache = KVCache([(torch.randn(2, 3, 5, d_k), torch.randn(2, 3, 5, d_v))], None)

    assert (cache._library is not None) == is_compiled


@needs_library
@pytest.mark.parametrize("has_padding", [False, True])
def test_compiled_attention_agrees_with_torch(monkeypatch, has_padding):
    """`attend` runs 40 steps of a beam search on random keys and values; some sentences end early.

    The same search is repeated without the compiled library, which leaves PyTorch.
    """
    compiled_results = attend(make_cache(has_padding))
    monkeypatch.setattr(native, "library", lambda: None)
    torch_results = attend(make_cache(has_padding))

    for compiled_result, torch_result in zip(compiled_results, torch_results, strict=True):
        torch.testing.assert_close(compiled_result, torch_result, atol=1e-5, rtol=1e-5)


@needs_library
def test_portable_arithmetic_computes_attention_with_torch_to_the_bit(monkeypatch):
    """Portable arithmetic gives the same bits on every processor, so it avoids the library."""
    monkeypatch.setattr(backends, "IS_PORTABLE", True)
    with_library = attend(make_cache(has_padding=True), steps=3)
    monkeypatch.setattr(native, "library", lambda: None)
    without_library = attend(make_cache(has_padding=True), steps=3)

    assert all(map(torch.equal, with_library, without_library))
