"""All metrics, in the order of tables. To add one, write its file and list it here."""

from bleuprint.scoring.bleu_variants import BLEU_VARIANTS
from bleuprint.scoring.comet_metric import COMET_METRIC
from bleuprint.scoring.metric import Metric
from bleuprint.scoring.output_errors import OUTPUT_ERRORS
from bleuprint.scoring.reference_loss import LOSSES
from bleuprint.scoring.sacrebleu_metrics import (
    BLEU_METRIC,
    CHRF2,
    CHRF2PP,
    DBLEU,
    LENGTH_RATIO,
    TER_METRIC,
)

_ALL = (
    BLEU_METRIC,
    CHRF2,
    CHRF2PP,
    TER_METRIC,
    COMET_METRIC,
    DBLEU,
    LENGTH_RATIO,
    *LOSSES,
    *BLEU_VARIANTS,
    *OUTPUT_ERRORS,
)
METRICS: dict[str, Metric] = {metric.key: metric for metric in _ALL}
# The metrics that have a table each.
SCORE_KEYS = tuple(metric.key for metric in _ALL if metric.kind == "score" and not metric.group)
# The metrics that the table of BLEU shows besides BLEU.
BESIDE_BLEU = tuple(metric.key for metric in _ALL if metric.is_beside_bleu)
# The metrics that a terminal shows, BLEU among them.
ON_SCREEN = tuple(metric.key for metric in _ALL if metric.is_on_screen)
# The output errors.
ERROR_KEYS = tuple(metric.key for metric in _ALL if metric.kind == "error")
