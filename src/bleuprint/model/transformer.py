"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the paper's names.

Shapes, throughout: B sentences in a batch, S source and T target positions, D d_model,
F d_ff, H heads, K d_k (values have d_v), V units of the target's vocabulary. Masks are True at
words.
"""

import math
from itertools import compress
from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.config.system import Model as Settings
from bleuprint.dataset.subwords.vocabulary import BOS, PAD
from bleuprint.model.dropout import drop
from bleuprint.model.kv_cache import Cache
from bleuprint.model.linear import Linear, linear
from bleuprint.runtime.errors import UserError

Layer = TypeVar("Layer")


class Attention(nn.Module):
    """Multi-head attention (section 3.2); the three input projections share one matrix."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.heads = settings.heads
        self.parts = _parts(settings)
        self.input = Linear(settings.d_model, sum(self.parts), bias=settings.bias)
        self.output = Linear(self.parts[2], settings.d_model, bias=settings.bias)
        self.dropout = settings.dropout.attention

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Self-attention over x (B, T, D); `mask` (B, 1, 1, T) says which keys count."""
        return self._attend(*self.project(x), mask, causal)

    def cross(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attention from x (B, T, D) to the keys and values of `remember`."""
        return self._attend(self.ask(x), key, value, mask)

    def step(self, x: Tensor, layer: int, cache: Cache) -> Tensor:
        """Self-attention of one new word of each of N hypotheses, x (N, D), in the cache."""
        parts = torch.split(self.input(x), self.parts, dim=-1)
        result: Tensor = self.output(cache.attend(layer, *parts))
        return result

    def cross_step(self, x: Tensor, layer: int, cache: Cache) -> Tensor:
        """Attention from x (N, D) to the sources in the cache."""
        query = self._rows(x, slice(None, self.parts[0]))
        result: Tensor = self.output(cache.read(layer, query))
        return result

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys (B, H, T, K) and values (B, H, T, d_v) of x (B, T, D)."""
        query, key, value = torch.split(self.input(x), self.parts, dim=-1)
        return self._split(query), self._split(key), self._split(value)

    def ask(self, x: Tensor) -> Tensor:
        """Queries (B, H, T, K) alone."""
        return self._split(self._rows(x, slice(None, self.parts[0])))

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (B, H, S, K) and values (B, H, S, d_v) of the encoder's output (B, S, D)."""
        joint = self._rows(memory, slice(self.parts[0], None))
        key, value = torch.split(joint, self.parts[1:], dim=-1)
        return self._split(key), self._split(value)

    @staticmethod
    def weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
        """By which attention mixes values (B, H, T, S); the fused kernel does not give them."""
        scores = query @ key.transpose(2, 3) / math.sqrt(query.size(-1))
        return (scores if mask is None else scores.where(mask, -torch.inf)).softmax(dim=-1)

    def _rows(self, x: Tensor, rows: slice) -> Tensor:
        """x times some rows of the joint matrix."""
        weight, bias = self.input.weight, self.input.bias
        return linear(x, weight[rows], None if bias is None else bias[rows])

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool = False
    ) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal
        )
        result: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return result


class FeedForward(nn.Module):
    """Position-wise feed-forward network (section 3.3)."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.inner = Linear(settings.d_model, settings.d_ff, bias=settings.bias)
        self.outer = Linear(settings.d_ff, settings.d_model, bias=settings.bias)
        self.activation = functional.relu if settings.activation == "relu" else functional.gelu
        self.dropout = settings.dropout.activation

    def forward(self, x: Tensor) -> Tensor:
        inner = drop(self.activation(self.inner(x)), self.dropout, self.training)
        result: Tensor = self.outer(inner)
        return result


class Sublayer(nn.Module):
    """A residual connection with its layer norm: LayerNorm(x + f(x)), or x + f(LayerNorm(x))."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(settings.d_model)
        self.dropout = settings.dropout.residual
        self.pre = settings.norm == "pre"

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.pre else x

    def after(self, x: Tensor, change: Tensor) -> Tensor:
        x = x + drop(change, self.dropout, self.training)
        return x if self.pre else self.norm(x)


class EncoderLayer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.self_attention = Attention(settings)
        self.feed_forward = FeedForward(settings)
        self.first, self.second = Sublayer(settings), Sublayer(settings)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.first.after(x, self.self_attention(self.first.before(x), mask))
        return self.second.after(x, self.feed_forward(self.second.before(x)))

    def weights(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The attention weights (B, H, S, S) of `forward`."""
        query, key, _ = self.self_attention.project(self.first.before(x))
        return Attention.weights(query, key, mask)


class DecoderLayer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.self_attention = Attention(settings)
        self.cross_attention = Attention(settings)
        self.feed_forward = FeedForward(settings)
        self.first, self.second, self.third = (Sublayer(settings) for _ in range(3))

    def forward(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        x = self.first.after(x, self.self_attention(self.first.before(x), causal=True))
        change = self.cross_attention.cross(self.second.before(x), key, value, mask)
        return self._inner(self.second.after(x, change))

    def step(self, x: Tensor, layer: int, cache: Cache) -> Tensor:
        """`forward` for one new word of each of N hypotheses, x (N, D)."""
        x = self.first.after(x, self.self_attention.step(self.first.before(x), layer, cache))
        change = self.cross_attention.cross_step(self.second.before(x), layer, cache)
        return self._inner(self.second.after(x, change))

    def weights(self, x: Tensor, key: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attention weights of `forward`: (B, H, T, T) among targets, (B, H, T, S) to sources."""
        past = torch.ones(x.size(1), x.size(1), dtype=torch.bool, device=x.device).tril()
        own_query, own_key, _ = self.self_attention.project(self.first.before(x))
        own = Attention.weights(own_query, own_key, past)
        x = self.first.after(x, self.self_attention(self.first.before(x), causal=True))
        query = self.cross_attention.ask(self.second.before(x))
        return own, Attention.weights(query, key, mask)

    def _inner(self, x: Tensor) -> Tensor:
        return self.third.after(x, self.feed_forward(self.third.before(x)))


class AttentionWeights(NamedTuple):
    """How much each position takes of each other: for each layer, (B, H, to, from); rows sum to 1.

    Rows of padding mean nothing.
    """

    encoder: list[Tensor]  # (B, H, S, S)
    decoder: list[Tensor]  # (B, H, T, T), 0 above the diagonal
    cross: list[Tensor]  # (B, H, T, S)


class Transformer(nn.Module):
    """Encoder and decoder, with embeddings scaled by sqrt(D) before positions are added."""

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int) -> None:
        """The vocabularies are numbers of units; with tie "all" the two are one vocabulary."""
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
            nn.Embedding(settings.max_length, d_model) if settings.positions == "learned" else None
            for _ in range(2)
        )
        if settings.tie in ("all", "decoder"):
            self.projection.weight = self.target_embedding.weight
        if settings.tie == "all":
            assert source_vocabulary == target_vocabulary, "tied embeddings of two vocabularies"
            self.source_embedding.weight = self.target_embedding.weight
        self._initialise()

    def encode(self, source: Tensor, padded: bool | None = None) -> tuple[Tensor, Tensor | None]:
        """Source ids (B, S) to memory (B, S, D), mask (B, 1, 1, S); None if nothing is PAD.

        `padded` tells if something is; to look costs an accelerator a wait.
        """
        mask = _mask(source, padded)
        x = self._embed(self.source_embedding, self.source_positions, source, 0)
        for layer in self._kept(self._encoder_layers()):
            x = layer(x, mask)
        return self.encoder_norm(x), mask

    def decode(self, target: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Target ids (B, T), each position seeing those before it, to hidden states (B, T, D)."""
        x = self._embed(self.target_embedding, self.target_positions, target, 0)
        for layer in self._kept(self._decoder_layers()):
            x = layer(x, *layer.cross_attention.remember(memory), mask)
        result: Tensor = self.decoder_norm(x)
        return result

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) of each next word, for ids (B, S) and (B, T)."""
        logits: Tensor = self.projection(self.decode(target, *self.encode(source)))
        return logits

    def start(self, source: Tensor) -> Cache:
        """The state before the first target word, for source ids (B, S)."""
        memory, mask = self.encode(source)
        reads = (layer.cross_attention.remember(memory) for layer in self._decoder_layers())
        return Cache(list(reads), mask)

    def step(self, words: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Logits (N, V) of the word after `words` (N,), and the state that includes them.

        The state before is used up. PAD and BOS, which are no words, have logits of minus infinity.
        """
        cache.begin(len(words))
        x = self._embed(
            self.target_embedding, self.target_positions, words[:, None], cache.position
        )[:, 0]
        for index, layer in enumerate(self._decoder_layers()):
            x = layer.step(x, index, cache)
        return self._logits(self.decoder_norm(x)), cache

    def probabilities(self, hidden: Tensor) -> Tensor:
        """Log-probabilities (N, V) of the words after hidden states (N, D), as in `step`."""
        return torch.log_softmax(self._logits(hidden).float(), -1)

    @property
    def device(self) -> torch.device:
        return self.projection.weight.device

    @torch.no_grad()
    def attention_weights(self, source: Tensor, target: Tensor) -> AttentionWeights:
        """What `forward` mixes by, for pictures: computed beside it, in evaluation only."""
        assert not self.training, "attention weights without what dropout does to them"
        found, mask = AttentionWeights([], [], []), _mask(source, None)
        x = self._embed(self.source_embedding, self.source_positions, source, 0)
        for encoder_layer in self._encoder_layers():
            found.encoder.append(encoder_layer.weights(x, mask))
            x = encoder_layer(x, mask)
        memory = self.encoder_norm(x)
        x = self._embed(self.target_embedding, self.target_positions, target, 0)
        for layer in self._decoder_layers():
            key, value = layer.cross_attention.remember(memory)
            own, cross = layer.weights(x, key, mask)
            found.decoder.append(own)
            found.cross.append(cross)
            x = layer(x, key, value, mask)
        return found

    def _logits(self, hidden: Tensor) -> Tensor:
        """Logits of words to come (N, V), for hidden states (N, D)."""
        logits: Tensor = self.projection(hidden)
        logits[:, PAD] = logits[:, BOS] = -torch.inf
        return logits

    def _encoder_layers(self) -> list[EncoderLayer]:
        return [cast(EncoderLayer, layer) for layer in self.encoder]

    def _decoder_layers(self) -> list[DecoderLayer]:
        return [cast(DecoderLayer, layer) for layer in self.decoder]

    def _kept(self, layers: list[Layer]) -> list[Layer]:
        """The layers, in training without those that LayerDrop leaves out (Fan et al. 2020)."""
        share = self.layer_drop
        if not share or not self.training:
            return layers
        # the CPU's draws, wherever the model is: nothing waits for the accelerator
        kept = torch.rand(len(layers), device="cpu") >= share
        return list(compress(layers, kept.tolist()))

    def _embed(
        self, words: nn.Embedding, places: nn.Embedding | None, ids: Tensor, start: int
    ) -> Tensor:
        """Ids (B, T) at positions from `start` on to (B, T, D)."""
        settings, end = self.settings, start + ids.size(1)
        if end > settings.max_length:
            raise UserError(
                f"a sentence of {end} positions is too long: "
                f"model.max_length is {settings.max_length}"
            )
        if places is None:
            signal = positions(start, ids.size(1), settings.d_model, ids.device)
        else:
            signal = places.weight[start:end]
        x = words(ids) * math.sqrt(settings.d_model) + signal
        return drop(x, settings.dropout.embedding, self.training)

    def _initialise(self) -> None:
        """As `settings.initialisation` says; biases are 0, norms change nothing."""
        by, d_model = self.settings.initialisation, self.settings.d_model
        for name, parameter in self.named_parameters():
            layer = name.startswith(("encoder", "decoder"))
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 1:
                continue  # a norm's factors, 1 as they are
            elif by != "xavier" and not layer:
                nn.init.normal_(parameter, std=d_model**-0.5)
            elif by == "small":
                nn.init.normal_(parameter, std=math.sqrt(2 / (5 * d_model)))
            elif name.endswith("attention.input.weight"):
                for part in torch.split(parameter.detach(), _parts(self.settings)):
                    nn.init.xavier_uniform_(part)
            else:
                nn.init.xavier_uniform_(parameter)


def positions(start: int, length: int, d_model: int, device: torch.device) -> Tensor:
    """Sinusoids (length, D) of section 3.5: sin in the even, cos in the odd dimensions."""
    place = torch.arange(start, start + length, device=device, dtype=torch.float32)[:, None]
    dimension = torch.arange(0, d_model, 2, device=device, dtype=torch.float32)
    angle = place * torch.exp(dimension * (-math.log(10000.0) / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


def count_parameters(model: nn.Module) -> int:
    """Trained parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def _parts(settings: Settings) -> list[int]:
    """Rows of attention's joint matrix: those that make queries, keys and values."""
    keys, values = settings.heads * settings.d_k, settings.heads * settings.d_v
    return [keys, keys, values]


def _mask(ids: Tensor, padded: bool | None) -> Tensor | None:
    """(B, 1, 1, S) for ids (B, S): True at words; None if nothing is PAD."""
    words = ids != PAD
    if padded is None:
        padded = not bool(words.all())
    return words[:, None, None, :] if padded else None
