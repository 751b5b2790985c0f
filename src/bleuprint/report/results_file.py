"""The form of results.json: which fields each of its rows has, and of which types."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from annotated_types import Interval
from typing_extensions import TypedDict

from bleuprint.runtime.files import DamagedFile
from bleuprint.runtime.schema import read_record

# In a signature of COMET, whose fourth part is the name of the model.
_COMET_BARS = 3
# What a column of 64-bit integers can contain.
_Count = Annotated[int, Interval(ge=0, le=2**63 - 1)]
_Seed = Annotated[int, Interval(ge=-(2**63), le=2**63 - 1)]
_Probability = Annotated[float, Interval(ge=0, le=1)]


class _Key(NamedTuple):
    """A cell and a test set."""

    system: str
    corpus: str
    seed: int
    test: str


class CellRow(TypedDict):
    """The facts of a cell and a test set; a row from outside has no facts of a training."""

    system: str
    corpus: str
    seed: _Seed
    test: str
    source: str
    target: str
    outside: str | None
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


class MeasureRow(TypedDict):
    """A measure of a cell's test set; without a baseline it has no difference and no p."""

    system: str
    corpus: str
    seed: _Seed
    test: str
    measure: str
    group: str
    units: _Count
    value: float
    low: float | None
    high: float | None
    signature: str
    baseline: str | None
    difference: float | None
    p: _Probability | None
    p_holm: _Probability | None
    p_randomization: _Probability | None
    standard_error: float | None


class ResultsFile(TypedDict):
    """The content of results.json."""

    cells: list[CellRow]
    measures: list[MeasureRow]


def read_results(path: Path, remedy: str) -> ResultsFile:
    """Read a results.json; raises UserError if it is missing or damaged.

    Each cell must have the BLEU of all its lines, each measure must belong to a cell, and no row
    may occur twice.
    """
    content = read_record(ResultsFile, path, remedy)
    cells = _cell_keys(content["cells"], path, remedy)
    with_bleu: set[_Key] = set()
    measured: set[tuple[_Key, str, str]] = set()
    for number, row in enumerate(content["measures"]):
        place = f"field measures.{number}"
        key = _Key(row["system"], row["corpus"], row["seed"], row["test"])
        if key not in cells:
            raise DamagedFile(path, f"{place}: no row of cells is its cell", remedy)
        if (key, row["measure"], row["group"]) in measured:
            raise DamagedFile(path, f"{place}: a second {row['measure']} of its cell", remedy)
        measured.add((key, row["measure"], row["group"]))
        if row["measure"] == "bleu" and not row["group"]:
            with_bleu.add(key)
        if row["measure"] == "comet" and row["signature"].count("|") < _COMET_BARS:
            problem = f"{place}.signature: {row['signature']!r} is no signature of COMET"
            raise DamagedFile(path, problem, remedy)
    for key, number in cells.items():
        if key not in with_bleu:
            raise DamagedFile(path, f"field cells.{number}: measures has no bleu of it", remedy)
    return content


def _cell_keys(rows: Sequence[CellRow], path: Path, remedy: str) -> dict[_Key, int]:
    """The position of each cell and test set; raises UserError at a damaged one."""
    cells: dict[_Key, int] = {}
    for number, row in enumerate(rows):
        key = _Key(row["system"], row["corpus"], row["seed"], row["test"])
        if key in cells:
            raise DamagedFile(path, f"field cells.{number}: a second row of its cell", remedy)
        cells[key] = number
        if row["outside"] is not None:
            continue
        for name, value in row.items():
            if value is None and name != "outside":
                raise DamagedFile(path, f"field cells.{number}.{name} is empty", remedy)
    return cells
