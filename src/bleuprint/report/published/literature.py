"""Published scores, which tables show above ours, as they were printed.

Table 2 of "Attention Is All You Need" is in table_2.csv, next to this module. An experiment names
other published numbers in its params.yaml (config/published.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import TypedDict

import pandas as pd

from bleuprint.config.published import Published
from bleuprint.report.frame import Records
from bleuprint.report.score_frame import (
    computed_scores,
    score_frame,
    score_rows,
    select_metric,
)
from bleuprint.report.score_tables import OTHER_BLEU_LABEL

# The table of "Attention Is All You Need", and how its BLEU was computed, for the notes.
TABLE_2_SOURCE = "Vaswani et al. 2017, Table 2"
TABLE_2_SCORING = (
    "newstest2014 of 3,003 lines, tokenized BLEU (the Transformer's after splitting hyphenated "
    "compounds, which adds 0.7 to 1.0 BLEU; that en-fr was scored so is assumed), comparable only "
    "with ours in the same column; training cost by time x GPUs x sustained FLOPS, not by count. "
    "For the Transformer (big) the paper's text gives 41.0 on en-fr."
)
# The metric of a published BLEU that is computed in a way that is not implemented here.
UNKNOWN_BLEU = "unknown"
# How a published number was scored; the braces stand for the corpus and the test set.
_SCORING_TEXTS = {
    "bleu": "sacreBLEU's default BLEU on {}",
    UNKNOWN_BLEU: "{}, scored in a way not computed here",
}
_LOSS_METRICS = ["loss", "perplexity"]


class PublishedNumber(TypedDict):
    """A score that a publication reports for its system on a test set of this experiment.

    Attributes:
        name: The name of the published system.
        published: The publication, such as `Vaswani et al. 2017, Table 2`.
        corpus: The corpus of this experiment that contains the test set.
        test: The test set.
        metric: `bleu` for sacreBLEU's default BLEU, the name of another variant of BLEU,
            `UNKNOWN_BLEU` for a BLEU that was computed in another way, `loss` or `perplexity`.
        value: The number.
        printed: The number as it was printed.
        training_flops_by_time: The operations that the devices could do in the training time.
        compared_system: The system of this experiment that the number is compared with.
    """

    name: str
    published: str
    corpus: str
    test: str
    metric: str
    value: float
    printed: str
    training_flops_by_time: float | None
    compared_system: str | None


def with_published_numbers(records: Records, published: Sequence[Published]) -> Records:
    """Add the published numbers on the test sets of an experiment to its results.

    They are the numbers of the Transformer paper's Table 2, and the numbers that params.yaml lists.

    Args:
        records: The results of the experiment, as results.json stores them.
        published: The entries of params.yaml.

    Returns:
        The results with a table `published`. It has the columns of `PublishedNumber`, a column
        `system`, such as `GNMT`, and a column `row_name`, such as `GNMT (published)`. If two
        publications have systems of the same name, these names also contain the publication.
    """
    test_sets = records.runs.drop_duplicates(["corpus", "test"])
    known_test_sets = set(zip(test_sets.corpus, test_sets.test, strict=True))
    numbers = list(_numbers_of_table_2(test_sets))
    for entry in published:
        is_known = (entry.corpus, entry.test) in known_test_sets
        # An entry of params.yaml may repeat a number of Table 2, which is already in the list.
        is_repetition = entry.source == TABLE_2_SOURCE and is_in_table_2(entry.corpus, entry.test)
        if is_known and not is_repetition:
            numbers += _numbers_of_entry(entry)
    table = pd.DataFrame(numbers, columns=list(PublishedNumber.__annotations__))
    table = table.astype({"training_flops_by_time": float})
    table["system"] = _unique_system_names(table)
    table["row_name"] = table.system + " (published)"
    return replace(records, published=table)


def _unique_system_names(published: pd.DataFrame) -> "pd.Series[str]":
    """Return the names of published systems, with their publication if two have the same name.

    Args:
        published: The published numbers, with the columns `name`, such as `Transformer`, and
            `published`, the publication.
    """
    publications_of_name = published.groupby("name").published.transform("nunique")
    is_unique_name = publications_of_name <= 1
    name_with_publication = published["name"] + ", " + published.published
    return published["name"].where(is_unique_name, name_with_publication)


def is_in_table_2(corpus: str, test: str) -> bool:
    """Return whether the Transformer paper's Table 2 has numbers for a test set of a corpus.

    All numbers of the table are for the test set newstest2014 of WMT14. An experiment may use the
    corpus under names such as `wmt14` and `wmt14-filtered`.
    """
    return corpus.startswith("wmt14") and test == "newstest2014"


def source_notes(records: Records) -> list[str]:
    """Return a note for each source of published numbers, which says how they were scored.

    If some of them are not sacreBLEU's default BLEU, the first note explains their columns.

    Args:
        records: The results of the experiment, with published numbers if there are any.
    """
    published = records.published
    if published.empty:
        return []
    bleu = published[~published.metric.isin(_LOSS_METRICS)]
    lines = []
    if (bleu.metric != "bleu").any():
        lines.append(
            "Columns of other BLEU are for comparison with published numbers: published ones as "
            f"printed, ours scored in the same way. {OTHER_BLEU_LABEL}: in ways not computed here."
        )
    if (bleu.published == TABLE_2_SOURCE).any():
        lines.append(f"Published: {TABLE_2_SOURCE}; {TABLE_2_SCORING}")
    bleu_of_other_sources = bleu[bleu.published != TABLE_2_SOURCE]
    by_source = bleu_of_other_sources.groupby(["system", "published"], sort=False)
    for (system, source), numbers in by_source:
        scoring_texts = []
        for number in numbers.itertuples():
            text = _SCORING_TEXTS.get(number.metric, f"{number.metric} BLEU on {{}}")
            scoring_texts.append(text.format(f"{number.corpus} {number.test}"))
        source_in_one_line = " ".join(source.split())
        lines.append(f"{system} (published): {source_in_one_line}; {', '.join(scoring_texts)}.")
    return lines


def difference_notes(records: Records) -> Iterator[str]:
    """Yield a note for each published number that a system of this experiment is compared with.

    The note contains the BLEU of the system minus the published BLEU. In params.yaml, a published
    number may name the system.

    Args:
        records: The results of the experiment, with published numbers if there are any.
    """
    published = records.published
    if published.empty:
        return
    scores = computed_scores(score_frame(records))
    for number in published[published.compared_system.notna()].itertuples():
        scores_in_metric = select_metric(scores, number.metric)
        is_compared = (
            (scores_in_metric.system == number.compared_system)
            & (scores_in_metric.corpus == number.corpus)
            & (scores_in_metric.test == number.test)
        )
        metric = "sacreBLEU's default" if number.metric == "bleu" else number.metric
        for row in score_rows(scores_in_metric[is_compared]):
            yield (
                f"{row.system} minus {number.name} (published), {number.corpus} {number.test}: "
                f"{row.value - number.value:+z.1f} BLEU, {metric}."
            )


def _numbers_of_table_2(test_sets: pd.DataFrame) -> Iterator[PublishedNumber]:
    """Yield the BLEU of the Transformer paper's Table 2 on the test sets of this experiment.

    The paper computed the BLEU of its own systems after splitting hyphenated compounds, which gives
    higher values. The BLEU of older systems in its table was computed without this.

    Args:
        test_sets: The test sets, with the columns `corpus`, `test`, `source` and `target`.
    """
    # Read as texts, the numbers keep the decimals with which the paper prints them.
    table_2 = pd.read_csv(Path(__file__).with_name("table_2.csv"), dtype=str)
    for published_row in table_2.itertuples():
        is_transformer = published_row.system.startswith("Transformer")
        for test_set in test_sets.itertuples():
            is_same_pair = f"{test_set.source}-{test_set.target}" == published_row.pair
            if is_same_pair and is_in_table_2(test_set.corpus, test_set.test):
                yield {
                    "name": published_row.system,
                    "published": TABLE_2_SOURCE,
                    "corpus": test_set.corpus,
                    "test": test_set.test,
                    "metric": "compound-split" if is_transformer else "tokenized",
                    "value": float(published_row.bleu),
                    "printed": published_row.bleu,
                    "training_flops_by_time": float(published_row.training_flops_by_time),
                    "compared_system": None,
                }


def _numbers_of_entry(entry: Published) -> Iterator[PublishedNumber]:
    """Yield the numbers of an entry that params.yaml lists under `published`.

    These are its BLEU and, if it has a perplexity, the loss and the perplexity. The loss is the
    logarithm of the perplexity. Only BLEU is compared with a system of this experiment.
    """
    bleu: PublishedNumber = {
        "name": entry.name,
        "published": entry.source,
        "corpus": entry.corpus,
        "test": entry.test,
        "metric": "bleu" if entry.metric == "sacrebleu" else entry.metric,
        "value": entry.bleu,
        "printed": str(entry.bleu),
        "training_flops_by_time": None,
        "compared_system": entry.system,
    }
    yield bleu
    if entry.perplexity is None:
        return
    loss = round(log(entry.perplexity), 3)
    yield {
        **bleu,
        "metric": "loss",
        "value": loss,
        "printed": f"{loss:.3f}",
        "compared_system": None,
    }
    yield {
        **bleu,
        "metric": "perplexity",
        "value": entry.perplexity,
        "printed": f"{entry.perplexity:.2f}",
        "compared_system": None,
    }
