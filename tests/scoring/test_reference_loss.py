"""The loss of references and its exponentials, worked out by hand."""

import math

import pytest

from bleuprint.scoring.reference_loss import loss_metrics


def figures(nats, tokens, references):
    """Return the value and the number of units of each metric."""
    entries = loss_metrics({"nats": nats, "tokens": tokens}, references)
    return {entry["metric"]: (entry["value"], entry["units"]) for entry in entries}


def test_the_end_of_a_line_is_a_token_and_a_word():
    """Three words and two ends of lines in eight tokens: 12 / 8 = 1.5 and 12 / 5 = 2.4 nats."""
    assert figures(12.0, 8, ["one  two", "three"]) == {
        "loss": (1.5, 8),
        "perplexity": (pytest.approx(math.e**1.5, abs=1e-6), 8),
        "word_perplexity": (pytest.approx(math.e**2.4, abs=1e-6), 5),
    }


def test_the_perplexity_of_a_diverged_model_is_a_number():
    values = figures(1e6, 10, ["one"])
    assert values["loss"] == (100_000.0, 10)
    assert math.isfinite(values["perplexity"][0])
    assert math.isfinite(values["word_perplexity"][0])
