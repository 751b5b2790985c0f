"""The records of an experiment: one pandas DataFrame, a row for each system, corpus, seed and
test set. Every table, chart and file of the report is made from it.

Beside COLUMNS (columns.csv) it has LISTS, and of the trainings the versions of libraries.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.report.published import literature
from bleuprint.report.system_results import OUTSIDE
from bleuprint.runtime.errors import UserError, say
from bleuprint.runtime.files import read_json, reading, write_json
from bleuprint.tracking.timings import Training, read_seconds, read_training, translate_file

REPORTS = Path("reports")
RESULTS = REPORTS / "results.json"
CHANGED = "has changed since the report was made; see: dvc status"
# The measured columns, committed for clones that have no timings/.
COSTS = REPORTS / "costs.csv"

# Lists of objects, as in scores.json; by_count is None where tokens are characters, by_document
# where the test set does not say its documents.
LISTS = ("variants", "by_length", "by_count", "faults", "by_document")
# Columns that results.json of earlier versions lacks.
_LATER = re.compile(
    "outside|faults|averaged_sha256|decode_sha256|scored_with"
    "|chrf2pp.*|comet.*|(chrf2|ter)_(difference|p.*)"
    "|.*(standard_error|human_agreement)|dbleu.*|by_document|.*document_(low|high|p_.*)"
)

# Each column with its meaning and unit. A value that is not known, or not measured, is missing.
COLUMNS: dict[str, str] = dict(pd.read_csv(Path(__file__).with_name("columns.csv")).to_numpy())
# The column of each measured figure of a training; those of another name are not in COLUMNS.
_MEASURED = {f.name: f.name for f in dataclasses.fields(Training) if f.name != "rates"} | {
    "seconds": "train_seconds",
    "tokens_per_second": "train_tokens_per_second",
    "flops_by_time": "training_flops_by_time",
}
_TIMES = [*_MEASURED.values(), "translate_seconds"]
_KEYS = [*Cell._fields, "training_sha256", "settings_sha256"]
# The columns of results.json: those that are reproducible.
STORED = [name for name in (*COLUMNS, *LISTS) if name not in (*_TIMES, "published")]
# Whole numbers, of which rows from outside have none.
_WHOLE = (
    *("parameters", "updates", "source_tokens", "target_tokens", "training_flops"),
    *("models", "beam"),
)
# The types of columns that may be missing in every row.
DTYPES = {
    **dict.fromkeys(("devices", "peak_memory"), "Int64"),
    **dict.fromkeys(("train_seconds", "train_tokens_per_second"), "float64"),
    "translate_seconds": "float64",
    # of a training that was resumed with others, all of them: "1 + 2"
    **dict.fromkeys(("device", "processes", "threads", "commit", "versions"), "str"),
    **dict.fromkeys(("sustained_flops", "peak_flops", "mfu", "training_flops_by_time"), "float64"),
}


def results(root: Path = Path()) -> pd.DataFrame:
    """The frame of the report of the project in `root`; raises UserError if there is no report.

    Measured columns are of this machine, or of reports/costs.csv; missing if they are in neither.
    """
    return load(root).reindex(columns=list(COLUMNS))


def frame_of(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """The records of these rows; whole numbers stay whole where others are missing."""
    records = pd.DataFrame(rows, columns=columns)
    for name in _WHOLE:
        if name in records and records[name].isna().any():
            records[name] = pd.Series([row.get(name) for row in rows], dtype=object)
    return records


def trained(records: pd.DataFrame) -> pd.DataFrame:
    """The records without those of rows from outside."""
    return records[records.outside.isna()]


def marked(records: pd.DataFrame) -> pd.DataFrame:
    """The records for tables by system: rows from outside say so in their name."""
    names = records.system.where(records.outside.isna(), records.system + f" ({OUTSIDE})")
    return records.assign(system=names)


def save(records: pd.DataFrame, path: Path) -> None:
    """Write the records as JSON: a list of objects, readable and exactly repeatable."""
    stored = records[STORED].astype(object)
    write_json(path, stored.where(stored.notna(), None).to_dict("records"))


def load(root: Path = Path()) -> pd.DataFrame:
    """The records that `save` wrote in reports/, with what was measured of them."""
    return read(root / RESULTS, root)


def read(path: Path, root: Path) -> pd.DataFrame:
    """The records of a results.json, with what `root` or the costs.csv beside it say of them."""
    if not path.exists():
        raise UserError(f"{path}: no such file; run: dvc repro")
    try:
        # without the columns that an earlier version had
        rows = [{name: row[name] for name in STORED if name in row} for row in read_json(path)]
        missing = missing_columns(rows)
        complete = all(map(_LATER.fullmatch, missing))
    except (ValueError, TypeError):
        complete = False
    if not complete:
        raise UserError(
            f"{path}: is no results.json, or was not written by this version; run: dvc repro"
        )
    if missing:
        lacking = f"without {len(missing)} columns such as {missing[0]}"
        say(f"{path}: of an earlier version, {lacking}; run: dvc repro", "note")
    return with_measured(frame_of(rows, STORED), root, path.with_name(COSTS.name))


def with_measured(records: pd.DataFrame, root: Path, costs: Path | None = None) -> pd.DataFrame:
    """The records with the measured columns, missing where nothing was measured.

    Figures in `root` come first, then those of `costs` (its reports/costs.csv) for the same
    training.
    """
    trainings = trained(records).drop_duplicates(list(Cell._fields))[_KEYS]
    here = pd.DataFrame([_measured(each, root) for each in trainings.itertuples()])
    here = here.reindex(columns=_TIMES).astype(DTYPES).set_index(trainings.index)
    if (path := costs or root / COSTS).exists():
        with reading(path):
            measured = pd.read_csv(path, dtype=DTYPES).reindex(columns=[*_KEYS, *_TIMES])
            measured = measured.drop_duplicates(_KEYS[:-1], keep="last")
            recorded = trainings.merge(
                measured,
                *("left", _KEYS[:-1]),
                suffixes=("", "_recorded"),
            ).set_index(trainings.index)
        same = recorded.settings_sha256 == recorded.settings_sha256_recorded
        recorded.translate_seconds = recorded.translate_seconds.where(same)
        here = here.combine_first(recorded[_TIMES])[_TIMES]
    cells = trainings[list(Cell._fields)].join(here)
    return records.merge(cells, on=list(Cell._fields), how="left")


def _measured(record: Any, root: Path) -> dict[str, Any]:
    """The measured columns of a training and its translations, as far as they are in `root`."""
    cell = Cell(record.system, record.corpus, int(record.seed))
    training = read_training(cell, record.training_sha256, root)
    times = {column: getattr(training, name, None) for name, column in _MEASURED.items()}
    path = root / translate_file(cell, record.training_sha256, record.settings_sha256)
    return {**times, "translate_seconds": read_seconds(path)}


def costs_csv(records: pd.DataFrame) -> str:
    """The measured columns, a row for each training and its translations."""
    trainings = trained(records).drop_duplicates(list(Cell._fields))
    text: str = trainings.to_csv(columns=[*_KEYS, *_TIMES], index=False, lineterminator="\n")
    return text


def missing_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that the rows of a results.json lack, as those of an earlier version do."""
    return [name for name in STORED if any(name not in row for row in rows)]


def cells_in(records: pd.DataFrame) -> list[Cell]:
    """Each training once, in the order of the records."""
    cells = trained(records)[list(Cell._fields)].drop_duplicates()
    return [Cell(*row) for row in cells.itertuples(index=False)]


def csv_text(records: pd.DataFrame, published: Sequence[Published] = ()) -> str:
    """The frame without measured columns as CSV, after a row for each published number."""
    # of objects: whole numbers stay whole where others are missing
    frames = [part.astype(object) for part in (literature.rows(records, published), records)]
    columns = [name for name in COLUMNS if name not in _TIMES]
    together = pd.concat(frames).reindex(columns=columns)
    text: str = together.to_csv(index=False, lineterminator="\n")
    return text
