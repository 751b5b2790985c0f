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
from bleuprint.serving.attention_html import visible_token
from prepared import prepare
from trainings import toy_pairs

# Characters missing in fonts, right-to-left text, combining characters, markup.
UNUSUAL_TOKENS = [
    "中文",
    "مرحبا",
    "👍🏽",
    "$\\x$",
    "e@@",
    "\u0301a",
    "\x01",
    "\u202eabc",
    "<b>&",
    '"',
    "</s>",
]

# A source sentence of the toy corpus and its translation, without EOS.
SOURCE_IDS = [7, 5, 6, 9, EOS]
TARGET_IDS = [8, 4, 10]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A binarized toy corpus from German to English."""
    sets = {"train": toy_pairs(100, 1), "valid": toy_pairs(9, 2)}
    return prepare(tmp_path_factory.mktemp("corpus"), sets).binary


@pytest.fixture(scope="module")
def model(corpus):
    """An untrained model with 2 encoder layers, 3 decoder layers and 4 heads."""
    torch.manual_seed(3)
    settings = systems.model(encoder_layers=2, decoder_layers=3, tie_embeddings="none")
    source_size = len(corpus.segmentation("de").vocabulary)
    target_size = len(corpus.segmentation("en").vocabulary)
    return Transformer(settings, source_size, target_size).eval()


@pytest.fixture(scope="module")
def maps(corpus, model):
    """The attention maps of the sentence SOURCE_IDS and its translation TARGET_IDS."""
    return compute_attention_maps(model, corpus, SOURCE_IDS, TARGET_IDS)


def test_rows_and_columns_of_attention_maps_are_the_tokens(corpus, maps):
    """`maps` are the attention maps of the sentence SOURCE_IDS and its translation TARGET_IDS.

    A row is the token that attends, a column the token attended to. The decoder reads BOS and the
    tokens before the one that it writes.
    """
    source_tokens = [*corpus.segmentation("de").vocabulary.decode(SOURCE_IDS), SPECIALS[EOS]]
    target_tokens = [*corpus.segmentation("en").vocabulary.decode(TARGET_IDS), SPECIALS[EOS]]

    assert list(maps) == list(ATTENTION_KINDS)
    assert maps["cross"].rows == target_tokens
    assert maps["cross"].columns == source_tokens
    assert maps["encoder"].rows == source_tokens
    assert maps["encoder"].columns == source_tokens
    assert maps["decoder"].rows == target_tokens
    assert maps["decoder"].columns == [SPECIALS[BOS], *target_tokens[:-1]]


@pytest.mark.parametrize(
    ("kind", "layers", "rows", "columns"),
    [("cross", 3, 4, 5), ("encoder", 2, 5, 5), ("decoder", 3, 4, 4)],
)
def test_attention_maps_contain_each_layer_and_head(maps, kind, layers, rows, columns):
    """The source has 5 tokens and the translation 4, EOS included."""
    heads = 4

    assert maps[kind].weights.shape == (layers, heads, rows, columns)


@pytest.mark.parametrize("kind", ATTENTION_KINDS)
def test_the_attention_weights_of_a_token_sum_to_1(maps, kind):
    sums = maps[kind].weights.sum(-1)

    assert sums == pytest.approx(np.ones(sums.shape), abs=1e-5)


def test_the_decoder_does_not_attend_to_later_tokens(maps):
    above_the_diagonal = np.triu(maps["decoder"].weights, 1)

    assert not above_the_diagonal.any()


def test_the_encoder_attends_to_all_tokens(maps):
    assert maps["encoder"].weights.all()


def test_the_attention_of_a_token_depends_only_on_the_tokens_before_it(corpus, model, maps):
    """The decoder computes a row of the map before it knows the row's token.

    The translation is 8, 4, 10 in `maps`. Another second token changes only the third row.
    """
    other_second_token = [8, 11, 10]
    weights = maps["cross"].weights

    other_maps = compute_attention_maps(model, corpus, SOURCE_IDS, other_second_token)

    other_weights = other_maps["cross"].weights
    assert other_weights[:, :, :2] == pytest.approx(weights[:, :, :2], abs=1e-6)
    assert not np.allclose(other_weights[:, :, 2], weights[:, :, 2], atol=1e-6)


def test_stored_attention_takes_a_byte_for_each_weight():
    """Weights of 11 unusual tokens, the rows, to 3 columns are stored as text (base64) in JSON."""
    layers = 2
    heads = 3
    columns = ["a", "b", "c"]
    weights = np.zeros((layers, heads, len(UNUSUAL_TOKENS), len(columns)), np.float32)

    stored = AttentionMap(UNUSUAL_TOKENS, columns, weights).as_json()

    byte_count = len(base64.b64decode(stored["weights"]))
    assert byte_count == layers * heads * len(UNUSUAL_TOKENS) * len(columns)


def test_attention_weights_from_0_to_1_are_stored_as_bytes_from_0_to_255():
    """A byte is 255 times the weight, rounded."""
    weights = np.array([[[[0, 1, 0.5]]]], np.float32)

    stored = AttentionMap(["row"], ["x", "y", "z"], weights).as_json()

    assert stored["layers"] == 1
    assert stored["heads"] == 1
    # Half of 255, 127.5, is rounded to the even number.
    assert base64.b64decode(stored["weights"]) == bytes([0, 255, 128])


def test_stored_attention_is_read_back_with_the_precision_of_a_byte(tmp_path):
    """Rounding to one of 256 values from 0 to 1 changes a weight by half a step at most.

    The tokens of the rows are in other scripts, emoji, control characters and markup.
    """
    columns = ["a", "b", "c"]
    random_weights = np.random.default_rng(1).dirichlet([0.3] * 3, (2, 3, len(UNUSUAL_TOKENS)))
    attention_map = AttentionMap(UNUSUAL_TOKENS, columns, random_weights.astype(np.float32))
    sentence = SentenceAttention(3, dict.fromkeys(ATTENTION_KINDS, attention_map))
    path = tmp_path / "attention.json"

    write_attention(path, {"one": [sentence], "two": []})
    (stored_sentence,) = read_attention(path, "one")

    half_a_step = 1 / 255 / 2
    assert stored_sentence.line == 3
    assert list(stored_sentence.maps) == list(ATTENTION_KINDS)
    for stored_map in stored_sentence.maps.values():
        assert stored_map.rows == UNUSUAL_TOKENS
        assert stored_map.columns == columns
        assert stored_map.weights == pytest.approx(attention_map.weights, abs=half_a_step + 1e-6)
    assert read_attention(path, "two") == []


@pytest.mark.parametrize(
    ("token_counts", "selected"),
    [
        pytest.param([5, 6, 20, 14, 7], [1, 3], id="the first two of 6 to 14 tokens"),
        pytest.param(
            [5, 15, 10, 3],
            [0, 2],
            id="10 tokens fit; 5 and 15 are equally near, and 5 comes first",
        ),
        pytest.param([0, 41, 40, 0], [2], id="neither empty sentences nor more than 40 tokens"),
        pytest.param([0, 0], [], id="empty sentences only"),
        pytest.param([], [], id="no sentences"),
    ],
)
def test_attention_is_shown_for_two_sentences_of_6_to_14_tokens_or_the_nearest_length(
    token_counts, selected
):
    """The report shows the attention of two sentences; without any of 6 to 14 tokens, the nearest.

    `selected` are their positions, from 0.
    """
    lengths_with_eos = np.array(token_counts, np.int64) + 1

    assert select_sentences(lengths_with_eos) == selected


@pytest.mark.parametrize("token", UNUSUAL_TOKENS)
def test_a_token_is_shown_so_that_it_can_stand_alone(token):
    """Control characters are invisible, and a combining accent needs something to stand on."""
    replacements = {"\x01": "\ufffd", "\u0301a": "◌\u0301a"}

    assert visible_token(token) == replacements.get(token, token)
