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

SOURCE, TARGET = (Vocabulary([(f"{side}{i}", 1) for i in range(26)]) for side in "st")


def model(**shape):
    torch.manual_seed(3)
    made = Transformer(systems.model(**shape), 30, 30).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            # far from even probabilities, and no bias or norm as it was made
            parameter.mul_(2).add_(torch.randn_like(parameter), alpha=0.05)
    return made


def pairs(count):
    draw = random.Random(1)
    sides = [
        [[*draw.choices(range(3, 30), k=draw.randint(1, 12)), EOS] for _ in range(count)]
        for _ in range(2)
    ]
    return sides[0], sides[1]


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"norm": "pre", "activation": "gelu"},
        {"positional_encoding": "learned", "max_positions": 20, "output_bias": True},
        {"encoder_layers": 3, "decoder_layers": 2, "bias": False},
        {"positional_encoding": "none", "scale_embeddings": False},
        {"normalization": "rms", "norm": "pre"},
        {"normalization": "rms"},
        {"activation": "swiglu"},
        {"scale_attention": False},
        {"positional_encoding": "rotary"},
        {"norm": "pre", "tie_embeddings": "none", "heads": 2, "d_k": 16, "d_v": 16},
    ],
    ids=str,
)
def test_probabilities_are_ours(tmp_path, shape):
    made = model(**shape)
    convert(made, (SOURCE, TARGET), tmp_path / "model")
    sources, targets = pairs(30)
    engine = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")
    found = engine.score_batch(
        [SOURCE.decode(ids) for ids in sources], [TARGET.decode(ids) for ids in targets]
    )
    expected = token_log_probs(made, sources, targets)
    for scored, logs in zip(found, expected, strict=True):
        assert scored.log_probs == pytest.approx(logs, abs=5e-4)


def test_no_output_holds_padding_or_a_beginning(tmp_path):
    made = model(output_bias=True)
    with torch.no_grad():
        made.projection.bias[[PAD, BOS]] = 100.0
    convert(made, (SOURCE, TARGET), tmp_path / "model")
    engine = ctranslate2.Translator(str(tmp_path / "model"))
    outputs = engine.translate_batch([["s1", "s2"]], beam_size=4, num_hypotheses=4)[0].hypotheses
    assert not {"<pad>", "<s>"} & {unit for units in outputs for unit in units}


def test_int8_is_smaller_and_near(tmp_path):
    made = model(d_model=64, heads=4, d_k=16, d_v=16)
    for precision in ("float32", "int8"):
        convert(made, (SOURCE, TARGET), tmp_path / precision, precision)
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("float32", "int8")]
    assert sizes[1] < 0.6 * sizes[0]  # positions and norms stay as they are


def test_a_shape_that_it_does_not_know_is_refused(tmp_path):
    with pytest.raises(UserError, match="d_k and d_v of d_model / heads only"):
        convert(model(d_k=4), (SOURCE, TARGET), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_activation_that_it_does_not_know_is_refused(tmp_path):
    made = model()
    made.settings = dataclasses.replace(made.settings, activation="squared_relu")
    expected = "model.activation squared_relu; it supports relu, gelu, swiglu"
    with pytest.raises(UserError, match=expected):
        convert(made, (SOURCE, TARGET), tmp_path / "model")
