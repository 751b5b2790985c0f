"""Sizes of vocabularies for small texts, against the limits that SentencePiece itself names."""

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
from corpora import write_set
from params import PARAMS

SIDES = [list(phrasebook.sentences("valid", language)) for language in ("de", "en")]
PAIRS = [*zip(*SIDES, strict=True)]
# Each line has characters that no other line has.
RARE = [(f"{chr(0x4E00 + n)}{chr(0x5E00 + n)} a", f"{chr(0xAC00 + n)} b c") for n in range(150)]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS)
    units = Units(sentencepiece=SentencePiece(byte_fallback=True))
    corpus = load_settings(path).corpus("own")
    return replace(corpus, vocabulary=units, tokenize=Tokenize("none"))


def largest_size(lines):
    """The size that SentencePiece names when it is asked for too many pieces."""
    with pytest.raises(RuntimeError) as error:
        train(lines, 100_000)
    return int(re.search(r"a value <= (\d+)", str(error.value))[1])


def train(lines, size):
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        byte_fallback=True,
        normalization_rule_name="identity",
        pad_id=3,
        num_threads=1,
        minloglevel=2,
    )
    return SentencePieceProcessor(model_proto=model.getvalue())


def folder(tmp_path, corpus, pairs):
    text = TextFolder(tmp_path, corpus.source, corpus.target)
    write_set(text, "train", pairs)
    return text


@pytest.mark.parametrize("count", [80, 500])
def test_a_small_text_gets_a_share_of_the_pieces_it_has(tmp_path, corpus, count):
    lines = [*SIDES[0][:count], *SIDES[1][:count]]
    found = fitted_pieces("own", corpus, folder(tmp_path, corpus, PAIRS[:count]), 30_000)
    assert found.size == pytest.approx(0.85 * largest_size(lines), abs=1)
    pieces = train(lines, found.size)
    for length, side in (
        (found.source_length, lines[:count]),
        (found.target_length, lines[count:]),
    ):
        assert length == pytest.approx(1 + sum(map(len, pieces.encode(side))) / count, rel=0.02)


def test_no_more_than_is_asked_for(tmp_path, corpus):
    assert fitted_pieces("own", corpus, folder(tmp_path, corpus, PAIRS), 500).size == 500


def test_all_characters_have_room(tmp_path, corpus):
    found = fitted_pieces("own", corpus, folder(tmp_path, corpus, RARE), 30_000)
    lines = [side for pair in RARE for side in pair]
    assert len(train(lines, found.size)) == found.size
    assert found.size > 256 + 4 + 400
