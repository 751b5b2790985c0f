"""The records as CSV: a row for each system, corpus, seed and test set."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from bleuprint.config.paths import Cell
from bleuprint.config.published import Published
from bleuprint.report.published import literature
from bleuprint.report.records import Record
from bleuprint.report.system_results import Difference, standings
from bleuprint.runtime.flatten import dotted
from bleuprint.scoring.metrics import DIGITS
from bleuprint.tracking.timings import Timing

# How every score of ours is, as published.py has it.
SCORED = "sacrebleu"
_DECODE = ("engine", "precision", "beam", "length_penalty.kind", "length_penalty.alpha")


def csv_text(
    records: Sequence[Record], timings: Mapping[Cell, Timing], published: Sequence[Published] = ()
) -> str:
    """One row for each system x corpus x seed x test set, every figure in full.

    Published numbers come first: of these there is little more than BLEU, and how it was scored.
    The difference from the baseline is that of the means over seeds.
    """
    found = {(one.system, one.corpus, one.test): one for one in standings(records)}
    rows = [
        _flat(one, timings[one.cell], found[one.system, one.corpus, one.test].difference)
        for one in records
    ]
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in literature.rows(records, published):
        for (corpus, test), bleu in row.bleu.items():
            writer.writerow(
                {
                    **{"system": row.name, "corpus": corpus, "test": test, "bleu": bleu},
                    **{"published": row.source, "scored": row.scored[corpus, test]},
                    "training_flops_by_time": row.flops.get(corpus, ""),
                }
            )
    writer.writerows(rows)
    return file.getvalue()


def _flat(record: Record, measured: Timing, difference: Difference | None) -> dict[str, object]:
    """A record and its timing on one level; missing values stay empty."""
    bleu, chrf, ter = record.bleu, record.chrf, record.ter
    paired, training = record.paired, measured.training
    decode = dotted(record.decode)
    return {
        "system": record.system,
        "corpus": record.corpus,
        "source": record.source,
        "target": record.target,
        "seed": record.seed,
        "test": record.test,
        "published": None,
        "scored": SCORED,
        "lines": record.lines,
        "bleu": bleu.score,
        "bleu_low": bleu.low,
        "bleu_high": bleu.high,
        "chrf2": chrf.score,
        "chrf2_low": chrf.low,
        "chrf2_high": chrf.high,
        "ter": ter.score,
        "ter_low": ter.low,
        "ter_high": ter.high,
        "hypothesis_length": record.length.hypothesis,
        "reference_length": record.length.reference,
        "length_ratio": record.length.ratio,
        "baseline": paired and paired.baseline,
        "difference": difference and round(difference.bleu, DIGITS),
        "p": difference and difference.p,
        "p_holm": difference and difference.corrected,
        "p_bootstrap": paired and paired.p_values.bootstrap,
        "p_randomisation": paired and paired.p_values.randomization,
        "parameters": record.parameters,
        "updates": record.updates,
        "source_tokens": record.source_tokens,
        "target_tokens": record.target_tokens,
        "training_flops": record.training_flops,
        **{name: decode[name] for name in _DECODE},
        "train_seconds": training and training.seconds,
        "train_tokens_per_second": training and training.tokens_per_second,
        "device": training and training.device,
        "processes": training and training.processes,
        "threads": training and training.threads,
        "commit": training and training.commit,
        "devices": training and training.devices,
        "sustained_flops": training and training.sustained_flops,
        "sustained_from": training and training.sustained_from,
        "training_flops_by_time": training and training.flops_by_time,
        "peak_flops": training and training.peak_flops,
        "peak_from": training and training.peak_from,
        "mfu": training and training.mfu,
        "translate_seconds": measured.translate_seconds,
        "bleu_signature": bleu.signature,
        "chrf2_signature": chrf.signature,
        "ter_signature": ter.signature,
        **{f"{name}_sha256": value for name, value in asdict(record.fingerprints).items()},
        **{f"{name}_sha256": value for name, value in asdict(record.data).items()},
    }
