"""Published results, shown above ours as they were printed.

Table 2 of "Attention Is All You Need" is in table_2.csv; an experiment names others in its
params.yaml (config/published.py).
"""

from collections.abc import Sequence
from math import log
from pathlib import Path

import pandas as pd

from bleuprint.config.published import Published

SOURCE = "Vaswani et al. 2017, Table 2"

HOW_SCORED = (
    "newstest2014 of 3,003 lines, tokenized BLEU (the Transformer's after splitting hyphenated "
    "compounds, which adds 0.7 to 1.0 BLEU; that en-fr was scored so is assumed), comparable only "
    "with ours in the same column; training cost by time x GPUs x sustained FLOPS, not by count. "
    "For the Transformer (big) the paper's text gives 41.0 on en-fr."
)
_SCORED = {
    "sacrebleu": "sacreBLEU's default BLEU on {}",
    "otherwise": "{}, scored in a way not computed here",
}
# Columns of the frame that a published number has.
_COLUMNS = (
    *("system", "published", "corpus", "test", "bleu", "scored"),
    *("test_loss", "test_perplexity", "training_flops_by_time"),
)


def reports_on(corpus: str, test: str) -> bool:
    """Whether Table 2 is about this test set: WMT14's newstest2014."""
    return corpus.startswith("wmt14") and test == "newstest2014"


def rows(records: pd.DataFrame, published: Sequence[Published] = ()) -> pd.DataFrame:
    """The published numbers on the test sets of `records`, as rows of the frame (frame.COLUMNS).

    First those of Table 2, then those of `published` that are not in it; BLEU and FLOPs are text,
    as printed.
    """
    tests = records[["corpus", "test"]].drop_duplicates()
    tests["pair"] = (records.source + "-" + records.target)[tests.index]
    wmt = tests[list(map(reports_on, tests.corpus, tests.test))]
    paper = pd.read_csv(Path(__file__).with_name("table_2.csv"), dtype=str)  # as printed
    paper = paper.merge(wmt, on="pair").assign(published=SOURCE, scored="tokenized")
    paper.loc[paper.system.str.startswith("Transformer"), "scored"] = "compound-split"
    named = [
        {
            **vars(number),
            **{"system": number.name, "published": number.source, "bleu": str(number.bleu)},
            "test_loss": number.perplexity and round(log(number.perplexity), 3),
            "test_perplexity": number.perplexity,
        }
        for number in published
        if number.source != SOURCE or not reports_on(number.corpus, number.test)
    ]
    others = pd.DataFrame(named, columns=_COLUMNS).merge(tests, on=["corpus", "test"])
    numbers = pd.concat([paper, others])[list(_COLUMNS)]
    # a name that several sources use is qualified by its source
    ambiguous = numbers.groupby("system").published.transform("nunique") > 1
    numbers.system = numbers.system.where(~ambiguous, numbers.system + ", " + numbers.published)
    return numbers


def notes(numbers: pd.DataFrame) -> list[str]:
    """Where the numbers were printed and how they were scored, a note for each source."""
    lines = []
    if (numbers.published == SOURCE).any():
        lines.append(f"Published: {SOURCE}; {HOW_SCORED}")
    others = numbers[numbers.published != SOURCE]
    for (name, source), row in others.groupby(["system", "published"], sort=False):
        scored = [
            _SCORED.get(way, f"{way} BLEU on {{}}").format(f"{corpus} {test}")
            for way, corpus, test in zip(row.scored, row.corpus, row.test, strict=True)
        ]
        lines.append(f"{name} (published): {' '.join(source.split())}; {', '.join(scored)}.")
    return lines
