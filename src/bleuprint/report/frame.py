"""The records of an experiment, as data frames: a table of runs and a table of metrics.

`Records` is what reports/results.json contains, and all tables, charts and files of the report are
made from it. `read` and `load` read records, `Records.save` writes them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pandas as pd

from bleuprint.config.paths import Run
from bleuprint.report.results_file import MetricRow, RunRow, read_results
from bleuprint.report.training_costs import COSTS, with_training_costs
from bleuprint.runtime.files import atomic_file
from bleuprint.runtime.foreign_text import clean_value, spreadsheet_cell
from bleuprint.scoring.floor import MIN_SENTENCES

REPORTS = Path("reports")
RESULTS = REPORTS / "results.json"
_REMEDY = "run: make reproduce"

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
    """The results of an experiment.

    Attributes:
        runs: A row for each system, corpus, seed and test set: size, training, fingerprints, and
            the columns of training_costs.py.
        metrics: A row for each metric of a run's test set, on all its lines or on a group of them.
        published: The published numbers on these test sets, from published/literature.py;
            results.json does not contain them.
    """

    runs: pd.DataFrame
    metrics: pd.DataFrame
    published: pd.DataFrame = field(default_factory=pd.DataFrame)

    @classmethod
    def from_rows(cls, run_rows: Sequence[RunRow], metric_rows: Sequence[MetricRow]) -> Self:
        """Make records of the two lists of results.json, without control characters in texts."""
        runs = _clean_frame(run_rows, RUN_COLUMNS)
        for name in _COUNT_COLUMNS:
            # In a column with missing values, pandas stores whole numbers as floats: 8000.0.
            if runs[name].isna().any():
                runs[name] = pd.Series([row.get(name) for row in run_rows], dtype=object)
        metrics = _clean_frame(metric_rows, METRIC_COLUMNS)
        metrics = metrics.astype(dict.fromkeys(_FLOAT_COLUMNS, float))
        return cls(runs, _without_tests_below_floor(runs, metrics))

    def select_runs(self, is_selected: "pd.Series[bool]") -> "Records":
        """Return the records of some runs, without published numbers.

        Args:
            is_selected: Whether to keep each row of `runs`.
        """
        runs = self.runs[is_selected]
        return Records(runs, self.metrics.merge(runs[RUN_AND_TEST], on=RUN_AND_TEST))

    def save(self, path: Path) -> None:
        """Write results.json: an object of two lists, one row per line, the same bytes each time.

        Args:
            path: The file to write.
        """
        run_list = _json_list(self.runs[RUN_COLUMNS])
        metric_list = _json_list(self.metrics[METRIC_COLUMNS])
        text = f'{{"runs": {run_list}, "metrics": {metric_list}}}\n'
        with atomic_file(path) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric, with the columns of its run; `COLUMNS` explains them."""
        joined = self.metrics.merge(self.runs, on=RUN_AND_TEST, how="left")
        return joined.reindex(columns=list(COLUMNS))


def _clean_frame(
    rows: Sequence[RunRow] | Sequence[MetricRow], columns: Sequence[str]
) -> pd.DataFrame:
    """Return rows as a data frame with these columns, control characters removed from texts."""
    clean_rows = []
    for row in rows:
        clean_rows.append({name: clean_value(value) for name, value in row.items()})
    return pd.DataFrame(clean_rows, columns=list(columns))


def _without_tests_below_floor(runs: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics without the significance tests over too few sentences.

    Older versions stored such tests; see scoring/floor.py. A test over several seeds does not
    depend on the number of sentences, and stays.
    """
    seeds = runs.groupby(["system", "corpus", "test"]).seed.transform("nunique")
    is_over_sentences = (seeds == 1) | runs.training_sha256.isna()
    too_short = runs[is_over_sentences & (runs.lines < MIN_SENTENCES)]
    if too_short.empty:
        return metrics
    too_short_keys = pd.MultiIndex.from_frame(too_short[RUN_AND_TEST])
    is_below_floor = pd.MultiIndex.from_frame(metrics[RUN_AND_TEST]).isin(too_short_keys)
    metrics = metrics.copy()
    metrics.loc[is_below_floor, _TEST_COLUMNS] = float("nan")
    return metrics


def _json_list(table: pd.DataFrame) -> str:
    """Return the rows of a table as a JSON list of objects, one per line; missing is null."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]"


def load(root: Path = Path()) -> Records:
    """Read the records of a project's last report, with the measured costs.

    Args:
        root: The project's folder.
    """
    return read(root / RESULTS, root)


def read(path: Path, root: Path, remedy: str = _REMEDY) -> Records:
    """Read the records of a results.json, with the measured costs.

    Args:
        path: The results.json.
        root: The project's folder, whose timings/ is read.
        remedy: What to do if there is no such file, for the message.
    """
    records = read_without_costs(path, remedy)
    costs_path = root / COSTS
    # A file of another name may be a colleague's results in a folder with an unrelated costs.csv.
    if path.name == RESULTS.name:
        costs_path = path.with_name(COSTS.name)
    runs = with_training_costs(records.runs, root, costs_path)
    return Records(runs, records.metrics)


def read_without_costs(path: Path, remedy: str = _REMEDY) -> Records:
    """Read the records of a results.json, without the measured costs.

    Args:
        path: The results.json.
        remedy: What to do if there is no such file, for the message.
    """
    content = read_results(path, remedy)
    return Records.from_rows(content["runs"], content["metrics"])


def csv_text(records: Records) -> str:
    """Return the text of table.csv: a line for each metric, after those of published BLEU."""
    # As objects, whole numbers stay whole where other rows have none.
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
