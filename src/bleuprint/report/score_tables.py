"""Tables of losses, BLEU variants, BLEU by source length, and word accuracy by word frequency.

Rows are systems on test sets; with several seeds, figures are means over them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from bleuprint.config.paths import folder
from bleuprint.config.published import Published
from bleuprint.report.frame import marked, trained
from bleuprint.report.grid import NONE, Grid, Number, grid
from bleuprint.report.published import literature
from bleuprint.report.system_results import PLACE
from bleuprint.scoring import reachable
from bleuprint.scoring.bleu_variants import COMPOUND_SPLIT, PAPERS_ONLY, VARIANTS
from bleuprint.scoring.breakdown import COUNTS, LENGTHS

_HEADS = ("System", "Corpus", "Test set")
# The column of each figure, its head and form.
_LOSSES = {
    "test_loss": ("Loss", "{:.3f}"),
    "test_perplexity": ("Perplexity", "{:.2f}"),
    "word_perplexity": ("Per word", "{:.1f}"),
}
LOSSES = (
    "Loss: mean cross-entropy of the references in nats per token of the model, EOS included, "
    "without label smoothing; perplexity is e to it. Comparable only between equal vocabularies; "
    "the perplexity per word (EOS counts as one) also between different subwords."
)


def losses(records: pd.DataFrame, published: Sequence[Published] = ()) -> Grid:
    """Loss and perplexity of the references, below those of the published systems."""
    records = trained(records)
    numbers = literature.rows(records, published).dropna(subset="test_perplexity")
    # those of one system that differ in scoring have one perplexity
    numbers = numbers.assign(system=numbers.system + " (published)").drop_duplicates(PLACE)
    figures = pd.concat([numbers.reindex(columns=[*PLACE, *_LOSSES]), records[[*PLACE, *_LOSSES]]])
    figures = figures.astype(dict.fromkeys(_LOSSES, float)).groupby(PLACE, sort=False).mean()
    rows = [
        (*place, *(Number.of(means[name], form.format) for name, (_, form) in _LOSSES.items()))
        for place, means in figures.iterrows()
    ]
    table = grid(_HEADS, [head for head, _ in _LOSSES.values()], rows)
    of_others = (replace(row, kind="published") for row in table.rows[: len(numbers)])
    return replace(table, rows=(*of_others, *table.rows[len(numbers) :]))


def reachable_notes(records: pd.DataFrame, root: Path = Path()) -> Iterator[str]:
    """A note for each test set on which a perfect translation does not reach 100 BLEU."""
    for corpus, tests in records.groupby("corpus", sort=False).test:
        yield from reachable.notes(folder(corpus, "statistics", root), corpus, tests.unique())


def variants(records: pd.DataFrame) -> Grid:
    """BLEU as the headline and in all VARIANTS."""
    records = marked(records)
    headlines = records.groupby(PLACE, sort=False).bleu.mean()
    scores = variant_means(records).reindex(columns=list(VARIANTS))
    rows = []
    for place, headline in headlines.items():
        cells = [
            Number(NONE if pd.isna(score) else f"{score:.1f} ({score - headline:+z.1f})", score)
            for score in scores.loc[place]
        ]
        rows.append((*place, Number(f"{headline:.1f}", headline), *cells))
    labels = [f"{v} ({PAPERS_ONLY})" if v == COMPOUND_SPLIT else v for v in VARIANTS]
    return grid(_HEADS, ("BLEU", *labels), rows)


def variant_means(records: pd.DataFrame) -> pd.DataFrame:
    """BLEU by variant, a column each: means over seeds, a row for each system and test set."""
    return _means(records, "variants", "name", "score")


def published_differences(records: pd.DataFrame, published: Sequence[Published]) -> Iterator[str]:
    """A line for each published number that names a system: its BLEU, counted alike, minus this."""
    headlines, means = records.groupby(PLACE, sort=False).bleu.mean(), variant_means(records)
    for number in published:
        place = (number.system, number.corpus, number.test)
        scores = headlines if number.scored == "sacrebleu" else means.get(number.scored)
        if scores is None or pd.isna(ours := scores.get(place)):
            continue
        counted = "sacreBLEU's default" if number.scored == "sacrebleu" else number.scored
        yield (
            f"{number.system} minus {number.name} (published), {number.corpus} {number.test}: "
            f"{ours - number.bleu:+z.1f} BLEU, {counted}."
        )


def by_length(records: pd.DataFrame) -> Grid:
    """BLEU by source length, and the length ratio."""
    records = marked(records)
    scores, sizes = _buckets(records, "by_length", "tokens", "bleu", "lines", LENGTHS)
    ratios = records.groupby(PLACE, sort=False).length_ratio.mean()
    return _bucketed("lines", scores, sizes, {"Length ratio": ratios.map("{:.3f}".format)})


def by_count(records: pd.DataFrame) -> Grid | None:
    """Percentage of words found, by training frequency; None if no corpus has words."""
    accuracy, sizes = _buckets(marked(records), "by_count", "count", "accuracy", "words", COUNTS)
    return None if accuracy.empty else _bucketed("words", 100 * accuracy, sizes, {})


def _means(records: pd.DataFrame, lists: str, name: str, value: str) -> pd.DataFrame:
    """The means over seeds of a figure in a column of lists, with a column for each `name`."""
    table = records[[*PLACE, lists]].explode(lists).dropna(subset=lists).reset_index(drop=True)
    entries = pd.DataFrame(list(table[lists]), columns=[name, value])
    return table[PLACE].join(entries).pivot_table(value, PLACE, name, sort=False)


def _buckets(
    records: pd.DataFrame, lists: str, name: str, value: str, size: str, order: tuple[str, ...]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    values, sizes = (_means(records, lists, name, figure) for figure in (value, size))
    shown = [bucket for bucket in order if bucket in values.columns]
    return values[shown], sizes[shown]


def _bucketed(
    sized: str, values: pd.DataFrame, sizes: pd.DataFrame, more: dict[str, pd.Series]
) -> Grid:
    """A row for each system, and above those of a test set the sizes of the buckets."""
    rows = []
    for test, of_test in values.groupby(["corpus", "test"], sort=False):
        first = sizes.loc[of_test.index[0]]
        rows.append([f"({sized})", *test, *_cells(first, ",.0f"), *[NONE] * len(more)])
        for place, figures in of_test.iterrows():
            others = [column[place] for column in more.values()]
            rows.append([*place, *_cells(figures, ".1f"), *others])
    return grid(_HEADS, (*values.columns, *more), rows)


def _cells(values: pd.Series, form: str) -> list[str]:
    return [NONE if pd.isna(value) else format(value, form) for value in values]
