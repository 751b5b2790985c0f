"""Beam search by CTranslate2 (https://github.com/OpenNMT/CTranslate2)."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from bleuprint.config.system import Decode
from bleuprint.dataset.batch import Sentence
from bleuprint.dataset.batching import Indices
from bleuprint.dataset.binarized import BinaryCorpus, Lengths
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.beam_search import (
    BATCH_TOKENS,
    Hypothesis,
    NBest,
    length_penalty,
    max_output_lengths,
)
from bleuprint.decoding.ctranslate2_convert import convert
from bleuprint.decoding.engine import Engine, Sources
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError


class CTranslate2Engine(Engine):
    """A model converted for CTranslate2, and its beam search.

    CTranslate2's search differs from beam_search.py in three ways. Its length penalty is always
    length^alpha; with another penalty, its final beam is sorted again. The maximum output length
    applies to a whole batch, so that sentences with the same maximum are searched together. An
    output of maximum length lacks EOS, whose log-probability is computed with torch.
    """

    def __init__(self, model: Transformer, corpus: BinaryCorpus, decode: Decode) -> None:
        super().__init__(decode, model.settings.max_positions)
        source, target = (
            corpus.segmentation(language).vocabulary for language in (corpus.source, corpus.target)
        )
        self._model = model
        self._source_tokens = source.tokens
        self._target_ids = {token: i for i, token in enumerate(target.tokens)}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            assert decode.precision != "bfloat16"  # refused by the settings
            convert(model, (source, target), folder, decode.precision)
            self._translator = _load(folder, decode.precision)

    def _search(
        self, sources: Sources, lengths: Lengths, rows: Indices, best: int
    ) -> Iterator[tuple[list[int], NBest]]:
        groups: dict[int, list[int]] = {}
        limits = max_output_lengths(lengths[rows], self.decode, self.max_source_length)
        for row, limit in zip(rows.tolist(), limits.tolist(), strict=True):
            groups.setdefault(limit, []).append(row)
        # all are queued at once: CTranslate2 has a thread for each processor
        started = [
            self._start([sources[row] for row in group], limit, best)
            for limit, group in groups.items()
        ]
        for (limit, group), results in zip(groups.items(), started, strict=True):
            outputs = [
                list(self._hypotheses(result, sources[row], limit))
                for row, result in zip(group, results, strict=True)
            ]
            yield group, [sorted(each, key=lambda h: -h.score)[:best] for each in outputs]

    def _start(self, sources: Sequence[Sentence], limit: int, best: int) -> list[Any]:
        """CTranslate2's asynchronous results; None for those that can only be empty."""
        if limit == 1:  # EOS alone
            return [None] * len(sources)
        decode = self.decode
        n_best = best if decode.length_penalty.kind == "length" else decode.beam
        results: list[Any] = self._translator.translate_batch(
            [[self._source_tokens[int(i)] for i in ids[:-1]] for ids in sources],
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS // decode.beam,
            asynchronous=True,
            beam_size=decode.beam,
            num_hypotheses=n_best,
            length_penalty=decode.length_penalty.alpha,
            max_input_length=0,
            max_decoding_length=limit - 1,
            min_decoding_length=0,
            disable_unk=not decode.allow_unk,
            return_scores=True,
        )
        return results

    def _hypotheses(self, pending: Any, source: Sentence, limit: int) -> Iterator[Hypothesis]:
        """A sentence's outputs, scored as by beam_search.py."""
        result = pending.result() if pending else None
        outputs = zip(result.hypotheses, result.scores, strict=True) if result else [([], 0.0)]
        for output, score in outputs:
            tokens = [self._target_ids[token] for token in output]
            length = len(tokens) + 1
            if length == limit:  # cut off before EOS
                ids = list(map(int, source))
                log = sum(token_log_probs(self._model, [ids], [[*tokens, EOS]])[0])
            else:
                log = score * length**self.decode.length_penalty.alpha
            if not math.isfinite(log):
                raise UserError("the model is broken: its probabilities are NaN")
            yield Hypothesis(tokens, log / length_penalty(length, self.decode), log)


def _load(folder: Path, precision: str) -> Any:
    """Load CTranslate2's translator; on CPUs with one single-threaded worker per torch thread."""
    import ctranslate2

    options: dict[str, Any] = {"inter_threads": torch.get_num_threads(), "intra_threads": 1}
    if torch.cuda.is_available():
        options = {"device": "cuda"}
    return ctranslate2.Translator(str(folder), compute_type=precision, **options)
