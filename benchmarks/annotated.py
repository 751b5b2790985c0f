"""Trains in the way of The Annotated Transformer, as a contestant of benchmarks/train.py.

    python benchmarks/annotated.py FOLDER --updates 15 --seed 1

It follows Rush 2018 (with Huang et al. 2022), line by line where time goes: four linear layers per
attention, attention matrices that are made, masked and dropped out explicitly, LayerNorm written
out, norms before sublayers, batches of sentences whose padding passes through everything,
log-softmax of all positions, label smoothing as KLDivLoss against a dense distribution over the
other V - 2 units, torch's Adam with the Noam schedule. Embeddings are shared with the projection.
Batches are those of bleuprint, from a binary corpus in FOLDER. Prints target tokens per second,
over as many updates as went before to warm up.
"""

import argparse
import copy
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from bleuprint.dataset.batch import Batch, read_ids
from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import PAD

DROPOUT = 0.1
SMOOTHING = 0.1
WARMUP_UPDATES = 4000


@dataclass(frozen=True)
class TrainOptions:
    """How a contestant is trained.

    Attributes:
        updates: How many updates are timed, after as many to warm up.
        batch_tokens: The size of a batch in tokens, padding included, on the longer side.
        seed: The seed of the order of batches.
        device: The device, such as "cpu".
    """

    updates: int
    batch_tokens: int
    seed: int
    device: str


class MultiHeadedAttention(nn.Module):
    """Attention with several heads; all projections are layers of their own."""

    def __init__(self, heads: int, d_model: int) -> None:
        """Create the layers for queries, keys, values and the output."""
        super().__init__()
        self.d_k = d_model // heads
        self.heads = heads
        self.linears = clones(nn.Linear(d_model, d_model), 4)
        self.attn: Tensor | None = None
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Attend from each query to the keys that the mask allows.

        Args:
            query: (batch, query_len, d_model).
            key: (batch, key_len, d_model).
            value: (batch, key_len, d_model).
            mask: 0 where a query may not look; broadcast to (batch, query_len, key_len).

        Returns:
            (batch, query_len, d_model).
        """
        batch_size = query.size(0)
        query = self._split_heads(self.linears[0](query))
        key = self._split_heads(self.linears[1](key))
        value = self._split_heads(self.linears[2](value))
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        self.attn = self.dropout(scores.softmax(dim=-1))
        x = torch.matmul(self.attn, value)
        x = x.transpose(1, 2).contiguous().view(batch_size, -1, self.heads * self.d_k)
        output: Tensor = self.linears[3](x)
        return output

    def _split_heads(self, x: Tensor) -> Tensor:
        """Reshape (batch, length, d_model) to (batch, heads, length, d_k)."""
        return x.view(x.size(0), -1, self.heads, self.d_k).transpose(1, 2)


class PositionwiseFeedForward(nn.Module):
    """Two linear layers with a ReLU between them, at each position."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        """Create both layers."""
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, d_model) to the same shape.

        Args:
            x: The positions, (batch, length, d_model).
        """
        output: Tensor = self.w_2(self.dropout(self.w_1(x).relu()))
        return output


class LayerNorm(nn.Module):
    """Layer normalization, written out; it adds eps to the standard deviation."""

    def __init__(self, features: int, eps: float = 1e-6) -> None:
        """Create scales of 1 and offsets of 0."""
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimension.

        Args:
            x: The positions, (batch, length, d_model).

        Returns:
            The normalized positions, of the same shape.
        """
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


class Layer(nn.Module):
    """A layer of the encoder or, with cross attention, of the decoder: x + dropout(f(norm(x)))."""

    def __init__(self, d_model: int, d_ff: int, heads: int, has_cross_attention: bool) -> None:
        """Create the sublayers and their norms."""
        super().__init__()
        attentions = 2 if has_cross_attention else 1
        self.attentions = clones(MultiHeadedAttention(heads, d_model), attentions)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff)
        self.norms = clones(LayerNorm(d_model), attentions + 1)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(
        self,
        x: Tensor,
        mask: Tensor,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Pass hidden states through all sublayers.

        Args:
            x: (batch, length, d_model).
            mask: 0 where a position may not look at another one.
            memory: The encoder's output, for layers of the decoder.
            memory_mask: 0 at the padding of the source.
        """
        normed = self.norms[0](x)
        x = x + self.dropout(self.attentions[0](normed, normed, normed, mask))
        if memory is not None:
            attended = self.attentions[1](self.norms[1](x), memory, memory, memory_mask)
            x = x + self.dropout(attended)
        output: Tensor = x + self.dropout(self.feed_forward(self.norms[-1](x)))
        return output


class Embeddings(nn.Module):
    """Embeddings times sqrt(d_model), plus sinusoidal positions."""

    def __init__(self, d_model: int, vocabulary_size: int, max_length: int = 5000) -> None:
        """Create random embeddings, and the table of positions."""
        super().__init__()
        self.lut = nn.Embedding(vocabulary_size, d_model)
        self.d_model = d_model
        self.dropout = nn.Dropout(DROPOUT)
        position = torch.arange(0, max_length).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
        waves = (torch.sin(position * frequency), torch.cos(position * frequency))
        # Sine and cosine of each frequency become neighbors in the last dimension.
        pe = torch.stack(waves, -1)
        self.pe: Tensor
        self.register_buffer("pe", pe.flatten(1).unsqueeze(0), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids (batch, length) as (batch, length, d_model).

        Args:
            ids: The token ids, (batch, length).
        """
        x = self.lut(ids) * math.sqrt(self.d_model)
        output: Tensor = self.dropout(x + self.pe[:, : ids.size(1)])
        return output


class EncoderDecoder(nn.Module):
    """The whole model, from ids to log-probabilities."""

    def __init__(
        self, layers: int, d_model: int, d_ff: int, heads: int, vocabulary_size: int
    ) -> None:
        """Create the model with Xavier's random weights."""
        super().__init__()
        self.encoder = clones(Layer(d_model, d_ff, heads, has_cross_attention=False), layers)
        self.decoder = clones(Layer(d_model, d_ff, heads, has_cross_attention=True), layers)
        self.norms = clones(LayerNorm(d_model), 2)
        self.embeddings = Embeddings(d_model, vocabulary_size)
        self.generator = nn.Linear(d_model, vocabulary_size)
        self.generator.weight = self.embeddings.lut.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the log-probabilities of each next token.

        Args:
            source: Ids with PAD after each sentence, (batch, source_len).
            target: Ids with PAD after each sentence, (batch, target_len).

        Returns:
            (batch, target_len, vocabulary).
        """
        source_mask = (source != PAD).unsqueeze(-2)
        target_len = target.size(-1)
        ones = torch.ones(1, target_len, target_len, device=target.device)
        is_past = torch.triu(ones, diagonal=1).type(torch.uint8) == 0
        target_mask = (target != PAD).unsqueeze(-2) & is_past
        memory = self.embeddings(source)
        for layer in self.encoder:
            memory = layer(memory, source_mask)
        memory = self.norms[0](memory)
        x = self.embeddings(target)
        for layer in self.decoder:
            x = layer(x, target_mask, memory, source_mask)
        return torch.log_softmax(self.generator(self.norms[1](x)), dim=-1)


def clones(module: nn.Module, count: int) -> nn.ModuleList:
    """Return copies of a module, which begin with the same weights.

    Args:
        module: The module, which is copied with its weights.
        count: The number of copies.
    """
    return nn.ModuleList(copy.deepcopy(module) for _ in range(count))


def smoothed_loss(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence from the smoothed labels, summed over positions.

    Label smoothing moves a part of the probability from the right token to all others.

    Args:
        log_probabilities: The model's output, (positions, vocabulary).
        labels: The next token of each position, (positions,); PAD where there is none.
    """
    vocabulary_size = log_probabilities.size(1)
    # The smoothed probability is shared by all tokens but two: the label and the padding.
    share = SMOOTHING / (vocabulary_size - 2)
    distribution = torch.full_like(log_probabilities, share)
    distribution.scatter_(1, labels.unsqueeze(1), 1 - SMOOTHING)
    distribution[:, PAD] = 0
    padding = torch.nonzero(labels == PAD)
    if padding.dim() > 0:
        distribution.index_fill_(0, padding.squeeze(), 0.0)
    divergence = nn.KLDivLoss(reduction="sum")
    loss: Tensor = divergence(log_probabilities, distribution.clone().detach())
    return loss


def batch_loss(model: nn.Module, batch: Batch, labels: Tensor) -> Tensor:
    """Return the summed loss of a batch.

    Args:
        model: The model.
        batch: The batch.
        labels: The next token of each target position, (batch * target_len,); PAD where there is
            nothing to predict.
    """
    output = model(batch.source, batch.target)
    return smoothed_loss(output.contiguous().view(-1, output.size(-1)), labels)


def train(
    model: nn.Module,
    d_model: int,
    corpus: BinaryCorpus,
    options: TrainOptions,
    loss_of_batch: Callable[[nn.Module, Batch, Tensor], Tensor] = batch_loss,
) -> float:
    """Train a model, and return target tokens per second over the second half of the updates.

    The first half, as many updates as are timed, warms up the caches and the memory allocator.

    Args:
        model: The model, on the device of the options.
        d_model: Its dimension, for the Noam schedule.
        corpus: The text.
        options: How it is trained.
        loss_of_batch: Computes the summed loss of a batch.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)

    def noam_rate(step: int) -> float:
        number = max(1, step)
        return float(d_model**-0.5 * min(number**-0.5, number * WARMUP_UPDATES**-1.5))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, noam_rate)
    source_lengths = corpus.side("train", corpus.source).lengths
    target_lengths = corpus.side("train", corpus.target).lengths
    device = torch.device(options.device)
    batches = plan_epoch(source_lengths, target_lengths, options.batch_tokens, options.seed, 0)
    model.train()
    tokens = 0
    start = 0.0
    for number in range(2 * options.updates):
        # The time is counted from here on.
        if number == options.updates:
            tokens = 0
            start = synchronized_time(device)
        rows = batches[number % len(batches)]
        batch = Batch.from_ids(read_ids(corpus, "train", rows)).to(device)
        batch_tokens = len(batch.labels)
        # One label for each target position, PAD included, since this model computes all of them.
        labels = torch.full((batch.target.numel(),), PAD, device=device)
        labels[batch.label_positions] = batch.labels
        torch.autograd.backward(loss_of_batch(model, batch, labels) / batch_tokens)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        tokens += batch_tokens
    return tokens / (synchronized_time(device) - start)


def synchronized_time(device: torch.device) -> float:
    """Return the time in seconds, once the device has computed everything.

    Args:
        device: The device. On a CPU, nothing has to be waited for.
    """
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.monotonic()


def main() -> None:
    """Train the model that the command line describes, and print its speed."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--updates", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--d-model", type=int, default=128)
    parser.add_argument("--d-ff", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    arguments = parser.parse_args()
    corpus = BinaryCorpus(arguments.folder)
    torch.manual_seed(arguments.seed)
    model = EncoderDecoder(
        layers=arguments.layers,
        d_model=arguments.d_model,
        d_ff=arguments.d_ff,
        heads=arguments.heads,
        vocabulary_size=len(corpus.segmentation(corpus.target).vocabulary),
    )
    options = TrainOptions(
        updates=arguments.updates,
        batch_tokens=arguments.batch_tokens,
        seed=arguments.seed,
        device=arguments.device,
    )
    speed = train(model, arguments.d_model, corpus, options)
    print(json.dumps({"tokens_per_second": speed}))


if __name__ == "__main__":
    main()
