"""Beam search by CTranslate2 (https://github.com/OpenNMT/CTranslate2)."""

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
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

# The log-probability from which EOS is the most probable token, whatever the others are.
_LIKELY = math.log(0.5)


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
        self._tokens, self._ids = source.tokens, {each: i for i, each in enumerate(target.tokens)}
        with tempfile.TemporaryDirectory() as scratch:
            assert decode.precision != "bfloat16"  # refused by the settings
            convert(model, (source, target), folder := Path(scratch, "model"), decode.precision)
            import ctranslate2

            # on CPUs a worker of one thread for each of torch's
            options: dict[str, Any] = {"inter_threads": torch.get_num_threads(), "intra_threads": 1}
            if torch.cuda.is_available():
                options = {"device": "cuda"}
            self._translator = ctranslate2.Translator(
                str(folder), compute_type=decode.precision, **options
            )

    def _search(
        self, sources: Sources, lengths: Lengths, rows: Indices, best: int
    ) -> Iterator[tuple[list[int], NBest]]:
        limits = max_output_lengths(lengths[rows], self.decode, self.max_source_length)
        groups = {int(limit): rows[limits == limit].tolist() for limit in np.unique(limits)}
        # all are queued at once: CTranslate2 has a thread for each processor
        started = [
            (group, limit, self._start([sources[i] for i in group], limit, best))
            for limit, group in groups.items()
        ]
        for group, limit, results in started:
            outputs = [
                self._hypotheses(each.result(), sources[row], limit)
                for row, each in zip(group, results, strict=True)
            ]
            yield group, [hypotheses[:best] for hypotheses in outputs]

    def _start(self, sources: list[Any], limit: int, best: int) -> list[Any]:
        """CTranslate2's asynchronous results."""
        decode = self.decode
        results: list[Any] = self._translator.translate_batch(
            [[self._tokens[int(i)] for i in ids[:-1]] for ids in sources],
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS // decode.beam,
            asynchronous=True,
            beam_size=decode.beam,
            num_hypotheses=best if decode.length_penalty.kind == "length" else decode.beam,
            length_penalty=decode.length_penalty.alpha,
            max_input_length=0,
            max_decoding_length=max(1, limit - 1),
            min_decoding_length=0,
            disable_unk=not decode.allow_unk,
            return_scores=True,
        )
        return results

    def _hypotheses(self, result: Any, source: Sentence, limit: int) -> list[Hypothesis]:
        """A sentence's outputs, scored as by beam_search.py, best first."""
        found, alpha = [], self.decode.length_penalty.alpha
        for output, score in zip(result.hypotheses, result.scores, strict=True):
            tokens = [self._ids[token] for token in output[: limit - 1]]
            log = score * (length := len(tokens) + 1) ** alpha
            is_cut = False
            if length == limit:  # without EOS, which CTranslate2 did not try here
                logs = token_log_probs(self._model, [source], [[*tokens, EOS]])[0]
                log = sum(logs)
                is_cut = logs[-1] < _LIKELY
            score = log / length_penalty(length, self.decode)
            found.append(Hypothesis(tokens, score, log, is_cut))
        return sorted(found, key=lambda each: -each.score)
