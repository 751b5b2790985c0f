"""Search by CTranslate2 (https://github.com/OpenNMT/CTranslate2), for a model of ours."""

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
from bleuprint.decoding.beam_search import Hypothesis, length_penalty
from bleuprint.decoding.ctranslate2_convert import convert
from bleuprint.decoding.forced_decoding import log_probabilities
from bleuprint.decoding.limits import BATCH_TOKENS, Found, empty_outputs, limits_of
from bleuprint.model.transformer import Transformer
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.progress import Progress


class CTranslate2Engine:
    """A model converted for CTranslate2, and its beam search.

    It differs from ours in three things. Its penalty is length^alpha alone: with another, the beam
    it ends with is put in our order. A limit of length holds for a whole batch, so that sentences
    of one limit are searched together. At the limit an output breaks off without its end, whose
    probability our model adds.
    """

    def __init__(self, model: Transformer, corpus: BinaryCorpus, decode: Decode) -> None:
        source, target = (
            corpus.segmentation(language).vocabulary for language in (corpus.source, corpus.target)
        )
        self.longest = model.settings.max_positions
        self._model, self._decode = model, decode
        self._units, self._target = source.tokens, target
        self._ids = {unit: number for number, unit in enumerate(target.tokens)}
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
    ) -> Found:
        """See `engine.Engine`."""
        found = empty_outputs(len(lengths))
        bar = Progress(progress or "", len(lengths), "sentences", silent=progress is None)
        groups: dict[int, list[int]] = {}
        for row, limit in enumerate(limits_of(lengths, self._decode, self.longest).tolist()):
            if lengths[row] > 1:  # nothing but EOS translates to nothing
                groups.setdefault(limit, []).append(row)
        bar.advance(len(lengths) - sum(map(len, groups.values())))
        # all at once: the engine has a thread for each processor
        waiting = {
            limit: self._start([sources[row] for row in rows], limit, best)
            for limit, rows in groups.items()
        }
        for limit, rows in groups.items():
            for row, result in zip(rows, waiting[limit], strict=True):
                outputs = self._hypotheses(result.result(), sources[row], limit)
                found[row] = sorted(outputs, key=lambda one: -one.score)[:best]
            bar.advance(len(rows))
        return found

    def _start(self, sources: Sequence[Sentence], limit: int, best: int) -> list[Any]:
        if limit == 1:  # room for the end alone
            return [_Nothing() for _ in sources]
        decode = self._decode
        most = best if decode.length_penalty.kind == "length" else decode.beam
        waiting: list[Any] = self._engine.translate_batch(
            [[self._units[int(number)] for number in ids[:-1]] for ids in sources],
            batch_type="tokens",
            max_batch_size=BATCH_TOKENS // decode.beam,
            asynchronous=True,
            beam_size=decode.beam,
            num_hypotheses=most,
            length_penalty=decode.length_penalty.alpha,
            max_input_length=0,
            max_decoding_length=limit - 1,
            min_decoding_length=0,
            disable_unk=not decode.allow_unk,
            return_scores=True,
        )
        return waiting

    def _hypotheses(self, result: Any, source: Sentence, limit: int) -> Iterator[Hypothesis]:
        """A sentence's outputs with our scores."""
        for units, score in zip(result.hypotheses, result.scores, strict=True):
            words = [self._ids[unit] for unit in units]
            length = len(words) + 1
            if length == limit:  # broken off
                ids = list(map(int, source))
                log = sum(log_probabilities(self._model, [ids], [[*words, EOS]])[0])
            else:
                log = score * length**self._decode.length_penalty.alpha
            if not math.isfinite(log):
                raise UserError("the model is broken: its probabilities are no numbers (NaN)")
            yield Hypothesis(words, log / length_penalty(length, self._decode), log)


class _Nothing:
    """The result of a search that has room for no word."""

    hypotheses: ClassVar[list[list[str]]] = [[]]
    scores: ClassVar[list[float]] = [0.0]

    def result(self) -> "_Nothing":
        return self


def _load(folder: Path, precision: str) -> Any:
    """CTranslate2's translator, with as many single threads as torch has threads."""
    import ctranslate2

    if torch.cuda.is_available():
        return ctranslate2.Translator(str(folder), device="cuda", compute_type=precision)
    return ctranslate2.Translator(
        str(folder),
        compute_type=precision,
        inter_threads=torch.get_num_threads(),
        intra_threads=1,
    )
