"""The source word of each word of an output, by the decoder's attention.

The weights are those of the cross-attention in the last decoder layer, averaged over its heads, as
in fairseq's --replace-unk and --print-alignment; EOS is never chosen, as in OpenNMT-py's
-replace_unk (fairseq's may put "<eos>" into a sentence). Neither a dictionary nor copying of words
that the vocabulary has is tried.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

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
    """The tokenizer's words of a source and of its translation, and the links between them.

    A link is a place in the source and one in the target, both from 0.
    """

    source: list[str]
    target: list[str]
    links: list[tuple[int, int]]

    def __str__(self) -> str:
        """SOURCE ||| TARGET ||| links in Pharaoh's format; words have no ||| (see text.fields)."""
        links = " ".join(f"{source}-{target}" for source, target in self.links)
        return join_fields(" ".join(self.source), " ".join(self.target), links)


class WordAligner:
    """Finds the source words of outputs of a decoder; of an ensemble by its last model's weights.

    What precedes the sentence in a source is never found.
    """

    def __init__(self, decoder: ModelOrEnsemble, corpus: BinaryCorpus, decode: Decode) -> None:
        self._model, self._corpus, self._decode = models_of(decoder)[-1], corpus, decode

    def attended(self, source: Sequence[int], tokens: Sequence[int]) -> list[int]:
        """The place of the largest weight among the source's tokens, for each of `tokens`.

        `source`: ids of the whole source, with EOS; places count from the sentence's first token.
        `tokens`: ids without EOS.
        """
        weights = compute_attention_maps(self._model, self._corpus, source, tokens)["cross"].means[
            -1
        ]
        of_words = weights[: len(tokens), self._corpus.sentence_start(source) : len(source) - 1]
        places: list[int] = of_words.argmax(axis=1).tolist()
        return places

    def output_words(
        self, source: Sequence[int], words: Sequence[str], tokens: Sequence[int]
    ) -> list[str]:
        """The words of an output; with `replace_unk`, UNK is the attended one of the source's
        `words`, each of which is one token then.
        """
        found = self._corpus.segmentation(self._corpus.target).decode(tokens)
        replace = self._decode.replace_unk and UNK in tokens
        if not replace or len(source) == self._corpus.sentence_start(source) + 1:
            return found
        pairs = zip(tokens, self.attended(source, tokens), strict=True)
        shown = [pair for pair in pairs if pair[0] not in (PAD, BOS, EOS)]  # as `decode` has it
        triples = zip(shown, found, strict=True)
        return [words[place] if token == UNK else word for (token, place), word in triples]

    def align(
        self, words: list[str], pieces: Sequence[tuple[list[int], list[int]]]
    ) -> WordAlignment:
        """The alignment of a sentence of `words` and its translation.

        `pieces`: the token ids of its sources, with EOS, and of their translations, without, which
        follow each other. Words are linked if any of their tokens are (Garg et al. 2019,
        section 5.2).
        """
        corpus = self._corpus
        ids = list[int]()
        for source, _ in pieces:
            ids += source[corpus.sentence_start(source) : -1]
        places = iter(source_places(corpus.segmentation(corpus.source), words, ids))
        target, links = list[str](), set[tuple[int, int]]()
        for source, tokens in pieces:
            own = list(islice(places, len(source) - 1 - corpus.sentence_start(source)))
            found, of_tokens = output_places(corpus.segmentation(corpus.target), tokens)
            if found and own:
                pairs = zip(self.attended(source, tokens), of_tokens, strict=True)
                links |= {(own[token], len(target) + word) for token, word in pairs}
            of_piece = [words[place] for place in own]
            replace = self._decode.replace_unk
            target += self.output_words(source, of_piece, tokens) if replace else found
        return WordAlignment(words, target, sorted(links))


def source_places(segmentation: Segmentation, words: Iterable[str], ids: list[int]) -> list[int]:
    """The place of each token's word, `ids` being the words' tokens without EOS."""
    counts = [len(segmentation.encode([word])) - 1 for word in words]
    if sum(counts) == len(ids):
        return [place for place, count in enumerate(counts) for _ in range(count)]
    # SentencePiece may see the words of a line otherwise than each alone
    ends = segmentation.ends_word(np.array([*ids, EOS]))[:-1]
    places: list[int] = np.minimum(ends.cumsum() - ends, len(counts) - 1).tolist()
    return places


def output_places(segmentation: Segmentation, tokens: Sequence[int]) -> tuple[list[str], list[int]]:
    """The words of an output, and the place of each token's word."""
    words, places, word = list[str](), list[int](), list[int]()
    ends = segmentation.ends_word(np.array([*tokens, EOS]))[:-1].tolist()
    for i, (token, end) in enumerate(zip(tokens, ends, strict=True)):
        word.append(token)
        if end or i == len(tokens) - 1:
            places += [len(words)] * len(word)
            words += segmentation.decode(word)
            word = []
    # a piece of SentencePiece that is a space belongs to the next word, or to the last one
    return words, [min(place, len(words) - 1) for place in places]
