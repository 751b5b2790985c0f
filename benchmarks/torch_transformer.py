"""torch's nn.Transformer, trained plainly, as a contestant of benchmarks/gpu.py.

As torch's tutorials have it: padded batches with their masks, dropout 0.1 in all places that
nn.Transformer has, post-norm, logits of all positions, nn.functional.cross_entropy with label
smoothing, autocast in bfloat16, torch.optim.Adam. Embeddings are shared with the projection, as in
the other contestants; the loop, its batches and the learning rate are those of annotated.py.
"""

import argparse
import math

import torch
from torch import Tensor, nn
from torch.nn import functional

import annotated
from bleuprint.dataset.batch import Batch
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import PAD
from toolkits import Size


class TorchTransformer(nn.Module):
    def __init__(self, size: Size, vocabulary: int) -> None:
        super().__init__()
        self.embeddings = annotated.Embeddings(size.d_model, vocabulary)
        self.transformer = nn.Transformer(
            *(size.d_model, size.heads, size.layers, size.layers, size.d_ff),
            dropout=annotated.DROPOUT,
            batch_first=True,
        )
        self.projection = nn.Linear(size.d_model, vocabulary, bias=False)
        self.projection.weight = self.embeddings.lut.weight
        nn.init.normal_(self.projection.weight, std=1 / math.sqrt(size.d_model))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits (B, T, V) of each next token."""
        future = torch.ones(2 * (target.size(1),), dtype=torch.bool, device=target.device).triu(1)
        padding = source == PAD
        hidden = self.transformer(
            self.embeddings(source),
            self.embeddings(target),
            tgt_mask=future,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        result: Tensor = self.projection(hidden)
        return result


def train(size: Size, vocabulary: int, corpus: BinaryCorpus, given: argparse.Namespace) -> float:
    """Target tokens a second; `given` as for annotated.train."""
    model = TorchTransformer(size, vocabulary).to(given.device)
    return annotated.train(model, size.d_model, corpus, given, batch_loss)


def batch_loss(model: nn.Module, batch: Batch, wanted: Tensor) -> Tensor:
    """The summed loss; `wanted` (B x T,) has PAD where there is nothing to predict."""
    with torch.autocast(wanted.device.type, torch.bfloat16):
        logits = model(batch.source, batch.target)
        return functional.cross_entropy(
            logits.flatten(0, 1),
            wanted,
            ignore_index=PAD,
            label_smoothing=annotated.SMOOTHING,
            reduction="sum",
        )
