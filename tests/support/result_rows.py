"""Rows of records made by hand, and frames of them."""

import dataclasses
from typing import Any

import pandas as pd

import systems
from bleuprint.report.document_tables import columns_of, tests_of
from bleuprint.report.frame import DTYPES
from bleuprint.report.grid import Grid
from bleuprint.report.system_results import METRICS, of_metric, with_differences

TESTS = ("p_bootstrap", "p_randomization", "standard_error")


def record(system: str, corpus: str, test: str, bleu: float, **changes: Any) -> dict[str, Any]:
    """A row of the records made by hand: the pair is the end of the corpus's name."""
    source, target = corpus.split("-")[-2:]
    decode = dataclasses.asdict(systems.DECODE)
    lines = {"lines": 1000, "references": "ab" * 32, "hypotheses": "cd" * 32}
    return {
        "system": system,
        "corpus": corpus,
        "seed": 1,
        "test": test,
        "source": source,
        "target": target,
        "outside": None,
        "scored": "sacrebleu",
        "lines": 1000,
        **{"bleu": bleu, "bleu_low": bleu - 1, "bleu_high": bleu + 2},
        **{"chrf2": bleu + 20, "chrf2_low": bleu + 19, "chrf2_high": bleu + 21},
        **{"chrf2pp": bleu + 18, "chrf2pp_low": bleu + 17, "chrf2pp_high": bleu + 19},
        **{"ter": bleu - 9, "ter_low": bleu - 10, "ter_high": bleu - 8},
        **{"comet": None, "comet_low": None, "comet_high": None, "comet_signature": None},
        "bleu_signature": "nrefs:1|tok:13a|version:2.6.0",
        "chrf2_signature": "nrefs:1|nc:6|version:2.6.0",
        "chrf2pp_signature": "nrefs:1|nc:6|nw:2|version:2.6.0",
        "ter_signature": "nrefs:1|tok:tercom|version:2.6.0",
        **{"test_loss": 1.5, "test_perplexity": 4.4817, "word_perplexity": 20.25},
        **{"hypothesis_length": 980, "reference_length": 1000, "length_ratio": 0.98},
        "baseline": None,
        **{of_metric(metric, test): None for metric in METRICS for test in TESTS},
        **columns_of(None),
        **tests_of(None),
        "variants": [
            {"name": "lower-cased", "score": bleu + 1.5, "signature": "case:lc|tok:13a", **lines},
            {"name": "tokens", "score": bleu + 0.25, "signature": "tok:none", **lines},
            {"name": "intl", "score": bleu - 0.5, "signature": "tok:intl", **lines},
        ],
        "by_length": [length("1-10", 400, bleu + 3), length("over 50", 600, bleu - 3)],
        "by_count": [count("0", 50, 10), count("100+", 1200, 600)],
        "faults": [fault("any fault", 5), fault("numbers", 4, references=10)],
        "parameters": 2_570_000,
        "training_flops": 3.28e18,
        "source_tokens": 9_000_000,
        "target_tokens": 8_120_000,
        "updates": 8000,
        "models": 1,
        **{name: decode[name] for name in ("engine", "precision", "beam")},
        **{f"length_penalty.{name}": value for name, value in decode["length_penalty"].items()},
        "training_sha256": "f1" * 32,
        "settings_sha256": "5e" * 32,
        "binary_sha256": "b1" * 32,
        "sources_sha256": "50" * 32,
        "references_sha256": "4e" * 32,
        "hypotheses_sha256": "47" * 32,
        "averaged_sha256": "a0" * 32,
        "decode_sha256": "de" * 32,
        "scored_with": "torch 2.0.0, sacrebleu 2.6.0",
        **changes,
    }


def length(tokens: str, lines: int, bleu: float) -> dict[str, Any]:
    """An entry of by_length."""
    return {"tokens": tokens, "lines": lines, "bleu": bleu}


def count(times: str, words: int, found: int) -> dict[str, Any]:
    """An entry of by_count."""
    return {"count": times, "words": words, "found": found, "accuracy": found / words}


def fault(name: str, lines: int, references: int = 0, p: float | None = None) -> dict[str, Any]:
    """An entry of faults of 1,000 lines; its interval is made up."""
    counts = {"count": lines, "low": lines / 2, "high": 2.0 * lines, "of": 1000 - references}
    return {"name": name, **counts, "references": references, "p": p}


def against(baseline: str, bootstrap: float, randomization: float | None = None) -> dict[str, Any]:
    """The columns of paired tests, the same in all metrics.

    Both p-values are the same unless the second is given.
    """
    second = bootstrap if randomization is None else randomization
    tests = dict(zip(TESTS, (bootstrap, second, 0.5), strict=True))
    named = {of_metric(metric, name): p for metric in METRICS for name, p in tests.items()}
    return {"baseline": baseline, **named}


def frame(*rows: dict[str, Any], missing: str = "") -> pd.DataFrame:
    """The records of these rows, with measured times of all systems but `missing`."""
    records = with_differences(pd.DataFrame(rows))
    news = records.corpus.str.startswith("news")
    times: dict[str, Any] = {
        "train_seconds": news.map({True: 43_200.0, False: 61.0}),
        "train_tokens_per_second": 51_234.4,
        **{"device": "Fast Chip", "processes": 8, "threads": 4, "commit": "abcdef0123456789"},
        **{"devices": 4, "sustained_flops": 9.5e12, "peak_memory": 2_450_000_000},
        "training_flops_by_time": news.map({True: 43_200.0, False: 61.0}) * 4 * 9.5e12,
        **{"peak_flops": 9.3e12, "mfu": 0.3509},
        **{"translate_seconds": 9.5, "versions": None},
    }
    records = records.assign(**times).astype(DTYPES)
    records.loc[records.system == missing, list(times)] = None
    return records


def rows_of(grid: Grid) -> dict[str, dict[str, str]]:
    """A grid's cells by row and column head."""
    heads = [f"{column.group} {column.label}".strip() for column in grid.columns]
    return {row.cells[0]: dict(zip(heads, row.cells, strict=True)) for row in grid.rows}


# Rows of two systems, a corpus with two test sets and one with one; every figure is different.
TWO_SYSTEMS = [
    record("tiny", "news-en-de", "first", 31.11),
    record("tiny", "news-en-de", "second", 32.22),
    record("tiny", "talks-en-fr", "only", 33.33, training_flops=5e17),
    record("small", "news-en-de", "first", 41.11, **against("tiny", 0.000999)),
    record("small", "news-en-de", "second", 42.22, **against("tiny", 0.05)),
    record("small", "talks-en-fr", "only", 43.33, **against("tiny", 0.049)),
]
