"""What a training costs, counted from shapes."""

from bleuprint.config.system import Model


def forward_flops(model: Model, vocabulary: int, source: int, target: int) -> int:
    """Floating-point operations of the matrix products for one sentence, forward.

    A product of (m x k) and (k x n) takes 2mkn. Counted are projections (the last one onto the
    target's `vocabulary`), attention scores and mixtures over `source` and `target` positions
    without padding; a decoder position is counted against all positions of its sentence, as the
    kernels compute it. Norms, softmax, dropout and embeddings, of either side, are left out (below
    1 % at any usual size).
    """
    d_model, d_ff = model.d_model, model.d_ff
    width = model.heads * (model.d_k + model.d_v)  # of queries and values, or of keys and outputs
    projections = 4 * d_model * width
    feed_forward = 4 * d_model * d_ff
    encoder = source * (projections + feed_forward) + 2 * source * source * width
    self_attention = target * projections + 2 * target * target * width
    cross_attention = (target + source) * projections // 2 + 2 * target * source * width
    decoder = self_attention + cross_attention + target * feed_forward
    return (
        model.encoder_layers * encoder
        + model.decoder_layers * decoder
        + 2 * target * d_model * vocabulary
    )


def training_flops(model: Model, vocabulary: int, source: int, target: int) -> int:
    """Forward and backward: the backward pass takes two products for each of the forward's.

    Layers count as often as LayerDrop, on average, lets them run.
    """
    layers = forward_flops(model, 0, source, target)
    projection = forward_flops(model, vocabulary, source, target) - layers
    return 3 * (round(layers * (1 - model.layer_drop)) + projection)
