"""Training cost in floating-point operations, computed from tensor shapes."""

from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bleuprint.config.system import Model

# One number, or an array with a number for each sentence.
Count = TypeVar("Count", int, NDArray[np.int64])


def forward_flops(model: Model, vocabulary: int, source: Count, target: Count) -> Count:
    """Return how many floating-point operations a forward pass of the Transformer takes.

    Only matrix products are counted: projections, attention scores and weighted sums, feed-forward
    networks, and the projection to the vocabulary. All else, such as softmax, takes below 1% at
    usual sizes. The product of an (m x k) and a (k x n) matrix counts 2mkn. Decoder self-attention
    counts all pairs of positions, also those that are masked.

    Args:
        model: The settings of the model's shape.
        vocabulary: The number of tokens in the target vocabulary.
        source: The length of a source sentence in tokens, without padding; or an array of lengths.
        target: The length of its translation; or an array of lengths.

    Returns:
        The operations of one sentence pair; or an array with those of each pair.
    """
    # The size of a token's queries and values, of all heads together. Its keys are as large as its
    # queries, and the input of the output projection is as large as its values.
    attention_width = model.heads * (model.d_k + model.d_v)
    # For one token: the projections of queries, keys, values and outputs have 2 * d_model *
    # attention_width weights, and each weight takes a multiplication and an addition.
    projections = 4 * model.d_model * attention_width
    feed_forward = 2 * model.feed_forward_weights
    # For each pair of a query and a key: the score is a product of d_k numbers, and the weighted
    # sum adds d_v numbers, in each head.
    pair_of_positions = 2 * attention_width
    encoder_layer = source * (projections + feed_forward) + source * source * pair_of_positions
    self_attention = target * projections + target * target * pair_of_positions
    # Queries and outputs, half of the projections, are computed for each target token; keys and
    # values, the other half, for each source token.
    cross_projections = (target + source) * projections // 2
    cross_attention = cross_projections + target * source * pair_of_positions
    decoder_layer = self_attention + cross_attention + target * feed_forward
    output_projection = 2 * target * model.d_model * vocabulary
    return (
        model.encoder_layers * encoder_layer
        + model.decoder_layers * decoder_layer
        + output_projection
    )


def training_flops(model: Model, vocabulary: int, source: Count, target: Count) -> Count:
    """Return how many floating-point operations a forward and a backward pass take.

    The backward pass computes two matrix products for each product of the forward pass: one for the
    gradient of each factor. With LayerDrop, which skips layers at random, the result is the
    expected number.

    Args:
        model: The settings of the model's shape.
        vocabulary: The number of tokens in the target vocabulary.
        source: The length of a source sentence in tokens, without padding; or an array of lengths.
        target: The length of its translation; or an array of lengths.

    Returns:
        The operations of one sentence pair; or an array with those of each pair.
    """
    # LayerDrop skips layers, but never the projection to the vocabulary, so the two are counted
    # separately. With a vocabulary of 0 tokens, only the layers are counted.
    layers = forward_flops(model, 0, source, target)
    projection = forward_flops(model, vocabulary, source, target) - layers
    kept_layers = np.rint(layers * (1 - model.layer_drop)).astype(np.int64)
    # The factor 3 stands for one product in the forward pass and two in the backward pass.
    return cast(Count, 3 * (kept_layers + projection))
