"""Validation: the loss of the validation set, and the BLEU score of greedy search."""

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

# An output may be longer than the longest source of its batch by this many tokens.
_MAX_EXTRA_TOKENS = 20


def _without_compiling(model: Transformer) -> AbstractContextManager[None]:
    """Return a context in which a model runs without torch.compile.

    Validation batches have other shapes than training batches. Compiling the model for each of
    these shapes would take longer than it saves.
    """
    if not model.is_compiled:
        return nullcontext()
    eager: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
    return eager


class Validator:
    """Computes the loss and the BLEU score of a model on the validation set."""

    def __init__(self, corpus: BinaryCorpus, texts: Path, max_tokens: int) -> None:
        """Read the references, and divide the validation set into batches.

        Args:
            corpus: The corpus.
            texts: The folder of the text before tokenization, which contains the references.
            max_tokens: The largest number of positions of a batch, in the source and in the target.
        """
        self._corpus = corpus
        references = list(read_lines(texts / f"valid.{corpus.target}"))
        # The target language decides by which tokenizer sacreBLEU splits the text: most languages
        # by `13a`, a few, such as Chinese, by one of their own. If the corpus has several target
        # languages, one with its own tokenizer is preferred (False sorts before True).
        language = min(corpus.target_languages, key=is_scored_by_13a)
        self._bleu = bleu_metric(references, language)
        source_lengths = corpus.side("valid", corpus.source).lengths
        target_lengths = corpus.side("valid", corpus.target).lengths
        self._target_tokens = int(target_lengths.sum())
        # Sorted by target length, then by source length.
        order = np.lexsort((source_lengths, target_lengths))
        # A batch must have room for the longest sentence.
        limit = max(max_tokens, int(source_lengths.max()), int(target_lengths.max()))
        self._batches = batch_by_size(source_lengths, target_lengths, order, limit)

    def validate(self, model: Transformer, group: Group) -> dict[str, float]:
        """Compute the loss and the BLEU score of a model on the validation set.

        Each process computes a share of the batches. All processes return the same result.

        Args:
            model: The model.
            group: The processes that train together.

        Returns:
            `loss`, in nats per target token and without label smoothing; and `bleu`, of greedy
            search.
        """
        model.eval()
        with _without_compiling(model):
            loss = self._loss(model, group)
            translations = self._translate(model, group)
        model.train()
        bleu = self._bleu.corpus_score(translations, None).score
        return {"loss": loss, "bleu": bleu}

    def _loss(self, model: Transformer, group: Group) -> float:
        """Return the loss of the references in nats per target token, without label smoothing.

        Each process computes a share of the batches: with n processes, every n-th batch. The losses
        are then summed over all processes.
        """
        total_loss = torch.zeros((), dtype=torch.float64, device=group.device)
        with torch.no_grad():
            for rows in self._batches[group.rank :: group.size]:
                pairs = read_ids(self._corpus, "valid", rows)
                batch = Batch.from_ids(pairs).to(group.device)
                total_loss += batch_loss(model, batch, smoothing=0.0)
        return float(group.all_reduce(total_loss)) / self._target_tokens

    def _translate(self, model: Transformer, group: Group) -> list[str]:
        """Translate the validation set by greedy search.

        Each process translates a share of the batches: with n processes, every n-th batch. The
        processes then exchange their translations.

        Returns:
            The detokenized translations, in the order of the validation set.
        """
        sources = self._corpus.side("valid", self._corpus.source)
        longest_output = int(sources.lengths.max()) + _MAX_EXTRA_TOKENS
        # The token ids of all translations, one row for each sentence. The rows of sentences that
        # other processes translate stay PAD, whose id is 0. So the sum over processes is complete.
        outputs = torch.full((len(sources), longest_output), PAD, device=group.device)
        for rows in self._batches[group.rank :: group.size]:
            batch_rows = rows.tolist()
            source_ids = pad([sources[row] for row in batch_rows]).to(group.device)
            output_ids = greedy_search(model, source_ids)
            for row, ids in zip(batch_rows, output_ids, strict=True):
                outputs[row, : len(ids)] = torch.tensor(ids, device=group.device)
        translations = []
        for row, padded_ids in enumerate(group.all_reduce(outputs).tolist()):
            ids = [token_id for token_id in padded_ids if token_id != PAD]
            translations.append(self._corpus.translation(sources[row], ids))
        return translations


@torch.inference_mode()
def greedy_search(model: Transformer, source: Tensor) -> list[list[int]]:
    """Translate sentences by choosing the most probable token at each step.

    Beam search with a beam of 1 would do the same. It is not used here, because models are trained
    again whenever code that the training uses has changed: with this function, a change of beam
    search needs no new training.

    Args:
        model: The model.
        source: The token ids of the source sentences, (sentences, source length).

    Returns:
        The token ids of each translation, without EOS. If the model does not end a translation, it
        is cut 20 tokens after the length of the longest source.
    """
    cache = model.init_cache(source)
    tokens = torch.full((source.size(0),), BOS, device=source.device)
    is_unfinished = torch.ones_like(tokens, dtype=torch.bool)
    steps: list[Tensor] = []
    max_steps = min(source.size(1) + _MAX_EXTRA_TOKENS, model.settings.max_positions)
    while bool(is_unfinished.any()) and len(steps) < max_steps:
        logits, cache = model.step(tokens, cache)
        # Finished translations get EOS at each further step.
        tokens = torch.where(is_unfinished, logits.argmax(-1), EOS)
        steps.append(tokens)
        is_unfinished = tokens != EOS
    translations = []
    for ids in torch.stack(steps, dim=1).tolist():
        length = ids.index(EOS) if EOS in ids else len(ids)
        translations.append(ids[:length])
    return translations
