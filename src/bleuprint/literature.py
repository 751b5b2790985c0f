"""Published results that the table shows above ours, as printed: never mixed with ours."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One row of a published table: BLEU and training FLOPs by language pair, as printed."""

    system: str
    bleu: dict[str, str]
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
    Published("ByteNet", {"en-de": "23.75"}, {}),
    Published("Deep-Att + PosUnk", {"en-fr": "39.2"}, {"en-fr": "1.0e20"}),
    Published(
        "GNMT + RL", {"en-de": "24.6", "en-fr": "39.92"}, {"en-de": "2.3e19", "en-fr": "1.4e20"}
    ),
    Published(
        "ConvS2S", {"en-de": "25.16", "en-fr": "40.46"}, {"en-de": "9.6e18", "en-fr": "1.5e20"}
    ),
    Published("MoE", {"en-de": "26.03", "en-fr": "40.56"}, {"en-de": "2.0e19", "en-fr": "1.2e20"}),
    Published("Deep-Att + PosUnk Ensemble", {"en-fr": "40.4"}, {"en-fr": "8.0e20"}),
    Published(
        "GNMT + RL Ensemble",
        {"en-de": "26.30", "en-fr": "41.16"},
        {"en-de": "1.8e20", "en-fr": "1.1e21"},
    ),
    Published(
        "ConvS2S Ensemble",
        {"en-de": "26.36", "en-fr": "41.29"},
        {"en-de": "7.7e19", "en-fr": "1.2e21"},
    ),
    Published("Transformer (base)", {"en-de": "27.3", "en-fr": "38.1"}, {"en-de": "3.3e18"}),
    Published("Transformer (big)", {"en-de": "28.4", "en-fr": "41.8"}, {"en-de": "2.3e19"}),
)


def reports_on(corpus: str, test: str) -> bool:
    """Whether Table 2 is about this test set: WMT14's newstest2014."""
    return corpus.startswith("wmt14") and test == TEST
