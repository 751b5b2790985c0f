"""The form of results.json: the fields of its rows and their types; and the checks when it is read.

The file is an object of two lists: `runs`, with a row for each run and test set, and `metrics`,
with a row for each metric of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn

from annotated_types import Interval
from typing_extensions import TypedDict

from bleuprint.config.old_keys import check_not_of_1_0
from bleuprint.runtime.file_errors import DamagedFile
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.schema import read_record
from bleuprint.scoring.metrics import METRICS

# The whole numbers that a column of 64-bit integers can contain.
_Count = Annotated[int, Interval(ge=0, le=2**63 - 1)]
_Seed = Annotated[int, Interval(ge=-(2**63), le=2**63 - 1)]
_Probability = Annotated[float, Interval(ge=0, le=1)]


class RunRow(TypedDict):
    """A row of `runs` in results.json: a run, that is, a trained system, on one test set.

    Fields that an external system lacks, which is not trained here, are None. columns.csv explains
    the fields, except those with a SHA-256. These are hashes of the settings, of all that decides
    the weights, of the binarized training text, of the averaged checkpoints, of the search
    settings, and of the files with sources, references and translations.
    """

    system: str
    corpus: str
    seed: _Seed
    test: str
    source: str
    target: str
    about: str | None
    lines: _Count
    parameters: _Count | None
    updates: _Count | None
    source_tokens: _Count | None
    target_tokens: _Count | None
    training_flops: float | None
    models: _Count | None
    engine: str | None
    precision: str | None
    scored_with: str
    settings_sha256: str
    training_sha256: str | None
    binary_sha256: str | None
    averaged_sha256: str | None
    decode_sha256: str | None
    sources_sha256: str
    references_sha256: str
    hypotheses_sha256: str


class MetricRow(TypedDict):
    """A row of `metrics` in results.json: a metric of a run on a test set or a group of its lines.

    A metric that is not compared with a baseline has neither a difference nor p-values.
    columns.csv explains the fields.
    """

    system: str
    corpus: str
    seed: _Seed
    test: str
    metric: str
    group: str
    units: _Count
    value: float
    ci_low: float | None
    ci_high: float | None
    signature: str
    baseline: str | None
    difference: float | None
    p: _Probability | None
    p_holm: _Probability | None
    p_randomization: _Probability | None
    standard_error: float | None


class ResultsFile(TypedDict):
    """The content of results.json."""

    runs: list[RunRow]
    metrics: list[MetricRow]


class _RunAndTest(NamedTuple):
    """The fields that identify a row of `runs` in results.json."""

    system: str
    corpus: str
    seed: int
    test: str


def read_results(path: Path, remedy: str) -> ResultsFile:
    """Read a results.json, and check that it is complete.

    Args:
        path: The file.
        remedy: What to do about a damaged or missing file, for the message.

    Raises:
        UserError: The file is missing, damaged, or of bleuprint 1.0. It is damaged if a field has
            another type, if a row occurs twice, if a metric belongs to no run, or if a run has no
            BLEU of all its lines.
    """
    # A file of version 1.0 lacks some fields. Checked first, it gets a message that says so.
    check_not_of_1_0(read_json_object(path, remedy=remedy), path)
    content = read_record(ResultsFile, path, remedy)
    checks = _RowChecks(path, remedy)
    row_numbers = checks.check_runs(content["runs"])
    runs_with_bleu = checks.check_metrics(content["metrics"], row_numbers)
    for run, row_number in row_numbers.items():
        if run not in runs_with_bleu:
            checks.fail(f"field runs.{row_number}: metrics contains no bleu of this run")
    return content


@dataclass(frozen=True)
class _RowChecks:
    """Checks the rows of a results.json, and raises UserError where one is wrong.

    Attributes:
        path: The file, for the messages.
        remedy: What to do about a damaged file, for the messages.
    """

    path: Path
    remedy: str

    def fail(self, problem: str) -> NoReturn:
        """Raise UserError with the path of the file, what is wrong in it, and what to do."""
        raise DamagedFile(self.path, problem, self.remedy)

    def check_runs(self, rows: Sequence[RunRow]) -> dict[_RunAndTest, int]:
        """Check that each run and test set has one row, and return the positions of the rows.

        In the row of a trained system, no field may be empty.

        Args:
            rows: The rows of `runs` in results.json.

        Returns:
            The position of each row in the list, from 0, by its run and test set.
        """
        row_numbers: dict[_RunAndTest, int] = {}
        for row_number, row in enumerate(rows):
            run = _RunAndTest(row["system"], row["corpus"], row["seed"], row["test"])
            if run in row_numbers:
                self.fail(f"field runs.{row_number} repeats an earlier run")
            row_numbers[run] = row_number
            # Only external systems have a description.
            is_external = row["about"] is not None
            if not is_external:
                self._check_no_field_is_empty(row, row_number)
        return row_numbers

    def _check_no_field_is_empty(self, row: RunRow, row_number: int) -> None:
        """Check that the row of a trained system has a value in every field, except `about`.

        The field `about` is the description of an external system.

        Args:
            row: The row.
            row_number: The number of the row, from 0, for the message.
        """
        for field, value in row.items():
            if value is None and field != "about":
                self.fail(f"field runs.{row_number}.{field} is empty")

    def check_metrics(
        self, rows: Sequence[MetricRow], row_numbers: dict[_RunAndTest, int]
    ) -> set[_RunAndTest]:
        """Check that each metric occurs once, belongs to a run, and has a valid signature.

        Args:
            rows: The rows of `metrics` in results.json.
            row_numbers: The runs and test sets in `runs`, with the numbers of their rows.

        Returns:
            The runs and test sets that have a BLEU over all lines, which each of them needs.
        """
        runs_with_bleu: set[_RunAndTest] = set()
        known_metrics: set[tuple[_RunAndTest, str, str]] = set()
        for row_number, row in enumerate(rows):
            field = f"field metrics.{row_number}"
            metric = row["metric"]
            group = row["group"]
            run = _RunAndTest(row["system"], row["corpus"], row["seed"], row["test"])
            if run not in row_numbers:
                self.fail(f"{field}: runs lacks a row of this run")
            if (run, metric, group) in known_metrics:
                self.fail(f"{field} repeats {metric} of an earlier row")
            known_metrics.add((run, metric, group))
            is_over_all_lines = group == ""
            if metric == "bleu" and is_over_all_lines:
                runs_with_bleu.add(run)
            self._check_signature(row, field)
        return runs_with_bleu

    def _check_signature(self, row: MetricRow, field: str) -> None:
        """Check that the signature of a score has the form that its metric writes.

        Metrics that this version does not know are skipped.

        Args:
            row: The row of the score.
            field: The place of the row in the file, such as `field metrics.7`, for the message.
        """
        if row["metric"] not in METRICS:
            return
        metric = METRICS[row["metric"]]
        signature = row["signature"]
        try:
            # This parses the signature, and fails if it has another form.
            metric.model_of(signature)
        except ValueError:
            self.fail(f"{field}.signature: {signature!r} is not a signature of {metric.label}")
