"""COMET as a metric; the stage comet has the scores of the lines."""

import math

from bleuprint.scoring.metric import Agreement, Metric, counted_elsewhere

# The part of a signature that is the name of the model: Python3.11|Comet2.2.7|fp32|NAME|r1.
_NAME_OF_MODEL = 3


def _model_of(signature: str) -> str:
    """Return the name of the model; raises ValueError if this is no signature of COMET."""
    parts = signature.split("|")
    if len(parts) <= _NAME_OF_MODEL:
        raise ValueError(f"{signature!r} names no model")
    return parts[_NAME_OF_MODEL]


# The statistics of a line are its score in millionths, and 1: from the model's environment.
# In points: COMET's own scale, of which 1 is about the best, multiplied by 100, as in papers.
COMET_METRIC = Metric(
    key="comet",
    label="COMET",
    statistics=counted_elsewhere,
    value=lambda sums: sums[:, 0] / sums[:, 1] / 10**4,
    about=(
        "The mean of COMET's scores of the lines, multiplied by 100, by a trained model that "
        "compares source, translation and reference. Scores of other models, or of other versions "
        "of COMET, are not comparable."
    ),
    highest=math.inf,  # older models exceed 1
    stage="comet",
    model_of=_model_of,
    agreement={  # of scores multiplied by 100
        "wmt20-comet-da": Agreement(97.33333333332897, 0.7266990738678005, 95.0),
        "wmt22-comet-da": Agreement(96.22374133884283, 2.8359194570556636, 95.0),
        "wmt22-cometkiwi-da": Agreement(98.88141616584615, 2.719280643871758, 95.0),
        "XCOMET-XL": Agreement(96.56738237041118, 1.4535595865214588, 95.0),
        "XCOMET-XXL": Agreement(98.93432477039522, 1.1629533711748128, 95.0),
    },
    is_beside_bleu=True,
    is_on_screen=True,
)
