"""The rows of `metrics` in results.json: each metric of each run, compared with the baseline.

scores.json contains the metrics of one run. Here the runs of a table are put side by side: the
first row is the baseline, and every other row gets its difference from it, with p-values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bleuprint.config.paths import Run
from bleuprint.report.paired import (
    MetricKey,
    MetricValues,
    PairedDifference,
    holm_correction,
    paired_differences,
)
from bleuprint.report.results_file import MetricRow
from bleuprint.runs.results import Results
from bleuprint.scoring.floor import MATCHED_4_GRAMS, reason_not_tested
from bleuprint.scoring.metric import DIGITS, MetricValue
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.output_errors import CUT_OFF
from bleuprint.scoring.significance import evaluate_metric

_CUT_OFF_KEY: MetricKey = (CUT_OFF, "")


@dataclass(frozen=True)
class SystemResults:
    """The results of a system on a corpus: a row of the report's tables.

    Attributes:
        row_name: The name of the table row, such as `base`.
        seeds: The translations and scores of the system with each seed, in the order of the seeds.
    """

    row_name: str
    seeds: Sequence[Results]

    @property
    def runs(self) -> list[Run]:
        """The runs of the system, that is, its training on the corpus with each seed."""
        return [results.run for results in self.seeds]

    @property
    def is_trained(self) -> bool:
        """Whether this experiment trains the system; otherwise its translations are given."""
        return self.seeds[0].is_trained

    @property
    def test_sets(self) -> Sequence[str]:
        """The test sets that the system translates."""
        return self.seeds[0].tests


class SharedPValue(NamedTuple):
    """A p-value of one metric, and the rows that contain it: one for each seed of a system."""

    p_value: float
    rows: Sequence[MetricRow]


def metric_rows(systems: Sequence[SystemResults], test: str) -> dict[Run, list[MetricRow]]:
    """Return a row for each metric of each run on a test set, compared with the baseline.

    A run is a system that is trained with one seed. The p-values of all systems are corrected
    together in the end, since the correction depends on their number.

    Args:
        systems: The systems that translate the test set, the baseline first.
        test: The name of the test set, such as `newstest2014`.

    Returns:
        The rows of results.json, by run.
    """
    baseline, *other_systems = systems
    values_by_run = _metric_values(systems, test)
    rows_by_run = {}
    for run, values in values_by_run.items():
        rows_by_run[run] = {key: _row_without_test(run, test, values[key]) for key in values}
    shared_p_values = []
    for system in other_systems:
        baseline_values = [values_by_run[run] for run in baseline.runs]
        system_values = [values_by_run[run] for run in system.runs]
        are_trained = baseline.is_trained and system.is_trained
        differences = paired_differences(baseline_values, system_values, are_trained)
        lines = system.seeds[0].scores_of(test)["lines"]
        can_be_tested = _can_be_tested(baseline_values, system_values, are_trained, lines)
        for key, difference in differences.items():
            rows = [rows_by_run[run][key] for run in system.runs]
            _add_difference(rows, baseline.row_name, difference)
            p_value = difference.p_value
            if p_value is not None and can_be_tested:
                _add_test(rows, difference, p_value)
                shared_p_values.append(SharedPValue(p_value, rows))
    add_corrected_p_values(shared_p_values)
    return {run: list(rows.values()) for run, rows in rows_by_run.items()}


def _metric_values(systems: Sequence[SystemResults], test: str) -> dict[Run, MetricValues]:
    """Return the metrics of each run on a test set, with the number of cut-off outputs completed.

    An output is cut off if it reaches the maximum length. A run stores the number of such outputs
    only if it is not zero. If any run stores it, the other runs get a zero, so that all can be
    compared. Only external systems do not, since nobody knows whether their outputs were cut off.

    Args:
        systems: The systems that translate the test set.
        test: The name of the test set.
    """
    values_by_run = {}
    for system in systems:
        for results in system.seeds:
            values_by_run[results.run] = dict(results.metrics(test))
    is_any_cut_off = any(_CUT_OFF_KEY in values for values in values_by_run.values())
    if is_any_cut_off:
        for system in systems:
            for results in system.seeds:
                values = values_by_run[results.run]
                if system.is_trained and _CUT_OFF_KEY not in values:
                    lines = results.scores_of(test)["lines"]
                    values[_CUT_OFF_KEY] = _zero_cut_off_outputs(lines)
    return dict(values_by_run)


def _zero_cut_off_outputs(lines: int) -> MetricValue:
    """Return the value 0 of the metric "outputs cut off at the maximum length".

    Args:
        lines: The number of lines of the test set.
    """
    # For each line, whether it has the error (0: no), and whether the line counts (1: yes).
    statistics = np.array([[0.0, 1.0]] * lines)
    return evaluate_metric(METRICS[CUT_OFF], statistics, signature="")


def _row_without_test(run: Run, test: str, value: MetricValue) -> MetricRow:
    """Return the row of a metric in results.json, before it is compared with the baseline.

    The fields of the comparison, from `baseline` on, are still None.
    """
    return {
        "system": run.system,
        "corpus": run.corpus,
        "seed": run.seed,
        "test": test,
        "metric": value["metric"],
        "group": value["group"],
        "units": value["units"],
        "value": value["value"],
        "ci_low": value["ci_low"],
        "ci_high": value["ci_high"],
        "signature": value["signature"],
        "baseline": None,
        "difference": None,
        "p": None,
        "p_holm": None,
        "p_randomization": None,
        "standard_error": None,
    }


def _can_be_tested(
    baseline_values: Sequence[MetricValues],
    system_values: Sequence[MetricValues],
    are_trained: bool,
    lines: int,
) -> bool:
    """Return whether a significance test between a system and the baseline says anything.

    It does not if both match too few 4-grams of the references, or if the test resamples
    sentences and has too few of them (scoring/floor.py).

    Args:
        baseline_values: For each seed, the metrics of the baseline.
        system_values: For each seed, the metrics of the system.
        are_trained: Whether both systems are trained, and neither is only a file of translations.
        lines: The number of lines of the test set.
    """
    # The number of matched 4-grams is stored only if it is too low.
    matched_key = (MATCHED_4_GRAMS, "")
    is_too_low = [matched_key in values for values in (*baseline_values, *system_values)]
    # Two trained systems with several seeds are tested over the seeds, all others over sentences.
    is_test_over_sentences = not are_trained or len(system_values) == 1
    reason = reason_not_tested(lines, is_test_over_sentences, all(is_too_low))
    return reason == ""


def _add_difference(
    rows: Sequence[MetricRow], baseline_name: str, difference: PairedDifference
) -> None:
    """Add the mean difference from the baseline to the rows of a metric, one row for each seed.

    The difference is one of the systems, not of a seed, so all rows get the same one.

    Args:
        rows: The rows of the metric, changed in place.
        baseline_name: The name of the baseline's table row.
        difference: The difference from the baseline with each seed.
    """
    for row in rows:
        row["baseline"] = baseline_name
        row["difference"] = round(difference.mean, DIGITS)


def _add_test(rows: Sequence[MetricRow], difference: PairedDifference, p_value: float) -> None:
    """Add the significance test of a difference to the rows of a metric, one row for each seed.

    Args:
        rows: The rows of the metric, in the order of the seeds.
        difference: The difference from the baseline, with a test over lines for each seed.
        p_value: The p-value of the system, which the rows of all seeds get.
    """
    for row, line_test in zip(rows, difference.line_tests, strict=True):
        row["p"] = round(p_value, DIGITS)
        row["p_randomization"] = line_test.randomization
        row["standard_error"] = line_test.standard_error


def add_corrected_p_values(shared_p_values: Sequence[SharedPValue]) -> None:
    """Correct p-values for the number of tests, by Holm's method, and store them in their rows.

    The more systems are compared, the likelier one differs by chance. So all tests in one metric
    are corrected together, a family of tests. All output errors, such as repeated words and empty
    lines, form one family, since a system may differ in any of them by chance.

    Args:
        shared_p_values: The p-values of all systems on a test set. Their rows are changed in place.
    """
    families: dict[tuple[str, str], list[SharedPValue]] = {}
    for shared in shared_p_values:
        first_row = shared.rows[0]
        metric = METRICS[first_row["metric"]]
        family = "error" if metric.kind == "error" else metric.key
        families.setdefault((family, first_row["group"]), []).append(shared)
    for family_members in families.values():
        corrected_p_values = holm_correction([shared.p_value for shared in family_members])
        for corrected, shared in zip(corrected_p_values, family_members, strict=True):
            for row in shared.rows:
                row["p_holm"] = round(corrected, DIGITS)
