"""What the records of a results.json must be, whoever wrote it: values, scores, fingerprints."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.report.system_results import METRICS, of_metric
from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import reading

# Lists of objects, as in scores.json; by_count is None where tokens are characters, by_document
# where the test set does not say its documents.
LISTS = ("variants", "by_length", "by_count", "faults", "by_document")
# By which a score may be outside its interval, since both are rounded.
ROUNDING = 1e-3

_AGAIN = "edited, or damaged; if it is of this project, run: dvc repro --force --single-item report"
# Columns without which a record means nothing.
_TYPES = {
    **dict.fromkeys(("system", "corpus", "test", "source", "target", "bleu_signature"), str),
    **dict.fromkeys(("seed", "lines"), int),
    **dict.fromkeys(("bleu", "bleu_low", "bleu_high"), float),
}
# What made a result, from the texts to the score.
_SHA256 = ("settings", "binary", "training", "averaged", "decode")
_TEXTS = ("sources", "references", "hypotheses")
_CHAIN = (*(f"{name}_sha256" for name in (*_SHA256, *_TEXTS)), "scored_with", "bleu_signature")


def chain_of(row: Mapping[str, Any]) -> str:
    """The fingerprint of all that made a result; equal for equal results of equal origin."""
    return fingerprint.of_settings([row.get(name) for name in _CHAIN])


def check_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Raise UserError at a value of a wrong type, or at a `chain_sha256` of other fingerprints."""
    for row in rows:
        for name in _wrong(row):
            raise UserError(f"{path}: {name} is {row.get(name)!r}; {_AGAIN}")
        if row.get("chain_sha256") not in (None, chain_of(row)):
            raise UserError(
                f"{path}: chain_sha256 of {row['system']} on {row['corpus']}, seed {row['seed']}, "
                f"{row['test']}, is not that of its fingerprints; {_AGAIN}"
            )


def check_records(records: pd.DataFrame, path: Path) -> None:
    """Raise UserError if records occur twice, or if scores contradict each other.

    A score lies in its interval; a difference is between the means over the seeds.
    """
    if records.duplicated([*Cell._fields, "test"]).any():
        raise UserError(f"{path}: a system has two records of one test set; {_AGAIN}")
    with reading(path):
        for metric, name in METRICS.items():
            low, score, high = (
                records[metric + end].astype(float) for end in ("_low", "", "_high")
            )
            inside = score.isna() | (low - ROUNDING <= score) & (score <= high + ROUNDING)
            for record in records[~inside].itertuples():
                raise UserError(
                    f"{path}: {name} {getattr(record, metric)} of {record.system} on "
                    f"{record.corpus}, {record.test}, is outside its interval; {_AGAIN}"
                )
            means = (
                records.astype({metric: float}).groupby(["system", "corpus", "test"])[metric].mean()
            )
            column = of_metric(metric, "difference")
            for record in records[records[column].notna()].to_dict("records"):
                system, baseline, *of = (
                    record[n] for n in ("system", "baseline", "corpus", "test")
                )
                expected = means[system, *of] - means[baseline, *of]
                if abs(record[column] - expected) > ROUNDING:
                    raise UserError(
                        f"{path}: {column} {record[column]} of {system} on {', '.join(of)}, is not "
                        f"that of the scores ({expected:.6g}); {_AGAIN}"
                    )


def _wrong(row: Mapping[str, Any]) -> Iterator[str]:
    """The columns with a value that cannot be theirs."""
    for name, value in row.items():
        number = not isinstance(value, float) or math.isfinite(value)
        if not number or (isinstance(value, list | dict) and name not in LISTS):
            yield name
    for name, kind in _TYPES.items():
        value = row.get(name)
        if not isinstance(value, (int, float) if kind is float else kind):
            yield name
