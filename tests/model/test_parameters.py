"""Parameter counts as papers and courses print them, and initial weights."""

import math

import pytest
import torch

import systems
from bleuprint.model.transformer import Transformer, count_parameters
from models import model_of


@pytest.mark.parametrize(
    ("tie_embeddings", "matrices_of_the_vocabulary"),
    [
        pytest.param("all", 1, id="source, target and projection share one"),
        pytest.param("decoder", 2, id="target and projection share one"),
        pytest.param("none", 3, id="each has its own"),
    ],
)
def test_tied_weights_are_counted_once(tie_embeddings, matrices_of_the_vocabulary):
    """The expected number is computed by hand for two encoder layers and three decoder layers."""
    model = model_of(tie_embeddings=tie_embeddings)

    d_model = 16
    d_ff = 24
    vocabulary_size = 11
    norm = 2 * d_model  # weight and bias
    attention = 4 * d_model * d_model + 4 * d_model  # query, key, value, output, and their biases
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    vocabulary = matrices_of_the_vocabulary * vocabulary_size * d_model
    assert count_parameters(model) == vocabulary + 2 * encoder_layer + 3 * decoder_layer


def test_bias_false_removes_the_biases_of_attention_and_feed_forward():
    """The model has width 16, 24 inner units, two encoder layers and three decoder layers."""
    parameters_with_biases = count_parameters(model_of(bias=True))
    parameters_without_biases = count_parameters(model_of(bias=False))

    attention_biases = 4 * 16  # of queries, keys, values and outputs
    feed_forward_biases = 24 + 16  # of inner and of outer units
    encoder_biases = 2 * (attention_biases + feed_forward_biases)
    # A decoder layer has self-attention and cross-attention.
    decoder_biases = 3 * (2 * attention_biases + feed_forward_biases)
    assert parameters_with_biases - parameters_without_biases == encoder_biases + decoder_biases


def test_an_output_bias_adds_a_parameter_per_target_token():
    parameters_without_bias = count_parameters(model_of(target=13))

    assert count_parameters(model_of(target=13, output_bias=True)) == parameters_without_bias + 13


def test_two_more_target_tokens_add_two_embeddings_and_two_rows_of_the_projection():
    parameters = count_parameters(model_of())

    assert count_parameters(model_of(target=13)) == parameters + 2 * (2 * 16)


# A model in which all kinds of matrices have different shapes.
WIDE_SETTINGS = {
    "d_model": 64,
    "d_ff": 96,
    "heads": 4,
    "d_k": 8,
    "d_v": 24,
    "positional_encoding": "learned",
    "max_positions": 50,
    "output_bias": True,
}


def wide_model(init):
    """Return a wide model with an initialization, `xavier`, `scaled` or `small`."""
    return model_of(90, 70, init=init, **WIDE_SETTINGS)


def matrices_by_name(model):
    """Return every matrix by name; of attention's joint matrix query, key and value apart."""
    matrices = {}
    for name, parameter in model.named_parameters():
        if name.endswith("attention.in_proj.weight"):
            # Queries and keys of 4 heads have width 8, values width 24.
            query, key, value = parameter.split([32, 32, 96])
            matrices[f"{name}.query"] = query
            matrices[f"{name}.key"] = key
            matrices[f"{name}.value"] = value
        elif parameter.dim() == 2:
            matrices[name] = parameter
    # Embeddings and positions of both sides, and the projection; an encoder layer has 3 + 1
    # matrices of attention and 2 of the feed-forward network, a decoder layer 4 more.
    assert len(matrices) == 5 + 2 * 6 + 3 * 10
    return matrices


def is_in_a_layer(name):
    """Return whether a matrix is in a layer, not an embedding or the projection."""
    return name.startswith(("encoder", "decoder"))


def assert_deviation(name, matrix, expected_deviation, error_of_one_number):
    """Fail unless mean and standard deviation of a matrix are what its distribution says.

    Args:
        name: The name of the matrix, for messages.
        matrix: The matrix.
        expected_deviation: The standard deviation of the distribution; its mean is 0.
        error_of_one_number: The relative error of a standard deviation that is estimated from n
            numbers, times the root of n: 0.71 for a normal distribution, 0.45 for a uniform one.
    """
    root_of_count = math.sqrt(matrix.numel())
    relative_error = error_of_one_number / root_of_count
    assert abs(matrix.std() / expected_deviation - 1) < 5 * relative_error, name
    assert abs(matrix.mean()) < 5 * expected_deviation / root_of_count, name


def assert_xavier_uniform(name, matrix):
    """Fail unless a matrix looks drawn from Xavier's uniform distribution for its shape."""
    bound = math.sqrt(6 / sum(matrix.shape))
    lowest_maximum = bound * (1 - 20 / matrix.numel())
    assert lowest_maximum < matrix.abs().max() <= bound, name
    assert_deviation(name, matrix, bound / math.sqrt(3), 0.45)


def assert_normal(name, matrix, deviation):
    """Fail unless a matrix looks drawn from a normal distribution."""
    # No uniform distribution with this deviation has a number as large as that.
    assert matrix.abs().max() > 2.5 * deviation, name
    assert_deviation(name, matrix, deviation, 0.71)


def test_xavier_draws_all_matrices_from_uniform_distributions():
    for name, matrix in matrices_by_name(wide_model("xavier")).items():
        assert_xavier_uniform(name, matrix)


def test_scaled_draws_embeddings_by_the_width_of_the_model_and_the_rest_like_xavier():
    """The model has width 64. Embeddings and projection have the deviation 64^-0.5."""
    for name, matrix in matrices_by_name(wide_model("scaled")).items():
        if is_in_a_layer(name):
            assert_xavier_uniform(name, matrix)
        else:
            assert_normal(name, matrix, 64**-0.5)


def test_small_draws_layers_with_a_smaller_deviation_than_embeddings():
    """Nguyen and Salazar 2019: the deviation of layers is the root of 2 / (5 d_model).

    The model has width 64. Embeddings and projection have the deviation 64^-0.5.
    """
    for name, matrix in matrices_by_name(wide_model("small")).items():
        if is_in_a_layer(name):
            assert_normal(name, matrix, math.sqrt(2 / (5 * 64)))
        else:
            assert_normal(name, matrix, 64**-0.5)


@pytest.mark.parametrize("init", ["xavier", "scaled", "small"])
def test_biases_begin_as_zeros_and_norms_as_ones(init):
    """Biases and the weights of norms are the parameters of one dimension."""
    for name, parameter in wide_model(init).named_parameters():
        if parameter.dim() != 1:
            continue
        if name.endswith("bias"):
            assert torch.equal(parameter, torch.zeros_like(parameter)), name
        else:
            assert torch.equal(parameter, torch.ones_like(parameter)), name


@pytest.mark.parametrize(
    ("d_model", "layer_deviation", "embedding_deviation"),
    [(40, 0.1, 0.158114), (160, 0.05, 0.079057)],
)
def test_small_weights_are_smaller_in_a_wider_model(d_model, layer_deviation, embedding_deviation):
    """Deviations by hand: the root of 2 / (5 d_model) in layers, of 1 / d_model in embeddings.

    An estimate from n numbers has the relative error 0.71 / root of n; five times that is allowed.
    """
    model = model_of(300, 300, init="small", d_model=d_model, d_ff=300)

    deviations_by_weight = [
        (model.encoder[0].feed_forward.fc1.weight, layer_deviation),
        (model.decoder[2].feed_forward.fc2.weight, layer_deviation),
        (model.source_embedding.weight, embedding_deviation),
    ]
    for weight, expected_deviation in deviations_by_weight:
        relative_error = 0.71 / math.sqrt(weight.numel())
        assert weight.std().item() == pytest.approx(expected_deviation, rel=5 * relative_error)


def test_scaled_weights_are_those_of_earlier_versions():
    """The numbers were recorded when this was the only initialization.

    If they change, trainings with the same settings and seed give other results than before.
    """
    model = model_of(tie_embeddings="all").float()  # with seed 3

    attention = model.encoder[0].self_attention.in_proj.weight
    first_weights = attention[0, :2].tolist()
    last_row_weights = attention[47, :2].tolist()
    embedding_weights = model.target_embedding.weight[2, :2].tolist()
    feed_forward_weights = model.decoder[2].feed_forward.fc2.weight[-1, -2:].tolist()
    assert first_weights == pytest.approx([-0.2284114807844162, 0.4100283980369568], rel=1e-5)
    assert last_row_weights == pytest.approx([0.13060085475444794, 0.3219335675239563], rel=1e-5)
    assert embedding_weights == pytest.approx([0.2510867714881897, 0.13606323301792145], rel=1e-5)
    assert feed_forward_weights == pytest.approx([0.3130665123, 0.349132776260376], rel=1e-5)


def test_the_model_of_the_course_notebook_has_as_many_parameters_as_it_prints():
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
    german_tokens = 8015
    english_tokens = 6192
    with torch.device("meta"):  # without memory for the weights
        model = Transformer(shape, german_tokens, english_tokens)

    assert count_parameters(model) == 9_233_200


def layer_weight_names(stack, layer_count, modules):
    """Return the names of the weights and biases in the layers of `encoder` or `decoder`."""
    names = set()
    for layer in range(layer_count):
        for module in modules:
            names.add(f"{stack}.{layer}.{module}.weight")
            names.add(f"{stack}.{layer}.{module}.bias")
    return names


FEED_FORWARD = ["feed_forward.fc1", "feed_forward.fc2", "feed_forward_residual.norm"]
SELF_ATTENTION = [
    "self_attention.in_proj",
    "self_attention.out_proj",
    "self_attention_residual.norm",
]
CROSS_ATTENTION = [
    "cross_attention.in_proj",
    "cross_attention.out_proj",
    "cross_attention_residual.norm",
]
ENCODER_WEIGHT_NAMES = layer_weight_names("encoder", 2, SELF_ATTENTION + FEED_FORWARD)
DECODER_WEIGHT_NAMES = layer_weight_names(
    "decoder", 3, SELF_ATTENTION + CROSS_ATTENTION + FEED_FORWARD
)
EMBEDDING_NAMES = {"source_embedding.weight", "target_embedding.weight", "projection.weight"}
PLAIN_WEIGHT_NAMES = EMBEDDING_NAMES | ENCODER_WEIGHT_NAMES | DECODER_WEIGHT_NAMES


def test_weights_have_the_names_that_stored_models_use():
    assert set(model_of().state_dict()) == PLAIN_WEIGHT_NAMES


def test_settings_add_weights_and_rename_none():
    """Weights are loaded by name, so models stored by older versions need the same names."""
    model = model_of(positional_encoding="learned", output_bias=True, norm="pre")

    added_names = {
        "projection.bias",
        "source_positions.weight",
        "target_positions.weight",
        "encoder_norm.weight",
        "encoder_norm.bias",
        "decoder_norm.weight",
        "decoder_norm.bias",
    }
    assert set(model.state_dict()) == PLAIN_WEIGHT_NAMES | added_names
