"""Parameter counts as papers and courses print them, and initial weights."""

import math

import pytest
import torch

import systems
from bleuprint.model.transformer import Transformer, count_parameters
from models import model_of


@pytest.mark.parametrize(("tie", "copies"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_tied_weights_are_counted_once(tie, copies):
    model = model_of(tie_embeddings=tie)
    attention = 4 * 16 * 16 + 4 * 16
    feed_forward = 2 * 16 * 24 + 24 + 16
    encoder = attention + feed_forward + 2 * 32
    decoder = 2 * attention + feed_forward + 3 * 32
    assert count_parameters(model) == copies * 11 * 16 + 2 * encoder + 3 * decoder


def test_biases_are_counted_where_they_are():
    # encoder: joint matrix and output 4 x 16, inner 24, outer 16; decoder: 4 x 16 more
    biases = 2 * (64 + 24 + 16) + 3 * (128 + 24 + 16)
    with_biases = count_parameters(model_of())
    assert count_parameters(model_of(bias=False)) == with_biases - biases
    assert count_parameters(model_of(target=13, output_bias=True)) == with_biases + 2 * 32 + 13


WIDE = {
    "d_model": 64,
    "d_ff": 96,
    "heads": 4,
    "d_k": 8,
    "d_v": 24,
    "positional_encoding": "learned",
}
SMALL = math.sqrt(2 / (5 * 64))


def matrices(model):
    """Every matrix by name; of attention's joint ones query, key and value apart."""
    found = {}
    for name, parameter in model.named_parameters():
        if name.endswith("attention.in_proj.weight"):
            parts = parameter[:32], parameter[32:64], parameter[64:]
            found |= {f"{name}.{part}": matrix for part, matrix in enumerate(parts)}
        elif parameter.dim() == 2:
            found[name] = parameter
    return found


@pytest.mark.parametrize("by", ["xavier", "scaled", "small"])
def test_initialisations_have_the_deviations_they_say(by):
    model = model_of(90, 70, init=by, max_positions=50, output_bias=True, **WIDE)
    found = matrices(model)
    assert len(found) == 5 + 2 * 6 + 3 * 10
    for name, matrix in found.items():
        layer, count = name.startswith(("encoder", "decoder")), matrix.numel()
        if by == "xavier" or (by == "scaled" and layer):
            bound = math.sqrt(6 / sum(matrix.shape))
            assert bound * (1 - 20 / count) < matrix.abs().max() <= bound, name
            deviation, spread = bound / math.sqrt(3), 0.45  # of a variance's estimate, x sqrt(n)
        else:
            deviation, spread = (SMALL if layer else 64**-0.5), 0.71
            assert matrix.abs().max() > 2.5 * deviation, name  # not uniform
        assert abs(matrix.std() / deviation - 1) < 5 * spread / math.sqrt(count), name
        assert abs(matrix.mean()) < 5 * deviation / math.sqrt(count), name
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            expected = torch.zeros_like if name.endswith("bias") else torch.ones_like
            assert torch.equal(parameter, expected(parameter)), name


@pytest.mark.parametrize(
    ("d_model", "in_layers", "of_embeddings"),
    # (2 / (5 d_model))^0.5 and d_model^-0.5
    [(40, 0.1, 0.158114), (160, 0.05, 0.079057)],
)
def test_small_weights_are_smaller_in_a_wider_model(d_model, in_layers, of_embeddings):
    model = model_of(300, 300, init="small", d_model=d_model, d_ff=300)
    for weight, deviation in (
        (model.encoder[0].feed_forward.fc1.weight, in_layers),
        (model.decoder[2].feed_forward.fc2.weight, in_layers),
        (model.source_embedding.weight, of_embeddings),
    ):
        error = 0.71 / math.sqrt(weight.numel())  # of the estimate, as a share
        assert weight.std().item() == pytest.approx(deviation, rel=5 * error)


def test_scaled_weights_are_those_of_earlier_versions():
    """Weights recorded when this was the only initialization, of seed 3."""
    model = model_of(tie_embeddings="all").float()
    layer = model.encoder[0].self_attention.in_proj.weight
    recorded = [
        (layer[0, :2], [-0.2284114807844162, 0.4100283980369568]),
        (layer[47, :2], [0.13060085475444794, 0.3219335675239563]),
        (model.target_embedding.weight[2, :2], [0.2510867714881897, 0.13606323301792145]),
        (model.decoder[2].feed_forward.fc2.weight[-1, -2:], [0.3130665123, 0.349132776260376]),
    ]
    for weights, expected in recorded:
        assert weights.tolist() == pytest.approx(expected, rel=1e-5)


def test_the_course_notebook_has_as_many_parameters_as_it_prints():
    """The notebook of the Multi30k course: "The model has 9,233,200 trainable parameters"."""
    shape = systems.model(
        encoder_layers=3,
        decoder_layers=3,
        d_model=256,
        d_ff=512,
        heads=8,
        d_k=32,
        d_v=32,
        positional_encoding="learned",
        max_positions=100,
        output_bias=True,
        tie_embeddings="none",
    )
    with torch.device("meta"):
        model = Transformer(shape, 8015, 6192)
    assert count_parameters(model) == 9_233_200


def weight_names(stack, layer_count, modules):
    """The names of the weights and biases of a stack's layers."""
    return {
        f"{stack}.{layer}.{module}.{kind}"
        for layer in range(layer_count)
        for module in modules
        for kind in ("weight", "bias")
    }


def test_names_of_weights_stay():
    """Stored models still load: new settings may add weights but rename none."""
    feed_forward = ["feed_forward.fc1", "feed_forward.fc2", "feed_forward_residual.norm"]
    own = ["self_attention.in_proj", "self_attention.out_proj", "self_attention_residual.norm"]
    cross = ["cross_attention.in_proj", "cross_attention.out_proj", "cross_attention_residual.norm"]
    expected = {"source_embedding.weight", "target_embedding.weight", "projection.weight"}
    expected |= weight_names("encoder", 2, own + feed_forward)
    expected |= weight_names("decoder", 3, own + cross + feed_forward)
    assert set(model_of().state_dict()) == expected

    learned = model_of(positional_encoding="learned", output_bias=True, norm="pre")
    added = {"projection.bias", "source_positions.weight", "target_positions.weight"}
    for norm in ("encoder_norm", "decoder_norm"):
        added |= {f"{norm}.weight", f"{norm}.bias"}
    assert set(learned.state_dict()) == expected | added
