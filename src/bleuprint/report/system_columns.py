"""What the score frame says of each system on each test set, apart from its scores.

`system_columns` returns it as a data frame, which score_frame.py joins to the scores. Whether a
difference between two systems is tested is decided here, too, by `reason_not_tested_against`.
"""

from typing import Protocol

import pandas as pd

from bleuprint.report.frame import SYSTEM_AND_TEST, Records
from bleuprint.report.tasks import table_row_name, task_names
from bleuprint.report.training_costs import machine_text
from bleuprint.scoring.minimum_for_test import MATCHED_4_GRAMS, reason_not_tested

_COST_COLUMNS = [
    "parameters",
    "updates",
    "source_tokens",
    "target_tokens",
    "training_flops",
    "train_seconds",
    "train_tokens_per_second",
    "peak_memory",
    "training_flops_by_time",
    "mfu",
]


class ComparedSystem(Protocol):
    """A system on a test set, with what decides whether its difference from another is tested.

    `ScoreRow` has these attributes, and so have the rows of the data frame of systems.
    """

    @property
    def is_trained(self) -> bool:
        """Return whether this experiment trains the system, or only reads its translations."""

    @property
    def matches_too_few_4_grams(self) -> bool:
        """Return whether too few of its 4-grams match the references, with every seed."""

    @property
    def seeds(self) -> int:
        """The number of seeds."""

    @property
    def lines(self) -> int:
        """The number of lines of the test set."""


def reason_not_tested_against(baseline: ComparedSystem, system: ComparedSystem) -> str:
    """Return why the difference between a system and its baseline is not tested for significance.

    Two cases are not tested (scoring/minimum_for_test.py): the test would resample sentences, and
    there are too few of them; or the translations of both systems match too few 4-grams of the
    references, so that their BLEU depends on chance.

    Args:
        baseline: The system that the other one is compared with.
        system: The compared system, on the same test set.

    Returns:
        The reason, for the report; empty if the difference is tested.
    """
    are_trained = baseline.is_trained and system.is_trained
    # With several seeds, two trained systems are compared by their scores with each seed.
    is_tested_over_seeds = are_trained and system.seeds > 1
    match_both_too_few = baseline.matches_too_few_4_grams and system.matches_too_few_4_grams
    # The attributes may be NumPy's numbers and booleans, so they are converted.
    return reason_not_tested(int(system.lines), not is_tested_over_seeds, bool(match_both_too_few))


def system_columns(records: Records) -> pd.DataFrame:
    """Return a table of what is known of each system on each test set, apart from its scores.

    Its columns, such as the languages, the number of seeds, training costs and the baseline, are
    the same for all metrics of a system. They become columns of the data frame of all scores.

    Args:
        records: The results of the experiment, as results.json stores them.

    Returns:
        A row for each system, corpus and test set.
    """
    runs = records.runs
    metrics = records.metrics
    systems = runs.groupby(SYSTEM_AND_TEST, sort=False).agg(
        source=("source", "first"),
        target=("target", "first"),
        training_sha256=("training_sha256", "first"),
        lines=("lines", "first"),
        references_sha256=("references_sha256", "first"),
        seeds=("seed", "size"),
        first_seed=("seed", "first"),
    )
    systems = systems.join(_mean_costs(runs))
    # Some metrics are not compared, and lack the baseline; `first` skips missing values.
    systems["baseline"] = metrics.groupby(SYSTEM_AND_TEST).baseline.first()
    # Translations that share too few 4-grams with the references get a BLEU near 0, whose
    # differences depend on chance. A system is marked if that holds for each of its seeds.
    seeds_with_few_matches = _count_seeds_with_few_matches(metrics)
    seeds_with_few_matches = seeds_with_few_matches.reindex(systems.index, fill_value=0)
    systems["matches_too_few_4_grams"] = seeds_with_few_matches == systems.seeds
    # Only systems that were trained here have the hash of a training.
    systems["is_trained"] = systems.training_sha256.notna()
    systems = systems.reset_index()
    tasks = task_names(runs)
    systems["task"] = systems.corpus.map(tasks)
    row_names = []
    for system, corpus in zip(systems.system, systems.corpus, strict=True):
        row_names.append(table_row_name(system, corpus, tasks))
    systems["row_name"] = row_names
    systems["why_untested"] = _reasons_not_tested(systems)
    return systems


def _count_seeds_with_few_matches(metrics: pd.DataFrame) -> "pd.Series[int]":
    """Count for each system the seeds whose translations match too few 4-grams of the references.

    With so few matches, BLEU depends on chance. A run stores its number of matched 4-grams only if
    it is too low for a significance test, so it is enough to count the rows with this number.

    Args:
        metrics: The table of metrics in results.json, a row for each metric of each run.

    Returns:
        The number of seeds by system, corpus and test set. Systems without such a seed are not in
        the index.
    """
    few_matches = metrics[(metrics.metric == MATCHED_4_GRAMS) & (metrics.group == "")]
    return few_matches.groupby(SYSTEM_AND_TEST).size()


def _mean_costs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean training costs of each system, and the machines on which it was trained.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.

    Returns:
        A row for each system, corpus and test set. Costs, such as `train_seconds`, are means over
        the seeds; the column `device` names the machines.
    """
    # Costs that were never measured have no column in `runs`; reindex adds it, filled with NaN.
    cost_columns = runs.reindex(columns=_COST_COLUMNS).apply(pd.to_numeric)
    costs = runs[SYSTEM_AND_TEST].join(cost_columns)
    costs = costs.groupby(SYSTEM_AND_TEST, sort=False).mean().astype("float64")
    machines = runs.reindex(columns=[*SYSTEM_AND_TEST, "device", "processes", "threads"])
    devices = []
    for _, runs_of_system in machines.groupby(SYSTEM_AND_TEST, sort=False):
        devices.append(_device_text(runs_of_system))
    costs["device"] = devices
    return costs


def _device_text(runs: pd.DataFrame) -> str | None:
    """Return the machines on which a system was trained, such as `CPU, 1 x 8 threads`.

    Args:
        runs: The training runs of the system, one for each seed.

    Returns:
        The machines, each once, separated by semicolons; None if they are not known.
    """
    machines: dict[str, None] = {}  # A dict drops duplicates and keeps the order.
    for run in runs[runs.device.notna()].itertuples():
        machine = machine_text(run.device, run.processes, run.threads)
        machines[machine] = None
    return "; ".join(machines) or None


def _reasons_not_tested(systems: pd.DataFrame) -> list[str]:
    """Return for each system why its difference from the baseline is not tested.

    Args:
        systems: A row for each system and test set, with the name of its table row. The column
            `baseline` contains the row name of the system that it is compared with.

    Returns:
        A reason for each row; empty if the difference is tested, and for the baseline itself.
    """
    system_by_row_name = {}
    for system in systems.itertuples():
        system_by_row_name[system.task, system.test, system.row_name] = system
    reasons = []
    for system in systems.itertuples():
        baseline = system_by_row_name.get((system.task, system.test, system.baseline))
        if baseline is None:  # The system is a baseline itself.
            reasons.append("")
        else:
            reasons.append(reason_not_tested_against(baseline, system))
    return reasons
