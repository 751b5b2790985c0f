"""The rows of `metrics` in results.json: each metric of each run, compared with the baseline.

scores.json has what was measured of one run. Here the runs of a table are put side by side: the
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
        row_name: The name of the row.
        seeds: The results of each run, in the order of the seeds.
    """

    row_name: str
    seeds: Sequence[Results]

    @property
    def runs(self) -> list[Run]:
        """The run of each seed."""
        return [results.run for results in self.seeds]

    @property
    def is_trained(self) -> bool:
        """Whether the system is trained here, and so no external system."""
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
    """Return the rows of all metrics of a test set, by run.

    Args:
        systems: The systems that translate the test set, the baseline first.
        test: The name of the test set.
    """
    baseline, *other_systems = systems
    values_by_run = _measured_values(systems, test)
    rows_by_run = {}
    for run, values in values_by_run.items():
        rows_by_run[run] = {key: _untested_row(run, test, values[key]) for key in values}
    shared_p_values = []
    for system in other_systems:
        baseline_values = [values_by_run[run] for run in baseline.runs]
        system_values = [values_by_run[run] for run in system.runs]
        are_trained = baseline.is_trained and system.is_trained
        lines = system.seeds[0].scores_of(test)["lines"]
        is_below_floor = _is_below_floor(baseline_values, system_values, are_trained, lines)
        differences = paired_differences(baseline_values, system_values, are_trained)
        for key, difference in differences.items():
            rows = [rows_by_run[run][key] for run in system.runs]
            for row in rows:
                row["baseline"] = baseline.row_name
                row["difference"] = round(difference.mean, DIGITS)
            p_value = difference.p_value
            if p_value is not None and not is_below_floor:
                _add_test(rows, difference, p_value)
                shared_p_values.append(SharedPValue(p_value, rows))
    add_corrected_p_values(shared_p_values)
    return {run: list(rows.values()) for run, rows in rows_by_run.items()}


def _measured_values(systems: Sequence[SystemResults], test: str) -> dict[Run, MetricValues]:
    """Return what was measured of each run on a test set.

    The number of outputs that the maximum length cut off is stored only if it is not zero. If one
    run has this number, it is added to the other runs as zero, so that they can be compared. Of
    external systems, the number is not known.
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
                    values[_CUT_OFF_KEY] = _no_output_cut_off(lines)
    return dict(values_by_run)


def _no_output_cut_off(lines: int) -> MetricValue:
    """Return the number of cut outputs of a run in which no output was cut: 0 of all lines."""
    # The statistics of a share: for each line, whether it has the error, and whether it counts.
    statistics = np.array([[0.0, 1.0]] * lines)
    return evaluate_metric(METRICS[CUT_OFF], statistics, signature="")


def _untested_row(run: Run, test: str, value: MetricValue) -> MetricRow:
    """Return the row of a metric before it is compared with the baseline."""
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


def _is_below_floor(
    baseline_values: Sequence[MetricValues],
    system_values: Sequence[MetricValues],
    are_trained: bool,
    lines: int,
) -> bool:
    """Return whether no difference of a system from the baseline is tested (scoring/floor.py).

    Args:
        baseline_values: For each seed, what was measured of the baseline.
        system_values: For each seed, what was measured of the system.
        are_trained: Whether both are trained here.
        lines: The number of lines of the test set.
    """
    # The number of matched 4-grams is stored only if it is too low.
    matched_key = (MATCHED_4_GRAMS, "")
    are_both_low = all(matched_key in values for values in (*baseline_values, *system_values))
    is_over_sentences = not are_trained or len(system_values) == 1
    reason = reason_not_tested(lines, is_over_sentences, are_both_low)
    return reason != ""


def _add_test(rows: Sequence[MetricRow], difference: PairedDifference, p_value: float) -> None:
    """Add to the rows of each seed the shared p-value and the results of the seed's own tests."""
    for row, line_test in zip(rows, difference.line_tests, strict=True):
        row["p"] = round(p_value, DIGITS)
        row["p_randomization"] = line_test.randomization
        row["standard_error"] = line_test.standard_error


def add_corrected_p_values(shared_p_values: Sequence[SharedPValue]) -> None:
    """Add the p-values after Holm's correction to their rows.

    One correction covers all systems that are compared in one metric and group of lines. All
    output errors are corrected together, since a system may differ in any of them by chance.

    Args:
        shared_p_values: The p-values of all systems on a test set.
    """
    families: dict[tuple[str, str], list[SharedPValue]] = {}
    for shared in shared_p_values:
        first_row = shared.rows[0]
        metric = METRICS[first_row["metric"]]
        family = "error" if metric.kind == "error" else metric.key
        families.setdefault((family, first_row["group"]), []).append(shared)
    for members in families.values():
        corrected_p_values = holm_correction([p_value for p_value, _ in members])
        for corrected, (_, rows) in zip(corrected_p_values, members, strict=True):
            for row in rows:
                row["p_holm"] = round(corrected, DIGITS)
