"""Converting models to the format of CTranslate2, for use with or without this project.

CTranslate2 is an optional dependency: pip install ctranslate2.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bleuprint.dataset.subwords.vocabulary import BOS, PAD, SPECIALS, Vocabulary
from bleuprint.model.attention import Attention
from bleuprint.model.transformer import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    ResidualConnection,
    Transformer,
    sinusoidal_positions,
)
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import whole_folder

Precision = Literal["float32", "int8"]
Layer = TypeVar("Layer", bound=nn.Module)

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
    specs = _specs()
    settings = model.settings
    if {settings.d_k * settings.heads, settings.d_v * settings.heads} != {settings.d_model}:
        raise UserError("CTranslate2 supports d_k and d_v of d_model / heads only")
    spec = specs.transformer_spec.TransformerSpec.from_config(
        (settings.encoder_layers, settings.decoder_layers),
        settings.heads,
        pre_norm=settings.norm == "pre",
        activation=specs.common_spec.Activation[settings.activation.upper()],
    )
    _fill(spec, model)
    for register, vocabulary in zip(
        (spec.register_source_vocabulary, spec.register_target_vocabulary),
        vocabularies,
        strict=True,
    ):
        register(vocabulary.tokens)
    _, bos, eos, unk = SPECIALS
    spec.config.bos_token = spec.config.decoder_start_token = bos
    spec.config.eos_token, spec.config.unk_token = eos, unk
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=precision)
    with whole_folder(output) as partial:
        spec.save(str(partial))


def _fill(spec: Any, model: Transformer) -> None:
    """Copy a model's weights into a specification."""
    settings = model.settings
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    for side, table in (
        (spec.encoder, model.source_positions),
        (spec.decoder, model.target_positions),
    ):
        side.scale_embeddings = True
        positions = (
            sinusoidal_positions(0, settings.max_positions, settings.d_model, torch.device("cpu"))
            if table is None
            else table.weight
        )
        side.position_encodings.encodings = _array(positions)
    for part, layer in zip(spec.encoder.layer, _layers(EncoderLayer, model.encoder), strict=True):
        _fill_self_attention(
            part.self_attention, layer.self_attention, layer.self_attention_residual
        )
        _fill_feed_forward(part.ffn, layer.feed_forward, layer.feed_forward_residual)
    for part, decoder in zip(spec.decoder.layer, _layers(DecoderLayer, model.decoder), strict=True):
        _fill_self_attention(
            part.self_attention, decoder.self_attention, decoder.self_attention_residual
        )
        _fill_cross_attention(
            part.attention, decoder.cross_attention, decoder.cross_attention_residual
        )
        _fill_feed_forward(part.ffn, decoder.feed_forward, decoder.feed_forward_residual)
    if settings.norm == "pre":
        _fill_norm(spec.encoder.layer_norm, model.encoder_norm)
        _fill_norm(spec.decoder.layer_norm, model.decoder_norm)
    spec.decoder.projection.weight = _array(model.projection.weight)
    bias = model.projection.bias
    biases = np.zeros(model.projection.out_features, np.float32) if bias is None else _array(bias)
    biases[[PAD, BOS]] = _EXCLUDED
    spec.decoder.projection.bias = biases


def _layers(kind: type[Layer], layers: nn.ModuleList) -> Iterator[Layer]:
    for layer in layers:
        assert isinstance(layer, kind)
        yield layer


def _fill_self_attention(spec: Any, attention: Attention, residual: ResidualConnection) -> None:
    _fill_rows(spec.linear[0], attention.in_proj, slice(None))
    _fill_rows(spec.linear[1], attention.out_proj, slice(None))
    _fill_norm(spec.layer_norm, residual.norm)


def _fill_cross_attention(spec: Any, attention: Attention, residual: ResidualConnection) -> None:
    queries = attention.qkv_sizes[0]
    _fill_rows(spec.linear[0], attention.in_proj, slice(None, queries))
    _fill_rows(spec.linear[1], attention.in_proj, slice(queries, None))
    _fill_rows(spec.linear[2], attention.out_proj, slice(None))
    _fill_norm(spec.layer_norm, residual.norm)


def _fill_feed_forward(spec: Any, feed_forward: FeedForward, residual: ResidualConnection) -> None:
    _fill_rows(spec.linear_0, feed_forward.fc1, slice(None))
    _fill_rows(spec.linear_1, feed_forward.fc2, slice(None))
    _fill_norm(spec.layer_norm, residual.norm)


def _fill_rows(spec: Any, linear: nn.Linear, rows: slice) -> None:
    spec.weight = _array(linear.weight[rows])
    if linear.bias is not None:
        spec.bias = _array(linear.bias[rows])


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm)
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(tensor: torch.Tensor) -> NDArray[np.float32]:
    result: NDArray[np.float32] = tensor.detach().cpu().float().contiguous().numpy().copy()
    return result


def _specs() -> Any:
    try:
        from ctranslate2 import specs
    except ImportError:
        raise UserError("CTranslate2 is not installed: pip install ctranslate2") from None
    return specs
