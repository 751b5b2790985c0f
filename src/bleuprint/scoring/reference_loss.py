"""The loss of the references under the model, and their perplexities."""

import math
from collections.abc import Iterator, Sequence

from bleuprint.decoding.translation_record import ReferenceLoss
from bleuprint.scoring.metric import (
    Metric,
    MetricValue,
    counted_elsewhere,
    first_sum,
    untested_value,
)

# The largest exponent of which exp is not infinite, about: models that diverged have larger losses.
_MAX_EXPONENT = 700.0


def _loss_metric(key: str, label: str, digits: int) -> Metric:
    """Create a metric for the loss of the references under the model, or for a perplexity.

    Unlike for other metrics, nothing is counted on each line: `loss_metrics` computes the value
    from the sum of the loss, which the decoder has recorded.

    Args:
        key: Its name in results, such as `perplexity`.
        label: Its name in tables.
        digits: The decimal places in tables.
    """
    return Metric(
        key=key,
        label=label,
        statistics=counted_elsewhere,
        value=first_sum,
        kind="figure",
        digits=digits,
        lower_is_better=True,
    )


LOSSES = (
    _loss_metric(key="loss", label="Loss", digits=3),
    _loss_metric(key="perplexity", label="Perplexity", digits=2),
    _loss_metric(key="word_perplexity", label="Per word", digits=1),
)


def loss_metrics(loss: ReferenceLoss, references: Sequence[str]) -> Iterator[MetricValue]:
    """Yield how well a model predicts the references: the loss, and two perplexities.

    The loss is the cross-entropy in nats per token; the perplexity is e to this power. Tokens
    depend on the vocabulary. The perplexity per word, separated by white space, can be compared
    between vocabularies. The end of a reference, EOS, counts as a token and as a word.

    Args:
        loss: The loss of all references together.
        references: The reference lines.
    """
    words_with_eos = sum(len(line.split()) + 1 for line in references)
    nats_per_token = loss["nats"] / loss["tokens"]
    nats_per_word = loss["nats"] / words_with_eos
    yield untested_value("loss", nats_per_token, loss["tokens"])
    yield untested_value("perplexity", _bounded_exp(nats_per_token), loss["tokens"])
    yield untested_value("word_perplexity", _bounded_exp(nats_per_word), words_with_eos)


def _bounded_exp(exponent: float) -> float:
    """Return e to a power, which is bounded so that the result is finite."""
    return math.exp(min(exponent, _MAX_EXPONENT))
