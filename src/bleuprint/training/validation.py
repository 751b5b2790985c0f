"""Validation: the loss and the BLEU of greedy search on the validation set."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bleuprint.dataset.batch import Batch, pad, read_ids
from bleuprint.dataset.batching import batch_by_size
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.distributed.group import Group
from bleuprint.scoring.bleu import bleu_metric, is_scored_by_13a
from bleuprint.text.parallel import read_lines
from bleuprint.training.loss import batch_loss

# The maximum output length is that of the longest source of the batch plus this many tokens.
_MAX_EXTRA = 20


def _eagerly(model: Transformer) -> AbstractContextManager[None]:
    """Compile nothing for the shapes of validation."""
    return torch.compiler.set_stance("force_eager") if model.is_compiled else nullcontext()


class Validator:
    """Computes the validation metrics of a model."""

    def __init__(self, corpus: BinaryCorpus, texts: Path, max_tokens: int) -> None:
        self._corpus = corpus
        references = list(read_lines(texts / f"valid.{corpus.target}"))
        # of several target languages, the first that has a tokenizer of its own
        language = min(corpus.target_languages, key=is_scored_by_13a)
        self._bleu = bleu_metric(references, language)
        source, target = (
            corpus.side("valid", language).lengths for language in (corpus.source, corpus.target)
        )
        self._tokens = int(target.sum())
        order = np.lexsort((source, target))
        limit = max(max_tokens, int(source.max()), int(target.max()))
        self._batches = batch_by_size(source, target, order, limit)

    def validate(self, model: Transformer, group: Group) -> dict[str, float]:
        """Loss (nats a token, without label smoothing) and BLEU; the same on all processes."""
        model.eval()
        with _eagerly(model):
            return self._validate(model, group)

    def _validate(self, model: Transformer, group: Group) -> dict[str, float]:
        total = torch.zeros((), dtype=torch.float64, device=group.device)
        with torch.no_grad():
            for rows in self._batches[group.rank :: group.size]:
                batch = Batch.from_ids(read_ids(self._corpus, "valid", rows)).to(group.device)
                total += batch_loss(model, batch, 0.0)
        loss = float(group.all_reduce(total)) / self._tokens
        lines = self._translate(model, group)
        model.train()
        return {"loss": loss, "bleu": self._bleu.corpus_score(lines, None).score}

    def _translate(self, model: Transformer, group: Group) -> list[str]:
        """Detokenized translations by greedy search, in the order of the set."""
        corpus = self._corpus
        source = corpus.side("valid", corpus.source)
        longest = int(source.lengths.max()) + _MAX_EXTRA
        # rows that other processes translate are PAD (0) here, so that a sum combines them
        outputs = torch.full((len(source), longest), PAD, device=group.device)
        for rows in self._batches[group.rank :: group.size]:
            ids = pad([source[row] for row in rows.tolist()]).to(group.device)
            for row, tokens in zip(rows.tolist(), greedy_search(model, ids), strict=True):
                outputs[row, : len(tokens)] = torch.tensor(tokens, device=group.device)
        return [
            corpus.translation(source[row], [token for token in tokens if token != PAD])
            for row, tokens in enumerate(group.all_reduce(outputs).tolist())
        ]


@torch.inference_mode()
def greedy_search(model: Transformer, source: Tensor) -> list[list[int]]:
    """The most probable token at each step, up to EOS, for source ids (B, S).

    Separate from beam search, so that a change of that does not make trained models stale.
    """
    cache = model.init_cache(source)
    tokens = torch.full((source.size(0),), BOS, device=source.device)
    outputs: list[Tensor] = []
    running = torch.ones_like(tokens, dtype=torch.bool)
    longest = min(source.size(1) + _MAX_EXTRA, model.settings.max_positions)
    while bool(running.any()) and len(outputs) < longest:
        logits, cache = model.step(tokens, cache)
        tokens = torch.where(running, logits.argmax(-1), EOS)
        outputs.append(tokens)
        running = tokens != EOS
    rows = torch.stack(outputs, dim=1).tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]
