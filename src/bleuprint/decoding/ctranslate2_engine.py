"""Beam search by CTranslate2 (https://github.com/OpenNMT/CTranslate2)."""

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from bleuprint.config.system import Decode
from bleuprint.dataset.batch import Sentence
from bleuprint.dataset.binarized import BinaryCorpus, Lengths, Sentences
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.beam_search import (
    BATCH_TOKENS,
    Hypothesis,
    NBest,
    empty_translations,
    length_penalty,
    max_output_lengths,
)
from bleuprint.decoding.ctranslate2_convert import convert
from bleuprint.decoding.forced_decoding import token_log_probs
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.progress import Progress


class CTranslate2Engine:
    """A model converted for CTranslate2, and its beam search.

    CTranslate2's search differs from beam_search.py in three ways. Its length penalty is always
    length^alpha; with another penalty, its final beam is sorted again. The maximum output length
    applies to a whole batch, so that sentences with the same maximum are searched together. An
    output of maximum length lacks EOS, whose log-probability is computed with torch.
    """

    def __init__(self, model: Transformer, corpus: BinaryCorpus, decode: Decode) -> None:
        source, target = (
            corpus.segmentation(language).vocabulary for language in (corpus.source, corpus.target)
        )
        self.max_source_length = model.settings.max_positions
        self._model, self._decode = model, decode
        self._source_tokens = source.tokens
        self._target_ids = {token: i for i, token in enumerate(target.tokens)}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "model"
            convert(model, (source, target), folder, decode.precision)
            self._engine = _load(folder, decode.precision)

    def search(
        self,
        sources: Sequence[Sentence] | Sentences,
        lengths: Lengths,
        best: int = 1,
        progress: str | None = None,
    ) -> NBest:
        """See `engine.Engine`."""
        outputs = empty_translations(len(lengths))
        bar = Progress(progress or "", len(lengths), "sentences", silent=progress is None)
        groups: dict[int, list[int]] = {}
        for row, limit in enumerate(
            max_output_lengths(lengths, self._decode, self.max_source_length).tolist()
        ):
            if lengths[row] > 1:  # others have only EOS
                groups.setdefault(limit, []).append(row)
        bar.advance(len(lengths) - sum(map(len, groups.values())))
        # all are queued at once: CTranslate2 has a thread for each processor
        results = {
            limit: self._start([sources[row] for row in rows], limit, best)
            for limit, rows in groups.items()
        }
        for limit, rows in groups.items():
            for row, result in zip(rows, results[limit], strict=True):
                hypotheses = self._hypotheses(result.result(), sources[row], limit)
                outputs[row] = sorted(hypotheses, key=lambda output: -output.score)[:best]
            bar.advance(len(rows))
        return outputs

    def _start(self, sources: Sequence[Sentence], limit: int, best: int) -> list[Any]:
        if limit == 1:  # EOS alone
            return [_EmptyResult() for _ in sources]
        decode = self._decode
        n_best = best if decode.length_penalty.kind == "length" else decode.beam
        results: list[Any] = self._engine.translate_batch(
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

    def _hypotheses(self, result: Any, source: Sentence, limit: int) -> Iterator[Hypothesis]:
        """A sentence's outputs, scored as by beam_search.py."""
        for output, score in zip(result.hypotheses, result.scores, strict=True):
            tokens = [self._target_ids[token] for token in output]
            length = len(tokens) + 1
            if length == limit:  # cut off before EOS
                ids = list(map(int, source))
                log = sum(token_log_probs(self._model, [ids], [[*tokens, EOS]])[0])
            else:
                log = score * length**self._decode.length_penalty.alpha
            if not math.isfinite(log):
                raise UserError("the model is broken: its probabilities are NaN")
            yield Hypothesis(tokens, log / length_penalty(length, self._decode), log)


class _EmptyResult:
    """The result of a search whose maximum output length allows EOS only."""

    hypotheses: ClassVar[list[list[str]]] = [[]]
    scores: ClassVar[list[float]] = [0.0]

    def result(self) -> "_EmptyResult":
        return self


def _load(folder: Path, precision: str) -> Any:
    """Load CTranslate2's translator; on CPUs with one single-threaded worker a torch thread."""
    import ctranslate2

    if torch.cuda.is_available():
        return ctranslate2.Translator(str(folder), device="cuda", compute_type=precision)
    return ctranslate2.Translator(
        str(folder),
        compute_type=precision,
        inter_threads=torch.get_num_threads(),
        intra_threads=1,
    )
