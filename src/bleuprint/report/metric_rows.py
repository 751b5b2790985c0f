"""The rows of `metrics` in results.json: each metric of each run, compared with the baseline.

scores.json contains the metrics of one run. Here the runs of a table are put side by side: the
first row is the baseline, and every other row gets its difference from it, with p-values.
"""

from collections.abc import Mapping, Sequence
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
from bleuprint.scoring.metric import DIGITS, MetricValue
from bleuprint.scoring.metrics import METRICS
from bleuprint.scoring.minimum_for_test import MATCHED_4_GRAMS, reason_not_tested
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
        """Return whether this experiment trains the system, or only reads its translations."""
        return self.seeds[0].is_trained

    @property
    def test_sets(self) -> Sequence[str]:
        """The test sets that the system translates."""
        return self.seeds[0].tests


class SharedPValue(NamedTuple):
    """The p-value of a system in one metric, and the rows that contain it: one for each seed.

    The test compares all seeds of two systems at once, so the rows share its p-value.
    """

    p_value: float
    rows: Sequence[MetricRow]


# The rows of each run on a test set, by metric and group of lines.
_RowsByRun = dict[Run, dict[MetricKey, MetricRow]]


def metric_rows(systems: Sequence[SystemResults], test: str) -> dict[Run, list[MetricRow]]:
    """Return the rows of results.json on one test set: the value of each metric of each run.

    A run is a system that is trained with one seed. The rows of all systems except the baseline
    also get the difference from the baseline and its p-value.

    Args:
        systems: The systems that translate the test set, the baseline first.
        test: The name of the test set, such as `newstest2014`.

    Returns:
        The rows by run.
    """
    values_by_run = _metric_values(systems, test)
    rows_by_run: _RowsByRun = {}
    for run, values in values_by_run.items():
        rows_by_run[run] = {key: _uncompared_row(run, test, values[key]) for key in values}
    baseline, *other_systems = systems
    p_values = []
    for system in other_systems:
        p_values += _compare_with_baseline(system, baseline, test, values_by_run, rows_by_run)
    # The correction depends on the number of p-values, so it comes after all comparisons.
    add_corrected_p_values(p_values)
    return {run: list(rows.values()) for run, rows in rows_by_run.items()}


def _compare_with_baseline(
    system: SystemResults,
    baseline: SystemResults,
    test: str,
    values_by_run: Mapping[Run, MetricValues],
    rows_by_run: _RowsByRun,
) -> list[SharedPValue]:
    """Add to the rows of a system how much it differs from the baseline in each metric.

    Args:
        system: The system.
        baseline: The system that it is compared with.
        test: The name of the test set.
        values_by_run: The values of all metrics of both systems' runs.
        rows_by_run: The rows of all runs. Those of the system get the difference and its p-value.

    Returns:
        The p-values of the system, one for each metric in which the difference is tested.
    """
    baseline_values = [values_by_run[run] for run in baseline.runs]
    system_values = [values_by_run[run] for run in system.runs]
    are_trained = baseline.is_trained and system.is_trained
    lines = system.seeds[0].scores_of(test)["lines"]
    can_be_tested = _can_be_tested(baseline_values, system_values, are_trained, lines)
    differences = paired_differences(baseline_values, system_values, are_trained)
    p_values = []
    for key, difference in differences.items():
        rows = [rows_by_run[run][key] for run in system.runs]
        _add_difference(rows, baseline.row_name, difference)
        p_value = difference.p_value
        if p_value is not None and can_be_tested:
            _add_test(rows, difference, p_value)
            p_values.append(SharedPValue(p_value, rows))
    return p_values


def _metric_values(systems: Sequence[SystemResults], test: str) -> dict[Run, MetricValues]:
    """Return the values of all metrics of each run on a test set.

    They come from the run's scores, except one metric: the number of outputs that are cut off at
    the maximum length. A run stores this number only if it is larger than 0. So if one run stores
    it, 0 is added for the other runs, and all runs can be compared. External systems get no 0,
    since it is not known whether their outputs were cut off.

    Args:
        systems: The systems that translate the test set.
        test: The name of the test set.
    """
    values_by_run = {}
    for system in systems:
        for results in system.seeds:
            values_by_run[results.run] = dict(results.metrics(test))
    has_cut_off_outputs = any(_CUT_OFF_KEY in values for values in values_by_run.values())
    if has_cut_off_outputs:
        for system in systems:
            for results in system.seeds:
                values = values_by_run[results.run]
                if system.is_trained and _CUT_OFF_KEY not in values:
                    lines = results.scores_of(test)["lines"]
                    values[_CUT_OFF_KEY] = _zero_cut_off_outputs(lines)
    return dict(values_by_run)


def _zero_cut_off_outputs(lines: int) -> MetricValue:
    """Return the value of the metric "outputs cut off at the maximum length" if there are none.

    Args:
        lines: The number of lines of the test set.
    """
    # For each line two numbers: whether it has the error (0: no), and whether it counts (1: yes).
    statistics = np.array([[0.0, 1.0]] * lines)
    return evaluate_metric(METRICS[CUT_OFF], statistics, signature="")


def _uncompared_row(run: Run, test: str, value: MetricValue) -> MetricRow:
    """Return the row of a metric in results.json, before it is compared with the baseline.

    The fields of the comparison, from `baseline` on, are None until then.
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
    """Return whether the difference between a system and the baseline may be tested.

    A significance test would mislead in two cases (scoring/minimum_for_test.py): both systems match
    too few 4-grams of the references, so that their BLEU depends on chance; or the test resamples
    sentences, and the test set has too few of them.

    Args:
        baseline_values: For each seed, the metrics of the baseline.
        system_values: For each seed, the metrics of the system.
        are_trained: Whether both systems are trained, and neither is only a file of translations.
        lines: The number of lines of the test set.
    """
    values_of_all_runs = [*baseline_values, *system_values]
    # A run stores its number of matched 4-grams only if it is too low. The second part of the key,
    # the group of lines, is empty: the number counts all lines.
    too_few_matches = (MATCHED_4_GRAMS, "")
    do_all_match_too_few = all(too_few_matches in values for values in values_of_all_runs)
    # With several seeds, two trained systems are compared by their scores with each seed.
    is_tested_over_seeds = are_trained and len(system_values) > 1
    reason = reason_not_tested(lines, not is_tested_over_seeds, do_all_match_too_few)
    return reason == ""


def _add_difference(
    rows: Sequence[MetricRow], baseline_name: str, difference: PairedDifference
) -> None:
    """Store the mean difference from the baseline in the rows of a metric.

    Args:
        rows: The rows of the system in one metric, one for each seed. All of them get the same
            difference: the mean over the seeds.
        baseline_name: The name of the baseline's table row.
        difference: The difference from the baseline with each seed.
    """
    for row in rows:
        row["baseline"] = baseline_name
        row["difference"] = round(difference.mean, DIGITS)


def _add_test(rows: Sequence[MetricRow], difference: PairedDifference, p_value: float) -> None:
    """Store the significance test of a difference in the rows of a metric.

    Args:
        rows: The rows of the system in one metric, one for each seed.
        difference: The difference from the baseline. For each seed, in the order of the rows, it
            contains a test that resamples the lines of the test set.
        p_value: The p-value over all seeds, which each row gets.
    """
    for row, line_test in zip(rows, difference.line_tests, strict=True):
        row["p"] = round(p_value, DIGITS)
        row["p_randomization"] = line_test.randomization
        row["standard_error"] = line_test.standard_error


def add_corrected_p_values(shared_p_values: Sequence[SharedPValue]) -> None:
    """Correct p-values for the number of tests, and store the corrected ones in their rows.

    The more systems are compared, the likelier one of them differs by chance. Holm's method
    corrects for this. It needs families of tests, that is, tests that are corrected together:

    - All systems' tests in one metric, such as BLEU, are a family.
    - All tests of output errors, such as repeated words and empty lines, are one family, since a
      system may differ by chance in any kind of error.

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
