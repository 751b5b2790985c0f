"""The vocabulary of a small text has a size that SentencePiece can learn from it."""

import io
import re
from dataclasses import replace

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from bleuprint.config.corpus import SentencePiece, Units
from bleuprint.config.experiment import load_settings
from bleuprint.corpus import phrasebook
from bleuprint.dataset.fitted_pieces import fitted_pieces
from bleuprint.text.parallel import TextFolder
from bleuprint.text.tokenizers import Tokenize
from corpora import sources_of, targets_of, write_set
from params import PARAMS

GERMAN_SENTENCES = list(phrasebook.sentences("valid", "de"))
ENGLISH_SENTENCES = list(phrasebook.sentences("valid", "en"))


@pytest.fixture
def corpus(tmp_path):
    """The settings of a corpus with SentencePiece, bytes for unknown characters, no tokenizer."""
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS)
    units = Units(sentencepiece=SentencePiece(byte_fallback=True))
    corpus = load_settings(path).corpus("own")
    return replace(corpus, vocabulary=units, tokenize=Tokenize("none"))


def train_sentencepiece(lines, vocab_size):
    """Train a SentencePiece model with bytes for unknown characters, and return its processor."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=vocab_size,
        byte_fallback=True,
        normalization_rule_name="identity",
        pad_id=3,
        num_threads=1,
        minloglevel=2,
    )
    return SentencePieceProcessor(model_proto=model.getvalue())


def largest_vocab_size(lines):
    """Return the largest vocabulary of a text, which SentencePiece names if a larger one is asked.

    Args:
        lines: The sentences of the text.
    """
    with pytest.raises(RuntimeError) as error:
        train_sentencepiece(lines, 100_000)
    return int(re.search(r"a value <= (\d+)", str(error.value))[1])


def write_training_text(tmp_path, corpus, pairs):
    """Write the training text of a corpus."""
    text = TextFolder(tmp_path, corpus.source, corpus.target)
    write_set(text, "train", pairs)
    return text


@pytest.mark.parametrize("pair_count", [80, 500])
def test_a_small_text_gets_85_percent_of_the_largest_vocabulary(tmp_path, corpus, pair_count):
    """SentencePiece can learn only a limited number of pieces from a small text.

    30,000 pieces are requested; `largest_vocab_size` asks SentencePiece for its limit.
    """
    german = GERMAN_SENTENCES[:pair_count]
    english = ENGLISH_SENTENCES[:pair_count]
    text = write_training_text(tmp_path, corpus, zip(german, english, strict=True))

    fitted = fitted_pieces("own", corpus, text, 30_000)

    assert fitted.size == pytest.approx(0.85 * largest_vocab_size(german + english), abs=1)


def mean_length(processor, sentences):
    """Return the mean number of pieces of a sentence, EOS included."""
    piece_counts = [len(pieces) for pieces in processor.encode(sentences)]
    return 1 + sum(piece_counts) / len(sentences)


@pytest.mark.parametrize("pair_count", [80, 500])
def test_the_mean_lengths_of_both_sides_are_those_in_the_fitted_pieces(
    tmp_path, corpus, pair_count
):
    """The size of a system for own text is chosen by these means.

    `fitted_pieces` returns the size of the vocabulary, and the mean number of pieces of a sentence
    of each side. The expected means are counted with a vocabulary that SentencePiece learns.
    """
    german = GERMAN_SENTENCES[:pair_count]
    english = ENGLISH_SENTENCES[:pair_count]
    text = write_training_text(tmp_path, corpus, zip(german, english, strict=True))

    fitted = fitted_pieces("own", corpus, text, 30_000)

    processor = train_sentencepiece(german + english, fitted.size)
    assert fitted.source_length == pytest.approx(mean_length(processor, german), rel=0.02)
    assert fitted.target_length == pytest.approx(mean_length(processor, english), rel=0.02)


def test_the_vocabulary_is_not_larger_than_requested(tmp_path, corpus):
    pairs = zip(GERMAN_SENTENCES, ENGLISH_SENTENCES, strict=True)
    text = write_training_text(tmp_path, corpus, pairs)

    assert fitted_pieces("own", corpus, text, 500).size == 500


def test_the_vocabulary_has_room_for_all_characters(tmp_path, corpus):
    """SentencePiece refuses a vocabulary with fewer pieces than the text has characters.

    The text has 150 * 3 rare characters, each in one pair only.
    """
    pairs = []
    for number in range(150):
        source = f"{chr(0x4E00 + number)}{chr(0x5E00 + number)} a"
        target = f"{chr(0xAC00 + number)} b c"
        pairs.append((source, target))
    text = write_training_text(tmp_path, corpus, pairs)

    fitted = fitted_pieces("own", corpus, text, 30_000)

    # SentencePiece accepts this size for the text.
    lines = sources_of(pairs) + targets_of(pairs)
    assert len(train_sentencepiece(lines, fitted.size)) == fitted.size
    byte_pieces = 256
    special_symbols = 4
    assert fitted.size > byte_pieces + special_symbols + 400
