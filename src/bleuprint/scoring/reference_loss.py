"""The loss of the references by the model, and its exponentials."""

import math
from collections.abc import Iterator, Sequence

from bleuprint.decoding.translation_record import ReferenceLoss
from bleuprint.scoring.metric import Metric, MetricValue, counted_elsewhere, untested_value

_FIGURES = ("loss", "Loss", 3), ("perplexity", "Perplexity", 2), ("word_perplexity", "Per word", 1)
LOSSES = tuple(
    Metric(
        *(key, label, counted_elsewhere, lambda sums: sums[:, 0]),
        kind="figure",
        digits=digits,
        lower_is_better=True,
    )
    for key, label, digits in _FIGURES
)


def loss_metrics(loss: ReferenceLoss, references: Sequence[str]) -> Iterator[MetricValue]:
    """The cross-entropy of the references in nats per token, e to it, and the same per word.

    A word is what white space separates. The EOS of a reference counts as a token, and as a word.
    """
    words = sum(len(line.split()) + 1 for line in references)
    per_token, per_word = loss["nats"] / loss["tokens"], loss["nats"] / words
    yield untested_value("loss", per_token, loss["tokens"])
    # of a diverged model, exp would overflow
    yield untested_value("perplexity", math.exp(min(per_token, 700.0)), loss["tokens"])
    yield untested_value("word_perplexity", math.exp(min(per_word, 700.0)), words)
