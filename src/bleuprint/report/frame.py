"""The records of an experiment as one pandas DataFrame: a row for each system, corpus, seed and
test set.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.report import records as stored
from bleuprint.report.main_table import REPORTS
from bleuprint.report.published import literature
from bleuprint.report.records import Record
from bleuprint.report.system_results import Difference
from bleuprint.report.system_results import standings as system_results
from bleuprint.scoring.metrics import DIGITS
from bleuprint.tracking.timings import Timing, timing

# How every score of ours is scored, as config/published.py names it.
SCORED = "sacrebleu"

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
    "hypothesis_length": "tokens of the translations, as BLEU counts them",
    "reference_length": "tokens of the references",
    "length_ratio": "hypothesis_length / reference_length",
    "baseline": "the system that it is tested against",
    "difference": "BLEU minus that of the baseline, means over seeds",
    "p": "p-value of the difference: paired bootstrap, or with several seeds paired t-test",
    "p_holm": "p, corrected by Holm for the number of systems",
    "p_bootstrap": "p-value of this seed: paired bootstrap over lines",
    "p_randomisation": "p-value of this seed: approximate randomization over lines",
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
    "device": "device of the training",
    "processes": "processes of the training",
    "threads": "threads of each process",
    "commit": "commit that trained; + if there were uncommitted changes",
    "devices": "number of devices",
    "sustained_flops": "FLOP/s that a device sustains",
    "sustained_from": "paper or measured",
    "training_flops_by_time": "train_seconds x devices x sustained_flops",
    "peak_flops": "peak FLOP/s of a device",
    "peak_from": "known or measured",
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
_DECODE = ("engine", "precision", "beam")
_RENAMED = {
    "seconds": "train_seconds",
    "tokens_per_second": "train_tokens_per_second",
    "flops_by_time": "training_flops_by_time",
}


def results(root: Path = Path()) -> pd.DataFrame:
    """The frame of the report of the project in `root`; raises UserError if there is no report.

    Times are missing where the outputs of the trainings are not here, as in a fresh clone.
    """
    records = stored.load(root / REPORTS / "results.json")
    return to_frame(records, {record.cell: timing(record.cell, root) for record in records})


def to_frame(records: Sequence[Record], timings: Mapping[Cell, Timing]) -> pd.DataFrame:
    """A row for each record, in their order, with COLUMNS."""
    return pd.DataFrame(_rows(records, timings), columns=list(COLUMNS))


def csv_text(
    records: Sequence[Record], timings: Mapping[Cell, Timing], published: Sequence[Published] = ()
) -> str:
    """The frame as CSV, after a row for each published number."""
    numbers: list[dict[str, object]] = [
        {
            **{"system": row.name, "corpus": corpus, "test": test, "bleu": bleu},
            **{"published": row.source, "scored": row.scored[corpus, test]},
            "training_flops_by_time": row.flops.get(corpus),
        }
        for row in literature.rows(records, published)
        for (corpus, test), bleu in row.bleu.items()
    ]
    # of objects: whole numbers stay whole where others are missing
    rows = [*numbers, *_rows(records, timings)]
    frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def _rows(records: Sequence[Record], timings: Mapping[Cell, Timing]) -> list[dict[str, object]]:
    differences = {
        (result.system, result.corpus, result.test): result.difference
        for result in system_results(records)
    }
    return [
        _row(record, timings[record.cell], differences[record.system, record.corpus, record.test])
        for record in records
    ]


def _row(record: Record, measured: Timing, difference: Difference | None) -> dict[str, object]:
    paired, training = record.paired, measured.training
    costs = {} if training is None else dataclasses.asdict(training)
    prints = {**vars(record.fingerprints), **vars(record.data)}
    row: dict[str, object] = {
        **{name: value for name, value in vars(record).items() if name in COLUMNS},
        "scored": SCORED,
        "hypothesis_length": record.length.hypothesis,
        "reference_length": record.length.reference,
        "length_ratio": record.length.ratio,
        **{name: record.decode[name] for name in _DECODE},
        **{f"length_penalty.{name}": v for name, v in record.decode["length_penalty"].items()},
        **{_RENAMED.get(name, name): value for name, value in costs.items()},
        "translate_seconds": measured.translate_seconds,
        **{f"{name}_sha256": value for name, value in prints.items()},
    }
    for name, metric in (("bleu", record.bleu), ("chrf2", record.chrf), ("ter", record.ter)):
        row |= {name: metric.score, f"{name}_low": metric.low, f"{name}_high": metric.high}
        row[f"{name}_signature"] = metric.signature
    if difference is not None and paired is not None:
        row |= {"baseline": paired.baseline, "difference": round(difference.bleu, DIGITS)}
        row |= {"p": difference.p, "p_holm": difference.corrected}
        row["p_bootstrap"] = paired.p_values.bootstrap
        row["p_randomisation"] = paired.p_values.randomization
    return row
