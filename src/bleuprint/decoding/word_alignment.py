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
    """Which words of a sentence and its translation belong together.

    Attributes:
        source: The words of the source, as the tokenizer splits it.
        target: The words of the translation.
        links: The pairs of words that belong together: the number of a source word and the number
            of a target word, both from 0.
    """

    source: list[str]
    target: list[str]
    links: list[tuple[int, int]]

    def __str__(self) -> str:
        """Return a line with the source, the target and the links, separated by |||.

        Links are written as in Pharaoh's format: 0-0 1-2 links the second source word (1) with the
        third target word (2).
        """
        links = " ".join(f"{source}-{target}" for source, target in self.links)
        return join_fields(" ".join(self.source), " ".join(self.target), links)


class WordAligner:
    """Finds the source word of each word of a translation, by the model's attention.

    It is the word that the decoder attends to most. An ensemble is represented by its newest model.
    A source may begin with a tag, which names the target language; no word is aligned with it.
    """

    def __init__(self, decoder: ModelOrEnsemble, corpus: BinaryCorpus, decode: Decode) -> None:
        """Create an aligner.

        Args:
            decoder: The model that translates, or an ensemble.
            corpus: The corpus, whose vocabularies tell how words are split into tokens.
            decode: The settings of the search. With `replace_unk`, unknown words of a translation
                are replaced by source words.
        """
        self._model = models_of(decoder)[-1]  # The newest model.
        self._corpus = corpus
        self._decode = decode

    def most_attended(self, source: Sequence[int], tokens: Sequence[int]) -> list[int]:
        """Find the source token that each token of a translation attends to most.

        The weights are those of the last decoder layer, averaged over its heads.

        Args:
            source: The token ids of the source. It may begin with a tag for the target language,
                and ends with EOS. Neither is chosen.
            tokens: The token ids of the translation, without EOS.

        Returns:
            For each of `tokens`, the number of a source token; the first after the tag is 0.
        """
        maps = compute_attention_maps(self._model, self._corpus, source, tokens)
        # The mean over heads in the last layer, (tokens of the translation, tokens of the source).
        last_layer = maps["cross"].means[-1]
        # Leave out the row of the translation's EOS, and the columns of the tag and of EOS.
        first_after_tag = self._corpus.sentence_start(source)
        weights = last_layer[: len(tokens), first_after_tag : len(source) - 1]
        source_tokens: list[int] = weights.argmax(axis=1).tolist()
        return source_tokens

    def output_words(
        self, source: Sequence[int], words: Sequence[str], tokens: Sequence[int]
    ) -> list[str]:
        """Turn the token ids of a translation into words.

        With the setting `replace_unk`, each UNK, the token for unknown words, is replaced by the
        source word that it attends to most. This often restores a name, which is the same word in
        both languages.

        Args:
            source: The token ids of the source, with EOS, and with a tag for the target language if
                the corpus has tags.
            words: The words of the source. With `replace_unk`, each word is one token, so the
                number of a source token is also the number of its word.
            tokens: The token ids of the translation, without EOS.
        """
        output = self._corpus.segmentation(self._corpus.target).decode(tokens)
        has_source_words = self._source_token_count(source) > 0
        can_replace = self._decode.replace_unk and UNK in tokens and has_source_words
        if not can_replace:
            return output
        # Each token that is a word of the output, with the number of the source word for it.
        # The loop skips special tokens, since `decode` returns no words for them.
        token_links = []
        for token, source_word in zip(tokens, self.most_attended(source, tokens), strict=True):
            if token not in (PAD, BOS, EOS):
                token_links.append((token, source_word))
        replaced = []
        for word, (token, source_word) in zip(output, token_links, strict=True):
            replaced.append(words[source_word] if token == UNK else word)
        return replaced

    def align(
        self, words: list[str], pieces: Sequence[tuple[list[int], list[int]]]
    ) -> WordAlignment:
        """Align the words of a sentence and its translation.

        Each token of the translation is linked to the source token that it attends to most. Two
        words are linked if any of their tokens are (Garg et al. 2019, section 5.2).

        Args:
            words: The words of the sentence.
            pieces: The parts in which the sentence was translated, in their order; a long sentence
                has several. Each is the token ids of a part of the source, with EOS and a tag if
                the corpus has tags, and the token ids of its translation, without EOS.
        """
        corpus = self._corpus
        # The source tokens of all pieces, without tags and EOS, and the word of each.
        source_ids: list[int] = []
        for source, _ in pieces:
            source_ids += source[corpus.sentence_start(source) : -1]
        word_of_token = words_of_source_tokens(
            corpus.segmentation(corpus.source), words, source_ids
        )
        target_words: list[str] = []
        links: set[tuple[int, int]] = set()
        piece_start = 0  # The number of source tokens before the present piece.
        for source, tokens in pieces:
            piece_end = piece_start + self._source_token_count(source)
            piece_word_of_token = word_of_token[piece_start:piece_end]
            piece_start = piece_end
            output = words_of_output(corpus.segmentation(corpus.target), tokens)
            for source_word, word in self._links(source, tokens, piece_word_of_token, output):
                # `word` is counted from the start of the piece, links from the first piece on.
                links.add((source_word, len(target_words) + word))
            if self._decode.replace_unk:
                piece_words = [words[number] for number in piece_word_of_token]
                target_words += self.output_words(source, piece_words, tokens)
            else:
                target_words += output.words
        return WordAlignment(words, target_words, sorted(links))

    def _links(
        self,
        source: Sequence[int],
        tokens: Sequence[int],
        word_of_source_token: list[int],
        output: "OutputWords",
    ) -> list[tuple[int, int]]:
        """Return which words of a source and its translation are linked by their tokens.

        A word of the translation is linked to the source words that its tokens attend to most.

        Args:
            source: The token ids of the source, with EOS and a tag if the corpus has tags.
            tokens: The token ids of the translation, without EOS.
            word_of_source_token: For each token of the source, the number of its word.
            output: The words of the translation and, for each of `tokens`, the number of its word.

        Returns:
            Pairs of a source word and a word of the translation, by their numbers. A pair may occur
            several times.
        """
        if not output.words or not word_of_source_token:
            return []
        links = []
        most_attended = self.most_attended(source, tokens)
        for source_token, word in zip(most_attended, output.word_of_token, strict=True):
            links.append((word_of_source_token[source_token], word))
        return links

    def _source_token_count(self, source: Sequence[int]) -> int:
        """Return how many tokens a source has, without EOS and a tag for the target language."""
        return len(source) - self._corpus.sentence_start(source) - 1


class OutputWords(NamedTuple):
    """The words of an output, and which word each token belongs to.

    Attributes:
        words: The words.
        word_of_token: For each token, the number of its word, from 0: [0, 0, 1] if the first word
            consists of two tokens.
    """

    words: list[str]
    word_of_token: list[int]


def words_of_source_tokens(
    segmentation: Segmentation, words: Iterable[str], ids: list[int]
) -> list[int]:
    """Find the word that each token of a source sentence belongs to.

    If `Hallo Welt` is split into `Hal@@ lo Welt`, the result is [0, 0, 1].

    Args:
        segmentation: Splits words into tokens.
        words: The words of the sentence.
        ids: The token ids of the sentence, without EOS.

    Returns:
        For each token, the number of its word, from 0.
    """
    # The number of tokens of each word, if it is split alone. `encode` adds EOS: hence `- 1`.
    token_counts = [len(segmentation.encode([word])) - 1 for word in words]
    if sum(token_counts) == len(ids):
        word_of_token = []
        for word, token_count in enumerate(token_counts):
            word_of_token += [word] * token_count
        return word_of_token
    # SentencePiece may split a word differently in a sentence than alone.
    return _words_by_their_ends(segmentation, ids, word_count=len(token_counts))


def _words_by_their_ends(segmentation: Segmentation, ids: list[int], word_count: int) -> list[int]:
    """Find the word of each token by counting the words that end before the token.

    If no word ends before a token, it belongs to word 0; if two do, to word 2.

    Args:
        segmentation: Tells which tokens end a word.
        ids: The token ids of the sentence, without EOS.
        word_count: The number of words of the sentence.

    Returns:
        For each token, the number of its word, from 0.
    """
    # `ends_word` expects EOS at the end; its result for EOS is removed again.
    is_word_end = segmentation.ends_word(np.array([*ids, EOS]))[:-1]
    # `cumsum` also counts a word that ends with the token itself, so this one is subtracted.
    words_before = is_word_end.cumsum() - is_word_end
    # Tokens after the last known word count as part of it.
    word_of_token: list[int] = np.minimum(words_before, word_count - 1).tolist()
    return word_of_token


def words_of_output(segmentation: Segmentation, tokens: Sequence[int]) -> OutputWords:
    """Join the tokens of a translation to words, and find the word that each token belongs to.

    The tokens `Hal@@ lo Welt` give the words `Hallo Welt`, and the word numbers [0, 0, 1].

    Args:
        segmentation: Splits words into tokens, and joins them again.
        tokens: The token ids of the translation, without EOS.
    """
    words: list[str] = []
    word_of_token: list[int] = []
    word_tokens: list[int] = []  # The tokens of the current word so far.
    # `ends_word` expects EOS at the end; its result for EOS is removed again.
    is_word_end = segmentation.ends_word(np.array([*tokens, EOS]))[:-1].tolist()
    for position, token in enumerate(tokens):
        word_tokens.append(token)
        is_last_token = position == len(tokens) - 1
        if is_word_end[position] or is_last_token:
            word_of_token += [len(words)] * len(word_tokens)
            words += segmentation.decode(word_tokens)
            word_tokens = []
    # A SentencePiece token that is only a space adds no word, so it has the number of the next
    # word. At the end of the translation there is no next word: the last one takes its place.
    last_word = len(words) - 1
    for position, word in enumerate(word_of_token):
        word_of_token[position] = min(word, last_word)
    return OutputWords(words, word_of_token)
