"""Rows of records made by hand, and the records of them."""

from statistics import fmean
from typing import Any

import pandas as pd

from bleuprint.report.frame import DTYPES, KEY, Records
from bleuprint.report.paired import holm, largest_p, paired_t
from bleuprint.scoring.measures import MEASURES, SCORES

# The value of each measure over that of BLEU, and the ends of its interval from the value.
_SCORES = {"bleu": (0, -1, 2), "chrf2": (20, -1, 1), "chrf2pp": (18, -1, 1), "ter": (-9, -1, 1)}
_FIGURES = {"length_ratio": 0.98, "loss": 1.5, "perplexity": 4.4817, "word_perplexity": 20.25}
SIGNATURES = {
    "bleu": "nrefs:1|tok:13a|version:2.6.0",
    "chrf2": "nrefs:1|nc:6|version:2.6.0",
    "chrf2pp": "nrefs:1|nc:6|nw:2|version:2.6.0",
    "ter": "nrefs:1|tok:tercom|version:2.6.0",
    "comet": "Python3.11|Comet2.2|fp32|wmt22-comet-da|r1",
}


def record(system, corpus, test, bleu, **changes):
    """A result made by hand: the pair is the end of the corpus's name.

    `changes`: facts of the cell, values of measures by key, `measures` by key and group, and what
    `against` gives.
    """
    source, target = corpus.split("-")[-2:]
    facts = {
        **{"system": system, "corpus": corpus, "seed": 1, "test": test},
        **{"source": source, "target": target, "outside": None, "lines": 1000},
        **{"parameters": 2_570_000, "training_flops": 3.28e18, "updates": 8000},
        **{"source_tokens": 9_000_000, "target_tokens": 8_120_000},
        **{"models": 1, "engine": "pytorch", "precision": "float32"},
        **{"training_sha256": "f1" * 32, "settings_sha256": "5e" * 32},
        **{"binary_sha256": "b1" * 32, "averaged_sha256": "a0" * 32, "decode_sha256": "de" * 32},
        **{"sources_sha256": "50" * 32, "references_sha256": "4e" * 32},
        **{"hypotheses_sha256": "47" * 32, "scored_with": "torch 2.0.0, sacrebleu 2.6.0"},
    }
    measures = {
        **{
            (key, ""): measured(key, bleu + more, bleu + more + low, bleu + more + high)
            for key, (more, low, high) in _SCORES.items()
        },
        **{(key, ""): measured(key, value) for key, value in _FIGURES.items()},
        ("lower-cased", ""): measured("lower-cased", bleu + 1.5),
        ("tokens", ""): measured("tokens", bleu + 0.25),
        ("intl", ""): measured("intl", bleu - 0.5),
        ("bleu", "length 1-10"): measured("bleu", bleu + 3, units=400),
        ("bleu", "length over 50"): measured("bleu", bleu - 3, units=600),
        ("word_accuracy", "count 0"): measured("word_accuracy", 20.0, units=50),
        ("word_accuracy", "count 100+"): measured("word_accuracy", 50.0, units=1200),
        ("any fault", ""): measured("any fault", 5, 2.5, 10.0),
        ("numbers", ""): measured("numbers", 4, 2.0, 8.0, units=990),
    }
    given = changes.pop("measures", {})
    tested = changes.pop("tested", {})
    for key in [name for name in changes if name in MEASURES]:
        if (value := changes.pop(key)) is None:
            del measures[key, ""]
        else:
            measures[key, ""] = measured(key, value, value - 1, value + 1)
    facts |= changes
    return {"facts": facts, "measures": measures | given, "tested": tested}


def measured(key, value, low=None, high=None, units=1000, **more):
    """A measure of a record."""
    facts = {"units": units, "value": value, "low": low, "high": high}
    return {**facts, "signature": SIGNATURES.get(key, ""), **more}


def against(baseline, bootstrap, randomization=None):
    """What was tested of a record, the same in all scores.

    Both p-values are the same unless the second is given.
    """
    second = bootstrap if randomization is None else randomization
    tested = {"baseline": baseline, "p": bootstrap, "p_randomization": second}
    return {"tested": {**tested, "standard_error": 0.5}}


def frame(*rows, missing=""):
    """The records of these rows, with measured times of all systems but `missing`."""
    measures = [
        {
            **{name: row["facts"][name] for name in KEY},
            **{"measure": measure, "group": group},
            **of,
            **(row["tested"] if measure in SCORES and not group else {}),
        }
        for row in rows
        for (measure, group), of in row["measures"].items()
    ]
    _test(measures, {row["facts"]["system"] for row in rows if row["facts"]["outside"]})
    records = Records.of([row["facts"] for row in rows], measures)
    cells = records.cells
    news = cells.corpus.str.startswith("news")
    times: dict[str, Any] = {
        "train_seconds": news.map({True: 43_200.0, False: 61.0}),
        "train_tokens_per_second": 51_234.4,
        **{"device": "Fast Chip", "processes": 8, "threads": 4, "commit": "abcdef0123456789"},
        **{"devices": 4, "sustained_flops": 9.5e12, "peak_memory": 2_450_000_000},
        "training_flops_by_time": news.map({True: 43_200.0, False: 61.0}) * 4 * 9.5e12,
        **{"peak_flops": 9.3e12, "mfu": 0.3509},
        "versions": None,
    }
    cells = cells.assign(**times).astype(DTYPES)
    cells.loc[cells.system == missing, list(times)] = None
    return Records(cells, records.measures)


def _test(measures, outside):
    """Add differences, means over seeds, and p of several seeds; and Holm's correction."""
    places: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in measures:
        place = *(row[name] for name in ("corpus", "test", "measure", "group")), row["system"]
        places.setdefault(place, []).append(row)
    families: dict[tuple[str, ...], list[list[dict[str, Any]]]] = {}
    for (*place, _), seeds in places.items():
        if baseline := seeds[0].get("baseline"):
            pairs = zip(seeds, places[*place, baseline], strict=True)
            deltas = [round(row["value"] - first["value"], 6) for row, first in pairs]
            p = [row["p"] for row in seeds]
            if len(seeds) > 1:
                whole = seeds[0]["system"] in outside
                p = [largest_p(deltas, p) if whole else paired_t(deltas)] * len(seeds)
            for row, of_seed in zip(seeds, p, strict=True):
                row |= {"difference": fmean(deltas), "p": of_seed}
            families.setdefault((*place,), []).append(seeds)
    for family in families.values():
        corrected = holm([seeds[0]["p"] for seeds in family])
        for seeds, p in zip(family, corrected, strict=True):
            for row in seeds:
                row["p_holm"] = p


def changed(records, where=None, **values):
    """A copy with other facts, or values of measures, in all cells or those of `where`."""
    cells, measures = records.cells.copy(), records.measures.copy()
    for name, value in values.items():
        if name in MEASURES:
            rows = (measures.measure == name) & (measures.group == "") & _rows(measures, where)
            measures.loc[rows, "value"] = value
            if value is None:
                measures = measures[~rows]
        elif name in measures and name not in KEY:
            measures.loc[_rows(measures, where), name] = value
        else:
            if name not in cells:
                cells[name] = None
            cells.loc[_rows(cells, where), name] = value
    return Records(cells, measures)


def _rows(table, where):
    every = pd.Series(True, table.index)
    for name, value in (where or {}).items():
        every &= table[name] == value
    return every


def values(records, measure="bleu", column="value"):
    """A column of a measure over all lines, in the order of the records."""
    rows = (records.measures.measure == measure) & (records.measures.group == "")
    return list(records.measures[rows][column])


def rows_of(grid):
    """A grid's cells by row and column head."""
    assert grid
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
