"""All metrics, in the order of tables. To add one: its file, and a line here."""

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
# Those with a table each.
SCORE_KEYS = tuple(each.key for each in _ALL if each.kind == "score" and not each.group)
# Those in the table of BLEU, besides BLEU; and those on a terminal, BLEU among them.
BESIDE_BLEU = tuple(each.key for each in _ALL if each.is_beside_bleu)
ON_SCREEN = tuple(each.key for each in _ALL if each.is_on_screen)
ERROR_KEYS = tuple(each.key for each in _ALL if each.kind == "error")
