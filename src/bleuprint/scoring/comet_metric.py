"""COMET as a metric; the stage comet has the scores of the lines."""

import math

from bleuprint.scoring.metric import Metric, counted_elsewhere

# The statistics of a line are its score in millionths, and 1: from the model's environment.
# In points: COMET's own scale, of which 1 is about the best, multiplied by 100, as in papers.
COMET_METRIC = Metric(
    *("comet", "COMET", counted_elsewhere, lambda sums: sums[:, 0] / sums[:, 1] / 10**4),
    about=(
        "The mean of COMET's scores of the lines, multiplied by 100, by a trained model that "
        "compares source, translation and reference. Scores of other models, or of other versions "
        "of COMET, are not comparable."
    ),
    highest=math.inf,  # older models exceed 1
)
