"""What all metrics share: shares in percent, documents, and statistics as text."""

import numpy as np
import pytest

from bleuprint.scoring.bleu import is_chinese
from bleuprint.scoring.metric import (
    format_statistics,
    mean_of_millionths,
    parse_statistics,
    percentage,
)
from bleuprint.scoring.metrics import BESIDE_BLEU, ERROR_KEYS, METRICS, ON_SCREEN, SCORE_KEYS
from measuring import translated_set


def test_a_percentage_counts_the_lines_that_count():
    """A row contains how many lines have an error, and how many count."""
    statistics = np.array([[1, 4], [0, 0], [1, 1]])

    assert percentage(statistics).tolist() == [25.0, 0.0, 100.0]


def test_a_mean_in_percent_is_0_if_no_line_counts():
    """A row contains the sum of the scores in millionths, and how many lines count."""
    statistics = np.array([[1_500_000, 2], [0, 0]])

    assert mean_of_millionths(statistics).tolist() == [75.0, 0.0]


def test_the_lines_of_a_document_need_not_follow_each_other():
    """Documents are lists of line numbers from 0: b has the lines 0 and 2, a has 1, and c has 3."""
    lines = ["one", "two", "three", "four"]

    texts = translated_set(lines, lines, documents=["b", "a", "b", "c"])

    assert texts.documents == [[0, 2], [1], [3]]


def test_a_test_set_without_documents_has_none():
    assert translated_set(["one"], ["one"]).documents == []


def test_statistics_come_back_from_their_text():
    statistics = np.array([[3.0, 10.0], [0.0, 2.0]])
    assert format_statistics(statistics) == ["3 10", "0 2"]
    assert parse_statistics({"statistics": ["3 10", "0 2"]}).tolist() == statistics.tolist()


def test_scores_have_a_table_each_and_errors_one_together():
    assert SCORE_KEYS == ("bleu", "chrf2", "chrf2pp", "ter", "comet")
    assert ERROR_KEYS[:2] == ("any error", "empty")
    assert len(ERROR_KEYS) == 12


def test_a_score_says_where_it_is_shown_and_which_stage_computes_it():
    assert BESIDE_BLEU == ("chrf2", "comet")
    assert ON_SCREEN == ("bleu", "comet")
    assert [key for key in SCORE_KEYS if METRICS[key].stage != "score"] == ["comet"]


COMET_SIGNATURE = "Python3.11.2|Comet2.2.7|fp32|wmt22-comet-da|r1"


def test_the_signature_of_comet_names_its_model():
    assert METRICS["comet"].model_of(COMET_SIGNATURE) == "wmt22-comet-da"


def test_a_metric_without_a_model_names_none():
    assert METRICS["bleu"].model_of("nrefs:1|case:mixed|eff:no|tok:13a") == ""


def test_a_signature_of_comet_without_a_model_is_refused():
    with pytest.raises(ValueError, match=r"'a\|b' names no model"):
        METRICS["comet"].model_of("a|b")


def test_the_agreement_of_people_with_comet_is_known_for_the_published_model_alone():
    own_model = COMET_SIGNATURE.replace("wmt22", "own")

    assert METRICS["comet"].agreement_of(COMET_SIGNATURE) is not None
    assert METRICS["comet"].agreement_of(own_model) is None


@pytest.mark.parametrize(
    ("language", "chinese"),
    [("zh", True), ("zho", True), ("yue", True), ("ja", False), ("jpn", False), ("de", False)],
)
def test_chinese_is_known_by_its_codes(language, chinese):
    assert is_chinese(language) == chinese
