"""Published results, shown above ours as they were printed.

Table 2 of "Attention Is All You Need" is in table_2.csv; an experiment names others in its
params.yaml (config/published.py).
"""

from collections.abc import Iterator, Sequence
from math import log
from pathlib import Path
from typing import Any

import pandas as pd

from bleuprint.config.published import Published

SOURCE = "Vaswani et al. 2017, Table 2"

HOW_SCORED = (
    "newstest2014 of 3,003 lines, tokenized BLEU (the Transformer's after splitting hyphenated "
    "compounds, which adds 0.7 to 1.0 BLEU; that en-fr was scored so is assumed), comparable only "
    "with ours in the same column; training cost by time x GPUs x sustained FLOPS, not by count. "
    "For the Transformer (big) the paper's text gives 41.0 on en-fr."
)
# The metric of a published BLEU that is counted in a way not computed here.
UNKNOWN = "unknown"
FLOPS_BY_TIME = "training_flops_by_time"
# Published numbers other than BLEU.
FURTHER = ("loss", "perplexity", FLOPS_BY_TIME)
_SCORED = {
    "bleu": "sacreBLEU's default BLEU on {}",
    UNKNOWN: "{}, scored in a way not computed here",
}
_COLUMNS = ["system", "published", "corpus", "test", "metric", "value", "printed"]
_Row = dict[str, Any]


def reports_on(corpus: str, test: str) -> bool:
    """Return whether Table 2 is about this test set: WMT14's newstest2014."""
    return corpus.startswith("wmt14") and test == "newstest2014"


def rows(cells: pd.DataFrame, published: Sequence[Published] = ()) -> pd.DataFrame:
    """Return the published numbers on the test sets of an experiment, a row for each.

    Args:
        cells: The runs of the experiment's records.
        published: The numbers that its params.yaml names. Those of Table 2 come from table_2.csv.

    Returns:
        The columns `system` (the name of the row), `published` (where it was printed), `corpus`,
        `test`, `metric` (bleu, a variant of BLEU, UNKNOWN or one of FURTHER), `value` and
        `printed` (the text of the value).
    """
    tests = cells.drop_duplicates(["corpus", "test"])
    found = list(_of_table_2(tests))
    known = set(zip(tests.corpus, tests.test, strict=True))
    for number in published:
        is_of_table_2 = number.source == SOURCE and reports_on(number.corpus, number.test)
        if (number.corpus, number.test) in known and not is_of_table_2:
            found += _of_params(number)
    numbers = pd.DataFrame(found, columns=_COLUMNS)
    # a name that several sources use is qualified by its source
    is_ambiguous = numbers.groupby("system").published.transform("nunique") > 1
    qualified = numbers.system + ", " + numbers.published
    numbers["system"] = numbers.system.where(~is_ambiguous, qualified)
    return numbers


def bleu_of(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return the published numbers that are BLEU, however it was counted."""
    return numbers[~numbers.metric.isin(FURTHER)]


def notes(numbers: pd.DataFrame) -> list[str]:
    """Return where the numbers were printed and how they were scored, a note for each source."""
    numbers = bleu_of(numbers)
    lines = []
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


def _of_table_2(tests: pd.DataFrame) -> Iterator[_Row]:
    """Yield the numbers of Table 2 on those of these test sets that it is about."""
    is_reported = [reports_on(*place) for place in zip(tests.corpus, tests.test, strict=True)]
    reported = tests[is_reported]
    table = pd.read_csv(Path(__file__).with_name("table_2.csv"), dtype=str)  # as printed
    for row in table.itertuples():
        is_transformer = row.system.startswith("Transformer")
        variant = "compound-split" if is_transformer else "tokenized"
        printed = {variant: row.bleu, FLOPS_BY_TIME: row.training_flops_by_time}
        for test in reported[reported.source + "-" + reported.target == row.pair].itertuples():
            place = {
                "system": row.system,
                "published": SOURCE,
                "corpus": test.corpus,
                "test": test.test,
            }
            for metric, text in printed.items():
                if pd.notna(text):
                    yield place | {"metric": metric, "value": float(text), "printed": text}


def _of_params(number: Published) -> Iterator[_Row]:
    """Yield the numbers of an entry of params.yaml."""
    place = {
        "system": number.name,
        "published": number.source,
        "corpus": number.corpus,
        "test": number.test,
    }
    metric = "bleu" if number.metric == "sacrebleu" else number.metric
    yield place | {"metric": metric, "value": number.bleu, "printed": str(number.bleu)}
    if number.perplexity is not None:
        loss = round(log(number.perplexity), 3)
        yield place | {"metric": "loss", "value": loss, "printed": f"{loss:.3f}"}
        perplexity = {"value": number.perplexity, "printed": f"{number.perplexity:.2f}"}
        yield place | {"metric": "perplexity"} | perplexity
