"""Published numbers that an experiment's are held against, as params.yaml names them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from bleuprint.config.system import Average
from bleuprint.runtime.schema import Count, Range


@dataclass(frozen=True)
class Published:
    """A published BLEU score on one of the experiment's test sets.

    `name` is the row it gets in the table, `source` where it was printed. `scored` is how: one of
    reconciliation.WAYS, as sacreBLEU scores by default, or otherwise (in a way that nothing here
    computes). With a `system`, the gap between that system's score and this one is explained as far
    as it can be measured; the rest are what its authors are known to have used.
    """

    name: str
    source: str
    corpus: str
    test: str
    bleu: Annotated[float, Range(0, 100)]
    scored: Literal[
        "sacrebleu",
        "lower-cased",
        "intl",
        "tokenised",
        "tokenised, lower-cased",
        "compound-split",
        "otherwise",
    ]
    system: str | None = None
    average: Average | None = None
    beam: Count | None = None
    alpha: Annotated[float, Range(0, 10)] | None = None
    penalty: Literal["gnmt", "length"] | None = None
    tokens_per_update: Count | None = None
