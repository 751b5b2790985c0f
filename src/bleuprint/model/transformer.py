"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), with the paper's names.

Shapes: B sentences in a batch, S source and T target positions, D d_model, F d_ff, H heads, K d_k
(values have d_v), V tokens of the target vocabulary, N hypotheses. Masks are False at padding.
"""

import math
from collections.abc import Callable, Iterable
from itertools import compress
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.config.system import Model as Settings
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.dataset.subwords.vocabulary import BOS, PAD
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.dropout import dropout
from bleuprint.model.initialization import initialize
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.layout import Layout, PackedLayout, PaddedLayout
from bleuprint.model.linear import Linear, unpad_rows
from bleuprint.model.positions import sinusoidal_positions
from bleuprint.runtime.errors import UserError


def swiglu(x: Tensor) -> Tensor:
    """SiLU of the first half of the last dimension times the second half (Shazeer 2020)."""
    gate, value = x.chunk(2, dim=-1)
    return functional.silu(gate) * value


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "swiglu": swiglu,
}


class FeedForward(nn.Module):
    """Position-wise feed-forward network (section 3.3)."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.activation = _ACTIVATIONS[settings.activation]
        inner = 2 * settings.d_ff if settings.activation == "swiglu" else settings.d_ff
        self.fc1 = Linear(settings.d_model, inner, bias=settings.bias)
        self.fc2 = Linear(settings.d_ff, settings.d_model, bias=settings.bias)
        self.dropout = settings.dropout.activation

    def forward(self, x: Tensor) -> Tensor:
        hidden = dropout(self.activation(self.fc1(x)), self.dropout, self.training)
        result: Tensor = self.fc2(hidden)
        return result


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm that computes in float32 whatever the type of its input and output.

    On GPUs that is one kernel, without copies, where layers are compiled.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.device.type == "cpu":  # whose kernel takes bfloat16 with float32 weights
            return super().forward(input)
        return super().forward(input.float()).to(input.dtype)


class RMSNorm(nn.RMSNorm):
    """nn.RMSNorm that computes in float32 whatever the type of its input and output."""

    def forward(self, x: Tensor) -> Tensor:
        dtype = torch.promote_types(x.dtype, torch.float32)
        return super().forward(x.to(dtype)).to(x.dtype)


def norm_of(settings: Settings) -> nn.Module:
    if settings.normalization == "rms":
        return RMSNorm(settings.d_model, eps=1e-6)
    return LayerNorm(settings.d_model)


class ResidualConnection(nn.Module):
    """A residual connection with a norm around a sublayer f (section 3.1).

    Post-norm: norm(x + f(x)); pre-norm: x + f(norm(x)).
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.norm = norm_of(settings)
        self.dropout = settings.dropout.residual
        self.is_pre_norm = settings.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        output = sublayer(self.norm(x) if self.is_pre_norm else x)
        x = x + dropout(output, self.dropout, self.training)
        return x if self.is_pre_norm else self.norm(x)


class EncoderLayer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(settings)
        self.feed_forward = FeedForward(settings)
        self.self_attention_residual = ResidualConnection(settings)
        self.feed_forward_residual = ResidualConnection(settings)

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, layout))
        result: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return result


class DecoderLayer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(settings)
        self.cross_attention = MultiHeadAttention(settings)
        self.feed_forward = FeedForward(settings)
        self.self_attention_residual = ResidualConnection(settings)
        self.cross_attention_residual = ResidualConnection(settings)
        self.feed_forward_residual = ResidualConnection(settings)

    def forward(self, x: Tensor, layout: Layout, memory: Tensor, of_memory: Layout) -> Tensor:
        attention = self.cross_attention
        key, value = attention.project_key_value(memory, of_memory)
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, layout, causal=True))
        x = self.cross_attention_residual(
            x, lambda y: attention.cross(y, layout, key, value, of_memory)
        )
        result: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return result

    def step(self, x: Tensor, layer: int, cache: KVCache) -> Tensor:
        """`forward` for one new token of each of N hypotheses, x (N, D)."""
        attention = self.cross_attention
        x = self.self_attention_residual(x, lambda y: self.self_attention.step(y, layer, cache))
        x = self.cross_attention_residual(x, lambda y: attention.cross_step(y, layer, cache))
        result: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return result


class AttentionWeights(NamedTuple):
    """Attention weights of each layer, (B, H, query, key); rows sum to 1.

    Rows of padding are meaningless.
    """

    encoder: list[Tensor]  # (B, H, S, S)
    decoder: list[Tensor]  # (B, H, T, T), 0 above the diagonal
    cross: list[Tensor]  # (B, H, T, S)


class Transformer(nn.Module):
    """Encoder and decoder."""

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int) -> None:
        """The vocabularies are sizes in tokens; one vocabulary if tie_embeddings is "all"."""
        super().__init__()
        self.settings = settings
        self.layer_drop = settings.layer_drop
        # the type of activations and products, if it is not that of the parameters
        self.activation_dtype: torch.dtype | None = None
        self.is_compiled = False  # whether training compiles its layers, and the loss
        d_model = settings.d_model
        self.source_embedding = nn.Embedding(source_vocabulary, d_model)
        self.target_embedding = nn.Embedding(target_vocabulary, d_model)
        self.projection = Linear(d_model, target_vocabulary, bias=settings.output_bias)
        self.encoder = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.decoder_layers))
        pre = settings.norm == "pre"
        self.encoder_norm = norm_of(settings) if pre else nn.Identity()
        self.decoder_norm = norm_of(settings) if pre else nn.Identity()
        self.source_positions, self.target_positions = (
            nn.Embedding(settings.max_positions, d_model)
            if settings.positional_encoding == "learned"
            else None
            for _ in range(2)
        )
        if settings.tie_embeddings in ("all", "decoder"):
            self.projection.weight = self.target_embedding.weight
        if settings.tie_embeddings == "all":
            assert source_vocabulary == target_vocabulary, "tied embeddings of two vocabularies"
            self.source_embedding.weight = self.target_embedding.weight
        initialize(self, settings)

    def encode(
        self, source: Tensor, has_padding: bool | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Source ids (B, S) to memory (B, S, D) and mask (B, 1, 1, S), None if nothing is PAD.

        `has_padding`: whether `source` contains PAD; None reads the tensor, which
        waits for an accelerator to compute it.
        """
        layout = self._padded(source, _padding_mask(source, has_padding))
        x = self._embed(self.source_embedding, self.source_positions, source)
        return unpad_rows(self._encode(layout.rows(x), layout), layout.size), layout.mask

    def decode(self, target: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Target ids (B, T) to hidden states (B, T, D); no position sees a later one."""
        layout, of_memory = self._padded(target), self._padded(memory, mask)
        x = self._embed(self.target_embedding, self.target_positions, target)
        rows = self._decode(layout.rows(x), layout, of_memory.rows(memory), of_memory)
        return unpad_rows(rows, layout.size)

    def packed_hidden_states(self, batch: PackedBatch) -> Tensor:
        """Hidden states (R, D) of the packed target, as `decode` after `encode`."""
        source, target = (
            PackedLayout(side.offsets, batch.longest) for side in (batch.source, batch.target)
        )
        x = self._embed(self.source_embedding, self.source_positions, *batch.source[:2])
        y = self._embed(self.target_embedding, self.target_positions, *batch.target[:2])
        return self._decode(y, target, self._encode(x, source), source)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) of the next token at each position, for ids (B, S) and (B, T)."""
        logits: Tensor = self.projection(self.decode(target, *self.encode(source)))
        return logits

    def init_cache(self, source: Tensor) -> KVCache:
        """The cache before the first target token, for source ids (B, S)."""
        memory, mask = self.encode(source)
        layout = self._padded(memory)
        rows, attentions = (
            layout.rows(memory),
            (each.cross_attention for each in self.decoder_layers),
        )
        return KVCache([each.project_key_value(rows, layout) for each in attentions], mask)

    def step(self, tokens: Tensor, cache: KVCache) -> tuple[Tensor, KVCache]:
        """Logits (N, V) of the token after `tokens` (N,), and the cache that includes these.

        The given cache is changed. The logits of PAD and BOS are -inf.
        """
        cache.advance(len(tokens))
        x = self._embed(
            self.target_embedding, self.target_positions, tokens[:, None], cache.position
        )[:, 0]
        for index, layer in enumerate(self.decoder_layers):
            x = layer.step(x, index, cache)
        return self._next_token_logits(self.decoder_norm(x)), cache

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities (N, V) of the next token after hidden states (N, D), as in `step`."""
        return torch.log_softmax(self._next_token_logits(hidden).float(), -1)

    @property
    def encoder_layers(self) -> list[EncoderLayer]:
        return [cast(EncoderLayer, layer) for layer in self.encoder]

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        return [cast(DecoderLayer, layer) for layer in self.decoder]

    @property
    def device(self) -> torch.device:
        return self.projection.weight.device

    @torch.no_grad()
    def attention_weights(self, source: Tensor, target: Tensor) -> AttentionWeights:
        """The attention weights of `forward`; in evaluation mode only."""
        assert not self.training, "attention weights do not include dropout"
        result = AttentionWeights([], [], [])
        for encoder_layer in self.encoder_layers:
            encoder_layer.self_attention.recorded = result.encoder
        for layer in self.decoder_layers:
            layer.self_attention.recorded = result.decoder
            layer.cross_attention.recorded = result.cross
        try:
            self.decode(target, *self.encode(source))
        finally:
            for module in self.modules():
                if isinstance(module, MultiHeadAttention):
                    module.recorded = None
        return result

    def _next_token_logits(self, hidden: Tensor) -> Tensor:
        """Logits (N, V) after hidden states (N, D); -inf for PAD and BOS, which texts lack."""
        logits: Tensor = self.projection(hidden)
        logits[:, PAD] = logits[:, BOS] = -torch.inf
        return logits

    def _padded(self, x: Tensor, mask: Tensor | None = None) -> PaddedLayout:
        """The layout of sentences (B, T, ...)."""
        return PaddedLayout(
            (x.size(0), x.size(1)), mask, x.device.type == "cpu" and not self.is_compiled
        )

    def _encode(self, x: Tensor, layout: Layout) -> Tensor:
        for layer in self._drop_layers(self.encoder):
            x = layer(x, layout)
        result: Tensor = self.encoder_norm(x)
        return result

    def _decode(self, x: Tensor, layout: Layout, memory: Tensor, of_memory: Layout) -> Tensor:
        for layer in self._drop_layers(self.decoder):
            x = layer(x, layout, memory, of_memory)
        result: Tensor = self.decoder_norm(x)
        return result

    def _drop_layers(self, layers: nn.ModuleList) -> Iterable[nn.Module]:
        """The layers to run: in training, LayerDrop leaves some out (Fan et al. 2020)."""
        if not self.layer_drop or not self.training:
            return layers
        # drawn on the CPU whatever the model's device, so that nothing waits for an accelerator
        kept = torch.rand(len(layers), device="cpu") >= self.layer_drop
        return compress(layers, kept.tolist())

    def _embed(
        self,
        embedding: nn.Embedding,
        learned: nn.Embedding | None,
        ids: Tensor,
        at: Tensor | int = 0,
    ) -> Tensor:
        """Embed ids (B, T) at positions from `at` on, (B, T, D); or ids (R,) at positions (R,)."""
        settings = self.settings
        if not isinstance(at, Tensor) and (end := at + ids.size(1)) > settings.max_positions:
            raise UserError(
                f"a sentence of {end} positions is too long: "
                f"model.max_positions is {settings.max_positions}"
            )
        x = embedding(ids)
        if settings.scale_embeddings:
            x = x * math.sqrt(settings.d_model)
        if learned is not None:
            x = x + (learned(at) if isinstance(at, Tensor) else learned.weight[at:end])
        elif settings.positional_encoding == "sinusoidal":
            positions = at if isinstance(at, Tensor) else torch.arange(at, end, device=ids.device)
            x = x + sinusoidal_positions(positions, settings.d_model)
        x = x if self.activation_dtype is None else x.to(self.activation_dtype)
        return dropout(x, settings.dropout.embedding, self.training)


def count_parameters(model: nn.Module) -> int:
    """Trained parameters; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def _padding_mask(ids: Tensor, has_padding: bool | None) -> Tensor | None:
    """(B, 1, 1, S) for ids (B, S): False at PAD; None if there is no PAD."""
    is_token = ids != PAD
    if has_padding is None:
        has_padding = not bool(is_token.all())
    return is_token[:, None, None, :] if has_padding else None
