"""Training cost in floating-point operations, computed from tensor shapes."""

from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bleuprint.config.system import Model

# One number, or an array with a number for each sentence.
Count = TypeVar("Count", int, NDArray[np.int64])


def forward_flops(model: Model, vocabulary: int, source: Count, target: Count) -> Count:
    """Return the floating-point operations of the matrix products in a forward pass.

    A product of (m x k) and (k x n) counts 2mkn. Included are the projections (also the one to the
    vocabulary), attention scores and weighted sums; each decoder position counts attention to all
    target positions, masked or not. Layer norms, softmax, dropout and embedding look-ups are
    excluded (below 1% at usual sizes).

    Args:
        model: The shape of the model.
        vocabulary: The size of the target vocabulary.
        source: The length of a sentence in tokens, without padding; or the lengths of many.
        target: The length of its translation; or the lengths of many.

    Returns:
        The operations of one sentence pair; or an array with those of each pair.
    """
    # The columns of queries and values together; keys and outputs have as many.
    attention_width = model.heads * (model.d_k + model.d_v)
    # Queries, keys, values and outputs: 2 operations per weight, in matrices of d_model rows.
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
    """Return the floating-point operations of a forward and backward pass.

    The backward pass has two products for each product of the forward pass. Layers are weighted by
    the probability that LayerDrop keeps them.

    Args:
        model: The shape of the model.
        vocabulary: The size of the target vocabulary.
        source: The length of a sentence in tokens, without padding; or the lengths of many.
        target: The length of its translation; or the lengths of many.

    Returns:
        The operations of one sentence pair; or an array with those of each pair.
    """
    layers = forward_flops(model, 0, source, target)
    projection = forward_flops(model, vocabulary, source, target) - layers
    kept_layers = np.rint(layers * (1 - model.layer_drop)).astype(np.int64)
    return cast(Count, 3 * (kept_layers + projection))
