"""The form of results.json: which fields each of its rows has, and of which types."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from annotated_types import Interval
from typing_extensions import TypedDict

from bleuprint.config.old_keys import check_not_of_1_0
from bleuprint.runtime.files import DamagedFile, read_json_object
from bleuprint.runtime.schema import read_record
from bleuprint.scoring.metrics import METRICS

# What a column of 64-bit integers can contain.
_Count = Annotated[int, Interval(ge=0, le=2**63 - 1)]
_Seed = Annotated[int, Interval(ge=-(2**63), le=2**63 - 1)]
_Probability = Annotated[float, Interval(ge=0, le=1)]


class _Key(NamedTuple):
    """A run and a test set."""

    system: str
    corpus: str
    seed: int
    test: str


class RunRow(TypedDict):
    """The facts of a run and a test set; a system that is not trained here lacks some."""

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
    """A metric of a run's test set; without a baseline it has no difference and no p."""

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


def read_results(path: Path, remedy: str) -> ResultsFile:
    """Read a results.json; raises UserError if it is missing, damaged or of bleuprint 1.0.

    Each run must have the BLEU of all its lines, each metric must belong to a run, and no row
    may occur twice.
    """
    check_not_of_1_0(read_json_object(path, remedy=remedy), path)
    content = read_record(ResultsFile, path, remedy)
    runs = _run_keys(content["runs"], path, remedy)
    with_bleu: set[_Key] = set()
    measured: set[tuple[_Key, str, str]] = set()
    for number, row in enumerate(content["metrics"]):
        place = f"field metrics.{number}"
        key = _Key(row["system"], row["corpus"], row["seed"], row["test"])
        if key not in runs:
            raise DamagedFile(path, f"{place}: no row of runs is its run", remedy)
        if (key, row["metric"], row["group"]) in measured:
            raise DamagedFile(path, f"{place}: a second {row['metric']} of its run", remedy)
        measured.add((key, row["metric"], row["group"]))
        if row["metric"] == "bleu" and not row["group"]:
            with_bleu.add(key)
        _check_signature(row, place, path, remedy)
    for key, number in runs.items():
        if key not in with_bleu:
            raise DamagedFile(path, f"field runs.{number}: metrics has no bleu of it", remedy)
    return content


def _check_signature(row: MetricRow, place: str, path: Path, remedy: str) -> None:
    """Raise UserError if a signature is not of its metric."""
    if row["metric"] not in METRICS:
        return
    metric = METRICS[row["metric"]]
    try:
        metric.model_of(row["signature"])
    except ValueError:
        problem = f"{place}.signature: {row['signature']!r} is no signature of {metric.label}"
        raise DamagedFile(path, problem, remedy) from None


def _run_keys(rows: Sequence[RunRow], path: Path, remedy: str) -> dict[_Key, int]:
    """The position of each run and test set; raises UserError at a damaged one."""
    runs: dict[_Key, int] = {}
    for number, row in enumerate(rows):
        key = _Key(row["system"], row["corpus"], row["seed"], row["test"])
        if key in runs:
            raise DamagedFile(path, f"field runs.{number}: a second row of its run", remedy)
        runs[key] = number
        if row["about"] is not None:
            continue
        for name, value in row.items():
            if value is None and name != "about":
                raise DamagedFile(path, f"field runs.{number}.{name} is empty", remedy)
    return runs
