"""The settings of tokens, BPE or SentencePiece, and the settings that fit them."""

import re
from hashlib import sha256

from bleuprint.config.corpus import Bpe, Units
from bleuprint.runtime.fingerprint import of_settings
from params import PARAMS, params_error, read_params, replace_once


def params_with_sentencepiece(vocab_size):
    """Return a params.yaml with a SentencePiece vocabulary of this size instead of BPE."""
    settings = f"model_type: bpe, vocab_size: {vocab_size}, joint: true, byte_fallback: false"
    return replace_once(
        PARAMS,
        "bpe: {num_merges: 10, joint: true, threshold: 0}",
        f"sentencepiece: {{{settings}}}",
    )


def test_a_sentencepiece_vocabulary_may_be_joint(tmp_path):
    settings = read_params(tmp_path, params_with_sentencepiece(vocab_size=99))

    assert settings.corpus("own").vocabulary.joint


def test_bpe_dropout_with_sentencepiece_is_refused(tmp_path):
    """BPE dropout omits BPE merges at random, and this vocabulary has none."""
    text = params_with_sentencepiece(vocab_size=99)
    text = replace_once(text, "bpe_dropout: 0", "bpe_dropout: 0.1")

    message = params_error(tmp_path, text)

    assert message.endswith(
        "train.bpe_dropout needs a BPE vocabulary, but corpus own uses another one"
    )


def test_a_vocabulary_without_room_for_a_piece_is_refused(tmp_path):
    """The four special tokens, such as UNK and EOS, count."""
    message = params_error(tmp_path, params_with_sentencepiece(vocab_size=4))

    assert re.search(r":17: .*\.sentencepiece\.vocab_size: 4 is out of range", message)


def test_a_vocabulary_with_room_for_one_piece_is_accepted(tmp_path):
    """The four special tokens, such as UNK and EOS, count."""
    settings = read_params(tmp_path, params_with_sentencepiece(vocab_size=5))

    assert settings.corpus("own").vocabulary.sentencepiece.vocab_size == 5


def test_the_tokenizer_characters_with_sentencepiece_is_refused(tmp_path):
    """SentencePiece finds its own pieces in sentences; single characters would leave it nothing."""
    text = params_with_sentencepiece(vocab_size=99)
    text = replace_once(text, "name: moses", "name: characters")

    message = params_error(tmp_path, text)

    assert "characters does not work with vocabulary.sentencepiece" in message


def test_kinds_of_vocabulary_that_are_not_set_have_no_part_in_the_fingerprint():
    """A fingerprint decides what is out of date. A new kind of vocabulary must not change it."""
    units = Units(bpe=Bpe(num_merges=10, joint=True, threshold=0))

    only_bpe = b'[{"Units": {"bpe": {"Bpe": {"joint": true, "num_merges": 10, "threshold": 0}}}}]'
    assert of_settings(units) == sha256(only_bpe).hexdigest()
