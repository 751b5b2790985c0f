"""Published results that the table shows above ours, as printed: never mixed with ours.

Those of WMT14 are here; an experiment names others in its params.yaml (published.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bleuprint.config.published import Published
from bleuprint.report.records import Record


@dataclass(frozen=True)
class Printed:
    """One row of Table 2: BLEU and training FLOPs by language pair, as printed."""

    system: str
    bleu: dict[str, str]
    flops: dict[str, str]


@dataclass(frozen=True)
class Literature:
    """A row of published numbers: BLEU by corpus and test set, FLOPs by corpus.

    `scored` is how: see Published.
    """

    name: str
    source: str
    bleu: dict[tuple[str, str], str]
    scored: dict[tuple[str, str], str]
    flops: dict[str, str]


TEST = "newstest2014"
SOURCE = "Vaswani et al. 2017, Table 2"

HOW_SCORED = (
    "newstest2014, tokenised BLEU (the Transformer's after splitting hyphenated compounds, which "
    "adds 0.7 to 1.0 BLEU), not sacreBLEU's and not comparable with the other rows; training cost "
    "by time x GPUs x sustained FLOPS, not by count. For the Transformer (big) the paper's text "
    "gives 41.0 on en-fr."
)

TABLE_2 = (
    Printed("ByteNet", {"en-de": "23.75"}, {}),
    Printed("Deep-Att + PosUnk", {"en-fr": "39.2"}, {"en-fr": "1.0e20"}),
    Printed(
        "GNMT + RL", {"en-de": "24.6", "en-fr": "39.92"}, {"en-de": "2.3e19", "en-fr": "1.4e20"}
    ),
    Printed(
        "ConvS2S", {"en-de": "25.16", "en-fr": "40.46"}, {"en-de": "9.6e18", "en-fr": "1.5e20"}
    ),
    Printed("MoE", {"en-de": "26.03", "en-fr": "40.56"}, {"en-de": "2.0e19", "en-fr": "1.2e20"}),
    Printed("Deep-Att + PosUnk Ensemble", {"en-fr": "40.4"}, {"en-fr": "8.0e20"}),
    Printed(
        "GNMT + RL Ensemble",
        {"en-de": "26.30", "en-fr": "41.16"},
        {"en-de": "1.8e20", "en-fr": "1.1e21"},
    ),
    Printed(
        "ConvS2S Ensemble",
        {"en-de": "26.36", "en-fr": "41.29"},
        {"en-de": "7.7e19", "en-fr": "1.2e21"},
    ),
    Printed("Transformer (base)", {"en-de": "27.3", "en-fr": "38.1"}, {"en-de": "3.3e18"}),
    Printed("Transformer (big)", {"en-de": "28.4", "en-fr": "41.8"}, {"en-de": "2.3e19"}),
)


def reports_on(corpus: str, test: str) -> bool:
    """Whether Table 2 is about this test set: WMT14's newstest2014."""
    return corpus.startswith("wmt14") and test == TEST


_SCORED = {
    "sacrebleu": "sacreBLEU as it scores by default",
    "otherwise": "BLEU in a way that nothing here computes",
}


def rows(records: Sequence[Record], published: Sequence[Published] = ()) -> list[Literature]:
    """What is known of the test sets that `records` are of: Table 2's rows, then `published`."""
    tests = dict.fromkeys((r.corpus, r.test, r.pair) for r in records)
    wmt = [(corpus, test, pair) for corpus, test, pair in tests if reports_on(corpus, test)]
    found = []
    for row in TABLE_2:
        bleu = {(corpus, test): row.bleu[pair] for corpus, test, pair in wmt if pair in row.bleu}
        way = "compound-split" if row.system.startswith("Transformer") else "tokenised"
        flops = {corpus: row.flops[pair] for corpus, _, pair in wmt if pair in row.flops}
        if bleu:
            found.append(Literature(row.system, SOURCE, bleu, dict.fromkeys(bleu, way), flops))
    for name, source in dict.fromkeys((one.name, one.source) for one in published):
        of_row = [
            one
            for one in published
            if (one.name, one.source) == (name, source)
            and not (source == SOURCE and reports_on(one.corpus, one.test))  # is there already
            and any((one.corpus, one.test) == (corpus, test) for corpus, test, _ in tests)
        ]
        bleu = {(one.corpus, one.test): str(one.bleu) for one in of_row}
        if bleu:
            ways = {(one.corpus, one.test): one.scored for one in of_row}
            found.append(Literature(name, source, bleu, dict(ways), {}))
    return found


def notes(found: Sequence[Literature]) -> list[str]:
    """Where the rows were printed and how they were scored, a sentence or two for each source."""
    lines = []
    if any(row.source == SOURCE for row in found):
        lines.append(f"Published: {SOURCE}; {HOW_SCORED}")
    for row in found:
        if row.source != SOURCE:
            how = ", ".join(
                f"{_SCORED.get(way, f'{way} BLEU')} on {corpus} {test}"
                for (corpus, test), way in row.scored.items()
            )
            lines.append(f"{row.name} (published): {row.source}; {how}.")
    return lines
