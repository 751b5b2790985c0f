"""Tables of scores by document, for test sets that say their documents.

Intervals and tests by document stand beside those by line, with how many times as wide they are.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from bleuprint.report.frame import marked
from bleuprint.report.grid import NONE, Column, Grid, Number, Row
from bleuprint.report.system_results import METRICS, PLACE, holm, of_metric, p_text
from bleuprint.scoring.document_scores import ByDocument
from bleuprint.scoring.significance import SIGNIFICANT, PairedTest

# The metrics with intervals by document: their columns, and their keys in scores.json.
_METRICS = {"bleu": "bleu", "chrf2": "chrf"}
# Of fewer documents, an interval is a tenth or more too narrow: the normal distribution's in place
# of Student's, and a deviation that is divided by n in place of n - 1.
FEW = 20


def columns_of(scored: ByDocument | None) -> dict[str, Any]:
    """The columns of a record, None if the test set does not say its documents."""
    dbleu: Mapping[str, Any] = scored["dbleu"] if scored else {}
    intervals = scored["intervals"] if scored else {}
    row: dict[str, Any] = {
        "by_document": scored["each"] if scored else None,
        "dbleu": dbleu.get("score"),
        "dbleu_signature": dbleu.get("signature"),
        "dbleu_low": dbleu["low"] if intervals else None,
        "dbleu_high": dbleu["high"] if intervals else None,
    }
    for metric, key in _METRICS.items():
        interval = intervals.get(key)
        row[f"{metric}_document_low"] = interval["low"] if interval else None
        row[f"{metric}_document_high"] = interval["high"] if interval else None
    return row


def tests_of(tested: Mapping[str, PairedTest] | None) -> dict[str, Any]:
    """The columns of the paired tests by document; `tested` are the tests by key of scores.json."""
    row = {}
    for metric, key in _METRICS.items():
        found = tested[key].by_document if tested else None
        for test in ("bootstrap", "randomization"):
            value = getattr(found, test) if found else None
            row[of_metric(metric, f"document_p_{test}")] = value
    return row


def scores(records: pd.DataFrame) -> Grid | None:
    """d-BLEU, and intervals and tests by document; None if no test set says its documents."""
    known = _known(marked(records))
    if known.empty:
        return None
    several = known.seed.nunique() > 1
    marks = {metric: _marks(known, metric) for metric in _METRICS}
    rows = []
    for place, seeds in known.groupby(PLACE, sort=False):
        documents = len(seeds.iloc[0].by_document)
        cells = [Number(f"{documents:,}", documents), _score(seeds, "dbleu", "dbleu")]
        for metric in _METRICS:
            cells += [_score(seeds, metric, f"{metric}_document"), _times(seeds, metric)]
            if not several:
                cells.append(_p(seeds.iloc[0], metric, marks[metric].get(place, "")))
        rows.append(Row((*place, *cells)))
    heads = [Column(head, left=True) for head in ("System", "Corpus", "Test set")]
    heads += [Column("Documents"), Column("d-BLEU")]
    for metric in _METRICS:
        of = ("by document", "times as wide", *(() if several else ("p",)))
        heads += [Column(label, METRICS[metric]) for label in of]
    return Grid(tuple(heads), tuple(rows))


def findings(records: pd.DataFrame) -> Iterator[str]:
    """A sentence on each test set: how much wider the interval of BLEU is by document.

    And on each system whose difference is significant by line only.
    """
    for (corpus, test), of_test in _known(records).groupby(["corpus", "test"], sort=False):
        first, where = of_test.iloc[0], f"{corpus}, test set {test}"
        documents = len(first.by_document)
        wider = _wider(of_test, "bleu").groupby(of_test.system).mean().dropna()
        if wider.empty:
            yield f"{where}: no interval by document, of one document or one score for all lines."
            continue
        low, high = (f"{value:.1f}" for value in (wider.min(), wider.max()))
        few = f" Of fewer than {FEW} documents, such an interval is rather too narrow."
        yield (
            f"{where}, {documents:,} documents: BLEU of {first.system} is {first.bleu:.1f}, "
            f"by line [{first.bleu_low:.1f}, {first.bleu_high:.1f}], "
            f"by document [{first.bleu_document_low:.1f}, {first.bleu_document_high:.1f}]; "
            f"by document the interval is {low if low == high else f'{low} to {high}'} times as "
            f"wide.{few if documents < FEW else ''}"
        )
        if of_test.seed.nunique() > 1:
            continue
        lost = (of_test.p_bootstrap < SIGNIFICANT) & (of_test.document_p_bootstrap >= SIGNIFICANT)
        for row in of_test[lost].itertuples():
            yield (
                f"{where}: the difference of {row.system} from {row.baseline} in BLEU is "
                f"significant by line ({p_text(row.p_bootstrap)}), not by document "
                f"({p_text(row.document_p_bootstrap)})."
            )


def parts(records: pd.DataFrame) -> Iterator[str | Grid]:
    """What the terminal shows."""
    table = scores(records)
    if table is not None:
        yield table
        yield from findings(records)
        yield "By document, with 95 % intervals: docs/scoring.md"
        yield ""


def _known(records: pd.DataFrame) -> pd.DataFrame:
    return records[records.dbleu.notna()]


def _wider(records: pd.DataFrame, metric: str) -> "pd.Series[float]":
    """How many times as wide an interval is by document, missing if a width is not known or 0."""
    widths = [
        (records[f"{metric}{of}_high"] - records[f"{metric}{of}_low"]).astype(float)
        for of in ("_document", "")
    ]
    return widths[0] / widths[1].where(widths[1] > 0)


def _times(seeds: pd.DataFrame, metric: str) -> Number:
    return Number.of(_wider(seeds, metric).mean(), "{:.1f}".format)


def _score(seeds: pd.DataFrame, metric: str, interval: str) -> Number:
    """35.5 [33.1, 38.0]; with several seeds the mean, its deviation and the mean interval."""
    mean = float(seeds[metric].astype(float).mean())
    low, high = (seeds[f"{interval}_{end}"].astype(float).mean() for end in ("low", "high"))
    text = f"{mean:.1f}"
    if len(seeds) > 1 and seeds.outside.isna().all():
        text += f" ± {seeds[metric].astype(float).std():.1f}"
    return Number(text if pd.isna(low) else f"{text} [{low:.1f}, {high:.1f}]", mean)


def _marks(records: pd.DataFrame, metric: str) -> dict[tuple[str, ...], str]:
    """†, ‡ or n.s. of each tested system, by place."""
    tested = records.dropna(subset=(column := of_metric(metric, "document_p_bootstrap")))
    tested = tested.astype({column: float})
    corrected = tested.groupby(["corpus", "test"])[column].transform(holm)
    return {
        tuple(row[name] for name in PLACE): "‡"
        if holms < SIGNIFICANT
        else "†"
        if row[column] < SIGNIFICANT
        else " n.s."
        for (_, row), holms in zip(tested.iterrows(), corrected, strict=True)
    }


def _p(record: Any, metric: str, mark: str) -> Number:
    """p=0.012‡ (by line p=0.001)."""
    p, by_line = (
        record[of_metric(metric, name)] for name in ("document_p_bootstrap", "p_bootstrap")
    )
    if pd.isna(p):
        return Number(NONE, None)
    return Number(f"{p_text(p)}{mark} (by line {p_text(by_line)})", float(p))
