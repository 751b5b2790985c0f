"""The layers of the Transformer, with the paper's names: each is a plain PyTorch module.

Dimensions in shapes: `rows` are the tokens of a batch (layout.py says which belong to a sentence),
`hypotheses` those of a search; `d_model` and `d_ff` are settings of the model.
"""

import math
from collections.abc import Callable, Iterable
from itertools import compress
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.config.system import Model as Settings
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.backends import layer_norm_dtype
from bleuprint.model.dropout import dropout
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.layout import Layout
from bleuprint.model.linear import Linear
from bleuprint.model.own_parts import (
    Kind,
    OwnAttention,
    OwnDecoderLayer,
    OwnEncoderLayer,
    OwnFeedForward,
    defines_class,
)


def swiglu(x: Tensor) -> Tensor:
    """Return SiLU of the first half of the last dimension times the second half (Shazeer 2020)."""
    gate, value = x.chunk(2, dim=-1)
    return functional.silu(gate) * value


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "swiglu": swiglu,
}


class Embedding(nn.Embedding):
    """Token embeddings, by default multiplied by the square root of d_model (section 3.4).

    Attributes:
        scale: The factor of the embeddings; None leaves them as they are.
    """

    def __init__(self, settings: Settings, vocabulary_size: int) -> None:
        """Create the matrix of embeddings, (vocabulary_size, d_model)."""
        super().__init__(vocabulary_size, settings.d_model)
        self.scale = math.sqrt(settings.d_model) if settings.scale_embeddings else None

    def forward(self, input: Tensor) -> Tensor:
        """Return the embeddings of token ids.

        Args:
            input: Token ids of any shape, (...).

        Returns:
            The embeddings, (..., d_model).
        """
        embedded = super().forward(input)
        return embedded if self.scale is None else embedded * self.scale


class FeedForward(nn.Module):
    """Position-wise feed-forward network (section 3.3): fc2(dropout(activation(fc1(x)))).

    Attributes:
        fc1: The layer from d_model to d_ff, or to twice d_ff for swiglu, whose halves are the
            gate and the value.
        fc2: The layer from d_ff to d_model.
    """

    def __init__(self, settings: Settings) -> None:
        """Create the two linear layers."""
        super().__init__()
        self.activation = _ACTIVATIONS[settings.activation]
        hidden_size = 2 * settings.d_ff if settings.activation == "swiglu" else settings.d_ff
        self.fc1 = Linear(settings.d_model, hidden_size, bias=settings.bias)
        self.fc2 = Linear(settings.d_ff, settings.d_model, bias=settings.bias)
        self.dropout = settings.dropout.activation

    def forward(self, x: Tensor) -> Tensor:
        """Transform each token by itself.

        Args:
            x: The tokens, (rows, d_model).

        Returns:
            The transformed tokens, (rows, d_model).
        """
        hidden = self.activation(self.fc1(x))  # (rows, d_ff)
        hidden = dropout(hidden, self.dropout, self.training)
        output: Tensor = self.fc2(hidden)
        return output


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm that computes in float32, also if its input and output have 16 bits.

    On GPUs the conversions cost nothing: torch.compile makes one kernel of them and the norm.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalize each row; the result has the shape and the type of the input."""
        return super().forward(input.to(layer_norm_dtype(input))).to(input.dtype)


class RMSNorm(nn.RMSNorm):
    """nn.RMSNorm that computes in float32, also if its input and output have 16 bits."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize each row; the result has the shape and the type of the input."""
        # float32, or float64 for an input in float64.
        dtype = torch.promote_types(x.dtype, torch.float32)
        return super().forward(x.to(dtype)).to(x.dtype)


def create_norm(settings: Settings) -> nn.Module:
    """Create a layer norm, or an RMS norm if the settings name it."""
    if settings.normalization == "rms":
        return RMSNorm(settings.d_model, eps=1e-6)
    return LayerNorm(settings.d_model)


class ResidualConnection(nn.Module):
    """A residual connection and a norm around a sublayer f (section 3.1).

    The Annotated Transformer calls it `SublayerConnection`.

    Post-norm, as in the paper: norm(x + f(x)). Pre-norm: x + f(norm(x)).
    """

    def __init__(self, settings: Settings) -> None:
        """Create the norm."""
        super().__init__()
        self.norm = create_norm(settings)
        self.dropout = settings.dropout.residual
        self.is_pre_norm = settings.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Run a sublayer with dropout, a residual connection and a norm.

        Args:
            x: The input, one row for each token, (rows, d_model).
            sublayer: Self-attention, cross-attention or the feed-forward network.

        Returns:
            norm(x + sublayer(x)), or x + sublayer(norm(x)) with pre-norm, (rows, d_model).
        """
        if self.is_pre_norm:
            output = sublayer(self.norm(x))
            return x + dropout(output, self.dropout, self.training)
        output = sublayer(x)
        x = x + dropout(output, self.dropout, self.training)
        normalized: Tensor = self.norm(x)
        return normalized


class EncoderLayer(nn.Module):
    """An encoder layer (section 3.1): self-attention, then a feed-forward network."""

    def __init__(self, settings: Settings) -> None:
        """Create the two sublayers, and a residual connection with a norm around each."""
        super().__init__()
        self.self_attention = _create_attention(settings, "encoder")
        self.feed_forward = _create_feed_forward(settings, "encoder")
        self.self_attention_residual = ResidualConnection(settings)
        self.feed_forward_residual = ResidualConnection(settings)

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        """Transform the source tokens of a batch.

        Args:
            x: The source tokens of all sentences, a row for each token, (rows, d_model).
            layout: Which rows belong to which sentence.

        Returns:
            The transformed tokens, (rows, d_model).
        """
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, layout))
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output


class DecoderLayer(nn.Module):
    """A decoder layer (section 3.1): self-attention, cross-attention, feed-forward network.

    `forward` computes all positions of known targets; `step` one position of a search.
    """

    def __init__(self, settings: Settings) -> None:
        """Create the three sublayers, and a residual connection with a norm around each."""
        super().__init__()
        self.self_attention = _create_attention(settings, "decoder")
        self.cross_attention = _create_attention(settings, "cross")
        self.feed_forward = _create_feed_forward(settings, "decoder")
        self.self_attention_residual = ResidualConnection(settings)
        self.cross_attention_residual = ResidualConnection(settings)
        self.feed_forward_residual = ResidualConnection(settings)

    def forward(self, x: Tensor, layout: Layout, memory: Tensor, memory_layout: Layout) -> Tensor:
        """Transform the target tokens of a batch; no token attends to a later one.

        Args:
            x: The target tokens of all sentences, a row for each token, (target rows, d_model).
            layout: Which target rows belong to which sentence.
            memory: The encoder's output, with a row for each source token, (source rows, d_model).
            memory_layout: Which source rows belong to which sentence.

        Returns:
            The transformed target tokens, (target rows, d_model).
        """
        cross_attention = self.cross_attention
        key, value = cross_attention.project_key_value(memory, memory_layout)
        x = self.self_attention_residual(
            x, lambda y: self.self_attention(y, layout, is_causal=True)
        )
        x = self.cross_attention_residual(
            x, lambda y: cross_attention.attend_memory(y, layout, key, value, memory_layout)
        )
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output

    def step(self, x: Tensor, layer: int, cache: KVCache) -> Tensor:
        """Transform one new token of each hypothesis of a search, as `forward` would.

        Args:
            x: The new tokens, (hypotheses, d_model).
            layer: The number of this layer, from 0, by which the cache finds its keys and values.
            cache: The keys and values of the sources and of earlier tokens. Those of the new tokens
                are added.

        Returns:
            The transformed tokens, (hypotheses, d_model).
        """
        x = self.self_attention_residual(x, lambda y: self.self_attention.step(y, layer, cache))
        x = self.cross_attention_residual(
            x, lambda y: self.cross_attention.step_memory(y, layer, cache)
        )
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output


class Encoder(nn.ModuleList):
    """The stack of encoder layers (section 3.1).

    It is a list of its layers, so that their weights are named encoder.0, encoder.1, ...
    """

    def __init__(self, settings: Settings) -> None:
        """Create the encoder layers."""
        has_own_layers = defines_class(settings, "layer", "EncoderLayer")
        layer_class = OwnEncoderLayer if has_own_layers else EncoderLayer
        super().__init__(layer_class(settings) for _ in range(settings.encoder_layers))

    def forward(self, x: Tensor, layout: Layout, layer_drop: float) -> Tensor:
        """Run the encoder layers one after the other on the source tokens of a batch.

        Args:
            x: The source tokens of all sentences, a row for each token, (rows, d_model).
            layout: Which rows belong to which sentence.
            layer_drop: The probability that a layer is skipped in training (LayerDrop).

        Returns:
            The transformed tokens, (rows, d_model).
        """
        for layer in _layers_to_run(self, layer_drop):
            x = layer(x, layout)
        return x


class Decoder(nn.ModuleList):
    """The stack of decoder layers (section 3.1).

    It is a list of its layers, so that their weights are named decoder.0, decoder.1, ...
    """

    def __init__(self, settings: Settings) -> None:
        """Create the decoder layers."""
        has_own_layers = defines_class(settings, "layer", "DecoderLayer")
        layer_class = OwnDecoderLayer if has_own_layers else DecoderLayer
        super().__init__(layer_class(settings) for _ in range(settings.decoder_layers))

    def forward(
        self,
        x: Tensor,
        layout: Layout,
        memory: Tensor,
        memory_layout: Layout,
        layer_drop: float,
    ) -> Tensor:
        """Run the decoder layers one after the other on the target tokens of a batch.

        Args:
            x: The target tokens of all sentences, a row for each token, (target rows, d_model).
            layout: Which target rows belong to which sentence.
            memory: The encoder's output, with a row for each source token, (source rows, d_model).
            memory_layout: Which source rows belong to which sentence.
            layer_drop: The probability that a layer is skipped in training (LayerDrop).

        Returns:
            The transformed target tokens, (target rows, d_model).
        """
        for layer in _layers_to_run(self, layer_drop):
            x = layer(x, layout, memory, memory_layout)
        return x

    def step(self, x: Tensor, cache: KVCache) -> Tensor:
        """Run the decoder layers on one new token of each hypothesis of a search.

        Args:
            x: The new tokens, (hypotheses, d_model).
            cache: The keys and values of the sources and of earlier tokens. Those of the new tokens
                are added.

        Returns:
            The transformed tokens, (hypotheses, d_model).
        """
        for number, layer in enumerate(self):
            x = cast(DecoderLayer, layer).step(x, number, cache)
        return x


def _create_attention(settings: Settings, kind: Kind) -> MultiHeadAttention:
    """Create multi-head attention, or own code in its place.

    Args:
        settings: The settings of the model's shape.
        kind: Which attention: self-attention of the encoder or the decoder, or cross-attention.
    """
    if settings.attention:
        # It lacks only the methods for single steps of a search, which are not called with it.
        return cast(MultiHeadAttention, OwnAttention(settings, kind))
    return MultiHeadAttention(settings)


def _create_feed_forward(settings: Settings, kind: Kind) -> FeedForward:
    """Create a feed-forward network, or own code in its place, for the encoder or the decoder."""
    if settings.feed_forward:
        return cast(FeedForward, OwnFeedForward(settings, kind))
    return FeedForward(settings)


def _layers_to_run(layers: nn.ModuleList, layer_drop: float) -> Iterable[nn.Module]:
    """Return the layers to run: all of them, or a random selection in training with LayerDrop.

    LayerDrop (Fan et al. 2020) skips each layer with some probability, so that the model learns not
    to depend on any single layer.

    Args:
        layers: The layers of an encoder or a decoder.
        layer_drop: The probability that a layer is skipped.
    """
    if not layer_drop or not layers.training:
        return layers
    # Drawn on the CPU, even for a model on a GPU: the loop over layers would have to wait for it.
    is_kept = torch.rand(len(layers), device="cpu") >= layer_drop
    return compress(layers, is_kept.tolist())
