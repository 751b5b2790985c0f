"""The tables that tell more of the scores: as papers scored, by length, by how rare words are.

Rows are systems on test sets; with several seeds, figures are means over them.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from bleuprint.report.cost_columns import NONE
from bleuprint.report.grid import Column, Grid, Row
from bleuprint.report.records import Record
from bleuprint.scoring.bleu_variants import COMPOUND_SPLIT, PAPERS_ONLY, VARIANTS
from bleuprint.scoring.breakdown import COUNTS, LENGTHS

AS_PAPERS = (
    "The translations are those of the headline (sacreBLEU's BLEU, cased, detokenised); what "
    "differs is how words are counted. In brackets: the difference to the headline.\n\n"
    "- lower-cased: the headline without regard to case (`-lc`)\n"
    "- intl: sacreBLEU's international tokenisation (`--tokenize intl`), which splits at all "
    "punctuation and symbols of Unicode\n"
    "- tokenised: Moses tokens of both sides, counted as they are (`--tokenize none --force`)\n"
    "- tokenised, lower-cased: the same without regard to case\n"
    f"- compound-split ({PAPERS_ONLY}): Moses tokens with each hyphen inside a word as a token "
    "of its own, by tensor2tensor's get_ende_bleu.sh; it mostly comes out higher, and says "
    "nothing of the translations that the headline does not\n\n"
    "Moses tokens are left out for languages that sacreBLEU has a tokenizer of its own for "
    "(Chinese, Japanese, Korean). Signatures, and the SHA-256 of the lines that were scored, are "
    "in results.json."
)
BY_LENGTH = (
    "BLEU, as the headline's, of the lines whose sources have this number of tokens, and how many "
    "lines these are. Length ratio: tokens of the translations by tokens of the references, as "
    "BLEU counts them."
)
BY_COUNT = (
    "The percentage of the references' words with this frequency in the training text that the "
    "translations contain; a word that a reference has twice must be there twice (the recall of "
    "compare-mt). Not for corpora whose tokens are characters."
)

_PLACE = (
    Column("System", left=True),
    Column("Corpus", left=True),
    Column("Test set", left=True),
)

_Place = tuple[str, str, str]
# By name: how many lines or words a bucket holds, and the figure.
_Buckets = Mapping[str, tuple[int, float]]


def as_papers(records: Sequence[Record]) -> Grid:
    """BLEU as the headline and in all VARIANTS."""
    labels = {COMPOUND_SPLIT: f"{COMPOUND_SPLIT} ({PAPERS_ONLY})"}
    columns = [*_PLACE, Column("BLEU"), *(Column(labels.get(way, way)) for way in VARIANTS)]
    rows = []
    for place, seeds in _cells(records):
        headline = statistics.mean(record.bleu.score for record in seeds)
        cells = [f"{headline:.1f}"]
        for way in VARIANTS:
            scores = [one.score for r in seeds for one in r.reconciliation if one.name == way]
            cells.append(_against(statistics.mean(scores), headline) if scores else NONE)
        rows.append(Row((*place, *cells)))
    return Grid(tuple(columns), tuple(rows))


def by_length(records: Sequence[Record]) -> Grid:
    """BLEU by source length, and the length ratio."""
    columns, rows = _bucketed(records, LENGTHS, "lines", _lengths)
    ratios: dict[_Place, str] = {
        place: f"{statistics.mean(record.length.ratio for record in seeds):.3f}"
        for place, seeds in _cells(records)
    }
    return Grid(
        (*columns, Column("Length ratio")),
        tuple(Row((*place, *cells, ratios.get(place, NONE))) for place, cells in rows),
    )


def by_count(records: Sequence[Record]) -> Grid | None:
    """Accuracy of words by how often they stand in the training text; None where none are words."""
    of_words = [record for record in records if record.by_count is not None]
    if not of_words:
        return None
    columns, rows = _bucketed(of_words, COUNTS, "words", _counts)
    return Grid(columns, tuple(Row((*place, *cells)) for place, cells in rows))


def _lengths(record: Record) -> _Buckets:
    return {one.tokens: (one.lines, one.bleu) for one in record.by_length}


def _counts(record: Record) -> _Buckets:
    return {one.count: (one.words, 100 * one.accuracy) for one in record.by_count or ()}


def _bucketed(
    records: Sequence[Record],
    names: Sequence[str],
    what: str,
    buckets: Callable[[Record], _Buckets],
) -> tuple[tuple[Column, ...], list[tuple[_Place, list[str]]]]:
    """Columns and rows of one figure for each bucket; how large these are stands above."""
    present = set[str]().union(*map(buckets, records))
    shown = [name for name in names if name in present]
    rows: list[tuple[_Place, list[str]]] = []
    for corpus, test in dict.fromkeys((record.corpus, record.test) for record in records):
        of_test = [r for r in records if (r.corpus, r.test) == (corpus, test)]
        sizes = buckets(of_test[0])
        cells = [f"{sizes[name][0]:,}" if name in sizes else NONE for name in shown]
        rows.append(((f"({what})", corpus, test), cells))
        for place, seeds in _cells(of_test):
            found = [buckets(record) for record in seeds]
            cells = [
                f"{statistics.mean(one[name][1] for one in found):.1f}" if name in sizes else NONE
                for name in shown
            ]
            rows.append((place, cells))
    return (*_PLACE, *map(Column, shown)), rows


def _cells(records: Sequence[Record]) -> Iterator[tuple[_Place, list[Record]]]:
    """The records of each system on each test set, of all seeds."""
    seeds: dict[_Place, list[Record]] = {}
    for record in records:
        seeds.setdefault((record.system, record.corpus, record.test), []).append(record)
    yield from seeds.items()


def _against(score: float, headline: float) -> str:
    return f"{score:.1f} ({score - headline:+.1f})"
