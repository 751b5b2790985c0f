"""The results of an experiment as data frames, its records: a table of runs and one of metrics.

`Records` is what reports/results.json contains, and all tables, charts and files of the report are
made from it. `read` and `load` read records, `Records.save` writes them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pandas as pd

from bleuprint.config.paths import COSTS_CSV, Run
from bleuprint.report.results_file import MetricRow, RunRow, read_results
from bleuprint.report.training_costs import with_training_costs
from bleuprint.runtime.atomic_files import write_text
from bleuprint.runtime.foreign_text import clean_value, spreadsheet_cell
from bleuprint.scoring.minimum_for_test import MIN_SENTENCES

REPORTS = Path("reports")
RESULTS = REPORTS / "results.json"
_REMEDY = "Run: make reproduce"

# The columns of `Records.to_frame` with their meanings and units.
COLUMNS: dict[str, str] = dict(pd.read_csv(Path(__file__).with_name("columns.csv")).to_numpy())
# The columns of the two lists of results.json, in the order of the file.
RUN_COLUMNS = list(RunRow.__annotations__)
METRIC_COLUMNS = list(MetricRow.__annotations__)
# The columns that identify a run's translations of a test set; both lists contain them.
RUN_AND_TEST = [*Run._fields, "test"]
# The columns that identify a system on a test set of a corpus: a row of a table.
SYSTEM_AND_TEST = ["system", "corpus", "test"]
# The columns of reports/table.csv.
_CSV_COLUMNS = [*METRIC_COLUMNS, "published", "about"]
# Whole numbers in the table of runs that are missing for external systems.
_COUNT_COLUMNS = [
    "parameters",
    "updates",
    "source_tokens",
    "target_tokens",
    "training_flops",
    "models",
]
# What significance tests compute.
_TEST_COLUMNS = ["p", "p_holm", "p_randomization", "standard_error"]
_FLOAT_COLUMNS = ["value", "ci_low", "ci_high", "difference", *_TEST_COLUMNS]


@dataclass(frozen=True, eq=False)
class Records:
    """The results of an experiment, as results.json stores them, in data frames.

    Attributes:
        runs: A row for each run (a system, trained on a corpus with one seed) and test set: the
            size of the model, its training and cost, and the fingerprints of settings and texts.
        metrics: A row for each score of a run on a test set, on all lines or on a group of them.
        published: The published numbers on these test sets, from published/literature.py;
            results.json does not contain them.
    """

    runs: pd.DataFrame
    metrics: pd.DataFrame
    published: pd.DataFrame = field(default_factory=pd.DataFrame)

    @classmethod
    def from_rows(cls, run_rows: Sequence[RunRow], metric_rows: Sequence[MetricRow]) -> Self:
        """Make the data frames from the two lists of results.json.

        Control characters in texts are removed, since other people may have written the file.

        Args:
            run_rows: The list `runs` of results.json.
            metric_rows: The list `metrics` of results.json.
        """
        runs = _clean_frame(run_rows, RUN_COLUMNS)
        for column in _COUNT_COLUMNS:
            # pandas has turned the integers of a column with missing values into floats.
            if runs[column].isna().any():
                whole_numbers = [row.get(column) for row in run_rows]
                runs[column] = pd.Series(whole_numbers, dtype=object)
        metrics = _clean_frame(metric_rows, METRIC_COLUMNS)
        metrics = metrics.astype(dict.fromkeys(_FLOAT_COLUMNS, float))
        return cls(runs, _remove_tests_of_few_sentences(runs, metrics))

    def select_runs(self, is_selected: "pd.Series[bool]") -> "Records":
        """Return the results of some runs only, without published numbers.

        Args:
            is_selected: For each row of `runs`, whether it is kept.
        """
        runs = self.runs[is_selected]
        # An inner join: it keeps only the metrics of these runs.
        metrics = self.metrics.merge(runs[RUN_AND_TEST], on=RUN_AND_TEST)
        return Records(runs, metrics)

    def save(self, path: Path) -> None:
        """Write results.json, with a line for each row of both tables.

        The same results always give the same bytes, and if a row changes, Git shows only its line.

        Args:
            path: The file to write.
        """
        run_list = _json_list(self.runs[RUN_COLUMNS])
        metric_list = _json_list(self.metrics[METRIC_COLUMNS])
        write_text(path, f'{{"runs": {run_list}, "metrics": {metric_list}}}\n')

    def to_frame(self) -> pd.DataFrame:
        """Return the tables of runs and metrics as one, with a row for each metric of each run.

        What describes the run, such as its number of parameters, is repeated in all its rows.
        columns.csv explains the columns.
        """
        joined = self.metrics.merge(self.runs, on=RUN_AND_TEST, how="left")
        return joined.reindex(columns=list(COLUMNS))


def _clean_frame(
    rows: Sequence[RunRow] | Sequence[MetricRow], columns: Sequence[str]
) -> pd.DataFrame:
    """Make a data frame of rows of results.json, and remove control characters from their texts.

    Args:
        rows: The rows of one of its two lists.
        columns: The names of the columns, in order.
    """
    clean_rows = []
    for row in rows:
        clean_rows.append({name: clean_value(value) for name, value in row.items()})
    return pd.DataFrame(clean_rows, columns=list(columns))


def _remove_tests_of_few_sentences(runs: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Remove the significance tests of short test sets, which older versions stored.

    A test that resamples few sentences says little about other sentences
    (scoring/minimum_for_test.py). A test over several seeds does not resample sentences, so it is
    kept.

    Args:
        runs: The table of runs in results.json, a row for each run and test set.
        metrics: The table of metrics in results.json.

    Returns:
        The metrics. On short test sets, the columns of significance tests are NaN.
    """
    seed_count = runs.groupby(SYSTEM_AND_TEST).seed.transform("nunique")
    is_external = runs.training_sha256.isna()
    # Only trained systems with several seeds are tested over the seeds.
    is_tested_over_sentences = (seed_count == 1) | is_external
    has_few_sentences = runs.lines < MIN_SENTENCES
    short_runs = runs[is_tested_over_sentences & has_few_sentences]
    if short_runs.empty:
        return metrics
    short_run_keys = pd.MultiIndex.from_frame(short_runs[RUN_AND_TEST])
    is_of_short_run = pd.MultiIndex.from_frame(metrics[RUN_AND_TEST]).isin(short_run_keys)
    metrics = metrics.copy()
    metrics.loc[is_of_short_run, _TEST_COLUMNS] = float("nan")
    return metrics


def _json_list(table: pd.DataFrame) -> str:
    """Return the rows of a table as a JSON list of objects, one per line; NaN becomes null."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]"


def load(root: Path = Path()) -> Records:
    """Read the results of a project's last report, and add the measured costs of its training runs.

    Args:
        root: The project's folder.
    """
    return read(root / RESULTS, root)


def read(path: Path, root: Path, remedy: str = _REMEDY) -> Records:
    """Read a results.json, and add the measured costs of its training runs, such as their duration.

    Costs come from the project's folder timings/, or else from a costs.csv.

    Args:
        path: The results.json.
        root: The project's folder.
        remedy: What to do if there is no such file, for the message.
    """
    records = read_without_costs(path, remedy)
    # A report's results.json has its costs.csv next to it. A file with another name may contain a
    # colleague's results, copied to this folder, to which a costs.csv next to it need not belong.
    has_usual_name = path.name == RESULTS.name
    costs_path = path.with_name(COSTS_CSV.name) if has_usual_name else root / COSTS_CSV
    runs = with_training_costs(records.runs, root, costs_path)
    return Records(runs, records.metrics)


def read_without_costs(path: Path, remedy: str = _REMEDY) -> Records:
    """Read a results.json, without adding the measured costs of its training runs.

    Args:
        path: The results.json.
        remedy: What to do if there is no such file, for the message.
    """
    content = read_results(path, remedy)
    return Records.from_rows(content["runs"], content["metrics"])


def csv_text(records: Records) -> str:
    """Return the results as CSV for spreadsheets, the text of reports/table.csv.

    It has a line for each published BLEU, then one for each metric of a run. A spreadsheet runs a
    text such as `=1+1` as a formula, and results may come from others, so such texts are escaped.

    Args:
        records: The results of the experiment, with published numbers if there are any.
    """
    # pandas would turn integers into floats in a column with missing values, unless it has the type
    # object.
    tables = [records.to_frame().astype(object)]
    published = records.published
    if not published.empty:
        bleu = published[~published.metric.isin(["loss", "perplexity"])]
        bleu_as_printed = bleu.assign(value=bleu.printed)
        tables.insert(0, bleu_as_printed.astype(object))
    table = pd.concat(tables).reindex(columns=_CSV_COLUMNS)
    safe_columns = {}
    for name, column in table.items():
        safe_values = list(map(spreadsheet_cell, column))
        safe_columns[name] = pd.Series(safe_values, dtype=object)
    text: str = pd.DataFrame(safe_columns).to_csv(index=False, lineterminator="\n")
    return text
