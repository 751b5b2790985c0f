"""Trains torch's nn.Transformer plainly, as a contestant of benchmarks/gpu.py.

It follows torch's tutorials: padded batches with their masks, dropout 0.1 in all places that
nn.Transformer has, post-norm, logits of all positions, nn.functional.cross_entropy with label
smoothing, autocast in bfloat16, torch.optim.Adam. Embeddings are shared with the projection, as in
the other contestants; the loop, its batches and the learning rate are those of annotated.py.
"""

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
    """An nn.Transformer with embeddings and a projection that share their weights."""

    def __init__(self, size: Size, vocabulary_size: int) -> None:
        """Create the model with random weights."""
        super().__init__()
        self.embeddings = annotated.Embeddings(size.d_model, vocabulary_size)
        self.transformer = nn.Transformer(
            d_model=size.d_model,
            nhead=size.heads,
            num_encoder_layers=size.layers,
            num_decoder_layers=size.layers,
            dim_feedforward=size.d_ff,
            dropout=annotated.DROPOUT,
            batch_first=True,
        )
        self.projection = nn.Linear(size.d_model, vocabulary_size, bias=False)
        self.projection.weight = self.embeddings.lut.weight
        nn.init.normal_(self.projection.weight, std=1 / math.sqrt(size.d_model))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the logits of each next token.

        Args:
            source: Ids with PAD after each sentence, (batch, source_len).
            target: Ids with PAD after each sentence, (batch, target_len).

        Returns:
            Logits, (batch, target_len, vocabulary).
        """
        target_len = target.size(1)
        ones = torch.ones(target_len, target_len, dtype=torch.bool, device=target.device)
        is_future = ones.triu(1)
        is_source_padding = source == PAD
        hidden = self.transformer(
            self.embeddings(source),
            self.embeddings(target),
            tgt_mask=is_future,
            src_key_padding_mask=is_source_padding,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=is_source_padding,
            tgt_is_causal=True,
        )
        logits: Tensor = self.projection(hidden)
        return logits


def train(
    size: Size, vocabulary_size: int, corpus: BinaryCorpus, options: annotated.TrainOptions
) -> float:
    """Train a model, and return target tokens per second.

    Args:
        size: The size of the model.
        vocabulary_size: The number of ids.
        corpus: The text.
        options: How the model is trained.
    """
    model = TorchTransformer(size, vocabulary_size).to(options.device)
    return annotated.train(model, size.d_model, corpus, options, batch_loss)


def batch_loss(model: nn.Module, batch: Batch, labels: Tensor) -> Tensor:
    """Return the summed loss of a batch in bfloat16.

    Args:
        model: The model.
        batch: The batch.
        labels: The next token of each target position, (batch * target_len,); PAD where there is
            nothing to predict.
    """
    with torch.autocast(labels.device.type, torch.bfloat16):
        logits = model(batch.source, batch.target)
        return functional.cross_entropy(
            logits.flatten(0, 1),
            labels,
            ignore_index=PAD,
            label_smoothing=annotated.SMOOTHING,
            reduction="sum",
        )
