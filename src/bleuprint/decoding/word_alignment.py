"""The source word of each word of an output, by the decoder's attention.

The weights are those of the cross-attention in the last decoder layer, averaged over its heads, as
in fairseq's --replace-unk and --print-alignment. EOS is never chosen, as in OpenNMT-py's
-replace_unk (fairseq's may put "<eos>" into a sentence). Neither a dictionary nor copying of words
that the vocabulary has is tried.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bleuprint.config.system import Decode
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.dataset.subwords.segmentation import Segmentation
from bleuprint.dataset.subwords.vocabulary import BOS, EOS, PAD, UNK
from bleuprint.decoding.attention_maps import compute_attention_maps
from bleuprint.decoding.ensemble import ModelOrEnsemble, models_of
from bleuprint.text.fields import join_fields


@dataclass(frozen=True)
class WordAlignment:
    """The alignment of a sentence and its translation.

    Attributes:
        source: The tokenizer's words of the source.
        target: The tokenizer's words of the translation.
        links: The links between them: a number of a source word and one of a target word, both from
            0.
    """

    source: list[str]
    target: list[str]
    links: list[tuple[int, int]]

    def __str__(self) -> str:
        """SOURCE ||| TARGET ||| links in Pharaoh's format; words have no ||| (see text.fields)."""
        links = " ".join(f"{source}-{target}" for source, target in self.links)
        return join_fields(" ".join(self.source), " ".join(self.target), links)


class WordAligner:
    """Finds the source words of outputs; of an ensemble's outputs by its newest model's weights.

    A source may begin with a tag, which names the target language; it is never found.
    """

    def __init__(self, decoder: ModelOrEnsemble, corpus: BinaryCorpus, decode: Decode) -> None:
        """Create an aligner.

        Args:
            decoder: The model that translated.
            corpus: The corpus, for words and vocabularies.
            decode: The settings of the search; with `replace_unk`, UNK is replaced.
        """
        self._model = models_of(decoder)[-1]
        self._corpus = corpus
        self._decode = decode

    def attended(self, source: Sequence[int], tokens: Sequence[int]) -> list[int]:
        """Find the source token that each output token attends to most.

        Args:
            source: The token ids of the source, with its tag and EOS.
            tokens: The token ids of the output, without EOS.

        Returns:
            The number of a source token for each of `tokens`, from 0 after the tag.
        """
        maps = compute_attention_maps(self._model, self._corpus, source, tokens)
        last_layer = maps["cross"].means[-1]
        # Without the rows of the output's EOS, and without the columns of tag and EOS.
        first_word = self._corpus.sentence_start(source)
        weights = last_layer[: len(tokens), first_word : len(source) - 1]
        source_tokens: list[int] = weights.argmax(axis=1).tolist()
        return source_tokens

    def output_words(
        self, source: Sequence[int], words: Sequence[str], tokens: Sequence[int]
    ) -> list[str]:
        """Return the words of an output.

        With the setting `replace_unk`, each UNK is replaced by the source word that it attends to
        most.

        Args:
            source: The token ids of the source, with its tag and EOS.
            words: The words of the source. With `replace_unk` each of them is one token.
            tokens: The token ids of the output, without EOS.
        """
        output = self._corpus.segmentation(self._corpus.target).decode(tokens)
        has_source_words = self._source_token_count(source) > 0
        if not (self._decode.replace_unk and UNK in tokens and has_source_words):
            return output
        # `decode` leaves these special tokens out; each other token is a word.
        word_tokens = []
        for token, source_token in zip(tokens, self.attended(source, tokens), strict=True):
            if token not in (PAD, BOS, EOS):
                word_tokens.append((token, source_token))
        replaced = []
        for word, (token, source_token) in zip(output, word_tokens, strict=True):
            replaced.append(words[source_token] if token == UNK else word)
        return replaced

    def align(
        self, words: list[str], pieces: Sequence[tuple[list[int], list[int]]]
    ) -> WordAlignment:
        """Align a sentence and its translation.

        Two words are linked if any of their tokens are (Garg et al. 2019, section 5.2).

        Args:
            words: The words of the sentence.
            pieces: The pieces that the sentence was translated in, in their order: the token ids of
                each source, with its tag and EOS, and those of its translation, without EOS.
        """
        corpus = self._corpus
        source_ids: list[int] = []
        for source, _ in pieces:
            source_ids += source[corpus.sentence_start(source) : -1]
        word_of_token = words_of_source_tokens(
            corpus.segmentation(corpus.source), words, source_ids
        )
        target_words: list[str] = []
        links: set[tuple[int, int]] = set()
        first_token = 0
        for source, tokens in pieces:
            next_piece = first_token + self._source_token_count(source)
            piece_word_of_token = word_of_token[first_token:next_piece]
            first_token = next_piece
            output = words_of_output(corpus.segmentation(corpus.target), tokens)
            if output.words and piece_word_of_token:
                attended = self.attended(source, tokens)
                for source_token, word in zip(attended, output.word_of_token, strict=True):
                    links.add((piece_word_of_token[source_token], len(target_words) + word))
            # Target words are counted over all pieces; the links above need the count before.
            if self._decode.replace_unk:
                piece_words = [words[number] for number in piece_word_of_token]
                target_words += self.output_words(source, piece_words, tokens)
            else:
                target_words += output.words
        return WordAlignment(words, target_words, sorted(links))

    def _source_token_count(self, source: Sequence[int]) -> int:
        """Return the number of a source's tokens without its tag and EOS."""
        return len(source) - self._corpus.sentence_start(source) - 1


class OutputWords(NamedTuple):
    """The words of an output, and which word each token belongs to.

    Attributes:
        words: The words.
        word_of_token: The number of its word, from 0, for each token.
    """

    words: list[str]
    word_of_token: list[int]


def words_of_source_tokens(
    segmentation: Segmentation, words: Iterable[str], ids: list[int]
) -> list[int]:
    """Return which word each source token belongs to.

    Args:
        segmentation: How words are split into tokens.
        words: The words of the source.
        ids: The words' token ids, without EOS.

    Returns:
        The number of its word, from 0, for each token.
    """
    # Without the EOS that `encode` adds.
    token_counts = [len(segmentation.encode([word])) - 1 for word in words]
    if sum(token_counts) == len(ids):
        word_of_token = []
        for word, token_count in enumerate(token_counts):
            word_of_token += [word] * token_count
        return word_of_token
    # SentencePiece may split a word of a line otherwise than the word alone. Then a token's word is
    # found by counting the words that ended before the token.
    # EOS tells `ends_word` where the last word ends; its own entry is removed.
    is_word_end = segmentation.ends_word(np.array([*ids, EOS]))[:-1]
    ended_before = is_word_end.cumsum() - is_word_end
    last_word = len(token_counts) - 1
    limited: list[int] = np.minimum(ended_before, last_word).tolist()
    return limited


def words_of_output(segmentation: Segmentation, tokens: Sequence[int]) -> OutputWords:
    """Return the words of an output, and which word each token belongs to.

    Args:
        segmentation: How words are split into tokens.
        tokens: The token ids of the output, without EOS.
    """
    words: list[str] = []
    word_of_token: list[int] = []
    word_tokens: list[int] = []
    # EOS tells `ends_word` where the last word ends; its own entry is removed.
    is_word_end = segmentation.ends_word(np.array([*tokens, EOS]))[:-1].tolist()
    for position, token in enumerate(tokens):
        word_tokens.append(token)
        if is_word_end[position] or position == len(tokens) - 1:
            word_of_token += [len(words)] * len(word_tokens)
            words += segmentation.decode(word_tokens)
            word_tokens = []
    # A SentencePiece piece that is a space decodes to no word: it belongs to the next word, or to
    # the last one.
    last_word = len(words) - 1
    for position, word in enumerate(word_of_token):
        word_of_token[position] = min(word, last_word)
    return OutputWords(words, word_of_token)
