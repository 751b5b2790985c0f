"""Converting models to the format of CTranslate2, for use with or without this project.

CTranslate2 is an optional dependency: pip install ctranslate2.
"""

import math
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bleuprint.config.system import Model as Settings
from bleuprint.dataset.subwords.vocabulary import BOS, PAD, SPECIALS, Vocabulary
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.layers import DecoderLayer, EncoderLayer, ResidualConnection
from bleuprint.model.positions import PositionalEncoding, sinusoidal_positions
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.atomic_files import atomic_folder
from bleuprint.runtime.errors import UserError

Precision = Literal["float32", "int8"]

# CTranslate2's name of each activation that it supports.
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH", "swiglu": "SWISH"}
# The bias that excludes PAD and BOS from outputs; close to the minimum of half precision.
_EXCLUDING_BIAS = -60_000.0


def convert(
    model: Transformer,
    vocabularies: tuple[Vocabulary, Vocabulary],
    output: Path,
    precision: Precision = "float32",
) -> None:
    """Write a model in the format of CTranslate2, a fast library for translation.

    Args:
        model: The model.
        vocabularies: The source and the target vocabulary of the model.
        output: The folder to write.
        precision: The precision of the written weights, `float32` or `int8`.

    Raises:
        UserError: CTranslate2 is not installed, or does not support the model's shape.
    """
    try:
        from ctranslate2 import specs
    except ImportError:
        raise UserError("CTranslate2 is not installed. Run: pip install ctranslate2") from None
    _check_shape(model.settings)
    spec = _empty_spec(specs, model.settings)
    _copy_model(spec, model)
    source_vocabulary, target_vocabulary = vocabularies
    spec.register_source_vocabulary(source_vocabulary.tokens)
    spec.register_target_vocabulary(target_vocabulary.tokens)
    _pad, bos, eos, unk = SPECIALS
    spec.config.bos_token = bos
    spec.config.decoder_start_token = bos
    spec.config.eos_token = eos
    spec.config.unk_token = unk
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=precision)
    with atomic_folder(output) as partial:
        spec.save(str(partial))


def _check_shape(settings: Settings) -> None:
    """Check that CTranslate2 supports a model of this shape.

    Args:
        settings: The settings of the model's shape.

    Raises:
        UserError: The sizes of the heads, the activation function or own code are not supported.
    """
    if not settings.is_built_in:
        raise UserError(
            f"CTranslate2 does not support {settings.replaced_parts[0]}. To translate with own "
            "code: bleuprint translate"
        )
    key_size = settings.d_k * settings.heads
    value_size = settings.d_v * settings.heads
    if key_size != settings.d_model or value_size != settings.d_model:
        raise UserError("CTranslate2 requires model.d_k and model.d_v to be d_model / heads")
    if settings.activation not in _ACTIVATIONS:
        raise UserError(
            f"CTranslate2 does not support model.activation {settings.activation}. It supports: "
            f"{', '.join(_ACTIVATIONS)}"
        )


def _empty_spec(specs: Any, settings: Settings) -> Any:
    """Create CTranslate2's description of a model, a "specification", without weights.

    Args:
        specs: The module `ctranslate2.specs`, which is imported only if it is needed.
        settings: The settings of the model's shape.
    """
    options = {
        "pre_norm": settings.norm == "pre",
        "activation": specs.common_spec.Activation[_ACTIVATIONS[settings.activation]],
        "ffn_glu": settings.activation == "swiglu",
        "rms_norm": settings.normalization == "rms",
        "rotary_dim": settings.d_k if settings.positional_encoding == "rotary" else None,
    }
    transformer = specs.transformer_spec
    return transformer.TransformerSpec(
        transformer.TransformerEncoderSpec(settings.encoder_layers, settings.heads, **options),
        transformer.TransformerDecoderSpec(settings.decoder_layers, settings.heads, **options),
    )


def _copy_model(spec: Any, model: Transformer) -> None:
    """Copy all weights of a model into CTranslate2's specification of it."""
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    # `_check_shape` has refused own code.
    source_positions = cast(PositionalEncoding, model.source_positions)
    target_positions = cast(PositionalEncoding, model.target_positions)
    _fill_positions(spec.encoder, model.settings, source_positions)
    _fill_positions(spec.decoder, model.settings, target_positions)
    for layer_spec, encoder_layer in zip(spec.encoder.layer, model.encoder_layers, strict=True):
        _fill_layer(layer_spec, encoder_layer)
    for layer_spec, decoder_layer in zip(spec.decoder.layer, model.decoder_layers, strict=True):
        _fill_layer(layer_spec, decoder_layer)
        _fill_attention(
            layer_spec.attention,
            decoder_layer.cross_attention,
            decoder_layer.cross_attention_residual,
        )
    if model.settings.norm == "pre":
        _fill_norm(spec.encoder.layer_norm, model.encoder_norm)
        _fill_norm(spec.decoder.layer_norm, model.decoder_norm)
    spec.decoder.projection.weight = _array(model.projection.weight)
    spec.decoder.projection.bias = _projection_bias(model.projection)


def _projection_bias(projection: nn.Linear) -> NDArray[np.float32]:
    """Return the bias of the output projection, with very low values for PAD and BOS.

    No output may contain these two tokens. Our own search forbids them; CTranslate2's search does
    not, so their logits must be too low to be chosen.

    Args:
        projection: The projection to the logits of the vocabulary, with or without a bias.
    """
    if projection.bias is None:
        bias = np.zeros(projection.out_features, np.float32)
    else:
        bias = _array(projection.bias)
    bias[[PAD, BOS]] = _EXCLUDING_BIAS
    return bias


def _fill_positions(spec: Any, settings: Settings, encoding: PositionalEncoding) -> None:
    """Copy the positional encoding of encoder or decoder, and whether embeddings are scaled.

    Args:
        spec: CTranslate2's specification of the encoder or the decoder.
        settings: The settings of the model's shape.
        encoding: The positional encoding of the encoder or the decoder.
    """
    spec.scale_embeddings = settings.scale_embeddings
    # A specification with rotary encodings has no vectors to fill: attention rotates queries and
    # keys instead.
    if hasattr(spec, "position_encodings"):
        spec.position_encodings.encodings = _array(_position_vectors(settings, encoding))


def _position_vectors(settings: Settings, encoding: PositionalEncoding) -> torch.Tensor:
    """Return the vector that is added to the embedding at each position, (positions, d_model).

    Args:
        settings: The settings of the model's shape, with `max_positions`.
        encoding: The positional encoding of the model, with its learned vectors, if any.
    """
    if settings.positional_encoding == "learned":
        return encoding.weight
    if settings.positional_encoding == "sinusoidal":
        return sinusoidal_positions(torch.arange(settings.max_positions), settings.d_model)
    # A model without positions: CTranslate2 always adds vectors, and zeros change nothing.
    return torch.zeros(settings.max_positions, settings.d_model)


def _fill_layer(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    """Copy the two sublayers that both encoder and decoder layers have.

    Args:
        spec: CTranslate2's specification of the layer.
        layer: The layer of the model.
    """
    _fill_attention(spec.self_attention, layer.self_attention, layer.self_attention_residual)
    _fill_feed_forward(spec.ffn, layer)


def _fill_attention(spec: Any, attention: MultiHeadAttention, residual: ResidualConnection) -> None:
    """Copy the weights of an attention sublayer and of its norm.

    The model has one linear layer, whose outputs are queries, keys and values in this order.
    CTranslate2 has the same layer for self-attention; for cross-attention it has two layers, one
    for queries, and one for keys and values.

    Args:
        spec: CTranslate2's specification of the attention.
        attention: The attention of the model.
        residual: The residual connection around it, with its norm.
    """
    query_size = attention.qkv_sizes[0]
    head_size = query_size // attention.heads
    # Our attention multiplies queries by `query_scale` and later divides scores by sqrt(d_k).
    # CTranslate2 has one factor for both.
    spec.queries_scale = np.float32(attention.query_scale / math.sqrt(head_size))
    *input_specs, output_spec = spec.linear
    is_self_attention = len(input_specs) == 1
    if is_self_attention:
        _fill_linear(input_specs[0], attention.in_proj)
    else:
        query_spec, key_value_spec = input_specs
        queries = slice(None, query_size)
        keys_and_values = slice(query_size, None)
        _fill_linear(query_spec, attention.in_proj, queries)
        _fill_linear(key_value_spec, attention.in_proj, keys_and_values)
    _fill_linear(output_spec, attention.out_proj)
    _fill_norm(spec.layer_norm, residual.norm)


def _fill_feed_forward(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    """Copy the weights of a layer's feed-forward network and of its norm.

    A gated network (swiglu) multiplies two parts: the gate, which goes through the activation
    function, and the value. The model stores both in one linear layer, CTranslate2 in two.

    Args:
        spec: CTranslate2's specification of the feed-forward network.
        layer: The layer of the model.
    """
    feed_forward = layer.feed_forward
    # Only the specification of a gated network has a layer without an activation function.
    is_gated = hasattr(spec, "linear_0_noact")
    if is_gated:
        gate_size = feed_forward.fc1.out_features // 2
        gate = slice(None, gate_size)
        value = slice(gate_size, None)
        _fill_linear(spec.linear_0, feed_forward.fc1, gate)
        _fill_linear(spec.linear_0_noact, feed_forward.fc1, value)
    else:
        _fill_linear(spec.linear_0, feed_forward.fc1)
    _fill_linear(spec.linear_1, feed_forward.fc2)
    _fill_norm(spec.layer_norm, layer.feed_forward_residual.norm)


def _fill_linear(spec: Any, linear: nn.Linear, outputs: slice = slice(None)) -> None:
    """Copy the weight and bias of a linear layer.

    Args:
        spec: CTranslate2's specification of the layer.
        linear: The layer of the model.
        outputs: Which outputs of the layer to copy, by their rows of the weight; by default all.
    """
    spec.weight = _array(linear.weight[outputs])
    if linear.bias is not None:
        spec.bias = _array(linear.bias[outputs])


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    """Copy the weights of a layer norm, or of an RMS norm, which has no bias.

    CTranslate2 calls the weight gamma and the bias beta.
    """
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    spec.gamma = _array(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _array(norm.bias)


def _array(tensor: torch.Tensor) -> NDArray[np.float32]:
    """Return a copy of a tensor as a NumPy array in float32."""
    array: NDArray[np.float32] = tensor.detach().cpu().float().contiguous().numpy().copy()
    return array
