"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), with the paper's names.

Shapes: B sentences in a batch, S source and T target positions, D d_model, F d_ff, H heads, K d_k
(values have d_v), V tokens of the target vocabulary, N hypotheses. Masks are False at padding.
"""

import math
from itertools import compress
from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.config.system import Model as Settings
from bleuprint.dataset.subwords.vocabulary import BOS, PAD
from bleuprint.model.attention import Attention
from bleuprint.model.dropout import dropout
from bleuprint.model.initialization import initialize
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.linear import Linear
from bleuprint.runtime.errors import UserError

Layer = TypeVar("Layer")


class FeedForward(nn.Module):
    """Position-wise feed-forward network (section 3.3)."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.fc1 = Linear(settings.d_model, settings.d_ff, bias=settings.bias)
        self.fc2 = Linear(settings.d_ff, settings.d_model, bias=settings.bias)
        self.activation = functional.relu if settings.activation == "relu" else functional.gelu
        self.dropout = settings.dropout.activation

    def forward(self, x: Tensor) -> Tensor:
        hidden = dropout(self.activation(self.fc1(x)), self.dropout, self.training)
        result: Tensor = self.fc2(hidden)
        return result


class ResidualConnection(nn.Module):
    """A residual connection with layer norm around a sublayer f (section 3.1).

    Post-norm: LayerNorm(x + f(x)); pre-norm: x + f(LayerNorm(x)).
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(settings.d_model)
        self.dropout = settings.dropout.residual
        self.is_pre_norm = settings.norm == "pre"

    def pre_norm(self, x: Tensor) -> Tensor:
        """The input of f."""
        return self.norm(x) if self.is_pre_norm else x

    def add(self, x: Tensor, output: Tensor) -> Tensor:
        """Add the output of f to x."""
        x = x + dropout(output, self.dropout, self.training)
        return x if self.is_pre_norm else self.norm(x)


class EncoderLayer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.self_attention = Attention(settings)
        self.feed_forward = FeedForward(settings)
        self.self_attention_residual = ResidualConnection(settings)
        self.feed_forward_residual = ResidualConnection(settings)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        residual = self.self_attention_residual
        x = residual.add(x, self.self_attention(residual.pre_norm(x), mask))
        residual = self.feed_forward_residual
        return residual.add(x, self.feed_forward(residual.pre_norm(x)))

    def attention_weights(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The attention weights (B, H, S, S) of `forward`."""
        query, key, _ = self.self_attention.project_qkv(self.self_attention_residual.pre_norm(x))
        return Attention.weights(query, key, mask)


class DecoderLayer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.self_attention = Attention(settings)
        self.cross_attention = Attention(settings)
        self.feed_forward = FeedForward(settings)
        self.self_attention_residual = ResidualConnection(settings)
        self.cross_attention_residual = ResidualConnection(settings)
        self.feed_forward_residual = ResidualConnection(settings)

    def forward(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        x = self._attend_to_self(x)
        residual = self.cross_attention_residual
        x = residual.add(x, self.cross_attention.cross(residual.pre_norm(x), key, value, mask))
        return self._feed_forward(x)

    def step(self, x: Tensor, layer: int, cache: KVCache) -> Tensor:
        """`forward` for one new token of each of N hypotheses, x (N, D)."""
        residual = self.self_attention_residual
        x = residual.add(x, self.self_attention.step(residual.pre_norm(x), layer, cache))
        residual = self.cross_attention_residual
        x = residual.add(x, self.cross_attention.cross_step(residual.pre_norm(x), layer, cache))
        return self._feed_forward(x)

    def attention_weights(
        self, x: Tensor, key: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Attention weights of `forward`: (B, H, T, T) to the target, (B, H, T, S) to source."""
        causal = torch.ones(x.size(1), x.size(1), dtype=torch.bool, device=x.device).tril()
        normed = self.self_attention_residual.pre_norm(x)
        own_query, own_key, _ = self.self_attention.project_qkv(normed)
        own = Attention.weights(own_query, own_key, causal)
        x = self._attend_to_self(x)
        query = self.cross_attention.project_query(self.cross_attention_residual.pre_norm(x))
        return own, Attention.weights(query, key, mask)

    def _attend_to_self(self, x: Tensor) -> Tensor:
        residual = self.self_attention_residual
        return residual.add(x, self.self_attention(residual.pre_norm(x), causal=True))

    def _feed_forward(self, x: Tensor) -> Tensor:
        residual = self.feed_forward_residual
        return residual.add(x, self.feed_forward(residual.pre_norm(x)))


class AttentionWeights(NamedTuple):
    """Attention weights of each layer, (B, H, query, key); rows sum to 1.

    Rows of padding are meaningless.
    """

    encoder: list[Tensor]  # (B, H, S, S)
    decoder: list[Tensor]  # (B, H, T, T), 0 above the diagonal
    cross: list[Tensor]  # (B, H, T, S)


class Transformer(nn.Module):
    """Encoder and decoder; embeddings are scaled by sqrt(D) before positions are added."""

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int) -> None:
        """The vocabularies are sizes in tokens; one vocabulary if tie_embeddings is "all"."""
        super().__init__()
        self.settings = settings
        self.layer_drop = settings.layer_drop
        d_model = settings.d_model
        self.source_embedding = nn.Embedding(source_vocabulary, d_model)
        self.target_embedding = nn.Embedding(target_vocabulary, d_model)
        self.projection = Linear(d_model, target_vocabulary, bias=settings.output_bias)
        self.encoder = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.decoder_layers))
        pre = settings.norm == "pre"
        self.encoder_norm = nn.LayerNorm(d_model) if pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(d_model) if pre else nn.Identity()
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

        `has_padding`: whether `source` contains PAD; None reads the tensor, for which an
        accelerator has to be waited for.
        """
        mask = _padding_mask(source, has_padding)
        x = self._embed(self.source_embedding, self.source_positions, source, 0)
        for layer in self._drop_layers(self._encoder_layers()):
            x = layer(x, mask)
        return self.encoder_norm(x), mask

    def decode(self, target: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Target ids (B, T) to hidden states (B, T, D); no position sees a later one."""
        x = self._embed(self.target_embedding, self.target_positions, target, 0)
        for layer in self._drop_layers(self._decoder_layers()):
            x = layer(x, *layer.cross_attention.project_key_value(memory), mask)
        result: Tensor = self.decoder_norm(x)
        return result

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) of the next token at each position, for ids (B, S) and (B, T)."""
        logits: Tensor = self.projection(self.decode(target, *self.encode(source)))
        return logits

    def init_cache(self, source: Tensor) -> KVCache:
        """The cache before the first target token, for source ids (B, S)."""
        memory, mask = self.encode(source)
        layers = self._decoder_layers()
        return KVCache([layer.cross_attention.project_key_value(memory) for layer in layers], mask)

    def step(self, tokens: Tensor, cache: KVCache) -> tuple[Tensor, KVCache]:
        """Logits (N, V) of the token after `tokens` (N,), and the cache that includes these.

        The given cache is changed. The logits of PAD and BOS are -inf.
        """
        cache.advance(len(tokens))
        x = self._embed(
            self.target_embedding, self.target_positions, tokens[:, None], cache.position
        )[:, 0]
        for index, layer in enumerate(self._decoder_layers()):
            x = layer.step(x, index, cache)
        return self._next_token_logits(self.decoder_norm(x)), cache

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities (N, V) of the next token after hidden states (N, D), as in `step`."""
        return torch.log_softmax(self._next_token_logits(hidden).float(), -1)

    @property
    def device(self) -> torch.device:
        return self.projection.weight.device

    @torch.no_grad()
    def attention_weights(self, source: Tensor, target: Tensor) -> AttentionWeights:
        """The attention weights of `forward`; in evaluation mode only."""
        assert not self.training, "attention weights do not include dropout"
        result, mask = AttentionWeights([], [], []), _padding_mask(source, None)
        x = self._embed(self.source_embedding, self.source_positions, source, 0)
        for encoder_layer in self._encoder_layers():
            result.encoder.append(encoder_layer.attention_weights(x, mask))
            x = encoder_layer(x, mask)
        memory = self.encoder_norm(x)
        x = self._embed(self.target_embedding, self.target_positions, target, 0)
        for layer in self._decoder_layers():
            key, value = layer.cross_attention.project_key_value(memory)
            own, cross = layer.attention_weights(x, key, mask)
            result.decoder.append(own)
            result.cross.append(cross)
            x = layer(x, key, value, mask)
        return result

    def _next_token_logits(self, hidden: Tensor) -> Tensor:
        """Logits (N, V) after hidden states (N, D); -inf for PAD and BOS, which texts lack."""
        logits: Tensor = self.projection(hidden)
        logits[:, PAD] = logits[:, BOS] = -torch.inf
        return logits

    def _encoder_layers(self) -> list[EncoderLayer]:
        return [cast(EncoderLayer, layer) for layer in self.encoder]

    def _decoder_layers(self) -> list[DecoderLayer]:
        return [cast(DecoderLayer, layer) for layer in self.decoder]

    def _drop_layers(self, layers: list[Layer]) -> list[Layer]:
        """The layers to run: in training, LayerDrop leaves some out (Fan et al. 2020)."""
        if not self.layer_drop or not self.training:
            return layers
        # drawn on the CPU whatever the model's device, so that nothing waits for an accelerator
        kept = torch.rand(len(layers), device="cpu") >= self.layer_drop
        return list(compress(layers, kept.tolist()))

    def _embed(
        self, embedding: nn.Embedding, positions: nn.Embedding | None, ids: Tensor, start: int
    ) -> Tensor:
        """Embed ids (B, T) at positions from `start`: (B, T, D)."""
        settings, end = self.settings, start + ids.size(1)
        if end > settings.max_positions:
            raise UserError(
                f"a sentence of {end} positions is too long: "
                f"model.max_positions is {settings.max_positions}"
            )
        if positions is None:
            signal = sinusoidal_positions(start, ids.size(1), settings.d_model, ids.device)
        else:
            signal = positions.weight[start:end]
        x = embedding(ids) * math.sqrt(settings.d_model) + signal
        return dropout(x, settings.dropout.embedding, self.training)


def sinusoidal_positions(start: int, length: int, d_model: int, device: torch.device) -> Tensor:
    """Sinusoids (length, D) of section 3.5: sin in the even, cos in the odd dimensions."""
    position = torch.arange(start, start + length, device=device, dtype=torch.float32)[:, None]
    dimension = torch.arange(0, d_model, 2, device=device, dtype=torch.float32)
    angle = position * torch.exp(dimension * (-math.log(10000.0) / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


def count_parameters(model: nn.Module) -> int:
    """Trained parameters; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def _padding_mask(ids: Tensor, has_padding: bool | None) -> Tensor | None:
    """(B, 1, 1, S) for ids (B, S): False at PAD; None if there is no PAD."""
    is_token = ids != PAD
    if has_padding is None:
        has_padding = not bool(is_token.all())
    return is_token[:, None, None, :] if has_padding else None
