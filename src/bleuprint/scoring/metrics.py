"""All metrics, in the order of tables. To add one, write its file and list it here.

A metric of own code is not listed: METRICS imports it when it is looked up by its name.
"""

from collections import UserDict
from collections.abc import Iterable, Sequence

from bleuprint.runtime.errors import UserError
from bleuprint.scoring.bleu_variants import BLEU_VARIANTS
from bleuprint.scoring.comet_metric import COMET_METRIC
from bleuprint.scoring.metric import Metric
from bleuprint.scoring.output_errors import OUTPUT_ERRORS
from bleuprint.scoring.own_metrics import is_own_metric, own_metric
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


class Metrics(UserDict[str, Metric]):
    """The built-in metrics by key; a look-up also finds the metrics in own/, by their names."""

    def __missing__(self, key: str) -> Metric:
        """Return the metric of own code with a name, such as `own.exact_match`.

        Raises:
            KeyError: It is neither a built-in metric nor the name of a module in own/.
            UserError: The module cannot be used.
        """
        if not is_own_metric(key):
            raise KeyError(key)
        return own_metric(key)

    def __contains__(self, key: object) -> bool:
        """Return whether a metric is built in, or can be imported from own/.

        Results of another version, or of another project, may contain metrics that are missing.
        """
        if not is_own_metric(key):
            return key in self.data
        try:
            own_metric(key)
        except UserError:
            return False
        return True


METRICS = Metrics({metric.key: metric for metric in _ALL})
# The metrics that have a table each.
SCORE_KEYS = tuple(metric.key for metric in _ALL if metric.kind == "score" and not metric.group)
# The metrics that the table of BLEU shows besides BLEU.
BESIDE_BLEU = tuple(metric.key for metric in _ALL if metric.is_beside_bleu)
# The metrics that a terminal shows, BLEU among them.
ON_SCREEN = tuple(metric.key for metric in _ALL if metric.is_on_screen)
# The output errors.
ERROR_KEYS = tuple(metric.key for metric in _ALL if metric.kind == "error")


def own_metrics(names: Iterable[str]) -> list[Metric]:
    """Return the metrics of own code that params.yaml names.

    Args:
        names: The names of their modules.

    Raises:
        UserError: A module has changed, or has no metric that can be used; or two metrics would
            have the same name in tables.
    """
    metrics = []
    keys_by_label = {metric.label: metric.key for metric in _ALL}
    for name in names:
        metric = METRICS[name]
        other_key = keys_by_label.setdefault(metric.label, metric.key)
        if other_key != metric.key:
            raise UserError(
                f"{metric.key}: the label {metric.label!r} belongs to the metric {other_key}. "
                "Choose another label"
            )
        metrics.append(metric)
    return metrics


def own_keys(keys: Iterable[str]) -> Sequence[str]:
    """Return the keys of those metrics of own code that can be imported, each once, in order."""
    return [key for key in dict.fromkeys(keys) if is_own_metric(key) and key in METRICS]
