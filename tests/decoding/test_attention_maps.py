"""Attention maps: the weights that the model uses."""

import base64

import numpy as np
import pytest
import torch

import systems
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, SPECIALS
from bleuprint.decoding.attention_maps import (
    ATTENTION_KINDS,
    AttentionMap,
    SentenceAttention,
    compute_attention_maps,
    read_attention,
    select_sentences,
    write_attention,
)
from bleuprint.model.transformer import Transformer
from bleuprint.serving.attention_html import printable
from prepared import prepare
from trainings import toy_pairs

# Characters missing in fonts, right-to-left text, combining characters, markup.
ODD = ["中文", "مرحبا", "👍🏽", "$\\x$", "e@@", "\u0301a", "\x01", "\u202eabc", "<b>&", '"', "</s>"]


def test_maps_are_what_is_read_to_write_each_token(tmp_path):
    torch.manual_seed(3)
    corpus = prepare(tmp_path, {"train": toy_pairs(100, 1), "valid": toy_pairs(9, 2)}).binary
    source, target = (corpus.segmentation(side).vocabulary for side in ("de", "en"))
    shape = systems.model(encoder_layers=2, decoder_layers=3, tie_embeddings="none")
    model = Transformer(shape, len(source), len(target)).eval()
    ids, words = [7, 5, 6, 9, EOS], [8, 4, 10]
    maps = compute_attention_maps(model, corpus, ids, words)
    assert list(maps) == list(ATTENTION_KINDS)
    cross, encoder, decoder = (maps[kind] for kind in ("cross", "encoder", "decoder"))
    assert cross.rows == decoder.rows == [*target.decode(words), SPECIALS[EOS]]
    assert cross.columns == encoder.rows == encoder.columns == [*source.decode(ids), SPECIALS[EOS]]
    assert decoder.columns == [SPECIALS[BOS], *decoder.rows[:-1]]
    shapes = [maps[kind].weights.shape for kind in ("cross", "encoder", "decoder")]
    assert shapes == [(3, 4, 4, 5), (2, 4, 5, 5), (3, 4, 4, 4)]
    for one in maps.values():
        assert one.weights.sum(-1) == pytest.approx(np.ones(one.weights.shape[:3]), abs=1e-5)
    assert not np.triu(decoder.weights, 1).any() and encoder.weights.all()
    # a token is written before it is known: its own row does not depend on it, the next one does
    other = compute_attention_maps(model, corpus, ids, [8, 11, 10])["cross"].weights
    assert other[:, :, :2] == pytest.approx(cross.weights[:, :, :2], abs=1e-6)
    assert not np.allclose(other[:, :, 2], cross.weights[:, :, 2], atol=1e-6)


def test_kept_maps_are_a_byte_a_weight(tmp_path):
    drawn = np.random.default_rng(1).dirichlet([0.3] * 3, (2, 3, len(ODD)))
    made = AttentionMap(ODD, ["a", "b", "c"], drawn.astype(np.float32))
    entry = made.as_json()
    assert len(base64.b64decode(entry["weights"])) == 2 * 3 * len(ODD) * 3
    weights = np.array([[[[0, 1, 0.5]]]], np.float32)
    # 127.5 is rounded to the even one
    exact = AttentionMap(["r"], ["x", "y", "z"], weights).as_json()
    assert (exact["layers"], exact["heads"]) == (1, 1)
    assert base64.b64decode(exact["weights"]) == bytes([0, 255, 128])
    path = tmp_path / "attention.json"
    sentence = SentenceAttention(3, dict.fromkeys(ATTENTION_KINDS, made))
    write_attention(path, {"one": [sentence], "two": []})
    (read,) = read_attention(path, "one")
    assert read.line == 3 and list(read.maps) == list(ATTENTION_KINDS)
    for one in read.maps.values():
        assert (one.rows, one.columns) == (ODD, ["a", "b", "c"])
        assert one.weights == pytest.approx(made.weights, abs=1 / 510 + 1e-6)
    assert read_attention(path, "two") == []


@pytest.mark.parametrize(
    ("units", "kept"),
    [
        ([5, 6, 20, 14, 7], [1, 3]),  # the first two of 6 to 14
        ([5, 15, 10, 3], [0, 2]),  # one, and the nearest: 5 is as far as 15, and comes first
        ([0, 41, 40, 0], [2]),  # neither an empty one nor one that fills a page
        ([0, 0], []),
        ([], []),
    ],
)
def test_all_systems_keep_the_same_sentences(units, kept):
    assert select_sentences(np.array(units, np.int64) + 1) == kept


def test_every_token_can_be_shown_alone():
    changed = {"\x01": "\ufffd", "\u0301a": "◌\u0301a"}
    assert [printable(token) for token in ODD] == [changed.get(token, token) for token in ODD]
