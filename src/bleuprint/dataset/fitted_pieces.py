"""How many pieces of SentencePiece a small training text has evidence for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from statistics import mean

from sentencepiece import SentencePieceProcessor

from bleuprint.config.corpus import Corpus, SentencePiece
from bleuprint.dataset.learn_sentencepiece import learn_model
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import tokenized, tokenizer_for

# Pairs that are read: the pieces of a longer text are limited by the settings alone.
_PAIRS = 20_000
# The size of a vocabulary, as a share of the largest one that SentencePiece finds in the text: of
# the whole, pieces that occur once or twice, for which there is no evidence, are a large part. The
# larger shares are for texts of many different characters, which a vocabulary must contain.
_SHARES = (0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class FittedPieces:
    """A vocabulary that fits a text.

    `size`: of the vocabulary. `source`, `target`: pieces of a sentence on average, EOS included.
    """

    size: int
    source: float
    target: float


def fitted_pieces(name: str, corpus: Corpus, train: TextFolder, most: int) -> FittedPieces:
    """Find the size of a vocabulary that can be learned from a training text.

    Args:
        name: the corpus, for messages.
        corpus: its settings, of which the kind of pieces and the tokenizer are used.
        train: the training text after all rules.
        most: the largest size of the vocabulary.

    Raises:
        UserError: SentencePiece cannot learn from the text.
    """
    assert corpus.vocabulary.sentencepiece is not None
    settings = replace(corpus.vocabulary.sentencepiece, size=round(most / _SHARES[0]))
    source, target = (
        list(_tokenized(corpus, train, side)) for side in range(len(corpus.languages))
    )
    lines = [*source, *target]
    largest = learn_model(name, settings, lines, is_limit=True)
    found = len(SentencePieceProcessor(model_proto=largest))
    sizes = [min(most, round(share * found)) for share in _SHARES]
    model = _first_learned(name, settings, lines, sizes)
    pieces = SentencePieceProcessor(model_proto=model)
    return FittedPieces(
        len(pieces),
        1 + mean(map(len, pieces.encode(source))),
        1 + mean(map(len, pieces.encode(target))),
    )


def _tokenized(corpus: Corpus, train: TextFolder, side: int) -> Iterator[str]:
    """The sentences of one side, with spaces between tokens."""
    tokenizer = tokenizer_for(corpus.languages[side], corpus.tokenize)
    for pair in islice(train.pairs("train"), _PAIRS):
        yield tokenized(tokenizer, pair[side])


def _first_learned(name: str, settings: SentencePiece, lines: list[str], sizes: list[int]) -> bytes:
    """The model of the first size that is large enough for the characters of the text."""
    for size in sizes[:-1]:
        try:
            return learn_model(name, replace(settings, size=size), lines)
        except UserError:  # fewer pieces than characters
            continue
    return learn_model(name, replace(settings, size=sizes[-1]), lines)
