"""Translating sentences of a user's own with a trained system: text in, text out."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import torch

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder
from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.bpe import CONTINUED
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.attention import AttentionMap, attention_maps
from bleuprint.decoding.beam_search import Hypothesis, length_penalty
from bleuprint.decoding.engine import Engine, TorchEngine, check_beam, create_engine
from bleuprint.decoding.ensemble import Ensemble
from bleuprint.model.linear import pack_weights
from bleuprint.model.transformer import Transformer
from bleuprint.model.weights import load_model
from bleuprint.rules.rule import Edits, edited
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.line_stream import read_lines_together
from bleuprint.serving.attention_file import AttentionFile

# Lines that are translated together, at most.
_LINES = 512

# What is done with a sentence that is longer than the model can read.
Long = Literal["split", "truncate"]


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence, and its score (see search.Hypothesis)."""

    text: str
    score: float


@dataclass(frozen=True)
class Piece:
    """Units translated at once: ids of the source with EOS, and without of the best translation."""

    source: list[int]
    words: list[int]


@dataclass(frozen=True)
class Translated:
    """The translations of a sentence, best first, and of how many units it was too long.

    `pieces`: what the first of them is made of; nothing if the sentence is empty.
    """

    best: list[Translation]
    beyond: int
    pieces: list[Piece]


def load_translator(
    settings: Settings, cell: Cell, decode: Decode, checkpoints: int | None = None
) -> "Translator":
    """The translator of a trained cell: its averaged model, or its last checkpoints together."""
    corpus = BinaryCorpus(folder(cell.corpus, "binary"))
    edits = settings.corpus(cell.corpus).clean
    if checkpoints is None:
        model = _ready(load_model(cell.models / "averaged", corpus))
        return Translator(create_engine(model, corpus, decode), corpus, edits, decode, model)
    place = cell.models / "checkpoints"
    names = sorted(path.name for path in place.glob("*.safetensors"))
    if len(names) < checkpoints:
        raise UserError(f"{place}: holds {len(names)} checkpoints, not {checkpoints}")
    if decode.engine != "pytorch":
        raise UserError(f"--checkpoints needs decode.engine pytorch, not {decode.engine}")
    models = [_ready(load_model(place, corpus, name)) for name in names[-checkpoints:]]
    check_beam(decode, models[0])
    return Translator(TorchEngine(Ensemble(models), decode), corpus, edits, decode)


def _ready(model: Transformer) -> Transformer:
    pack_weights(model)
    return model.to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))


class Translator:
    """Translates as the pipeline does: with the same cleaning, tokens and units."""

    def __init__(
        self,
        engine: Engine,
        corpus: BinaryCorpus,
        edits: Edits,
        decode: Decode,
        model: Transformer | None = None,
    ) -> None:
        """`model`: the engine's, where it is one; without it there are translations alone."""
        self.corpus, self.decode = corpus, decode
        self._engine, self._edits, self._model = engine, edits, model
        self._most = engine.max_source_length

    @property
    def model(self) -> Transformer:
        assert self._model is not None, "a decoder that is not one model"
        return self._model

    def __call__(
        self, sentences: Sequence[str], best: int = 1, long: Long = "split"
    ) -> list[Translated]:
        """The `best` translations of each sentence, fewer where so many do not exist.

        A sentence beyond the model's maximum length is translated in pieces, which have one
        translation together, or cut. An empty one has an empty translation.
        """
        ids = [self.ids(sentence) for sentence in sentences]
        pieces = [self._pieces(each, long) for each in ids]
        flat = list(chain.from_iterable(pieces))
        lengths = np.array(list(map(len, flat)), dtype=np.int64)
        # lists lose the outputs that differ in units, but not as text
        wanted = best if best == 1 else self.decode.beam
        found = iter(self._engine.search(flat, lengths, wanted))
        beyond = (max(0, len(whole) + 1 - self._most) for whole in ids)
        outputs = [[next(found) for _ in parts] for parts in pieces]
        made = (
            [Piece(part, first.tokens) for part, (first, *_) in zip(parts, output, strict=True)]
            if whole
            else []
            for whole, parts, output in zip(ids, pieces, outputs, strict=True)
        )
        joined = (self._join(parts)[:best] for parts in outputs)
        return list(map(Translated, joined, beyond, made))

    def attention(self, translated: Translated) -> list[AttentionMap]:
        """What the model read while it wrote the best translation: a map of each piece."""
        return [
            attention_maps(self.model, self.corpus, piece.source, piece.words, ("cross",))["cross"]
            for piece in translated.pieces
        ]

    def ids(self, sentence: str, given: bool = False) -> list[int]:
        """The units of a sentence, or of a translation that is `given`; without EOS."""
        corpus = self.corpus
        language = corpus.target if given else corpus.source
        tokens = corpus.tokenizer(language).tokenize(edited(sentence, language, self._edits))
        return list(corpus.segmentation(language).encode([" ".join(tokens)]))[:-1]

    def _pieces(self, ids: list[int], long: Long) -> list[list[int]]:
        """Units in pieces that the model can read, each with EOS; no word is cut in two."""
        pieces: list[list[int]] = []
        rest = ids
        while not pieces or (rest and long == "split"):
            end = self._end(rest)
            pieces.append([*rest[:end], EOS])
            rest = rest[end:]
        return pieces

    def _end(self, ids: list[int]) -> int:
        """How many units the model can read, up to the end of a word if there is one."""
        room = self._most - 1
        if len(ids) <= room:
            return len(ids)
        units = self.corpus.segmentation(self.corpus.source).vocabulary.tokens
        ends = (end for end in range(room, 0, -1) if not units[ids[end - 1]].endswith(CONTINUED))
        return next(ends, room)

    def _join(self, parts: list[list[Hypothesis]]) -> list[Translation]:
        corpus = self.corpus
        if len(parts) == 1:
            scores: dict[str, float] = {}
            for one in parts[0]:
                scores.setdefault(corpus.text(corpus.target, one.tokens), one.score)
            return [Translation(text, score) for text, score in scores.items()]
        firsts = [first for first, *_ in parts]
        texts = (corpus.text(corpus.target, first.tokens) for first in firsts)
        log = sum(first.log_prob for first in firsts)
        penalty = length_penalty(sum(len(first.tokens) + 1 for first in firsts), self.decode)
        return [Translation(" ".join(filter(None, texts)), log / penalty)]


def translate_streams(
    translator: Translator,
    files: Sequence[str],
    best: int | None,
    scores: bool,
    long: Long,
    album: AttentionFile | None = None,
) -> Iterator[list[str]]:
    """Lines of output for the lines of files, one after the other, or of standard input.

    They come as soon as they are there, some together. With `best`, an n-best list as Moses writes
    it: LINE ||| TEXT ||| SCORE, lines counted from 0. The `album` takes in the attention of each
    line; what it has no room for ends the work.
    """
    before = 0
    for stream, name in opened(files):
        number = 0
        for lines in read_lines_together(stream, name, _LINES):
            results = translator([text for _, text in lines], best or 1, long)
            output: list[str] = []
            for (number, text), translated in zip(lines, results, strict=True):
                if translated.beyond and long == "truncate":
                    say(f"{name}:{number}: cut: {translated.beyond} units too long", "warning")
                if album:
                    maps = partial(translator.attention, translated)
                    try:
                        album.add(f"{name}:{number}", text, translated.best[0].text, maps)
                    except UserError:
                        yield output
                        raise
                output += _formatted(before + number - 1, translated.best, best, scores)
            yield output
        before += number


def opened(files: Sequence[str]) -> Iterator[tuple[BinaryIO, str]]:
    """Each of the files with its name, or standard input."""
    if not files:
        if sys.stdin is None:
            raise UserError("standard input is closed")
        yield sys.stdin.buffer, "standard input"
    for file in files:
        with Path(file).open("rb") as stream:
            yield stream, file


def _formatted(number: int, best: list[Translation], most: int | None, scores: bool) -> list[str]:
    if most is not None:
        return [f"{number} ||| {one.text} ||| {one.score:.6f}" for one in best]
    return [f"{best[0].score:.6f}\t{best[0].text}" if scores else best[0].text]
