"""The validation and test sets that new-corpus draws from a text."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bleuprint.corpus.new_corpus import NewCorpus
from new_corpus import (
    FIVE_HUNDRED_PAIRS,
    run_command,
    write_pairs,
)


def test_the_precision_of_bleu_is_stated_for_a_test_set_of_100_pairs(project, capsys):
    """The text has 1,000 pairs, of which a tenth is the test set.

    The precision scales with 1 / sqrt(pairs). It is ±1.6 BLEU for 1,000 pairs, so
    ±1.6 * sqrt(10) = ±5.06 for 100 pairs.
    """
    pairs = []
    for number in (1, 2):
        for english, german in FIVE_HUNDRED_PAIRS:
            pairs.append((f"{english} {number}", f"{german} {number}"))
    write_pairs(project, pairs)

    run_command("bleuprint new-corpus inputs/mine.en inputs/mine.de")

    output = capsys.readouterr()
    assert re.search(r"a test set of \d+ pairs measures BLEU to about ±5\.\d", output.out)
    assert "the test set has only" not in output.err


@pytest.mark.parametrize(
    ("pairs", "valid_pairs", "test_pairs"),
    [
        pytest.param(100, 10, 10, id="a tenth"),
        pytest.param(4_999, 499.9, 499.9, id="a tenth below 5,000"),
        pytest.param(10_000, 500, 500, id="a twentieth above 5,000"),
        pytest.param(150_000, 1000, 2000, id="enough pairs"),
        pytest.param(3_000_000, 1000, 2000, id="enough of 3 million"),
        pytest.param(14_000_000, 1000, 2000, id="enough of 14 million"),
        pytest.param(40_000_000, 1000, 2000, id="enough of 40 million"),
    ],
)
def test_held_out_sets_have_enough_pairs_or_the_share_a_small_text_spares(
    pairs, valid_pairs, test_pairs
):
    """1,000 pairs are enough to validate, 2,000 to test.

    A small text spares a tenth of its pairs for each set, one above 5,000 pairs a twentieth.
    """
    new = NewCorpus([Path("a.de"), Path("a.en")], ("de", "en"), pairs, FIVE_HUNDRED_PAIRS)

    shares = YAML(typ="safe").load(new.entry)["a-de-en"]["split"]
    # A share is written with 7 digits after the point, so it is rounded by at most half of 1e-7.
    rounding = pairs * 0.5e-7 + 1e-6
    assert shares["valid"] * pairs == pytest.approx(valid_pairs, abs=rounding)
    assert shares["test"] * pairs == pytest.approx(test_pairs, abs=rounding)


@pytest.mark.parametrize(
    ("pairs", "subwords"),
    [
        pytest.param(5_000, 2_000, id="a course exercise"),
        pytest.param(5_001, 4_000, id="just above the first limit"),
        pytest.param(160_000, 10_000, id="IWSLT14"),
        pytest.param(2_000_000, 16_000, id="Europarl"),
        pytest.param(4_500_000, 32_000, id="WMT14: more than the last limit"),
    ],
)
def test_the_vocabulary_grows_with_the_number_of_pairs(pairs, subwords):
    """Published set-ups use 10,000 subwords for IWSLT14 and 32,000 for WMT14.

    A vocabulary has 256 bytes and four special tokens besides the subwords.
    """
    new = NewCorpus([Path("a.de"), Path("a.en")], ("de", "en"), pairs, FIVE_HUNDRED_PAIRS)

    assert new.max_vocab_size == subwords + 256 + 4
