"""Published results, shown above ours as they were printed.

Table 2 of "Attention Is All You Need" is in table_2.csv; an experiment names others in its
params.yaml (config/published.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pandas as pd

from bleuprint.config.published import Published
from bleuprint.report.frame import Records
from bleuprint.report.score_frame import computed_scores, score_frame, select_metric
from bleuprint.report.score_tables import OTHER_BLEU_LABEL

SOURCE = "Vaswani et al. 2017, Table 2"

HOW_SCORED = (
    "newstest2014 of 3,003 lines, tokenized BLEU (the Transformer's after splitting hyphenated "
    "compounds, which adds 0.7 to 1.0 BLEU; that en-fr was scored so is assumed), comparable only "
    "with ours in the same column; training cost by time x GPUs x sustained FLOPS, not by count. "
    "For the Transformer (big) the paper's text gives 41.0 on en-fr."
)
# The metric of a published BLEU that is counted in a way not computed here.
UNKNOWN = "unknown"
_SCORED = {
    "bleu": "sacreBLEU's default BLEU on {}",
    UNKNOWN: "{}, scored in a way not computed here",
}
_COLUMNS = [
    "name",
    "system",
    "row_name",
    "published",
    "corpus",
    "test",
    "metric",
    "value",
    "printed",
    "training_flops_by_time",
    "compared_system",
]
_Row = dict[str, Any]


def attach(records: Records, published: Sequence[Published]) -> Records:
    """Return the records with the published numbers on their test sets.

    Args:
        records: The records of an experiment.
        published: The numbers that its params.yaml names. Those of Table 2 come from table_2.csv.

    Returns:
        `numbers` has a row for each published number, with the columns `name`, `system` (the name,
        with the source if others have the same), `row_name` (the name of the row of the table),
        `published` (where it was printed), `corpus`, `test`, `metric` (bleu, a variant of BLEU,
        UNKNOWN, loss or perplexity), `value`, `printed` (the text of the value),
        `training_flops_by_time` and `compared_system` (whose score it is compared with).
    """
    tests = records.runs.drop_duplicates(["corpus", "test"])
    found = list(_of_table_2(tests))
    known = set(zip(tests.corpus, tests.test, strict=True))
    for number in published:
        is_of_table_2 = number.source == SOURCE and is_in_table_2(number.corpus, number.test)
        if (number.corpus, number.test) in known and not is_of_table_2:
            found += _of_params(number)
    numbers = pd.DataFrame(found, columns=_COLUMNS)
    # a name that several sources use is qualified by its source
    is_ambiguous = numbers.groupby("name").published.transform("nunique") > 1
    qualified = numbers["name"] + ", " + numbers.published
    numbers["system"] = numbers["name"].where(~is_ambiguous, qualified)
    numbers["row_name"] = numbers.system + " (published)"
    return replace(records, published=numbers)


def is_in_table_2(corpus: str, test: str) -> bool:
    """Return whether Table 2 is about this test set: WMT14's newstest2014."""
    return corpus.startswith("wmt14") and test == "newstest2014"


def notes(records: Records) -> list[str]:
    """Return where the numbers were printed and how they were scored, a note for each source."""
    if records.published.empty:
        return []
    numbers = records.published[~records.published.metric.isin(["loss", "perplexity"])]
    lines = []
    if (numbers.metric != "bleu").any():
        lines.append(
            "Columns of other BLEU are for comparison with published numbers: published ones as "
            f"printed, ours scored in the same way. {OTHER_BLEU_LABEL}: in ways not computed here."
        )
    if (numbers.published == SOURCE).any():
        lines.append(f"Published: {SOURCE}; {HOW_SCORED}")
    others = numbers[numbers.published != SOURCE]
    for (name, source), of_source in others.groupby(["system", "published"], sort=False):
        scored = []
        for row in of_source.itertuples():
            form = _SCORED.get(row.metric, f"{row.metric} BLEU on {{}}")
            scored.append(form.format(f"{row.corpus} {row.test}"))
        lines.append(f"{name} (published): {' '.join(source.split())}; {', '.join(scored)}.")
    return lines


def differences(records: Records) -> Iterator[str]:
    """Yield for each number that names a system the system's BLEU, counted alike, minus this."""
    if records.published.empty:
        return
    scores = computed_scores(score_frame(records))
    for number in records.published[records.published.compared_system.notna()].itertuples():
        of_variant = select_metric(scores, number.metric)
        is_here = (
            (of_variant.system == number.compared_system)
            & (of_variant.corpus == number.corpus)
            & (of_variant.test == number.test)
        )
        for row in of_variant[is_here].itertuples():
            how = "sacreBLEU's default" if number.metric == "bleu" else number.metric
            yield (
                f"{row.system} minus {number.name} (published), {number.corpus} {number.test}: "
                f"{row.value - number.value:+z.1f} BLEU, {how}."
            )


def _of_table_2(tests: pd.DataFrame) -> Iterator[_Row]:
    """Yield the numbers of Table 2 on those of these test sets that it is about."""
    is_reported = [is_in_table_2(*place) for place in zip(tests.corpus, tests.test, strict=True)]
    reported = tests[is_reported]
    table = pd.read_csv(Path(__file__).with_name("table_2.csv"), dtype=str)  # as printed
    for row in table.itertuples():
        is_transformer = row.system.startswith("Transformer")
        for test in reported[reported.source + "-" + reported.target == row.pair].itertuples():
            yield {
                "name": row.system,
                "published": SOURCE,
                "corpus": test.corpus,
                "test": test.test,
                "metric": "compound-split" if is_transformer else "tokenized",
                "value": float(row.bleu),
                "printed": row.bleu,
                "training_flops_by_time": float(row.training_flops_by_time),
            }


def _of_params(number: Published) -> Iterator[_Row]:
    """Yield the numbers of an entry of params.yaml."""
    place = {
        "name": number.name,
        "published": number.source,
        "corpus": number.corpus,
        "test": number.test,
    }
    yield place | {
        "metric": "bleu" if number.metric == "sacrebleu" else number.metric,
        "value": number.bleu,
        "printed": str(number.bleu),
        "compared_system": number.system,
    }
    if number.perplexity is not None:
        loss = round(log(number.perplexity), 3)
        yield place | {"metric": "loss", "value": loss, "printed": f"{loss:.3f}"}
        perplexity = {"value": number.perplexity, "printed": f"{number.perplexity:.2f}"}
        yield place | {"metric": "perplexity"} | perplexity
