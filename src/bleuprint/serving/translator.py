"""Translates any sentences with a trained system: text in, text out.

`load_translator` opens a trained run as a `Translator`, which cleans, tokenizes, encodes, searches
and detokenizes as the pipeline does with test sets. `translate_lines` does so for files.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple

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
from bleuprint.rules import EDITS, find_edit
from bleuprint.rules.rule import Edit, Edits, apply_edits
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.named_entries import NamedEntries
from bleuprint.runtime.schema import validate_document
from bleuprint.runtime.utf8 import read_line_batches
from bleuprint.runtime.wording import counted
from bleuprint.serving.known_words import KnownWords
from bleuprint.text.tokenizers import tokenize_to_line

# So many lines are translated together at most. A test set fits into one call, so that its batches
# are those of the pipeline: in other batches, native arithmetic may round differently.
_LINES_AT_ONCE = 8192
# A line is far longer than the training text if it has _FAR_LONGER times as many tokens as most
# training sentences have at most: the share _USUAL_SHARE of them.
_FAR_LONGER = 1.5
_USUAL_SHARE = 0.999


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence.

    Attributes:
        text: The translation.
        score: Its score, by which translations are ranked; see `beam_search.Hypothesis`.
    """

    text: str
    score: float


@dataclass(frozen=True)
class Piece:
    """The part of a sentence that was translated at once; usually it is the whole sentence.

    Attributes:
        source: The token ids of the source, with its tag and EOS.
        tokens: The token ids of its best translation, without EOS.
    """

    source: list[int]
    tokens: list[int]


@dataclass(frozen=True)
class Translated:
    """A sentence after its translation.

    Attributes:
        translations: Its translations, best first.
        excess_tokens: The number of tokens by which the sentence is too long for the model; 0 if it
            fits.
        pieces: The pieces of the sentence with their best translations; empty if the sentence is.
        words: The words that the tokenizer found in the sentence.
        is_cut: Whether the best translation, or that of one of its pieces, ended at its maximum
            length.
    """

    translations: list[Translation]
    excess_tokens: int
    pieces: list[Piece]
    words: list[str]
    is_cut: bool = False

    @property
    def length(self) -> int:
        """The number of tokens of the sentence, with an EOS for each piece."""
        return sum(len(piece.source) for piece in self.pieces)

    @property
    def warnings(self) -> list[str]:
        """Messages that tell the user why the translation may lack a part of the sentence."""
        warnings = []
        if self.excess_tokens:
            warnings.append(
                f"the line is {counted(self.excess_tokens, 'token')} too long for the model and "
                "was split into pieces"
            )
        elif self.pieces and not self.translations[0].text:
            warnings.append("the translation is empty")
        if self.is_cut:
            warnings.append(
                "the translation is cut off at its maximum length (decode.max_len_a, "
                "decode.max_len_b)"
            )
        return warnings


@dataclass(frozen=True)
class _CleaningSettings:
    """How the training text of a model was cleaned.

    Attributes:
        clean: The edits in the order in which they are applied.
    """

    clean: Annotated[tuple[Edit, ...], NamedEntries(EDITS, find_edit)]


def load_translator(
    run: Run,
    decode: Decode,
    languages: tuple[str, str] | None = None,
    sampler: Sampler | None = None,
) -> "Translator":
    """Load a trained model, its vocabularies and its tokenizers, to translate raw text.

    Args:
        run: The system, corpus and seed of the model, which is the average of several checkpoints
            or an ensemble of them.
        decode: The settings of the search.
        languages: The source and the target language; by default those of the corpus.
        sampler: If given, translations are sampled from the model instead of searched.
    """
    corpus = BinaryCorpus(corpus_folder(run.corpus, "binary"))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model_or_ensemble(run.models_folder / "averaged", corpus).to(device)
    # Sentences are cleaned as the training text was. The user may have edited params.yaml since.
    recorded = {"clean": corpus.clean}
    cleaning = validate_document(_CleaningSettings, recorded, corpus.folder / CORPUS)
    return Translator(model, corpus, cleaning.clean, decode, sampler, languages)


class _PreparedSentence(NamedTuple):
    """A sentence as the model reads it.

    Attributes:
        words: The words that the tokenizer found.
        token_count: The number of its tokens, without tag and EOS.
        pieces: The token ids of each piece, with tag and EOS.
    """

    words: list[str]
    token_count: int
    pieces: list[list[int]]


class Translator:
    """Translates each line as one sentence, exactly as the pipeline translates test sets.

    Attributes:
        model: The model or ensemble.
        corpus: The corpus, for vocabularies and tokenizers.
        decode: The settings of the search.
        source: The language of the sentences.
        target: The language of the translations.
        known_words: The words of the training text.
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
        """Prepare to translate raw sentences with a model.

        Args:
            model: The model, or an ensemble of several models.
            corpus: The prepared corpus that it was trained on, with its vocabularies.
            edits: How the training text was cleaned; sentences are cleaned in the same way.
            decode: The settings of the search.
            sampler: If given, translations are sampled from the model instead of searched.
            languages: The source and the target language; by default those of the corpus.
        """
        if languages is None:
            languages = (corpus.source, corpus.target)
        self.model = model
        self.corpus = corpus
        self.decode = decode
        self.source, self.target = languages
        self.known_words = KnownWords(corpus, self.source)
        self._edits = edits
        self._aligner = WordAligner(model, corpus, decode)
        # A model with several target languages reads a tag before each sentence, which names the
        # language to translate into. For any other model, the list is empty.
        self._tag_ids = corpus.source_prefix(self.target)
        self._engine = create_engine(model, decode, sampler)
        self._max_source_length = self._engine.max_source_length

    def __call__(self, sentences: Sequence[str], n_best: int = 1) -> list[Translated]:
        """Translate sentences.

        A sentence that is too long for the model is split into pieces, and the translations of the
        pieces are joined. An empty sentence has an empty translation.

        Args:
            sentences: The sentences, as raw text.
            n_best: The number of different translations to return for each sentence. The search may
                find fewer.
        """
        prepared_sentences = [self._prepare(sentence) for sentence in sentences]
        # The pieces of all sentences are searched together, which is faster.
        all_pieces = []
        for prepared in prepared_sentences:
            all_pieces += prepared.pieces
        lengths = np.array([len(piece) for piece in all_pieces], dtype=np.int64)
        # Outputs of the beam may have different tokens but the same text, such as two ways to split
        # a word. To find several different translations, all outputs of the beam are needed.
        outputs_per_piece = 1 if n_best == 1 else self.decode.beam
        all_outputs = iter(self._engine.search(all_pieces, lengths, outputs_per_piece))
        translated_sentences = []
        for prepared in prepared_sentences:
            # `islice` takes the next outputs, as many as the sentence has pieces.
            outputs_of_pieces = list(islice(all_outputs, len(prepared.pieces)))
            translated_sentences.append(self._combine_outputs(prepared, outputs_of_pieces, n_best))
        return translated_sentences

    def _prepare(self, sentence: str) -> _PreparedSentence:
        """Clean, tokenize and encode a sentence, and split it into pieces if it is too long."""
        words = self._clean_and_tokenize(sentence)
        ids = self._encode(words)
        return _PreparedSentence(words, len(ids), self._split_into_pieces(ids))

    def _combine_outputs(
        self, prepared: _PreparedSentence, outputs_of_pieces: list[list[Hypothesis]], n_best: int
    ) -> Translated:
        """Turn the outputs of the search for the pieces of one sentence into its translations.

        Args:
            prepared: The sentence as token ids, in one piece or, if it is too long, in several.
            outputs_of_pieces: For each piece, the outputs of the search, best first.
            n_best: The maximum number of translations.

        Returns:
            The translations, and facts about the sentence that messages and attention maps need.
        """
        translations = self._different_translations(prepared, outputs_of_pieces)
        best_outputs = [outputs[0] for outputs in outputs_of_pieces]
        pieces = []
        is_empty = prepared.token_count == 0
        if not is_empty:
            for source, output in zip(prepared.pieces, best_outputs, strict=True):
                pieces.append(Piece(source, output.tokens))
        length_with_tag_and_eos = len(self._tag_ids) + prepared.token_count + 1  # EOS is one token.
        return Translated(
            translations=translations[:n_best],
            excess_tokens=max(0, length_with_tag_and_eos - self._max_source_length),
            pieces=pieces,
            words=prepared.words,
            is_cut=any(output.is_cut for output in best_outputs),
        )

    def attention(self, translated: Translated) -> list[dict[str, AttentionMap]]:
        """Compute which source tokens the model attends to for each token of the best translation.

        Args:
            translated: A sentence with its translations.

        Returns:
            For each piece of the sentence, its attention maps by kind, such as `cross`. An ensemble
            has the maps of its last model.
        """
        model = models_of(self.model)[-1]
        maps_of_pieces = []
        for piece in translated.pieces:
            maps = compute_attention_maps(model, self.corpus, piece.source, piece.tokens)
            maps_of_pieces.append(maps)
        return maps_of_pieces

    def alignment(self, translated: Translated) -> WordAlignment:
        """Return the words of a sentence and of its best translation, and how they are aligned."""
        pieces = [(piece.source, piece.tokens) for piece in translated.pieces]
        return self._aligner.align(translated.words, pieces)

    def ids(self, sentence: str) -> list[int]:
        """Return the token ids of a sentence, without tag and EOS."""
        return self._encode(self._clean_and_tokenize(sentence))

    @cached_property
    def usual_length(self) -> int:
        """The number of tokens, with EOS, that 99.9% of the training sentences have at most."""
        lengths = self.corpus.side("train", self.corpus.source).lengths
        sentences_up_to_length = np.bincount(lengths).cumsum()
        return int(np.searchsorted(sentences_up_to_length, _USUAL_SHARE * len(lengths)))

    def is_far_longer(self, translated: Translated) -> bool:
        """Return whether a line is far longer than the sentences of the training text."""
        return translated.length > _FAR_LONGER * self.usual_length

    def long_line_note(self) -> str:
        """Return the part of a message that explains why a very long line may be a problem.

        It continues a sentence such as `line 3 is ...`.
        """
        return (
            f"far longer than the training sentences (99.9% have at most {self.usual_length:,} "
            "tokens). A line is translated as one sentence. Put each sentence on its own line"
        )

    def _clean_and_tokenize(self, sentence: str) -> list[str]:
        """Clean a sentence and split it into words, just as was done with the training text.

        Args:
            sentence: The sentence, as raw text.

        Raises:
            UserError: The sentence contains a word with a special meaning for the model, such as a
                tag for the target language.
        """
        text = sentence
        # `apply_edits` also turns several spaces into one. Training text that was not cleaned keeps
        # them, and a tokenizer such as spaCy makes tokens of them. So they must stay here, too.
        if self._edits:
            text = apply_edits(sentence, self.source, self._edits)
        line = tokenize_to_line(self.corpus.tokenizer(self.source), text)
        if not line:
            return []
        words = line.split(" ")
        self.corpus.check_sentence(sentence, words)
        return words

    def _encode(self, words: list[str]) -> list[int]:
        """Return the token ids of words, without EOS."""
        segmentation = self.corpus.segmentation(self.corpus.source)
        ids: list[int] = segmentation.encode([" ".join(words)]).tolist()
        return ids[:-1]  # EOS is last

    def _split_into_pieces(self, ids: list[int]) -> list[list[int]]:
        """Split a sentence that is too long for the model into pieces, if possible between words.

        Args:
            ids: The token ids of the sentence. The model also needs a tag before them, if it has
                several target languages, and EOS (the end of the sentence) after them.

        Returns:
            The token ids of each piece, with tag and EOS. A sentence that fits is one piece. An
            empty sentence is one piece with only EOS, which is not searched.
        """
        if not ids:
            return [[EOS]]
        segmentation = self.corpus.segmentation(self.corpus.source)
        ends_word = segmentation.ends_word(np.array([*ids, EOS]))
        max_tokens = self._max_source_length - len(self._tag_ids) - 1  # EOS is added, too.
        pieces = []
        start = 0
        while len(ids) - start > max_tokens:
            stop = start + max_tokens
            # Go back to the last token that ends a word.
            while stop > start and not ends_word[stop - 1]:
                stop -= 1
            if stop == start:
                # A single word is longer than a piece, and must be cut.
                stop = start + max_tokens
            pieces.append([*self._tag_ids, *ids[start:stop], EOS])
            start = stop
        pieces.append([*self._tag_ids, *ids[start:], EOS])
        return pieces

    def _different_translations(
        self, prepared: _PreparedSentence, outputs_of_pieces: list[list[Hypothesis]]
    ) -> list[Translation]:
        """Return the translations of a sentence that differ in their text, best first.

        A sentence that was split into pieces gets a single translation, which joins the best output
        of each piece.

        Args:
            prepared: The sentence as token ids, in one piece or, if it is too long, in several.
            outputs_of_pieces: For each piece, the outputs of the search, best first.
        """
        if len(outputs_of_pieces) > 1:
            best_outputs = [outputs[0] for outputs in outputs_of_pieces]
            return [self._join_pieces(prepared, best_outputs)]
        (source,) = prepared.pieces
        scores_by_text: dict[str, float] = {}
        for output in outputs_of_pieces[0]:
            text = self._output_text(source, prepared.words, output.tokens)
            # Several outputs may have the same text. The first one has the best score.
            scores_by_text.setdefault(text, output.score)
        return [Translation(text, score) for text, score in scores_by_text.items()]

    def _join_pieces(self, prepared: _PreparedSentence, outputs: list[Hypothesis]) -> Translation:
        """Join the outputs for all pieces of a sentence to one translation.

        The score is computed as if the pieces were one output: the sum of all log-probabilities,
        divided by the length penalty for the total number of tokens.

        Args:
            prepared: The sentence as token ids in pieces, and its words.
            outputs: The best output of each piece.
        """
        texts = []
        log_prob = 0.0
        token_count = 0
        first_word = 0
        for source, output in zip(prepared.pieces, outputs, strict=True):
            # Only the setting `replace_unk` uses the words: it replaces an unknown token by a
            # source word. It requires a vocabulary of words, so a piece has as many words as it has
            # tokens, without the tag and EOS.
            words_in_piece = len(source) - len(self._tag_ids) - 1
            words = prepared.words[first_word : first_word + words_in_piece]
            first_word += words_in_piece
            text = self._output_text(source, words, output.tokens)
            if text:
                texts.append(text)
            log_prob += output.log_prob
            token_count += len(output.tokens) + 1  # EOS counts, too.
        score = log_prob / length_penalty(token_count, self.decode)
        return Translation(" ".join(texts), score)

    def _output_text(self, source: list[int], words: list[str], tokens: list[int]) -> str:
        """Turn the token ids of an output into text.

        Args:
            source: The token ids of the source, with tag and EOS.
            words: The words of the source, from which an unknown word may be copied.
            tokens: The token ids of the output.
        """
        output_words = self._aligner.output_words(source, words, tokens)
        return self.corpus.tokenizer(self.target).detokenize(output_words)


class TranslatedLine(NamedTuple):
    """A line of a file after its translation.

    Attributes:
        location: The file and the number of the line, such as `news.de:3`.
        translated: The line's translations.
    """

    location: str
    translated: Translated


def translate_lines(
    translator: Translator, files: Sequence[str], n_best: int = 1
) -> Iterator[list[TranslatedLine]]:
    """Translate the lines of text files, one file after the other.

    Args:
        translator: The translator.
        files: The paths of the files; if there are none, standard input is read.
        n_best: The number of translations of each line.

    Yields:
        Lists of translated lines, as soon as they are translated. A line that somebody types is
        translated at once; lines of a file are translated many at a time.
    """
    for stream, name in _open_streams(files):
        for numbered_lines in read_line_batches(stream, name, _LINES_AT_ONCE):
            texts = [text for _, text in numbered_lines]
            translations = translator(texts, n_best)
            translated_lines = []
            for (line_number, _), translated in zip(numbered_lines, translations, strict=True):
                location = f"{name}:{line_number}"
                translated_lines.append(TranslatedLine(location, translated))
            yield translated_lines


def _open_streams(files: Sequence[str]) -> Iterator[tuple[BufferedReader, str]]:
    """Open the files one after the other, and yield each as a stream of bytes with its name.

    Args:
        files: The paths of the files; if there are none, standard input is opened.

    Raises:
        UserError: Standard input is needed, and the caller has closed it.
    """
    if not files:
        if sys.stdin is None:
            raise UserError("standard input is closed")
        # `closefd=False`: the end of this block does not close standard input itself.
        with open(sys.stdin.fileno(), "rb", closefd=False) as stream:
            yield stream, "standard input"
    for file in files:
        with Path(file).open("rb") as stream:
            yield stream, file
