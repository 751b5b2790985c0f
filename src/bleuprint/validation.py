"""Validation: the loss and the greedy BLEU of a model on the validation set."""

from pathlib import Path

import numpy as np
import sacrebleu
import torch

from bleuprint.batch import Batch
from bleuprint.batches import pack
from bleuprint.binary import BinaryCorpus
from bleuprint.model import Transformer
from bleuprint.pairs import read_lines
from bleuprint.processes import Group
from bleuprint.settings import Decode
from bleuprint.translate import translate

_GREEDY = Decode(beam=1, alpha=0.0, max_extra=20)


class Validator:
    """Measures a model on a corpus's validation set."""

    def __init__(self, corpus: BinaryCorpus, texts: Path, batch_tokens: int) -> None:
        self._corpus = corpus
        self._references = list(read_lines(texts / f"valid.{corpus.target}"))
        source, target = (
            corpus.side("valid", language).lengths for language in (corpus.source, corpus.target)
        )
        self._tokens = int(target.sum())
        order = np.lexsort((source, target))
        limit = max(batch_tokens, int(source.max()), int(target.max()))
        self._batches = pack(source, target, order, limit)

    def measure(self, model: Transformer, group: Group) -> dict[str, float]:
        """Loss (nats a token, without smoothing) over all processes, BLEU on the first."""
        model.eval()
        total = torch.zeros((), dtype=torch.float64, device=group.device)
        with torch.no_grad():
            for rows in self._batches[group.rank :: group.size]:
                batch = Batch.of(self._corpus, "valid", rows, group.device)
                total += batch.loss(model, 0.0)[1]
        result = {"loss": float(group.sum(total)) / self._tokens}
        if group.first:
            lines = translate(model, self._corpus, "valid", _GREEDY)
            result["bleu"] = sacrebleu.corpus_bleu(lines, [self._references], force=True).score
        model.train()
        return result
