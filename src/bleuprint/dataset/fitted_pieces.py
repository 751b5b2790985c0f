"""The size of the SentencePiece vocabulary that a small training text can support."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import mean

from sentencepiece import SentencePieceProcessor

from bleuprint.config.corpus import Corpus, SentencePiece
from bleuprint.dataset.learn_sentencepiece import learn_model
from bleuprint.runtime.errors import UserError
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import tokenize_to_line, tokenizer_for

# The number of sentence pairs to learn from. A text with more pairs supports every size that the
# settings allow, so reading the rest of the text would not change the result.
_MAX_PAIRS = 20_000
# The vocabulary size, as a share of the largest vocabulary that SentencePiece can learn from the
# text. In the largest vocabulary, many pieces occur only once or twice, too rarely to train an
# embedding; the smallest share leaves these pieces out. The vocabulary must contain every character
# of the text. If it is too small for that, learning fails and the next larger share is tried.
_SIZE_SHARES = (0.85, 0.9, 0.95, 1.0)
# The end-of-sentence symbol, which every sentence has in addition to its pieces.
_EOS_LENGTH = 1


@dataclass(frozen=True)
class FittedPieces:
    """A vocabulary that fits a text.

    Attributes:
        size: The number of pieces in the vocabulary.
        source_length: The mean number of pieces in a source sentence, including the end symbol.
        target_length: The mean number of pieces in a target sentence, including the end symbol.
    """

    size: int
    source_length: float
    target_length: float


def fitted_pieces(name: str, corpus: Corpus, train: TextFolder, max_size: int) -> FittedPieces:
    """Choose the size of a SentencePiece vocabulary that suits a training text.

    In a small text, most pieces of a large vocabulary would occur too rarely to be trained. So the
    size is a share of the largest vocabulary that SentencePiece can learn from the text: 85%, or
    more if the text has too many different characters for this share.

    Args:
        name: The name of the corpus, for messages.
        corpus: The settings of the corpus, which define the kind of pieces and the tokenizer.
        train: The training text after cleaning and filtering.
        max_size: The largest vocabulary size to return.

    Returns:
        The vocabulary size, and the sentence lengths in pieces of this vocabulary.

    Raises:
        UserError: SentencePiece cannot learn a vocabulary from the text.
    """
    settings = corpus.vocabulary.sentencepiece
    assert settings is not None, "the caller has checked the kind of the vocabulary"
    source_sentences = _tokenized_sentences(corpus, train, side=0)
    target_sentences = _tokenized_sentences(corpus, train, side=1)
    sentences = source_sentences + target_sentences

    largest_size = _largest_size(name, settings, sentences, max_size)
    sizes = [min(max_size, round(share * largest_size)) for share in _SIZE_SHARES]
    model = _first_learnable_model(name, settings, sentences, sizes)

    pieces = SentencePieceProcessor(model_proto=model)
    return FittedPieces(
        size=len(pieces),
        source_length=_mean_length(pieces, source_sentences),
        target_length=_mean_length(pieces, target_sentences),
    )


def _tokenized_sentences(corpus: Corpus, train: TextFolder, side: int) -> list[str]:
    """Return the first sentences of the training text in one language, tokenized.

    Args:
        corpus: The settings of the corpus.
        train: The training text.
        side: 0 for the source sentences, 1 for the target sentences.

    Returns:
        The sentences, with spaces between their tokens.
    """
    tokenizer = tokenizer_for(corpus.languages[side], corpus.tokenize)
    pairs = islice(train.pairs("train"), _MAX_PAIRS)
    return [tokenize_to_line(tokenizer, pair[side]) for pair in pairs]


def _largest_size(
    name: str, settings: SentencePiece, sentences: Sequence[str], max_size: int
) -> int:
    """Return the size of the largest vocabulary that SentencePiece can learn from the text.

    The caller takes at least 85% of it, and at most `max_size`. So learning stops at a size of
    `max_size` / 0.85: a larger vocabulary would not change the result.

    Args:
        name: The name of the corpus, for messages.
        settings: The settings of SentencePiece.
        sentences: The text to learn from.
        max_size: The largest vocabulary size that is of use.
    """
    search_limit = round(max_size / _SIZE_SHARES[0])
    # With is_limit, the size is an upper bound: SentencePiece learns as many pieces as it can.
    model = learn_model(name, replace(settings, vocab_size=search_limit), sentences, is_limit=True)
    return len(SentencePieceProcessor(model_proto=model))


def _first_learnable_model(
    name: str, settings: SentencePiece, sentences: Sequence[str], sizes: Sequence[int]
) -> bytes:
    """Learn SentencePiece models of increasing sizes, and return the first that can be learned.

    Learning fails if a size is smaller than the number of different characters in the text.

    Args:
        name: The name of the corpus, for messages.
        settings: The settings of SentencePiece.
        sentences: The text to learn from.
        sizes: The vocabulary sizes to try, from the smallest on.

    Raises:
        UserError: Not even the largest size can be learned.
    """
    *smaller_sizes, largest_size = sizes
    for size in smaller_sizes:
        try:
            return learn_model(name, replace(settings, vocab_size=size), sentences)
        except UserError:
            continue  # This size is too small; the next one may be large enough.
    # For the last size, the user must see the error.
    return learn_model(name, replace(settings, vocab_size=largest_size), sentences)


def _mean_length(pieces: SentencePieceProcessor, sentences: Sequence[str]) -> float:
    """Return the mean number of pieces in a sentence, including the end-of-sentence symbol."""
    piece_counts = map(len, pieces.encode(sentences))
    return _EOS_LENGTH + mean(piece_counts)
