"""BLEU of a language with a script or region uses the tokenizer of the language."""

import pytest

from bleuprint.scoring.bleu import bleu_metric, is_chinese, is_scored_by_13a
from bleuprint.scoring.bleu_variants import moses_tokenized


@pytest.mark.parametrize(
    ("tag", "tokenizer"),
    [
        ("zh-Hant", "zh"),
        ("zho_Hans", "zh"),
        ("yue_Hant", "zh"),
        ("khm_Khmr", "char"),
        ("tha", "char"),
        ("pt-BR", "13a"),
        ("srp_Cyrl", "13a"),
    ],
)
def test_the_language_of_a_tag_decides_the_tokenizer_of_bleu(tag, tokenizer):
    assert bleu_metric([], tag).tokenizer_signature == tokenizer
    assert is_scored_by_13a(tag) == (tokenizer == "13a")
    assert is_chinese(tag) == (tokenizer == "zh")


def test_the_language_of_a_tag_decides_the_abbreviations_of_moses():
    """In German, the period of `bzw.` belongs to the word; in English it would be split off."""
    line = "Äpfel bzw. Birnen sind da."

    assert moses_tokenized([line], "deu_Latn") == moses_tokenized([line], "de")
    assert moses_tokenized([line], "de-AT") != moses_tokenized([line], "en-GB")
