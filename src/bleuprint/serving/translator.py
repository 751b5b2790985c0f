"""Translating any sentences with a trained system: text in, text out."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import numpy as np
import torch

from bleuprint.config.paths import Run, corpus_folder
from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import CORPUS, BinaryCorpus
from bleuprint.dataset.subwords.vocabulary import EOS
from bleuprint.decoding.attention_maps import AttentionMap, compute_attention_maps
from bleuprint.decoding.beam_search import Hypothesis, length_penalty
from bleuprint.decoding.ensemble import ModelOrEnsemble, load_model_or_ensemble, models_of
from bleuprint.decoding.sampling import Sampler
from bleuprint.decoding.translate import create_engine
from bleuprint.decoding.word_alignment import WordAligner, WordAlignment
from bleuprint.rules import EDITS
from bleuprint.rules.rule import Edit, Edits, apply_edits
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import NamedEntries, validate_document
from bleuprint.runtime.utf8 import read_line_batches
from bleuprint.runtime.wording import counted
from bleuprint.serving.known_words import KnownWords
from bleuprint.text.tokenizers import tokenize_to_line

# Lines that are translated together, at most: a test set as a whole, in the pipeline's batches,
# since native arithmetic may round otherwise in others.
_LINES = 8192
# A line is far longer than the training text with more than _FAR times as many tokens as _SHARE of
# the training sentences have at most.
_FAR, _SHARE = 1.5, 0.999


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence, and its score (see beam_search.Hypothesis)."""

    text: str
    score: float


@dataclass(frozen=True)
class Piece:
    """Tokens translated at once: ids of the source with EOS, of the best translation without."""

    source: list[int]
    tokens: list[int]


@dataclass(frozen=True)
class Translated:
    """The translations of a sentence, best first.

    `beyond`: by how many tokens it is too long for the model. `pieces`: those of the first
    translation; none if the sentence is empty. `words`: those that the tokenizer found in it.
    `is_cut`: whether the maximum length ended the first translation, or that of one of its pieces.
    """

    translations: list[Translation]
    excess_tokens: int
    pieces: list[Piece]
    words: list[str]
    is_cut: bool = False

    @property
    def length(self) -> int:
        """The tokens of the sentence, each piece with its EOS."""
        return sum(len(piece.source) for piece in self.pieces)

    @property
    def warnings(self) -> list[str]:
        """What may have been lost."""
        found = list[str]()
        if self.excess_tokens:
            found.append(
                f"the line is {counted(self.excess_tokens, 'token')} too long for the model: "
                "split into pieces"
            )
        elif self.pieces and not self.translations[0].text:
            found.append("the translation is empty")
        if self.is_cut:
            found.append(
                "the translation is cut off at its maximum length (decode.max_len_a, "
                "decode.max_len_b)"
            )
        return found


@dataclass(frozen=True)
class _Cleaned:
    """How the text was cleaned that a model has learned from."""

    clean: Annotated[tuple[Edit, ...], NamedEntries(EDITS)]


def load_translator(
    run: Run,
    decode: Decode,
    languages: tuple[str, str] | None = None,
    sampler: Sampler | None = None,
) -> "Translator":
    """Load the translator of a trained run.

    Args:
        run: The training whose model translates.
        decode: How it searches.
        languages: The source and the target language; by default those of the corpus.
        sampler: Draws translations, instead of beam search.
    """
    corpus = BinaryCorpus(corpus_folder(run.corpus, "binary"))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model_or_ensemble(run.models_folder / "averaged", corpus).to(device)
    # not those of params.yaml, which may have been edited since
    edits = validate_document(_Cleaned, {"clean": corpus.clean}, corpus.folder / CORPUS).clean
    return Translator(model, corpus, edits, decode, sampler, languages)


class Translator:
    """Translates each line as one sentence, exactly as the pipeline translates test sets.

    Cleaning, tokenizer, subwords and search are those of the test sets.

    `sampler`: draws translations, instead of beam search. `languages`: of the text and of its
    translation; by default those of the corpus.
    """

    def __init__(
        self,
        model: ModelOrEnsemble,
        corpus: BinaryCorpus,
        edits: Edits,
        decode: Decode,
        sampler: Sampler | None = None,
        languages: tuple[str, str] | None = None,
    ) -> None:
        self.model, self.corpus, self.decode, self._edits = model, corpus, decode, edits
        self.source, self.target = languages or (corpus.source, corpus.target)
        self._aligner = WordAligner(model, corpus, decode)
        self._prefix = corpus.source_prefix(self.target)
        self._engine = create_engine(model, decode, sampler)
        self._most = self._engine.max_source_length
        self.known_words = KnownWords(corpus, self.source)

    def __call__(self, sentences: Sequence[str], best: int = 1) -> list[Translated]:
        """The `best` translations of each sentence, or fewer if search found fewer.

        A sentence beyond the model's maximum length is split into pieces, whose translations are
        joined. An empty one has an empty translation.
        """
        words = []
        ids = []
        sources = []
        for sentence in sentences:
            words.append(self._words(sentence))
            ids.append(self._encode(words[-1]))
            sources.append(self._pieces(ids[-1]))
        flat = list(chain.from_iterable(sources))
        lengths = np.array(list(map(len, flat)), dtype=np.int64)
        # outputs that differ in tokens, but not as text, are merged below
        n_best = best if best == 1 else self.decode.beam
        hypotheses = iter(self._engine.search(flat, lengths, n_best))
        translations = []
        for text, whole, parts in zip(words, ids, sources, strict=True):
            outputs = list(islice(hypotheses, len(parts)))
            firsts = []
            if whole:
                for part, output in zip(parts, outputs, strict=True):
                    firsts.append(Piece(part, output[0].tokens))
            beyond = max(0, len(self._prefix) + len(whole) + 1 - self._most)
            joined = self._join(parts, text, outputs)[:best]
            is_cut = any(of_piece[0].is_cut for of_piece in outputs)
            translations.append(Translated(joined, beyond, firsts, text, is_cut))
        return translations

    def attention(self, translated: Translated) -> list[dict[str, AttentionMap]]:
        """The maps of the best translation by kind, for each piece; an ensemble's last model's."""
        by = models_of(self.model)[-1], self.corpus
        return [
            compute_attention_maps(*by, piece.source, piece.tokens) for piece in translated.pieces
        ]

    def alignment(self, translated: Translated) -> WordAlignment:
        """The words of a sentence and of its best translation, and which translate which."""
        pieces = [(piece.source, piece.tokens) for piece in translated.pieces]
        return self._aligner.align(translated.words, pieces)

    def ids(self, sentence: str) -> list[int]:
        """The tokens of a sentence, without EOS."""
        return self._encode(self._words(sentence))

    @cached_property
    def usual_length(self) -> int:
        """The tokens, EOS included, that 99.9% of the training sentences have at most."""
        lengths = self.corpus.side("train", self.corpus.source).lengths
        at_most = np.bincount(lengths).cumsum()
        return int(np.searchsorted(at_most, _SHARE * len(lengths)))

    def is_far_longer(self, translated: Translated) -> bool:
        """Whether a line is far longer than the sentences that the system was trained on."""
        return translated.length > _FAR * self.usual_length

    def long_line_note(self) -> str:
        """What to say of lines that are far longer than the training sentences."""
        return (
            f"far longer than the training sentences (99.9% have at most {self.usual_length:,} "
            "tokens). A line is translated as one sentence: put each sentence on a line of its own"
        )

    def _words(self, sentence: str) -> list[str]:
        """Clean and tokenize a sentence; raises UserError at one that the model cannot read."""
        text = sentence
        # Without edits, the pipeline does not normalize white space either, which spaCy may count.
        if self._edits:
            text = apply_edits(sentence, self.source, self._edits)
        line = tokenize_to_line(self.corpus.tokenizer(self.source), text)
        if not line:
            return []
        words = line.split(" ")
        self.corpus.check_sentence(sentence, words)
        return words

    def _encode(self, words: list[str]) -> list[int]:
        segmentation = self.corpus.segmentation(self.corpus.source)
        ids: list[int] = segmentation.encode([" ".join(words)]).tolist()
        return ids[:-1]

    def _pieces(self, ids: list[int]) -> list[list[int]]:
        """Pieces within the model's length, each with prefix and EOS; split between words if any.

        Of an empty sentence EOS alone, which engines do not search.
        """
        if not ids:
            return [[EOS]]
        ends_word = self.corpus.segmentation(self.corpus.source).ends_word(np.array([*ids, EOS]))
        room, pieces = self._most - 1 - len(self._prefix), list[list[int]]()
        while len(ids) > room:
            end = next((end for end in range(room, 0, -1) if ends_word[end - 1]), room)
            pieces.append([*self._prefix, *ids[:end], EOS])
            ids, ends_word = ids[end:], ends_word[end:]
        return [*pieces, [*self._prefix, *ids, EOS]]

    def _join(
        self, sources: list[list[int]], words: list[str], parts: list[list[Hypothesis]]
    ) -> list[Translation]:
        """Return the translations of a sentence.

        Args:
            sources: The tokens of each piece of the sentence, with prefix and EOS.
            words: The words of the sentence.
            parts: The hypotheses of each piece, the best first.
        """
        if len(parts) == 1:
            return self._distinct(sources[0], words, parts[0])
        texts = []
        log_prob = 0.0
        tokens = 0
        first_word = 0
        for source, hypotheses in zip(sources, parts, strict=True):
            best = hypotheses[0]
            # Words are only read with replace_unk, where each token is one: but for prefix and EOS.
            words_of_piece = len(source) - len(self._prefix) - 1
            end = first_word + words_of_piece
            texts.append(self._text(source, words[first_word:end], best.tokens))
            first_word = end
            log_prob += best.log_prob
            tokens += len(best.tokens) + 1  # with EOS
        text = " ".join(filter(None, texts))
        return [Translation(text, log_prob / length_penalty(tokens, self.decode))]

    def _distinct(
        self, source: list[int], words: list[str], hypotheses: list[Hypothesis]
    ) -> list[Translation]:
        """Translations with different texts: hypotheses of other tokens may have the same."""
        scores: dict[str, float] = {}
        for hypothesis in hypotheses:
            text = self._text(source, words, hypothesis.tokens)
            scores.setdefault(text, hypothesis.score)
        return [Translation(text, score) for text, score in scores.items()]

    def _text(self, source: list[int], words: list[str], tokens: list[int]) -> str:
        found = self._aligner.output_words(source, words, tokens)
        return self.corpus.tokenizer(self.target).detokenize(found)


def translate_lines(
    translator: Translator, files: Sequence[str], best: int = 1
) -> Iterator[list[tuple[str, Translated]]]:
    """The lines of files, one after the other, or of standard input, with `best` translations.

    Yields them as soon as they are translated, some together: place (file and number), and what the
    line was translated to.
    """
    for stream, name in _opened(files):
        for lines in read_line_batches(stream, name, _LINES):
            numbers, texts = zip(*lines, strict=True)
            places = [f"{name}:{number}" for number in numbers]
            yield list(zip(places, translator(texts, best), strict=True))


def _opened(files: Sequence[str]) -> Iterator[tuple[BufferedReader, str]]:
    """Each of the files with its name, or standard input."""
    if not files:
        if sys.stdin is None:
            raise UserError("standard input is closed")
        with open(sys.stdin.fileno(), "rb", closefd=False) as stream:
            yield stream, "standard input"
    for file in files:
        with Path(file).open("rb") as stream:
            yield stream, file
