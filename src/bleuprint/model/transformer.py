"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), with the paper's names.

`Transformer` combines the layers of layers.py and the attention of attention.py. They compute on a
matrix with a row for each token of a batch; layout.py says which rows belong to a sentence. Which
library computes a product or an attention is chosen in backends.py.

Dimensions in shapes: `batch` is the number of sentences, `source_len` and `target_len` their
positions, `rows` all tokens of a batch, `hypotheses` those of a search, `vocabulary` the tokens of
the target vocabulary, `d_model` the size of a hidden state. Masks are False at padding.
"""

from typing import NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn

from bleuprint.config.system import Model as Settings
from bleuprint.dataset.batch import Batch
from bleuprint.dataset.packed_batch import PackedBatch
from bleuprint.dataset.subwords.vocabulary import BOS, PAD
from bleuprint.model.backends import needs_round_row_counts
from bleuprint.model.dropout import dropout
from bleuprint.model.initialization import initialize
from bleuprint.model.kv_cache import KVCache
from bleuprint.model.layers import (
    Decoder,
    DecoderLayer,
    Embedding,
    Encoder,
    EncoderLayer,
    create_norm,
)
from bleuprint.model.layout import Layout, PackedLayout, PaddedLayout
from bleuprint.model.linear import Linear
from bleuprint.model.own_parts import OwnPositions, PrefixCache
from bleuprint.model.positions import PositionalEncoding
from bleuprint.model.rows import unpad_rows
from bleuprint.runtime.errors import UserError

# The state of a search.
Cache: TypeAlias = KVCache | PrefixCache


class AttentionWeights(NamedTuple):
    """Attention weights of each layer, (batch, heads, positions of queries, positions of keys).

    Rows sum to 1; rows that belong to padding are meaningless.

    Attributes:
        encoder: Self-attention of the encoder, (batch, heads, source_len, source_len).
        decoder: Self-attention of the decoder, (batch, heads, target_len, target_len), 0 above the
            diagonal.
        cross: Attention of the decoder to the encoder's output, (batch, heads, target_len,
            source_len).
    """

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


class Transformer(nn.Module):
    """The Transformer: embeddings, encoder, decoder, and a projection to the target vocabulary.

    `forward` is the paper's model. There are two ways to run it. With known targets, training and
    forced decoding take `label_states` (padded batches) or `packed_hidden_states` (batches without
    padding) and compute losses from them. A search takes `init_cache` and then `step` after `step`.

    Attributes:
        settings: The shape of the model.
        layer_drop: The probability with which training skips a layer.
        activation_dtype: The type of activations and products; None: the parameters' type.
        is_compiled: Whether training compiles the layers, and the loss.
    """

    def __init__(self, settings: Settings, source_size: int, target_size: int) -> None:
        """Create a model with initial weights.

        The order of the modules must stay: each draws random numbers when it is created, and the
        weights in checkpoints have the modules' names and order.

        Args:
            settings: The settings of the model's shape.
            source_size: The number of tokens in the source vocabulary.
            target_size: The number of tokens in the target vocabulary. If `tie_embeddings` is
                "all", both languages share one vocabulary, and the numbers must be the same.
        """
        super().__init__()
        self.settings = settings
        self.layer_drop = settings.layer_drop
        self.activation_dtype: torch.dtype | None = None
        self.is_compiled = False
        self.source_embedding = Embedding(settings, source_size)
        self.target_embedding = Embedding(settings, target_size)
        self.projection = Linear(settings.d_model, target_size, bias=settings.output_bias)
        self.encoder = Encoder(settings)
        self.decoder = Decoder(settings)
        is_pre_norm = settings.norm == "pre"
        # With pre-norm, the last layer ends with a sum that is not normalized yet.
        self.encoder_norm = create_norm(settings) if is_pre_norm else nn.Identity()
        self.decoder_norm = create_norm(settings) if is_pre_norm else nn.Identity()
        self.source_positions: PositionalEncoding | OwnPositions
        self.target_positions: PositionalEncoding | OwnPositions
        if settings.positions:
            self.source_positions = OwnPositions(settings, "encoder")
            self.target_positions = OwnPositions(settings, "decoder")
        else:
            self.source_positions = PositionalEncoding(settings)
            self.target_positions = PositionalEncoding(settings)
        if settings.tie_embeddings in ("all", "decoder"):
            self.projection.weight = self.target_embedding.weight
        if settings.tie_embeddings == "all":
            assert source_size == target_size, "tied embeddings of two vocabularies"
            self.source_embedding.weight = self.target_embedding.weight
        initialize(self, settings)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Compute the logits of the next token at each target position.

        Args:
            source: The ids of the source sentences, with EOS, (batch, source_len).
            target: The ids of the target sentences, with BOS, (batch, target_len).

        Returns:
            The logits of all tokens of the target vocabulary, (batch, target_len, vocabulary).
        """
        memory, mask = self.encode(source)
        logits: Tensor = self.projection(self.decode(target, memory, mask))
        return logits

    def encode(
        self, source: Tensor, has_padding: bool | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Encode source sentences.

        Args:
            source: The ids of the source sentences, with EOS, (batch, source_len).
            has_padding: Whether `source` contains PAD. With None, the tensor itself is searched,
                for which the CPU must wait for a GPU.

        Returns:
            The encoder's output ("memory"), (batch, source_len, d_model); and a mask that is False
            at padding, (batch, 1, 1, source_len), or None if there is no padding.
        """
        mask = _padding_mask(source, has_padding)
        memory = self._encode_padded(source, self._padded_layout(source, mask))
        return memory, mask

    def decode(self, target: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Run the decoder on known target sentences; no position attends to a later one.

        Args:
            target: The ids of the target sentences, with BOS, (batch, target_len).
            memory: The encoder's output, (batch, source_len, d_model).
            mask: False at padding of the sources, (batch, 1, 1, source_len); None without padding.

        Returns:
            The hidden states that the projection turns into logits, (batch, target_len, d_model).
        """
        layout = self._padded_layout(target)
        memory_layout = self._padded_layout(memory, mask)
        return self._decode_padded(target, layout, memory, memory_layout)

    def label_states(self, batch: Batch) -> Tensor:
        """Return the hidden states that predict the labels of a padded batch.

        The label of a target position is the token that follows it. Positions of padding have no
        label. The method removes them, so that the loss does not project them to the vocabulary.

        Args:
            batch: Source and target sentences, padded to one length, with their labels.

        Returns:
            The hidden states, (labels, d_model).
        """
        memory, mask = self.encode(batch.source, batch.has_padding)
        hidden = self.decode(batch.target, memory, mask)
        return hidden.flatten(0, 1).index_select(0, batch.label_positions)

    def packed_hidden_states(self, batch: PackedBatch) -> Tensor:
        """Return the hidden states of all target positions of a packed batch.

        A packed batch has no padding: the sentences of each side follow each other.

        Args:
            batch: Source and target sentences one after the other, without padding.

        Returns:
            The hidden states, one row for each target token, (rows, d_model).
        """
        source_layout = PackedLayout(batch.source.offsets, batch.longest)
        target_layout = PackedLayout(batch.target.offsets, batch.longest)
        source = self._embed_source(batch.source.ids, batch.source.positions)
        target = self._embed_target(batch.target.ids, batch.target.positions)
        memory = self._encode_rows(source, source_layout)
        return self._decode_rows(target, target_layout, memory, source_layout)

    def init_cache(self, source: Tensor) -> Cache:
        """Encode source sentences for a search, and prepare its key-value cache.

        In all steps of a search, a decoder layer attends to the same keys and values of the source.
        They are computed here, once.

        Args:
            source: The ids of the source sentences, with EOS, (batch, source_len).

        Returns:
            The cache before the first target token, with the keys and values of the sources. If own
            code computes attention, the cache contains the encoder's output instead.
        """
        memory, mask = self.encode(source)
        if self.settings.needs_padded_batches:
            return PrefixCache(memory, mask)
        layout = self._padded_layout(memory)
        rows = layout.rows(memory)
        keys_and_values = []
        for layer in self.decoder_layers:
            keys_and_values.append(layer.cross_attention.project_key_value(rows, layout))
        return KVCache(keys_and_values, mask)

    def step(self, tokens: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Compute the logits of the next token of each hypothesis of a search.

        Args:
            tokens: The id of each hypothesis's last token, (hypotheses,).
            cache: The keys and values of earlier tokens; the ones of `tokens` are added.

        Returns:
            The logits, (hypotheses, vocabulary), which are -inf for PAD and BOS; and the cache.
        """
        if isinstance(cache, PrefixCache):
            cache.append(tokens)
            states = self.decode(cache.tokens, cache.memory, cache.mask)
            return self._next_token_logits(states[:, -1]), cache
        cache.advance(len(tokens))
        # All hypotheses are equally long, so these tokens have the same position. For the
        # embedding, each hypothesis is a sentence of this one position.
        positions = range(cache.position, cache.position + 1)
        embedded = self._embed_target(tokens[:, None], positions)[:, 0]  # (hypotheses, d_model)
        hidden = self.decoder_norm(self.decoder.step(embedded, cache))
        return self._next_token_logits(hidden), cache

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of the next token.

        Args:
            hidden: The hidden states of the last tokens, (hypotheses, d_model).

        Returns:
            The log-probabilities, (hypotheses, vocabulary).
        """
        return torch.log_softmax(self._next_token_logits(hidden).float(), -1)

    @torch.no_grad()
    def attention_weights(self, source: Tensor, target: Tensor) -> AttentionWeights:
        """Run encoder and decoder, and return the attention weights of all layers.

        The model must be in evaluation mode. The result is for attention maps; nothing else uses
        the weights.

        Args:
            source: The ids of the source sentences, with EOS, (batch, source_len).
            target: The ids of the target sentences, with BOS, (batch, target_len).
        """
        assert not self.training, "attention weights do not include dropout"
        # While the layers run, the layouts append the weights of each layer to these lists.
        weights = AttentionWeights(encoder=[], decoder=[], cross=[])
        mask = _padding_mask(source, has_padding=None)
        source_layout = self._padded_layout(source, mask, weights.encoder)
        memory = self._encode_padded(source, source_layout)
        target_layout = self._padded_layout(target, recorded_weights=weights.decoder)
        memory_layout = self._padded_layout(memory, mask, weights.cross)
        self._decode_padded(target, target_layout, memory, memory_layout)
        if not weights.encoder or not weights.cross:
            raise UserError(
                "the attention weights are not known: own code computes the attention of this model"
            )
        return weights

    @property
    def encoder_layers(self) -> list[EncoderLayer]:
        """The encoder's layers, first to last."""
        return [cast(EncoderLayer, layer) for layer in self.encoder]

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """The decoder's layers, first to last."""
        return [cast(DecoderLayer, layer) for layer in self.decoder]

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.projection.weight.device

    def _encode_padded(self, source: Tensor, layout: PaddedLayout) -> Tensor:
        """Run the encoder on padded source sentences.

        Args:
            source: The ids of the source sentences, (batch, source_len).
            layout: Turns them into rows, one for each position, and knows their padding.

        Returns:
            The encoder's output, (batch, source_len, d_model).
        """
        embedded = self._embed_source(source, range(source.size(1)))
        layout = _with_score_bias(layout, self.source_positions, embedded)
        rows = self._encode_rows(layout.rows(embedded), layout)
        return unpad_rows(rows, layout.size)

    def _decode_padded(
        self, target: Tensor, layout: PaddedLayout, memory: Tensor, memory_layout: PaddedLayout
    ) -> Tensor:
        """Run the decoder on padded target sentences.

        Args:
            target: The ids of the target sentences, (batch, target_len).
            layout: Turns them into rows, one for each position.
            memory: The encoder's output, (batch, source_len, d_model).
            memory_layout: Turns the encoder's output into rows, and knows its padding.

        Returns:
            The hidden states, (batch, target_len, d_model).
        """
        embedded = self._embed_target(target, range(target.size(1)))
        layout = _with_score_bias(layout, self.target_positions, embedded)
        memory_rows = memory_layout.rows(memory)
        rows = self._decode_rows(layout.rows(embedded), layout, memory_rows, memory_layout)
        return unpad_rows(rows, layout.size)

    def _encode_rows(self, x: Tensor, layout: Layout) -> Tensor:
        """Run the encoder on the embedded source tokens of a batch.

        Args:
            x: The embedded tokens of all sentences, a row for each token, (rows, d_model).
            layout: Which rows belong to which sentence.

        Returns:
            The encoder's output, (rows, d_model).
        """
        output: Tensor = self.encoder_norm(self.encoder(x, layout, self.layer_drop))
        return output

    def _decode_rows(
        self, x: Tensor, layout: Layout, memory: Tensor, memory_layout: Layout
    ) -> Tensor:
        """Run the decoder on the embedded target tokens of a batch.

        Args:
            x: The embedded tokens of all sentences, a row for each token, (target rows, d_model).
            layout: Which target rows belong to which sentence.
            memory: The encoder's output, with a row for each source token, (source rows, d_model).
            memory_layout: Which source rows belong to which sentence.

        Returns:
            The hidden states of the target tokens, (target rows, d_model).
        """
        hidden = self.decoder(x, layout, memory, memory_layout, self.layer_drop)
        output: Tensor = self.decoder_norm(hidden)
        return output

    def _next_token_logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the next token.

        They are -inf for PAD and BOS, which no output may contain.

        Args:
            hidden: The hidden states of the last tokens, (hypotheses, d_model).

        Returns:
            The logits, (hypotheses, vocabulary).
        """
        logits: Tensor = self.projection(hidden)
        logits[:, PAD] = -torch.inf
        logits[:, BOS] = -torch.inf
        return logits

    def _padded_layout(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        recorded_weights: list[Tensor] | None = None,
    ) -> PaddedLayout:
        """Describe how padded sentences become a matrix, whose rows the layers compute on.

        Args:
            x: Padded sentences, whose first dimensions are (sentences, positions).
            mask: False at padding, (sentences, 1, 1, positions); None if nothing is masked.
            recorded_weights: A list to which attention to these sentences appends its weights; None
                records nothing.
        """
        size = (x.size(0), x.size(1))
        needs_round_counts = needs_round_row_counts(x, self.is_compiled)
        return PaddedLayout(size, mask, needs_round_counts, recorded_weights)

    def _embed_source(self, ids: Tensor, positions: range | Tensor) -> Tensor:
        """Embed source tokens and encode their positions (see `_embed`)."""
        return self._embed(self.source_embedding, self.source_positions, ids, positions)

    def _embed_target(self, ids: Tensor, positions: range | Tensor) -> Tensor:
        """Embed target tokens and encode their positions (see `_embed`)."""
        return self._embed(self.target_embedding, self.target_positions, ids, positions)

    def _embed(
        self,
        embedding: Embedding,
        positional_encoding: PositionalEncoding | OwnPositions,
        ids: Tensor,
        positions: range | Tensor,
    ) -> Tensor:
        """Embed tokens and encode their positions, with dropout (sections 3.4 and 3.5).

        Args:
            embedding: The embeddings of source or target tokens.
            positional_encoding: The positional encoding of source or target tokens.
            ids: The token ids of padded sentences, (sentences, length); or of sentences one after
                the other, without padding, (tokens,).
            positions: The positions of the tokens: a range for padded sentences; a tensor (tokens,)
                without padding.

        Returns:
            The embedded tokens, (sentences, length, d_model) or (tokens, d_model).

        Raises:
            UserError: A position is beyond `max_positions`.
        """
        max_positions = self.settings.max_positions
        # Only a range is checked: for a tensor, the CPU would have to wait for a GPU.
        if isinstance(positions, range) and positions.stop > max_positions:
            raise UserError(
                f"a sentence of {positions.stop} positions is too long: "
                f"model.max_positions is {max_positions}"
            )
        embedded = positional_encoding(embedding(ids), positions)
        if self.activation_dtype is not None:
            embedded = embedded.to(self.activation_dtype)
        return dropout(embedded, self.settings.dropout.embedding, self.training)


def _with_score_bias(
    layout: PaddedLayout, positions: PositionalEncoding | OwnPositions, embedded: Tensor
) -> PaddedLayout:
    """Return a layout with what own positions add to the scores of self-attention, if anything.

    Args:
        layout: The layout of the sentences.
        positions: The positions of their side.
        embedded: The embedded sentences, (sentences, length, d_model).
    """
    if not isinstance(positions, OwnPositions):
        return layout
    return layout._replace(score_bias=positions.score_bias(embedded.size(1), embedded))


def count_parameters(model: nn.Module) -> int:
    """Return the number of weights that are trained; tied embeddings count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def _padding_mask(ids: Tensor, has_padding: bool | None) -> Tensor | None:
    """Return the mask that keeps attention from padding; None if there is no padding.

    Args:
        ids: The token ids of padded sentences, (sentences, length).
        has_padding: Whether the ids contain PAD. With None, the tensor itself is searched, for
            which the CPU must wait for a GPU.

    Returns:
        False at PAD, (sentences, 1, 1, length): the same for all heads and all queries.
    """
    is_token = ids != PAD
    if has_padding is None:
        has_padding = not bool(is_token.all())
    return is_token[:, None, None, :] if has_padding else None
