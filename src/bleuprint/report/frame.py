"""The records of an experiment: one pandas DataFrame, a row for each system, corpus, seed and
test set. Every table, chart and file of the report is made from it.

Beside COLUMNS it has LISTS, and of the trainings the versions of libraries.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.report.published import literature
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from bleuprint.tracking.timings import Training, read_training, read_translation

REPORTS = Path("reports")
RESULTS = REPORTS / "results.json"
# What was measured, for those who have the results and did not compute them.
COSTS = REPORTS / "costs.csv"
# The scores, by the name of their column.
METRICS = {"bleu": "BLEU", "chrf2": "chrF2", "ter": "TER"}

# Each column with its meaning and unit. A value that is not known, or not measured, is missing.
COLUMNS = {
    "system": "the system; of a published number, its name",
    "corpus": "the corpus",
    "source": "the source language",
    "target": "the target language",
    "seed": "the seed of the training",
    "test": "the test set",
    "published": "where a published number was printed; missing for our systems",
    "scored": "how BLEU was counted: sacrebleu, or of a published number one of docs/scoring.md",
    "lines": "lines of the test set",
    "bleu": "BLEU, 0 to 100",
    "bleu_low": "lower end of its 95 % interval",
    "bleu_high": "upper end of its 95 % interval",
    "chrf2": "chrF2, 0 to 100",
    "chrf2_low": "lower end of its 95 % interval",
    "chrf2_high": "upper end of its 95 % interval",
    "ter": "TER, edits by 100 words of the references",
    "ter_low": "lower end of its 95 % interval",
    "ter_high": "upper end of its 95 % interval",
    "test_loss": "cross-entropy of the references without label smoothing, nats per token with EOS",
    "test_perplexity": "e to test_loss",
    "word_perplexity": "the same per word of the references' text, EOS included",
    "hypothesis_length": "tokens of the translations, as BLEU counts them",
    "reference_length": "tokens of the references",
    "length_ratio": "hypothesis_length / reference_length",
    "baseline": "the system that it is tested against",
    "difference": "BLEU minus that of the baseline, means over seeds",
    "p": "p-value of the difference: paired bootstrap, or with several seeds paired t-test",
    "p_holm": "p, corrected by Holm for the number of systems",
    "p_bootstrap": "p-value of this seed: paired bootstrap over lines",
    "p_randomization": "p-value of this seed: approximate randomization over lines",
    "parameters": "parameters of the model",
    "updates": "updates of the training",
    "source_tokens": "source tokens of the training",
    "target_tokens": "target tokens of the training",
    "training_flops": "floating-point operations of the training, counted",
    "engine": "what translated",
    "precision": "numbers of the translation",
    "beam": "beam of the search",
    "length_penalty.kind": "kind of the length penalty",
    "length_penalty.alpha": "exponent of the length penalty",
    "train_seconds": "duration of the training, seconds",
    "train_tokens_per_second": "target tokens per second of the training",
    "peak_memory": "peak memory of the training's main process, bytes",
    "device": "device of the training",
    "processes": "processes of the training",
    "threads": "threads of each process",
    "commit": "commit that trained; + if there were uncommitted changes",
    "devices": "number of devices",
    "sustained_flops": "FLOP/s that a device sustains, by the paper",
    "training_flops_by_time": "train_seconds x devices x sustained_flops",
    "peak_flops": "peak FLOP/s of a device, by its data sheet",
    "mfu": "model FLOPs utilization, 0 to 1",
    "translate_seconds": "duration of translating all test sets, seconds",
    "bleu_signature": "sacreBLEU's signature of BLEU",
    "chrf2_signature": "sacreBLEU's signature of chrF2",
    "ter_signature": "sacreBLEU's signature of TER",
    "training_sha256": "fingerprint of the training: settings, code and data",
    "settings_sha256": "fingerprint of all settings of the cell",
    "code_sha256": "fingerprint of the package",
    "binary_sha256": "SHA-256 of the binary corpus",
    "sources_sha256": "SHA-256 of the test set's sources",
    "references_sha256": "SHA-256 of the test set's references",
    "hypotheses_sha256": "SHA-256 of the translations",
}
# Lists of objects, as in scores.json; by_count is None where tokens are characters.
LISTS = ("variants", "by_length", "by_count")
# The column of each measured figure of a training; those of another name are not in COLUMNS.
_MEASURED = {f.name: f.name for f in dataclasses.fields(Training) if f.name != "rates"} | {
    "seconds": "train_seconds",
    "tokens_per_second": "train_tokens_per_second",
    "flops_by_time": "training_flops_by_time",
}
_TIMES = [*_MEASURED.values(), "translate_seconds"]
_KEYS = [*Cell._fields, "training_sha256", "settings_sha256"]
# The columns of results.json: those that are reproducible.
_STORED = [name for name in (*COLUMNS, *LISTS) if name not in (*_TIMES, "published")]
# The types of columns that may be missing in every row.
DTYPES = {
    **dict.fromkeys(("processes", "threads", "devices", "peak_memory"), "Int64"),
    **dict.fromkeys(("train_seconds", "train_tokens_per_second", "translate_seconds"), "float64"),
    **dict.fromkeys(("device", "commit", "versions"), "str"),
    **dict.fromkeys(("sustained_flops", "peak_flops", "mfu", "training_flops_by_time"), "float64"),
}


def results(root: Path = Path()) -> pd.DataFrame:
    """The frame of the report of the project in `root`; raises UserError if there is no report.

    Measured columns are of this machine, or of reports/costs.csv; missing if they are in neither.
    """
    return load(root).reindex(columns=list(COLUMNS))


def save(records: pd.DataFrame, path: Path) -> None:
    """Write the records as JSON: a list of objects, readable and exactly repeatable."""
    stored = records[_STORED].astype(object)
    write_json(path, stored.where(stored.notna(), None).to_dict("records"))


def load(root: Path = Path()) -> pd.DataFrame:
    """The records that `save` wrote in reports/, with what was measured of them."""
    path = root / RESULTS
    if not path.exists():
        raise UserError(f"{path}: no such file; run: dvc repro")
    try:
        rows = read_json(path)
        complete = all(list(row) == _STORED for row in rows)
    except (ValueError, TypeError):
        complete = False
    if not complete:
        raise UserError(f"{path}: was not written by this version; run: dvc repro")
    return with_measured(pd.DataFrame(rows, columns=_STORED), root)


def with_measured(records: pd.DataFrame, root: Path) -> pd.DataFrame:
    """The records with the measured columns, missing where nothing was measured.

    Figures of this machine come first, then those of reports/costs.csv for the same training.
    """
    trainings = records.drop_duplicates(list(Cell._fields))[_KEYS]
    here = pd.DataFrame([_measured(each, root) for each in trainings.itertuples()])
    here = here.reindex(columns=_TIMES).astype(DTYPES).set_index(trainings.index)
    if (path := root / COSTS).exists():
        there = trainings.merge(
            pd.read_csv(path, dtype=DTYPES).reindex(columns=[*_KEYS, *_TIMES]),
            *("left", _KEYS[:-1]),
            suffixes=("", "_there"),
        ).set_index(trainings.index)
        same = there.settings_sha256 == there.settings_sha256_there
        there.translate_seconds = there.translate_seconds.where(same)
        here = here.combine_first(there[_TIMES])[_TIMES]
    cells = trainings[list(Cell._fields)].join(here)
    return records.merge(cells, on=list(Cell._fields), how="left")


def _measured(record: Any, root: Path) -> dict[str, Any]:
    """The measured columns of a training and its translations, as far as they are in `root`."""
    cell = Cell(record.system, record.corpus, int(record.seed))
    training = read_training(cell, record.training_sha256, root)
    times = {column: getattr(training, name, None) for name, column in _MEASURED.items()}
    seconds = read_translation(cell, record.training_sha256, record.settings_sha256, root)
    return {**times, "translate_seconds": seconds}


def costs_csv(records: pd.DataFrame) -> str:
    """The measured columns, a row for each training and its translations."""
    trainings = records.drop_duplicates(list(Cell._fields))
    text: str = trainings.to_csv(columns=[*_KEYS, *_TIMES], index=False, lineterminator="\n")
    return text


def cells_in(records: pd.DataFrame) -> list[Cell]:
    """Each training once, in the order of the records."""
    cells = records[list(Cell._fields)].drop_duplicates()
    return [Cell(*row) for row in cells.itertuples(index=False)]


def csv_text(records: pd.DataFrame, published: Sequence[Published] = ()) -> str:
    """The frame without measured columns as CSV, after a row for each published number."""
    # of objects: whole numbers stay whole where others are missing
    frames = [part.astype(object) for part in (literature.rows(records, published), records)]
    columns = [name for name in COLUMNS if name not in _TIMES]
    together = pd.concat(frames).reindex(columns=columns)
    text: str = together.to_csv(index=False, lineterminator="\n")
    return text
