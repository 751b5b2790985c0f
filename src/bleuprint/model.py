"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the paper's names.

Shapes, throughout: B sentences in a batch, S source and T target positions, D d_model,
F d_ff, H heads, K = D / H, V units of the target's vocabulary. Masks are True at words.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from bleuprint.settings import Model as Settings
from bleuprint.vocabulary import BOS, PAD


class Attention(nn.Module):
    """Multi-head attention (section 3.2); the three input projections share one matrix."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.input = nn.Linear(d_model, 3 * d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Self-attention over x (B, T, D); `mask` (B, 1, 1, T) says which keys count."""
        query, key, value = (self._split(part) for part in self.input(x).chunk(3, dim=-1))
        return self._attend(query, key, value, mask, causal)

    def cross(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attention from x (B, T, D) to the keys and values (B, H, S, K) of `remember`."""
        d_model = x.size(-1)
        weight, bias = self.input.weight[:d_model], self.input.bias[:d_model]
        return self._attend(self._split(functional.linear(x, weight, bias)), key, value, mask)

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, K) of the encoder's output (B, S, D)."""
        d_model = memory.size(-1)
        joint = functional.linear(memory, self.input.weight[d_model:], self.input.bias[d_model:])
        key, value = joint.chunk(2, dim=-1)
        return self._split(key), self._split(value)

    def step(self, x: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor, Tensor]:
        """Self-attention of one new position x (B, 1, D) to itself and the `past` keys, values."""
        query, key, value = (self._split(part) for part in self.input(x).chunk(3, dim=-1))
        if past is not None:
            key, value = torch.cat((past[0], key), dim=2), torch.cat((past[1], value), dim=2)
        return self._attend(query, key, value, None), key, value

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool = False
    ) -> Tensor:
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal
        )
        result: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return result


class FeedForward(nn.Module):
    """Position-wise feed-forward network (section 3.3)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.outer(functional.relu(self.inner(x)))
        return result


class Sublayer(nn.Module):
    """A residual connection with its layer norm: LayerNorm(x + f(x)), or x + f(LayerNorm(x))."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(settings.d_model)
        self.dropout = settings.dropout
        self.pre = settings.norm == "pre"

    def before(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.pre else x

    def after(self, x: Tensor, change: Tensor) -> Tensor:
        x = x + functional.dropout(change, self.dropout, self.training)
        return x if self.pre else self.norm(x)


class EncoderLayer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.self_attention = Attention(settings.d_model, settings.heads)
        self.feed_forward = FeedForward(settings.d_model, settings.d_ff)
        self.first, self.second = Sublayer(settings), Sublayer(settings)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.first.after(x, self.self_attention(self.first.before(x), mask))
        return self.second.after(x, self.feed_forward(self.second.before(x)))


class DecoderLayer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.self_attention = Attention(settings.d_model, settings.heads)
        self.cross_attention = Attention(settings.d_model, settings.heads)
        self.feed_forward = FeedForward(settings.d_model, settings.d_ff)
        self.first, self.second, self.third = (Sublayer(settings) for _ in range(3))

    def forward(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        x = self.first.after(x, self.self_attention(self.first.before(x), causal=True))
        return self._read(x, key, value, mask)

    def step(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None, cross: "Cross"
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        change, *present = self.self_attention.step(self.first.before(x), past)
        x = self.first.after(x, change)
        # hypotheses of one sentence read its source together, as so many query positions
        sentences = cross.key.size(0)
        together = x.view(sentences, -1, x.size(-1))
        x = self._read(together, cross.key, cross.value, cross.mask).view(x.shape)
        return x, (present[0], present[1])

    def _read(self, x: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        change = self.cross_attention.cross(self.second.before(x), key, value, mask)
        x = self.second.after(x, change)
        return self.third.after(x, self.feed_forward(self.third.before(x)))


@dataclass(frozen=True)
class Cross:
    """What one decoder layer reads of the source: key and value (B, H, S, K), mask (B, 1, 1, S)."""

    key: Tensor
    value: Tensor
    mask: Tensor | None


@dataclass
class DecoderState:
    """What a decoder keeps between steps: the sources (B rows), its own past (N hypotheses)."""

    cross: list[Cross]
    past: list[tuple[Tensor, Tensor]] | None
    position: int

    def select(self, hypotheses: Tensor, sentences: Tensor | None = None) -> "DecoderState":
        """The state of these rows; N is a multiple of B, each sentence's hypotheses together."""
        past = self.past and [(key[hypotheses], value[hypotheses]) for key, value in self.past]
        cross = self.cross
        if sentences is not None:
            cross = [
                Cross(
                    c.key[sentences],
                    c.value[sentences],
                    c.mask if c.mask is None else c.mask[sentences],
                )
                for c in cross
            ]
        return DecoderState(cross, past, self.position)


class Transformer(nn.Module):
    """Encoder and decoder with embeddings scaled by sqrt(D) and sinusoidal positions."""

    def __init__(self, settings: Settings, source_vocabulary: int, target_vocabulary: int) -> None:
        """The vocabularies are numbers of units; with tie "all" the two are one vocabulary."""
        super().__init__()
        self.settings = settings
        self.source_embedding = nn.Embedding(source_vocabulary, settings.d_model)
        self.target_embedding = nn.Embedding(target_vocabulary, settings.d_model)
        self.projection = nn.Linear(settings.d_model, target_vocabulary, bias=False)
        self.encoder = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.decoder_layers))
        pre = settings.norm == "pre"
        self.encoder_norm = nn.LayerNorm(settings.d_model) if pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(settings.d_model) if pre else nn.Identity()
        if settings.tie in ("all", "decoder"):
            self.projection.weight = self.target_embedding.weight
        if settings.tie == "all":
            assert source_vocabulary == target_vocabulary, "tied embeddings of two vocabularies"
            self.source_embedding.weight = self.target_embedding.weight
        self._initialise()

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor | None]:
        """Source ids (B, S) to memory (B, S, D), mask (B, 1, 1, S); None if nothing is PAD."""
        words = source != PAD
        mask = None if bool(words.all()) else words[:, None, None, :]
        x = self._embed(self.source_embedding, source, 0)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x), mask

    def decode(self, target: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Target ids (B, T), each position seeing those before it, to hidden states (B, T, D)."""
        x = self._embed(self.target_embedding, target, 0)
        for layer in self._decoder_layers():
            x = layer(x, *layer.cross_attention.remember(memory), mask)
        result: Tensor = self.decoder_norm(x)
        return result

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) of each next word, for ids (B, S) and (B, T)."""
        logits: Tensor = self.projection(self.decode(target, *self.encode(source)))
        return logits

    def start(self, source: Tensor) -> DecoderState:
        """The state before the first target word, for source ids (B, S)."""
        memory, mask = self.encode(source)
        reads = (layer.cross_attention.remember(memory) for layer in self._decoder_layers())
        return DecoderState([Cross(key, value, mask) for key, value in reads], None, 0)

    def step(self, words: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Logits (N, V) of the word after `words` (N,), and the state that includes them.

        PAD and BOS, which are no words, have logits of minus infinity.
        """
        x = self._embed(self.target_embedding, words[:, None], state.position)
        past = []
        for index, layer in enumerate(self._decoder_layers()):
            before = None if state.past is None else state.past[index]
            x, present = layer.step(x, before, state.cross[index])
            past.append(present)
        logits: Tensor = self.projection(self.decoder_norm(x)[:, 0])
        logits[:, PAD] = logits[:, BOS] = -torch.inf
        return logits, DecoderState(state.cross, past, state.position + 1)

    def _decoder_layers(self) -> Iterator[DecoderLayer]:
        return (cast(DecoderLayer, layer) for layer in self.decoder)

    def _embed(self, embedding: nn.Module, ids: Tensor, position: int) -> Tensor:
        d_model = self.settings.d_model
        signal = positions(position, ids.size(1), d_model, ids.device)
        x = embedding(ids) * math.sqrt(d_model) + signal
        return functional.dropout(x, self.settings.dropout, self.training)

    def _initialise(self) -> None:
        """Xavier uniform for each projection; embeddings normal with deviation D^-0.5."""
        for name, parameter in self.named_parameters():
            if "embedding" in name or name == "projection.weight":
                nn.init.normal_(parameter, std=self.settings.d_model**-0.5)
            elif name.endswith("attention.input.weight"):
                for part in parameter.detach().chunk(3):
                    nn.init.xavier_uniform_(part)
            elif parameter.dim() == 2:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)


def positions(start: int, length: int, d_model: int, device: torch.device) -> Tensor:
    """Sinusoids (length, D) of section 3.5: sin in the even, cos in the odd dimensions."""
    place = torch.arange(start, start + length, device=device, dtype=torch.float32)[:, None]
    dimension = torch.arange(0, d_model, 2, device=device, dtype=torch.float32)
    angle = place * torch.exp(dimension * (-math.log(10000.0) / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


def count_parameters(model: nn.Module) -> int:
    """Trained parameters, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())
