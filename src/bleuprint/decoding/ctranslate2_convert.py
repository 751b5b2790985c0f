"""Converting models to the format of CTranslate2, for use with or without this project.

CTranslate2 is an optional dependency: pip install ctranslate2.
"""

import math
from pathlib import Path
from typing import Any, Literal

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
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import atomic_folder

Precision = Literal["float32", "int8"]

# CTranslate2's name of each activation that it supports.
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swiglu": "SWISH"}
# The bias that excludes PAD and BOS from outputs; close to the minimum of half precision.
_EXCLUDED = -60_000.0


def convert(
    model: Transformer,
    vocabularies: tuple[Vocabulary, Vocabulary],
    output: Path,
    precision: Precision = "float32",
) -> None:
    """Write a model, with its source and target vocabulary, as a CTranslate2 folder.

    Raises UserError if CTranslate2 does not support the model's shape.
    """
    try:
        from ctranslate2 import specs
    except ImportError:
        raise UserError("CTranslate2 is not installed; run: pip install ctranslate2") from None
    settings = model.settings
    if {settings.d_k * settings.heads, settings.d_v * settings.heads} != {settings.d_model}:
        raise UserError("CTranslate2 supports d_k and d_v of d_model / heads only")
    if settings.activation not in _ACTIVATIONS:
        raise UserError(
            f"CTranslate2 does not support model.activation {settings.activation}; it supports "
            f"{', '.join(_ACTIVATIONS)}"
        )
    options = {
        "pre_norm": settings.norm == "pre",
        "activation": specs.common_spec.Activation[_ACTIVATIONS[settings.activation]],
        "ffn_glu": settings.activation == "swiglu",
        "rms_norm": settings.normalization == "rms",
        "rotary_dim": settings.d_k if settings.positional_encoding == "rotary" else None,
    }
    kinds, heads = specs.transformer_spec, settings.heads
    spec = kinds.TransformerSpec(
        kinds.TransformerEncoderSpec(settings.encoder_layers, heads, **options),
        kinds.TransformerDecoderSpec(settings.decoder_layers, heads, **options),
    )
    _fill(spec, model)
    source, target = vocabularies
    spec.register_source_vocabulary(source.tokens)
    spec.register_target_vocabulary(target.tokens)
    _, bos, eos, unk = SPECIALS
    spec.config.bos_token = spec.config.decoder_start_token = bos
    spec.config.eos_token, spec.config.unk_token = eos, unk
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=precision)
    with atomic_folder(output) as partial:
        spec.save(str(partial))


def _fill(spec: Any, model: Transformer) -> None:
    """Copy a model's weights into a specification."""
    settings = model.settings
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    sides = (spec.encoder, model.source_positions), (spec.decoder, model.target_positions)
    for side, table in sides:
        side.scale_embeddings = settings.scale_embeddings
        if hasattr(side, "position_encodings"):
            side.position_encodings.encodings = _array(_positions(settings, table))
    parts = *spec.encoder.layer, *spec.decoder.layer
    layers: list[EncoderLayer | DecoderLayer] = [*model.encoder_layers, *model.decoder_layers]
    for part, layer in zip(parts, layers, strict=True):
        _fill_attention(part.self_attention, layer.self_attention, layer.self_attention_residual)
        if isinstance(layer, DecoderLayer):
            _fill_attention(part.attention, layer.cross_attention, layer.cross_attention_residual)
        _fill_feed_forward(part.ffn, layer)
    if settings.norm == "pre":
        _fill_norm(spec.encoder.layer_norm, model.encoder_norm)
        _fill_norm(spec.decoder.layer_norm, model.decoder_norm)
    spec.decoder.projection.weight = _array(model.projection.weight)
    bias = model.projection.bias
    biases = np.zeros(model.projection.out_features, np.float32) if bias is None else _array(bias)
    biases[[PAD, BOS]] = _EXCLUDED
    spec.decoder.projection.bias = biases


def _positions(settings: Settings, encoding: PositionalEncoding) -> torch.Tensor:
    """Return what is added to the embeddings at each position, (max_positions, D)."""
    if settings.positional_encoding == "learned":
        return encoding.weight
    count, d_model = settings.max_positions, settings.d_model
    if settings.positional_encoding == "sinusoidal":
        return sinusoidal_positions(torch.arange(count), d_model)
    return torch.zeros(count, d_model)


def _fill_attention(spec: Any, attention: MultiHeadAttention, residual: ResidualConnection) -> None:
    """The specification has queries, keys and values in one layer, or queries in their own."""
    queries = attention.qkv_sizes[0]
    *inputs, output = spec.linear
    spec.queries_scale = np.float32(attention.query_scale / math.sqrt(queries // attention.heads))
    rows = [slice(None)] if len(inputs) == 1 else [slice(None, queries), slice(queries, None)]
    for linear, part in zip(inputs, rows, strict=True):
        _fill_linear(linear, attention.in_proj, part)
    _fill_linear(output, attention.out_proj)
    _fill_norm(spec.layer_norm, residual.norm)


def _fill_feed_forward(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    fc1 = layer.feed_forward.fc1
    if hasattr(spec, "linear_0_noact"):
        gate = fc1.out_features // 2
        _fill_linear(spec.linear_0, fc1, slice(None, gate))
        _fill_linear(spec.linear_0_noact, fc1, slice(gate, None))
    else:
        _fill_linear(spec.linear_0, fc1)
    _fill_linear(spec.linear_1, layer.feed_forward.fc2)
    _fill_norm(spec.layer_norm, layer.feed_forward_residual.norm)


def _fill_linear(spec: Any, linear: nn.Linear, rows: slice = slice(None)) -> None:
    spec.weight = _array(linear.weight[rows])
    if linear.bias is not None:
        spec.bias = _array(linear.bias[rows])


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    spec.gamma = _array(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _array(norm.bias)


def _array(tensor: torch.Tensor) -> NDArray[np.float32]:
    result: NDArray[np.float32] = tensor.detach().cpu().float().contiguous().numpy().copy()
    return result
