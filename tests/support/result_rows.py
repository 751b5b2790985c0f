"""Records of results that no training produced, for tests of tables and statistics."""

from statistics import fmean
from typing import Any

import pandas as pd

from bleuprint.report.frame import RUN_AND_TEST, Records
from bleuprint.report.paired import holm_correction, largest_p_value, paired_t_test
from bleuprint.report.score_frame import score_frame, select_metric
from bleuprint.report.training_costs import COST_DTYPES
from bleuprint.scoring.metrics import METRICS, SCORE_KEYS

# For each score: its value minus that of BLEU, and the ends of its interval minus its value.
_SCORES = {"bleu": (0, -1, 2), "chrf2": (20, -1, 1), "chrf2pp": (18, -1, 1), "ter": (-9, -1, 1)}
# Metrics that are the same whatever BLEU is.
_FIGURES = {"length_ratio": 0.98, "loss": 1.5, "perplexity": 4.4817, "word_perplexity": 20.25}
# Facts that a system has only if it is trained.
OF_TRAINING = [
    "parameters",
    "training_flops",
    "updates",
    "source_tokens",
    "target_tokens",
    "models",
    "engine",
    "precision",
    "training_sha256",
    "binary_sha256",
    "averaged_sha256",
    "decode_sha256",
]
SIGNATURES = {
    "bleu": "nrefs:1|tok:13a|version:2.6.0",
    "chrf2": "nrefs:1|nc:6|version:2.6.0",
    "chrf2pp": "nrefs:1|nc:6|nw:2|version:2.6.0",
    "ter": "nrefs:1|tok:tercom|version:2.6.0",
    "comet": "Python3.11|Comet2.2|fp32|wmt22-comet-da|r1",
}


def record(system, corpus, test, bleu, **changes):
    """Make the record of one system's translations of a test set.

    Args:
        system: The name of the system.
        corpus: The name of the corpus, which ends in its languages, such as news-en-de.
        test: The name of the test set.
        bleu: The value of BLEU, from which the other scores follow.
        changes: What differs from the usual record: facts by name; metrics by key, with their
            value, or None to leave one out; `metrics`, by key and group; and `tested`, which
            `compared_with` returns.

    Returns:
        The facts of the record, its metrics by key and group, and what was tested.
    """
    source, target = corpus.split("-")[-2:]
    facts = {
        "system": system,
        "corpus": corpus,
        "seed": 1,
        "test": test,
        "source": source,
        "target": target,
        "about": None,
        "lines": 1000,
        "parameters": 2_570_000,
        "training_flops": 3.28e18,
        "updates": 8000,
        "source_tokens": 9_000_000,
        "target_tokens": 8_120_000,
        "models": 1,
        "engine": "pytorch",
        "precision": "float32",
        "training_sha256": "f1" * 32,
        "settings_sha256": "5e" * 32,
        "binary_sha256": "b1" * 32,
        "averaged_sha256": "a0" * 32,
        "decode_sha256": "de" * 32,
        "sources_sha256": "50" * 32,
        "references_sha256": "4e" * 32,
        "hypotheses_sha256": "47" * 32,
        "scored_with": "torch 2.0.0, sacrebleu 2.6.0",
    }
    metrics = _usual_metrics(bleu)
    other_metrics = changes.pop("metrics", {})
    tested = changes.pop("tested", {})
    for name, value in changes.items():
        if name not in METRICS:
            facts[name] = value
        elif value is None:
            del metrics[name, ""]
        else:
            metrics[name, ""] = measured(name, value, value - 1, value + 1)
    metrics.update(other_metrics)
    if facts["about"]:
        facts.update(dict.fromkeys(OF_TRAINING))
    return {"facts": facts, "metrics": metrics, "tested": tested}


def _usual_metrics(bleu):
    """Return the metrics of a record by key and group; those of all lines have the group ""."""
    metrics = {}
    for key, (difference, low, high) in _SCORES.items():
        value = bleu + difference
        metrics[key, ""] = measured(key, value, value + low, value + high)
    for key, value in _FIGURES.items():
        metrics[key, ""] = measured(key, value)
    metrics["lower-cased", ""] = measured("lower-cased", bleu + 1.5)
    metrics["tokens", ""] = measured("tokens", bleu + 0.25)
    metrics["intl", ""] = measured("intl", bleu - 0.5)
    metrics["bleu", "length 1-10"] = measured("bleu", bleu + 3, units=400)
    metrics["bleu", "length over 50"] = measured("bleu", bleu - 3, units=600)
    metrics["word_accuracy", "count 0"] = measured("word_accuracy", 20.0, units=50)
    metrics["word_accuracy", "count 100+"] = measured("word_accuracy", 50.0, units=1200)
    metrics["any error", ""] = measured("any error", 5, 2.5, 10.0)
    metrics["numbers", ""] = measured("numbers", 4, 2.0, 8.0, units=990)
    return metrics


def measured(key, value, low=None, high=None, units=1000, **changes):
    """Make the entry of a metric.

    Args:
        key: The key of the metric, such as `bleu`.
        value: The value.
        low: The lower end of its confidence interval; None if it has no interval.
        high: The upper end.
        units: The number of units that it was computed over, such as lines or documents.
        changes: Other fields of the entry, such as `signature`.
    """
    entry = {"units": units, "value": value, "ci_low": low, "ci_high": high}
    entry["signature"] = SIGNATURES.get(key, "")
    entry.update(changes)
    return entry


def compared_with(baseline, p, randomization=None):
    """Make the tests of a record against a baseline, the same for all scores.

    Args:
        baseline: The system with which the record's system is compared.
        p: The p-value of the paired bootstrap test.
        randomization: The p-value of approximate randomization; equal to the first if omitted.

    Returns:
        Changes for `record`.
    """
    second = p if randomization is None else randomization
    tested = {
        "baseline": baseline,
        "p": p,
        "p_randomization": second,
        "standard_error": 0.5,
    }
    return {"tested": tested}


def records_from_rows(*rows, missing=""):
    """Put records into tables as the report has them.

    Args:
        rows: The records, made by `record`.
        missing: The name of a system whose training was not measured; "" for none.

    Returns:
        The tables of runs and metrics.
    """
    metrics = []
    for row in rows:
        for (metric, group), entry in row["metrics"].items():
            line = {name: row["facts"][name] for name in RUN_AND_TEST}
            line["metric"] = metric
            line["group"] = group
            line.update(entry)
            is_tested = metric in SCORE_KEYS and not group
            if is_tested:
                line.update(row["tested"])
            metrics.append(line)
    external_systems = {row["facts"]["system"] for row in rows if row["facts"]["about"]}
    _add_tests(metrics, external_systems)
    records = Records.from_rows([row["facts"] for row in rows], metrics)
    runs = _with_training_costs(records.runs, missing)
    return Records(runs, records.metrics)


def _with_training_costs(runs, missing):
    """Add to each run what was measured while it trained.

    Args:
        runs: The table of runs, which stays as it is. On corpora whose name begins with "news" a
            training took 12 hours, on the other ones 61 seconds; all else is the same for all.
        missing: The name of a system whose costs were not measured and are empty; "" for none.
    """
    hours_12 = 12 * 60 * 60.0
    is_news = runs.corpus.str.startswith("news")
    seconds = is_news.map({True: hours_12, False: 61.0})
    devices = 4
    sustained_flops = 9.5e12
    costs: dict[str, Any] = {
        "train_seconds": seconds,
        "train_tokens_per_second": 51_234.4,
        "device": "Fast Chip",
        "processes": 8,
        "threads": 4,
        "commit": "abcdef0123456789",
        "devices": devices,
        "sustained_flops": sustained_flops,
        "peak_memory": 2_450_000_000,
        "training_flops_by_time": seconds * devices * sustained_flops,
        "peak_flops": 15.7e12,
        "mfu": 0.3509,
        "versions": None,
    }
    runs = runs.assign(**costs).astype(COST_DTYPES)
    is_missing = runs.system == missing
    runs.loc[is_missing, list(costs)] = None
    return runs


def _add_tests(metrics, external_systems):
    """Add to tested metrics what the report computes: differences, p of several seeds, and Holm's.

    Args:
        metrics: The lines of the table of metrics, which are changed.
        external_systems: The names of external systems, whose seeds are equal.
    """
    seeds_by_system: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in metrics:
        key = (line["corpus"], line["test"], line["metric"], line["group"], line["system"])
        seeds_by_system.setdefault(key, []).append(line)
    # The systems that one correction covers: all that have one metric of one test set.
    families: dict[tuple[str, ...], list[list[dict[str, Any]]]] = {}
    for key, seeds in seeds_by_system.items():
        baseline = seeds[0].get("baseline")
        if not baseline:
            continue
        family, system = key[:-1], key[-1]
        pairs = zip(seeds, seeds_by_system[*family, baseline], strict=True)
        differences = [round(line["value"] - first["value"], 6) for line, first in pairs]
        p_values = [line["p"] for line in seeds]
        if len(seeds) > 1 and system in external_systems:
            p_values = [largest_p_value(differences, p_values)] * len(seeds)
        elif len(seeds) > 1:
            p_values = [paired_t_test(differences)] * len(seeds)
        for line, p_value in zip(seeds, p_values, strict=True):
            line["difference"] = fmean(differences)
            line["p"] = p_value
        families.setdefault(family, []).append(seeds)
    for systems in families.values():
        corrected = holm_correction([seeds[0]["p"] for seeds in systems])
        for seeds, p_value in zip(systems, corrected, strict=True):
            for line in seeds:
                line["p_holm"] = p_value


def changed(records, where=None, **values):
    """Copy records with other facts or values of metrics.

    Args:
        records: The records, which stay as they are.
        where: The values that the columns of a row must have for it to change; all rows if omitted.
        values: The new facts by name, and new values of metrics by key; None removes a metric.
    """
    runs = records.runs.copy()
    metrics = records.metrics.copy()
    for name, value in values.items():
        if name in METRICS:
            of_metric = (metrics.metric == name) & (metrics.group == "")
            rows = of_metric & _rows(metrics, where)
            metrics.loc[rows, "value"] = value
            if value is None:
                metrics = metrics[~rows]
        elif name in metrics and name not in RUN_AND_TEST:
            metrics.loc[_rows(metrics, where), name] = value
        else:
            if name not in runs:
                runs[name] = None
            runs.loc[_rows(runs, where), name] = value
            if name == "about":
                runs.loc[_rows(runs, where), OF_TRAINING] = None
    return Records(runs, metrics)


def _rows(table, where):
    """Return for each row of a table whether its columns have the values of `where`."""
    is_chosen = pd.Series(True, table.index)
    for name, value in (where or {}).items():
        is_chosen &= table[name] == value
    return is_chosen


def metric_values(records, metric="bleu", column="value"):
    """Return a column of a metric over all lines, in the order of the records."""
    rows = (records.metrics.metric == metric) & (records.metrics.group == "")
    return list(records.metrics[rows][column])


def rows_of(table):
    """Return the texts of a table by the first text of their row and the head of their column."""
    assert table
    heads = [f"{column.group} {column.label}".strip() for column in table.columns]
    texts = [table.texts(row) for row in table.rows]
    return {row[0]: dict(zip(heads, row, strict=True)) for row in texts}


def labels_of(table):
    """Return the heads of the columns of a table."""
    return [column.label for column in table.columns]


def score_of(records, system, metric="bleu", group="", **corpus_or_test):
    """Return the row of the score frame of a system in a metric.

    Args:
        records: The records.
        system: The name of the system.
        metric: The key of the metric.
        group: The group of lines; empty for all lines.
        corpus_or_test: The corpus or the test set, if the system has several.
    """
    scores = select_metric(score_frame(records), metric, group)
    for name, value in {"system": system, **corpus_or_test}.items():
        scores = scores[scores[name] == value]
    (row,) = scores.itertuples(index=False)
    return row


# Rows of two systems, a corpus with two test sets and one with one; every figure is different.
TWO_SYSTEMS = [
    record("tiny", "news-en-de", "first", bleu=31.11),
    record("tiny", "news-en-de", "second", bleu=32.22),
    record("tiny", "talks-en-fr", "only", bleu=33.33, training_flops=5e17),
    record("small", "news-en-de", "first", bleu=41.11, **compared_with("tiny", p=0.000999)),
    record("small", "news-en-de", "second", bleu=42.22, **compared_with("tiny", p=0.05)),
    record("small", "talks-en-fr", "only", bleu=43.33, **compared_with("tiny", p=0.049)),
]
