"""All measures, in the order of tables. To add one: its file, and a line here."""

from bleuprint.scoring.bleu_variants import BLEU_VARIANTS
from bleuprint.scoring.comet_measure import COMET_MEASURE
from bleuprint.scoring.measure import Measure
from bleuprint.scoring.output_faults import FAULTS
from bleuprint.scoring.reference_loss import LOSSES
from bleuprint.scoring.sacrebleu_measures import (
    BLEU_MEASURE,
    CHRF2,
    CHRF2PP,
    DBLEU,
    LENGTH_RATIO,
    TER_MEASURE,
)

_ALL = (
    BLEU_MEASURE,
    CHRF2,
    CHRF2PP,
    TER_MEASURE,
    COMET_MEASURE,
    DBLEU,
    LENGTH_RATIO,
    *LOSSES,
    *BLEU_VARIANTS,
    *FAULTS,
)
MEASURES: dict[str, Measure] = {measure.key: measure for measure in _ALL}
# Those with a table each.
SCORES = tuple(each.key for each in _ALL if each.kind == "score" and not each.group)
FAULT_KEYS = tuple(each.key for each in _ALL if each.kind == "fault")
