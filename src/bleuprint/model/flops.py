"""Training cost in floating-point operations, computed from tensor shapes."""

from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bleuprint.config.system import Model

Count = TypeVar("Count", int, NDArray[np.int64])


def forward_flops(model: Model, vocabulary: int, source: Count, target: Count) -> Count:
    """Floating-point operations of the matrix products in one sentence's forward pass.

    `vocabulary` is the size of the target vocabulary; `source` and `target` are lengths in tokens,
    without padding, of one sentence or of many. A product of (m x k) and (k x n) counts 2mkn.
    Included are the projections (also the one to the vocabulary), attention scores and weighted
    sums; each decoder position counts attention to all target positions, masked or not.
    Layer norms, softmax, dropout and embedding look-ups are excluded (below 1 % at usual sizes).
    """
    d_model = model.d_model
    width = model.heads * (model.d_k + model.d_v)  # of queries and values, or of keys and outputs
    projections = 4 * d_model * width
    feed_forward = 2 * model.feed_forward_weights
    encoder = source * (projections + feed_forward) + 2 * source * source * width
    self_attention = target * projections + 2 * target * target * width
    cross_attention = (target + source) * projections // 2 + 2 * target * source * width
    decoder = self_attention + cross_attention + target * feed_forward
    return (
        model.encoder_layers * encoder
        + model.decoder_layers * decoder
        + 2 * target * d_model * vocabulary
    )


def training_flops(model: Model, vocabulary: int, source: Count, target: Count) -> Count:
    """Forward and backward pass; the backward pass has two products for each forward product.

    Layers are weighted by the probability that LayerDrop keeps them.
    """
    layers = forward_flops(model, 0, source, target)
    projection = forward_flops(model, vocabulary, source, target) - layers
    kept = np.rint(layers * (1 - model.layer_drop)).astype(np.int64)
    return cast(Count, 3 * (kept + projection))
