"""Models converted for CTranslate2 give each token the probability that the original gives it."""

import dataclasses
import random

import ctranslate2
import pytest
import torch

import systems
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, Vocabulary
from bleuprint.decoding.ctranslate2_convert import convert
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError

# 26 words and 4 special tokens.
VOCABULARY_SIZE = 30
SOURCE_VOCABULARY = Vocabulary([(f"s{number}", 1) for number in range(26)])
TARGET_VOCABULARY = Vocabulary([(f"t{number}", 1) for number in range(26)])
VOCABULARIES = (SOURCE_VOCABULARY, TARGET_VOCABULARY)


def random_model(**settings):
    """Make a model with these settings and random weights."""
    torch.manual_seed(3)
    model = Transformer(systems.model(**settings), VOCABULARY_SIZE, VOCABULARY_SIZE).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Twice as large, so that probabilities differ. Biases and norms start as 0 and 1; the
            # noise lets a conversion that ignores them fail.
            parameter.mul_(2).add_(torch.randn_like(parameter), alpha=0.05)
    return model


def random_sentences(rng, count):
    """Return the token ids of sentences of 1 to 12 words, each with EOS."""
    sentences = []
    for _ in range(count):
        length = rng.randint(1, 12)
        words = rng.choices(range(3, VOCABULARY_SIZE), k=length)
        sentences.append([*words, EOS])
    return sentences


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="default"),
        pytest.param({"norm": "pre", "activation": "gelu"}, id="pre norm, gelu"),
        pytest.param(
            {"positional_encoding": "learned", "max_positions": 20, "output_bias": True},
            id="learned positions, output bias",
        ),
        pytest.param(
            {"encoder_layers": 3, "decoder_layers": 2, "bias": False},
            id="three and two layers, no biases",
        ),
        pytest.param(
            {"positional_encoding": "none", "scale_embeddings": False},
            id="no positions, unscaled embeddings",
        ),
        pytest.param({"normalization": "rms", "norm": "pre"}, id="rms before each block"),
        pytest.param({"normalization": "rms"}, id="rms after each block"),
        pytest.param({"activation": "swiglu"}, id="swiglu"),
        pytest.param({"activation": "silu"}, id="silu"),
        pytest.param({"scale_attention": False}, id="unscaled attention"),
        pytest.param({"positional_encoding": "rotary"}, id="rotary positions"),
        pytest.param(
            {"norm": "pre", "tie_embeddings": "none", "heads": 2, "d_k": 16, "d_v": 16},
            id="separate embeddings, keys and values of 16",
        ),
    ],
)
def test_ctranslate2_gives_each_token_the_log_probability_of_the_original_model(tmp_path, settings):
    """A random model is converted to CTranslate2, and both score 30 random translations.

    If this fails for some settings, an exported model translates worse than the trained one.
    """
    model = random_model(**settings)
    rng = random.Random(1)
    sources = random_sentences(rng, 30)
    targets = random_sentences(rng, 30)

    convert(model, VOCABULARIES, tmp_path / "model")
    translator = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")
    results = translator.score_batch(
        [SOURCE_VOCABULARY.decode(token_ids) for token_ids in sources],
        [TARGET_VOCABULARY.decode(token_ids) for token_ids in targets],
    )

    expected = token_log_probs(model, sources, targets)
    for result, log_probs in zip(results, expected, strict=True):
        assert result.log_probs == pytest.approx(log_probs, abs=5e-4)


def test_a_converted_model_never_outputs_pad_or_bos(tmp_path):
    """These tokens do not occur in text: our search excludes them, and so must CTranslate2's."""
    model = random_model(output_bias=True)
    with torch.no_grad():
        # By their logits these two tokens would be the likeliest.
        model.projection.bias[[PAD, BOS]] = 100.0

    convert(model, VOCABULARIES, tmp_path / "model")
    translator = ctranslate2.Translator(str(tmp_path / "model"))
    (result,) = translator.translate_batch([["s1", "s2"]], beam_size=4, num_hypotheses=4)

    for tokens in result.hypotheses:
        assert not {"<pad>", "<s>"} & set(tokens)


def test_an_int8_model_takes_less_than_0_6_times_the_bytes_of_a_float32_model(tmp_path):
    """It is not a quarter, since positions and norms stay in float32."""
    model = random_model(d_model=64, heads=4, d_k=16, d_v=16)

    convert(model, VOCABULARIES, tmp_path / "float32", "float32")
    convert(model, VOCABULARIES, tmp_path / "int8", "int8")

    float32_bytes = (tmp_path / "float32" / "model.bin").stat().st_size
    int8_bytes = (tmp_path / "int8" / "model.bin").stat().st_size
    assert int8_bytes < 0.6 * float32_bytes


def test_a_model_whose_d_k_is_not_d_model_divided_by_heads_is_not_converted(tmp_path):
    with pytest.raises(UserError, match=r"d_k and model\.d_v to be d_model"):
        convert(random_model(d_k=4), VOCABULARIES, tmp_path / "model")

    assert not (tmp_path / "model").exists()


def test_a_model_with_an_activation_that_ctranslate2_lacks_is_refused(tmp_path):
    """CTranslate2 has no squared ReLU."""
    model = random_model()
    model.settings = dataclasses.replace(model.settings, activation="squared_relu")

    expected = r"model\.activation squared_relu\. It supports: relu, gelu, silu, swiglu$"
    with pytest.raises(UserError, match=expected):
        convert(model, VOCABULARIES, tmp_path / "model")
