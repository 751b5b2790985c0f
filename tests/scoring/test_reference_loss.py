"""The loss of references and its exponentials, worked out by hand."""

import math

import pytest

from bleuprint.scoring.reference_loss import loss_metrics


def values_and_units(nats, tokens, references):
    """Return the value of each metric, and the number of units that it is a mean over.

    Args:
        nats: The loss of the references, summed over their tokens.
        tokens: The number of their tokens, such as subwords; the end of each line is one.
        references: The references.
    """
    entries = loss_metrics({"nats": nats, "tokens": tokens}, references)
    return {entry["metric"]: (entry["value"], entry["units"]) for entry in entries}


def test_loss_and_perplexity_are_means_over_tokens_and_word_perplexity_over_words():
    """The loss is the sum over all tokens, such as subwords, of two references: 12 nats.

    A mean over words can be compared between vocabularies. The end of a line is a token and a word.
    """
    tokens = 8
    words = 3 + 2  # three words and the ends of two lines

    metrics = values_and_units(nats=12.0, tokens=tokens, references=["one  two", "three"])

    assert metrics == {
        "loss": (12.0 / tokens, tokens),
        "perplexity": (pytest.approx(math.exp(12.0 / tokens), abs=1e-6), tokens),
        "word_perplexity": (pytest.approx(math.exp(12.0 / words), abs=1e-6), words),
    }


@pytest.mark.parametrize("metric", ["perplexity", "word_perplexity"])
def test_the_perplexity_of_a_diverged_model_is_a_number(metric):
    """Perplexity is exp(loss), here of 100,000, which is infinite in floating-point numbers."""
    metrics = values_and_units(nats=1e6, tokens=10, references=["one"])

    value, _units = metrics[metric]
    assert math.isfinite(value)


def test_the_loss_of_a_diverged_model_is_not_bounded():
    metrics = values_and_units(nats=1e6, tokens=10, references=["one"])

    assert metrics["loss"] == (100_000.0, 10)
