"""Kinds of tokens: which settings go with them."""

from hashlib import sha256

import pytest

from bleuprint.config.corpus import Bpe, Units
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.fingerprint import of_settings
from params import PARAMS, read

SENTENCEPIECE = (
    "sentencepiece: {model_type: bpe, vocab_size: 99, joint: true, byte_fallback: false}"
)
BPE = "bpe: {num_merges: 10, joint: true, threshold: 0}"


def test_bpe_dropout_is_refused_with_sentencepiece(tmp_path):
    text = PARAMS.replace(BPE, SENTENCEPIECE)
    assert read(tmp_path, text).corpus("own").vocabulary.joint
    with pytest.raises(UserError, match=r"has train.bpe_dropout, but corpus own has no bpe$"):
        read(tmp_path, text.replace("bpe_dropout: 0", "bpe_dropout: 0.1"))


def test_a_size_that_the_special_tokens_fill_is_refused(tmp_path):
    text = PARAMS.replace(BPE, SENTENCEPIECE.replace("99", "4"))
    with pytest.raises(UserError, match=r":17: .*\.sentencepiece\.vocab_size: 4 is out of range"):
        read(tmp_path, text)
    text = PARAMS.replace(BPE, SENTENCEPIECE.replace("99", "5"))
    assert read(tmp_path, text).corpus("own").vocabulary.sentencepiece.vocab_size == 5


def test_characters_are_refused_with_sentencepiece(tmp_path):
    text = PARAMS.replace(BPE, SENTENCEPIECE).replace("name: moses", "name: characters")
    with pytest.raises(UserError, match=r"characters: not with vocabulary.sentencepiece, which"):
        read(tmp_path, text)


def test_another_kind_of_vocabulary_changes_no_fingerprint_of_these():
    """What is not set is left out: kinds that come later change nothing."""
    units = Units(bpe=Bpe(num_merges=10, joint=True, threshold=0))
    bpe = b'{"Bpe": {"joint": true, "num_merges": 10, "threshold": 0}}'
    assert of_settings(units) == sha256(b'[{"Units": {"bpe": %b}}]' % bpe).hexdigest()
