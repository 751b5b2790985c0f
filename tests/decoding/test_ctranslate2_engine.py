"""CTranslate2's search returns the outputs of ours, with the scores of forced decoding."""

import random
import sys

import numpy as np
import pytest
import torch

import systems
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.beam_search import length_penalty
from bleuprint.decoding.ctranslate2_engine import CTranslate2Engine
from bleuprint.decoding.engine import TorchEngine
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.decoding.translate import create_engine
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from prepared import Prepared, prepare
from trainings import merges, toy_pairs


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    sets = {"train": toy_pairs(100, 1), "valid": toy_pairs(9, 2), "test.x": toy_pairs(9, 3)}
    made: Prepared = prepare(tmp_path_factory.mktemp("corpus"), sets, units=merges(50, joint=False))
    return made.binary


def model(corpus, **shape):
    torch.manual_seed(8)
    sizes = (len(corpus.segmentation(side).vocabulary) for side in ("de", "en"))
    made = Transformer(
        systems.model(tie_embeddings="decoder", output_bias=True, **shape), *sizes
    ).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2)  # far from even probabilities, so that searches differ
        made.projection.bias[EOS] = 7.0  # and so that they end
    return made


def sentences(corpus, count):
    units = len(corpus.segmentation("de").vocabulary)
    draw = random.Random(4)
    return [[*draw.choices(range(4, units), k=draw.randint(0, 9)), EOS] for _ in range(count)]


def search(engine, sources, best=1):
    return engine.search(sources, np.array(list(map(len, sources))), best)


@pytest.mark.parametrize("shape", [{}, {"norm": "pre", "positional_encoding": "learned"}], ids=str)
@pytest.mark.parametrize("beam", [1, 4])
def test_it_finds_what_our_search_finds(corpus, shape, beam):
    made = model(corpus, **shape)
    settings = {"beam": beam, "max_len_b": 6, "kind": "length"}
    sources = sentences(corpus, 60)
    expected = search(create_engine(made, corpus, systems.decode(**settings)), sources)
    engine = create_engine(made, corpus, systems.decode(**settings, engine="ctranslate2"))
    assert isinstance(engine, CTranslate2Engine)
    found = search(engine, sources)
    # an output that reaches its limit breaks off in one, and is ended in the other
    limits = [len(source) + 6 for source in sources]
    whole = [
        (ours, theirs)
        for (ours,), (theirs,), limit in zip(expected, found, limits, strict=True)
        if max(len(ours.tokens), len(theirs.tokens)) + 1 < limit
    ]
    assert len(whole) > 10
    assert [theirs.tokens for _, theirs in whole] == [ours.tokens for ours, _ in whole]
    for ours, theirs in whole:
        assert theirs.score == pytest.approx(ours.score, abs=1e-3)
        assert theirs.log_prob == pytest.approx(ours.log_prob, abs=1e-3)


@pytest.mark.parametrize("penalty", ["gnmt", "length"])
def test_scores_are_those_of_our_penalty(corpus, penalty):
    made = model(corpus)
    decode = systems.decode(beam=4, kind=penalty, alpha=1.0, engine="ctranslate2")
    sources = [source for source in sentences(corpus, 30) if len(source) > 1]
    found = search(CTranslate2Engine(made, corpus, decode), sources, best=3)
    for source, outputs in zip(sources, found, strict=True):
        assert len(outputs) == 3
        assert [one.score for one in outputs] == sorted((o.score for o in outputs), reverse=True)
        ended = [one for one in outputs if len(one.tokens) + 1 < len(source) + decode.max_len_b]
        targets = [[*one.tokens, EOS] for one in ended]
        logs = token_log_probs(made, [source] * len(ended), targets)
        for one, each in zip(ended, logs, strict=True):
            assert one.log_prob == pytest.approx(sum(each), abs=2e-3)
            penalised = one.log_prob / length_penalty(len(one.tokens) + 1, decode)
            assert one.score == pytest.approx(penalised)


@pytest.mark.parametrize("penalty", ["gnmt", "length"])
def test_outputs_that_reach_their_limit_have_their_ends(corpus, penalty):
    """CTranslate2 cuts them off without EOS; the engine adds it, as our search does."""
    made, sources = model(corpus), sentences(corpus, 40)
    with torch.no_grad():
        made.projection.bias[EOS] = -5.0  # nothing ends by itself
    settings = {"beam": 3, "max_len_a": 0.5, "max_len_b": 0, "kind": penalty}
    expected = search(TorchEngine(made, systems.decode(**settings)), sources)
    decode = systems.decode(**settings, engine="ctranslate2")
    found = search(CTranslate2Engine(made, corpus, decode), sources)
    limits = [(len(source) - 1) // 2 for source in sources]
    assert [len(best.tokens) for (best,) in found] == limits
    assert 0 in limits and max(limits) > 2
    for source, (best,) in zip(sources, found, strict=True):
        assert best.is_cut == (len(source) > 1)
    with torch.no_grad():
        made.projection.bias[EOS] = 50.0  # everything ends by itself, also at its limit
    ended = search(CTranslate2Engine(made, corpus, decode), sources)
    assert not any(best.is_cut for (best,) in ended)
    for (ours,), (theirs,) in zip(expected, found, strict=True):
        if ours.tokens == theirs.tokens:
            assert theirs.log_prob == pytest.approx(ours.log_prob, abs=1e-3)
            assert theirs.score == pytest.approx(ours.score, abs=1e-3)
    assert sum(o.tokens == t.tokens for (o,), (t,) in zip(expected, found, strict=True)) > 20


def test_a_broken_model_is_told(corpus):
    made = model(corpus)
    with torch.no_grad():
        made.decoder[0].feed_forward_residual.norm.weight.fill_(torch.inf)
    with pytest.raises(UserError, match="are NaN"):
        search(create_engine(made, corpus, systems.decode()), [[5, 6, EOS]])


def test_a_beam_wider_than_the_vocabulary_is_refused(corpus):
    made = model(corpus)
    units = made.projection.out_features
    for engine in ("pytorch", "ctranslate2"):
        create_engine(made, corpus, systems.decode(beam=units, engine=engine))
        with pytest.raises(UserError, match=f"a beam of {units + 1} is wider than the vocabulary"):
            create_engine(made, corpus, systems.decode(beam=units + 1, engine=engine))


def test_without_ctranslate2_it_says_what_to_install(corpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError, match="pip install ctranslate2"):
        create_engine(model(corpus), corpus, systems.decode(engine="ctranslate2"))


def weights_that_cannot_saturate(made):
    """Change a model's weights so that int8 gives equal outputs with and without VNNI.

    Processors without VNNI add two neighboring products in 16 bits, which hold up to 32,767. An
    activation is at most 255 there, and the largest weight of each row becomes 127. With all others
    at most half as large, two products are at most 2 * 255 * 64 = 32,640. The largest weight is
    multiplied and added to 0: 255 * 127 = 32,385.
    """
    with torch.no_grad():
        for weight in made.parameters():
            if weight.dim() == 2:
                largest_of_others = weight[:, 2:].abs().amax(dim=1)
                weight[:, 0] = 2 * largest_of_others * weight[:, 0].sign()
                weight[:, 1] = 0.0
    return made


def test_int8_is_near_float32_and_rounded(corpus):
    made = weights_that_cannot_saturate(model(corpus))
    sources = sentences(corpus, 60)
    found = {}
    for precision in ("float32", "int8"):
        settings = systems.decode(beam=1, engine="ctranslate2", precision=precision)
        outputs = search(create_engine(made, corpus, settings), sources)
        found[precision] = [best for (best,) in outputs]
    exact, rounded = found["float32"], found["int8"]
    assert [one.score for one in exact] != [one.score for one in rounded]
    same_first_token = 0
    for one, other in zip(exact, rounded, strict=True):
        same_first_token += one.tokens[:1] == other.tokens[:1]
    # 56 with and without VNNI, by MKL and by oneDNN; outputs of other sources share 11.
    assert same_first_token > 50
