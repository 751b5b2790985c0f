"""The Annotated Transformer's way of training, as a contestant of benchmarks/train.py.

    python benchmarks/annotated.py FOLDER --updates 15 --seed 1

After Rush 2018 (with Huang et al. 2022), line by line where time goes: four linear layers an
attention, attention matrices made, masked and dropped out explicitly, LayerNorm written out, norms
before sublayers, sentence batches with their padding sent through everything, log-softmax of all
positions, label smoothing as KLDivLoss against a dense distribution over the V - 2 other units,
torch's Adam with the Noam schedule. Embeddings are shared with the projection. Batches are those of
bleuprint, from a binary corpus in FOLDER. Prints target tokens a second, over as many updates as
went before to warm up.
"""

import argparse
import copy
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from bleuprint.dataset.batch import Batch, read_ids
from bleuprint.dataset.batching import plan_epoch
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import PAD

DROPOUT, SMOOTHING, WARMUP = 0.1, 0.1, 4000


class MultiHeadedAttention(nn.Module):
    def __init__(self, heads: int, d_model: int) -> None:
        super().__init__()
        self.d_k, self.heads = d_model // heads, heads
        self.linears = clones(nn.Linear(d_model, d_model), 4)
        self.attn: Tensor | None = None
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        batch, mask = query.size(0), mask.unsqueeze(1)
        query, key, value = (
            linear(x).view(batch, -1, self.heads, self.d_k).transpose(1, 2)
            for linear, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        scores = scores.masked_fill(mask == 0, -1e9)
        self.attn = self.dropout(scores.softmax(dim=-1))
        x = torch.matmul(self.attn, value)
        x = x.transpose(1, 2).contiguous().view(batch, -1, self.heads * self.d_k)
        result: Tensor = self.linears[-1](x)
        return result


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.w_2(self.dropout(self.w_1(x).relu()))
        return result


class LayerNorm(nn.Module):
    def __init__(self, features: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.a_2, self.b_2 = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


class Layer(nn.Module):
    """Of the encoder, or, with `cross` attention, of the decoder; x + dropout(f(norm(x)))."""

    def __init__(self, d_model: int, d_ff: int, heads: int, cross: bool) -> None:
        super().__init__()
        self.attentions = clones(MultiHeadedAttention(heads, d_model), 2 if cross else 1)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff)
        self.norms = clones(LayerNorm(d_model), 3 if cross else 2)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(
        self, x: Tensor, mask: Tensor, memory: Tensor | None = None, over: Tensor | None = None
    ) -> Tensor:
        normed = self.norms[0](x)
        x = x + self.dropout(self.attentions[0](normed, normed, normed, mask))
        if memory is not None:
            x = x + self.dropout(self.attentions[1](self.norms[1](x), memory, memory, over))
        result: Tensor = x + self.dropout(self.feed_forward(self.norms[-1](x)))
        return result


class Embeddings(nn.Module):
    """Embeddings times sqrt(d_model), with sinusoidal positions."""

    def __init__(self, d_model: int, vocabulary: int, longest: int = 5000) -> None:
        super().__init__()
        self.lut, self.d_model = nn.Embedding(vocabulary, d_model), d_model
        self.dropout = nn.Dropout(DROPOUT)
        position = torch.arange(0, longest).unsqueeze(1)
        term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
        pe = torch.stack((torch.sin(position * term), torch.cos(position * term)), -1)
        self.pe: Tensor
        self.register_buffer("pe", pe.flatten(1).unsqueeze(0), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.lut(ids) * math.sqrt(self.d_model)
        result: Tensor = self.dropout(x + self.pe[:, : ids.size(1)])
        return result


class EncoderDecoder(nn.Module):
    def __init__(self, layers: int, d_model: int, d_ff: int, heads: int, vocabulary: int) -> None:
        super().__init__()
        self.encoder = clones(Layer(d_model, d_ff, heads, cross=False), layers)
        self.decoder = clones(Layer(d_model, d_ff, heads, cross=True), layers)
        self.norms = clones(LayerNorm(d_model), 2)
        self.embeddings = Embeddings(d_model, vocabulary)
        self.generator = nn.Linear(d_model, vocabulary)
        self.generator.weight = self.embeddings.lut.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Log-probabilities of each next word."""
        source_mask = (source != PAD).unsqueeze(-2)
        size = target.size(-1)
        ones = torch.ones(1, size, size, device=target.device)
        future = torch.triu(ones, diagonal=1).type(torch.uint8) == 0
        target_mask = (target != PAD).unsqueeze(-2) & future
        memory = self.embeddings(source)
        for layer in self.encoder:
            memory = layer(memory, source_mask)
        memory = self.norms[0](memory)
        x = self.embeddings(target)
        for layer in self.decoder:
            x = layer(x, target_mask, memory, source_mask)
        return torch.log_softmax(self.generator(self.norms[1](x)), dim=-1)


def clones(module: nn.Module, count: int) -> nn.ModuleList:
    return nn.ModuleList(copy.deepcopy(module) for _ in range(count))


def smoothed(log_probabilities: Tensor, wanted: Tensor) -> Tensor:
    """The divergence from the smoothed targets, summed."""
    size = log_probabilities.size(1)
    distribution = torch.full_like(log_probabilities, SMOOTHING / (size - 2))
    distribution.scatter_(1, wanted.unsqueeze(1), 1 - SMOOTHING)
    distribution[:, PAD] = 0
    padding = torch.nonzero(wanted == PAD)
    if padding.dim() > 0:
        distribution.index_fill_(0, padding.squeeze(), 0.0)
    loss: Tensor = nn.KLDivLoss(reduction="sum")(log_probabilities, distribution.clone().detach())
    return loss


def batch_loss(model: nn.Module, batch: Batch, wanted: Tensor) -> Tensor:
    """The summed loss; `wanted` (B x T,) has PAD where there is nothing to predict."""
    output = model(batch.source, batch.target)
    return smoothed(output.contiguous().view(-1, output.size(-1)), wanted)


def train(
    model: nn.Module,
    d_model: int,
    corpus: BinaryCorpus,
    given: argparse.Namespace,
    loss_of: Callable[[nn.Module, Batch, Tensor], Tensor] = batch_loss,
) -> float:
    """Target tokens a second over the second half of the updates."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: d_model**-0.5 * min(max(1, step) ** -0.5, max(1, step) * WARMUP**-1.5),
    )
    source, target = (
        corpus.side("train", language).lengths for language in (corpus.source, corpus.target)
    )
    device = torch.device(given.device)
    batches = plan_epoch(source, target, given.batch_tokens, given.seed, 0)
    model.train()
    tokens, began = 0, 0.0
    for number in range(2 * given.updates):
        if number == given.updates:
            tokens, began = 0, now(device)
        rows = batches[number % len(batches)]
        batch = Batch.from_ids(read_ids(corpus, "train", rows)).to(device)
        real = len(batch.labels)
        wanted = torch.full((batch.target.numel(),), PAD, device=device)
        wanted[batch.label_positions] = batch.labels
        torch.autograd.backward(loss_of(model, batch, wanted) / real)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        tokens += real
    return tokens / (now(device) - began)


def now(device: torch.device) -> float:
    """Seconds, once the device has computed everything."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--updates", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    for name, default in (("d-model", 128), ("d-ff", 256), ("layers", 4), ("heads", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    corpus = BinaryCorpus(given.folder)
    vocabulary = len(corpus.segmentation(corpus.target).vocabulary)
    torch.manual_seed(given.seed)
    model = EncoderDecoder(given.layers, given.d_model, given.d_ff, given.heads, vocabulary)
    print(json.dumps({"tokens_per_second": train(model, given.d_model, corpus, given)}))


if __name__ == "__main__":
    main()
