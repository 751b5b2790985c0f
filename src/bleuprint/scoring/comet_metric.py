"""COMET as a metric; the stage comet (comet.py) computes the scores of the lines."""

import math

from bleuprint.scoring.metric import (
    Agreement,
    Metric,
    counted_elsewhere,
    mean_of_millionths,
)

# The part of a signature, from 0, that names the model: Python3.11|Comet2.2.7|fp32|NAME|r1.
_MODEL_PART = 3


def _model_of(signature: str) -> str:
    """Return the name of the model in a signature of COMET: Python3.11|Comet2.2.7|fp32|NAME|r1.

    Raises:
        ValueError: The signature has fewer parts, so it is not one of COMET.
    """
    parts = signature.split("|")
    if len(parts) <= _MODEL_PART:
        raise ValueError(f"{signature!r} names no model")
    return parts[_MODEL_PART]


# The statistics of a line are its score in millionths, and 1. A perfect translation has about 100.
COMET_METRIC = Metric(
    key="comet",
    label="COMET",
    statistics=counted_elsewhere,
    value=mean_of_millionths,
    about=(
        "The mean of COMET's scores of the lines, multiplied by 100, by a trained model that "
        "compares source, translation and reference. Scores of other models, or of other versions "
        "of COMET, are not comparable."
    ),
    highest=math.inf,  # Older models exceed 1.
    stage="comet",
    model_of=_model_of,
    # For differences of scores multiplied by 100.
    agreement={
        "wmt20-comet-da": Agreement(97.33333333332897, 0.7266990738678005, 95.0),
        "wmt22-comet-da": Agreement(96.22374133884283, 2.8359194570556636, 95.0),
        "wmt22-cometkiwi-da": Agreement(98.88141616584615, 2.719280643871758, 95.0),
        "XCOMET-XL": Agreement(96.56738237041118, 1.4535595865214588, 95.0),
        "XCOMET-XXL": Agreement(98.93432477039522, 1.1629533711748128, 95.0),
    },
    is_beside_bleu=True,
    is_on_screen=True,
)
