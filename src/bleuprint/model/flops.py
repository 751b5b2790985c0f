"""Training cost in floating-point operations, computed from tensor shapes."""

from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bleuprint.config.system import Model

# One number, or an array with a number for each sentence.
Count = TypeVar("Count", int, NDArray[np.int64])


def forward_flops(model: Model, vocabulary: int, source: Count, target: Count) -> Count:
    """Return how many floating-point operations a forward pass of the Transformer takes.

    Counted are matrix products: the projections, also the one to the vocabulary; the scores of
    attention; and its weighted sums. The product of an (m x k) and a (k x n) matrix counts 2mkn.
    Each target position counts attention to all target positions, masked or not. Layer norms,
    softmax, dropout and embedding look-ups are not counted (below 1% at usual sizes).

    Args:
        model: The settings of the model's shape.
        vocabulary: The number of tokens in the target vocabulary.
        source: The length of a source sentence in tokens, without padding; or an array of lengths.
        target: The length of its translation; or an array of lengths.

    Returns:
        The operations of one sentence pair; or an array with those of each pair.
    """
    # The total size of queries and values of all heads. Keys are as large as queries, and outputs
    # as large as values, so all four together have twice this size.
    attention_width = model.heads * (model.d_k + model.d_v)
    # For one token: queries, keys, values and outputs, with 2 operations for each weight.
    projections = 4 * model.d_model * attention_width
    feed_forward = 2 * model.feed_forward_weights
    encoder_layer = source * (projections + feed_forward) + 2 * source * source * attention_width
    self_attention = target * projections + 2 * target * target * attention_width
    # Queries and outputs are projected for each target token, keys and values for each source one.
    cross_projections = (target + source) * projections // 2
    cross_attention = cross_projections + 2 * target * source * attention_width
    decoder_layer = self_attention + cross_attention + target * feed_forward
    output_projection = 2 * target * model.d_model * vocabulary
    return (
        model.encoder_layers * encoder_layer
        + model.decoder_layers * decoder_layer
        + output_projection
    )


def training_flops(model: Model, vocabulary: int, source: Count, target: Count) -> Count:
    """Return how many floating-point operations a forward and a backward pass take.

    The backward pass has two matrix products for each product of the forward pass. With LayerDrop,
    which skips layers at random, the expected number is returned.

    Args:
        model: The settings of the model's shape.
        vocabulary: The number of tokens in the target vocabulary.
        source: The length of a source sentence in tokens, without padding; or an array of lengths.
        target: The length of its translation; or an array of lengths.

    Returns:
        The operations of one sentence pair; or an array with those of each pair.
    """
    # Without a vocabulary, only the layers are left.
    layers = forward_flops(model, 0, source, target)
    projection = forward_flops(model, vocabulary, source, target) - layers
    kept_layers = np.rint(layers * (1 - model.layer_drop)).astype(np.int64)
    return cast(Count, 3 * (kept_layers + projection))
