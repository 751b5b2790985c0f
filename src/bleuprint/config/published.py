"""Published scores that params.yaml names for comparison with the experiment's own."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from bleuprint.config.citation import Bibtex
from bleuprint.runtime.schema import NotBlank, SettingError
from bleuprint.text.unicode import replace_unprintable


@dataclass(frozen=True)
class Published:
    """A published BLEU score on one of the experiment's test sets.

    `name`: its row of the table; `source`: where it was published. `metric`: a variant of
    bleu_variants.VARIANTS, sacreBLEU's default (sacrebleu), or one that is not computed here
    (unknown). With a `system`, the report has the difference of that system's score, counted
    alike. `perplexity`: of the references, per token of that system. `bibtex`: its publication.
    """

    name: NotBlank
    source: NotBlank
    corpus: str
    test: str
    bleu: Annotated[float, Interval(ge=0, le=100)]
    metric: Literal[
        "sacrebleu",
        "lower-cased",
        "intl",
        "tokens",
        "tokenized",
        "tokenized, lower-cased",
        "compound-split",
        "unknown",
    ]
    system: str | None = None
    perplexity: Annotated[float, Ge(1)] | None = None
    bibtex: Bibtex | None = None

    def __post_init__(self) -> None:
        for key in ("name", "source"):
            if replace_unprintable(text := getattr(self, key)) != text:
                raise SettingError([key], f"{text!r} contains a non-printing character")
