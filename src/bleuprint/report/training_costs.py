"""The measured costs of each training run: its duration, speed, memory and machine.

These figures differ each time a training runs, so results.json does not contain them. They come
from timings/, where a training of this clone writes them, or else from costs.csv, which is
committed for clones that trained nothing.
"""

import dataclasses
from pathlib import Path

import pandas as pd

from bleuprint.config.paths import COSTS_CSV, Run
from bleuprint.runtime.file_errors import report_as_damage
from bleuprint.runtime.regular_files import check_regular_file
from bleuprint.runtime.wording import counted
from bleuprint.tracking.timings import read_training_cost

# The measured columns with their types, which hold even where every value is missing. The columns
# `processes` and `threads` are text: a training that two machines did has `1 + 2` of them.
COST_DTYPES = {
    "train_seconds": "float64",
    "device": "str",
    "processes": "str",
    "threads": "str",
    "commit": "str",
    "train_tokens_per_second": "float64",
    "peak_memory": "Int64",
    "devices": "Int64",
    "sustained_flops": "float64",
    "training_flops_by_time": "float64",
    "peak_flops": "float64",
    "mfu": "float64",
    "versions": "str",
}
_COST_COLUMNS = list(COST_DTYPES)
# The columns whose names differ from the fields of TrainingCost (tracking/timings.py).
_COLUMN_OF_FIELD = {
    "seconds": "train_seconds",
    "tokens_per_second": "train_tokens_per_second",
    "flops_by_time": "training_flops_by_time",
}
# The columns that identify a training run and its result.
_TRAINING_KEY = [*Run._fields, "training_sha256"]


def trained_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of trained systems, without external systems, whose training is not known."""
    return runs[runs.training_sha256.notna()]


def one_row_per_training(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each training run.

    results.json has several rows for a run, one for each test set. What does not depend on the test
    set, such as the number of parameters, is equal in all of them, so the first one is kept.
    """
    return trained_runs(runs).drop_duplicates(list(Run._fields))


def training_runs(runs: pd.DataFrame) -> list[Run]:
    """Return the system, corpus and seed of each training run, in the order of the rows."""
    keys = one_row_per_training(runs)[list(Run._fields)]
    return [Run(*key) for key in keys.to_numpy()]


def with_training_costs(
    runs: pd.DataFrame, root: Path, costs_path: Path | None = None
) -> pd.DataFrame:
    """Return the runs with new columns for the measured costs, such as `train_seconds`.

    Costs come from the project's folder timings/, where a training run writes them. A clone of the
    project may have trained nothing: then they come from costs.csv, which is committed. The
    columns, listed in `COST_DTYPES`, are empty where nothing was measured.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
        root: The project's folder.
        costs_path: The path of costs.csv, which need not exist; by default reports/costs.csv.
    """
    if costs_path is None:
        costs_path = root / COSTS_CSV
    training_keys = one_row_per_training(runs)[_TRAINING_KEY]
    costs = _costs_in_timings(training_keys, root)
    if costs_path.exists():
        # The rows are put into the order of `costs`, so that `where` can replace rows of one table
        # by rows of the other.
        committed_costs = _read_costs_csv(costs_path).reindex(costs.index)
        is_in_timings = costs.train_seconds.notna()
        costs = costs.where(is_in_timings, committed_costs)
    return runs.merge(costs.reset_index(), on=_TRAINING_KEY, how="left")


def _costs_in_timings(training_keys: pd.DataFrame, root: Path) -> pd.DataFrame:
    """Read the costs that this clone of the project measured, from its folder timings/.

    Args:
        training_keys: The system, corpus, seed and SHA-256 of each training run. A file in timings/
            with another SHA-256 belongs to an older training, and is not read.
        root: The project's folder.

    Returns:
        A row for each training run, with the key as the index; empty if nothing was measured.
    """
    rows = []
    for system, corpus, seed, training_sha256 in training_keys.itertuples(index=False, name=None):
        cost = read_training_cost(Run(system, corpus, seed), training_sha256, root)
        rows.append({} if cost is None else dataclasses.asdict(cost))
    costs = pd.DataFrame(rows).rename(columns=_COLUMN_OF_FIELD)
    # Columns in which nothing was measured are added, and all columns get the type of their values.
    costs = costs.reindex(columns=_COST_COLUMNS).astype(COST_DTYPES)
    return costs.set_index(pd.MultiIndex.from_frame(training_keys))


def _read_costs_csv(path: Path) -> pd.DataFrame:
    """Read the costs that were committed with a report, from its costs.csv.

    Returns:
        A row for each training run, with system, corpus, seed and the SHA-256 of the training as
        the index. If the file has two rows of one training run, the last one is returned.

    Raises:
        UserError: The file is damaged.
    """
    key_dtypes = dict.fromkeys(_TRAINING_KEY, "str")
    key_dtypes["seed"] = "int64"
    with report_as_damage(path, f"Run: make reproduce. Or restore it: git checkout {path}"):
        check_regular_file(path)
        costs = pd.read_csv(
            path,
            dtype=key_dtypes | COST_DTYPES,
            # pandas would read a system that is called NA as a missing value. Here, only an empty
            # field is one.
            keep_default_na=False,
            na_values=[""],
        )
        costs = costs.drop_duplicates(_TRAINING_KEY, keep="last").set_index(_TRAINING_KEY)
        return costs.reindex(columns=_COST_COLUMNS)


def costs_csv(runs: pd.DataFrame) -> str:
    """Return the text of costs.csv, with a line of measured costs for each training run.

    Args:
        runs: The table of runs, with the columns of measured costs.
    """
    columns = _TRAINING_KEY + _COST_COLUMNS
    trainings = one_row_per_training(runs)
    text: str = trainings.to_csv(columns=columns, index=False, lineterminator="\n")
    return text


def machine_text(device: str, processes: int | str, threads: int | str) -> str:
    """Return the machine of a training run as text, such as `CPU, 1 x 8 threads`.

    Args:
        device: The name of the processor or GPU.
        processes: The number of processes. A text such as `1 + 2` means that a training run began
            on one machine with 1 process, and continued on another one with 2.
        threads: The number of threads of each process, in the same form.
    """
    is_single_number = str(threads).isdigit()
    # `counted` chooses the singular or the plural: `1 thread`, `8 threads`.
    threads_text = counted(int(threads), "thread") if is_single_number else f"{threads} threads"
    return f"{device}, {processes} x {threads_text}"
