"""The records of an experiment: what was measured, a row a measure, and the facts of each cell.

Every table, chart and file of the report is made from them; results.json has both.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.report.published import literature
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_object, reading, whole_file
from bleuprint.tracking.timings import Training, read_seconds, read_training, translate_file

REPORTS = Path("reports")
RESULTS = REPORTS / "results.json"
CHANGED = "has changed since the report was made; see: dvc status"
# The measured columns, committed for clones that have no timings/.
COSTS = REPORTS / "costs.csv"

# Each column of results() with its meaning and unit. A value that is not known is missing.
COLUMNS: dict[str, str] = dict(pd.read_csv(Path(__file__).with_name("columns.csv")).to_numpy())
KEY = [*Cell._fields, "test"]
# The columns of the two lists in results.json.
MEASURED = [*KEY, *[*COLUMNS][len(KEY) : [*COLUMNS].index("published")]]
CELLS = [
    *KEY,
    *("source", "target", "outside", "lines", "parameters", "updates", "source_tokens"),
    *("target_tokens", "training_flops", "models", "engine", "precision", "scored_with"),
    *("settings_sha256", "training_sha256", "binary_sha256", "averaged_sha256", "decode_sha256"),
    *("sources_sha256", "references_sha256", "hypotheses_sha256"),
]
# The column of each measured figure of a training; those of another name are not in COLUMNS.
_MEASURED = {f.name: f.name for f in dataclasses.fields(Training) if f.name != "rates"} | {
    "seconds": "train_seconds",
    "tokens_per_second": "train_tokens_per_second",
    "flops_by_time": "training_flops_by_time",
}
_TIMES = [*_MEASURED.values(), "translate_seconds"]
_KEYS = [*Cell._fields, "training_sha256", "settings_sha256"]
# Whole numbers, of which rows from outside have none.
_WHOLE = (
    *("parameters", "updates", "source_tokens", "target_tokens", "training_flops"),
    *("models",),
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
_FIGURES = ("value", "low", "high", "difference", "p", "p_holm", "p_randomization")


@dataclass(frozen=True, eq=False)
class Records:
    """`measures`: a row for each measure of a cell's test set, and of a group of its lines.

    `cells`: a row for each system, corpus, seed and test set, with the facts of the training and
    fingerprints, and what was measured of its cost.
    """

    cells: pd.DataFrame
    measures: pd.DataFrame

    @classmethod
    def of(cls, cells: Sequence[Any], measures: Sequence[Any]) -> Self:
        """The records of these rows; whole numbers stay whole where others are missing."""
        facts = pd.DataFrame(cells, columns=CELLS)
        for name in _WHOLE:
            if facts[name].isna().any():
                facts[name] = pd.Series([row.get(name) for row in cells], dtype=object)
        figures = dict.fromkeys((*_FIGURES, "standard_error"), float)
        return cls(facts, pd.DataFrame(measures, columns=MEASURED).astype(figures))

    def where(self, kept: "pd.Series[bool]") -> "Records":
        """Those of the cells that are kept."""
        cells = self.cells[kept]
        return Records(cells, self.measures.merge(cells[KEY], on=KEY))

    def save(self, path: Path) -> None:
        """Write the records as JSON: two lists of objects, one a line, exactly repeatable."""
        tables = {"cells": self.cells[CELLS], "measures": self.measures[MEASURED]}
        lists = []
        for name, table in tables.items():
            rows = table.astype(object).where(table.notna(), None).to_dict("records")
            lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
            lists.append(f'"{name}": [\n' + ",\n".join(lines) + "\n]")
        with whole_file(path) as partial:
            text = f"{{{', '.join(lists)}}}\n"
            partial.write_text(text, encoding="utf-8", newline="\n")

    def frame(self) -> pd.DataFrame:
        """One row a measure, with the facts of its cell."""
        return self.measures.merge(self.cells, on=KEY, how="left").reindex(columns=list(COLUMNS))


def trained(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells without those of rows from outside."""
    return cells[cells.outside.isna()]


def load(root: Path = Path()) -> Records:
    """The records that were saved in reports/, with what was measured of them."""
    return read(root / RESULTS, root)


def read(path: Path, root: Path) -> Records:
    """The records of a results.json, with what `root` or the costs.csv beside it say of them."""
    if not path.exists():
        raise UserError(f"{path}: no such file; run: dvc repro")
    try:
        content = read_object(path)
        cells = [{name: row[name] for name in CELLS} for row in content["cells"]]
        measures = [{name: row[name] for name in MEASURED} for row in content["measures"]]
        records = Records.of(cells, measures)
    except (UserError, KeyError, ValueError, TypeError):
        raise UserError(
            f"{path}: is no results.json, or was not written by this version; run: dvc repro"
        ) from None
    measured = with_measured(records.cells, root, path.with_name(COSTS.name))
    return Records(measured, records.measures)


def with_measured(records: pd.DataFrame, root: Path, costs: Path | None = None) -> pd.DataFrame:
    """The cells with the measured columns, missing where nothing was measured.

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


def cells_in(records: pd.DataFrame) -> list[Cell]:
    """Each training once, in the order of the records."""
    cells = trained(records)[list(Cell._fields)].drop_duplicates()
    return [Cell(*row) for row in cells.itertuples(index=False)]


def csv_text(records: Records, published: Sequence[Published] = ()) -> str:
    """What was measured as CSV, after a row for each published number."""
    # of objects: whole numbers stay whole where others are missing
    printed = literature.rows(records.cells, published).rename(columns={"bleu": "value"})
    printed = printed.assign(measure=printed.scored.replace({"sacrebleu": "bleu"}))
    frames = [part.astype(object) for part in (printed, records.frame())]
    together = pd.concat(frames).reindex(columns=[*MEASURED, "published", "outside"])
    text: str = together.to_csv(index=False, lineterminator="\n")
    return text
