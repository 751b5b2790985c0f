"""Published scores that params.yaml names for comparison with the experiment's own scores."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from bleuprint.config.citation import Bibtex
from bleuprint.runtime.schema import NotBlank, SettingError, list_known_names
from bleuprint.text.unicode import replace_unprintable


@dataclass(frozen=True)
class Published:
    """A published BLEU score on one of the experiment's test sets.

    Attributes:
        name: What the table calls the published system.
        source: Where the score was published.
        corpus: The corpus of the experiment that the test set belongs to.
        test: The test set.
        bleu: The score.
        metric: How it was computed: a variant in `bleu_variants.VARIANTS`, sacreBLEU's default
            (sacrebleu), or a metric that is not computed here (unknown).
        system: A system of the experiment. The report shows the difference of its score, by the
            same metric, from the published one.
        perplexity: The perplexity of the references, per token of `system`.
        bibtex: The publication.
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
        """Raise SettingError at a character that is not printed, which could garble the table."""
        for key in ("name", "source"):
            text = getattr(self, key)
            if replace_unprintable(text) != text:
                raise SettingError([key], f"{text!r} contains a non-printing character")


def check_published(
    numbers: Sequence[Published],
    tests_by_corpus: Mapping[str, Collection[str]],
    trained_systems_by_corpus: Mapping[str, Collection[str]],
    untrained_systems: Collection[str],
) -> None:
    """Raise SettingError at two published numbers of one kind, or at an unknown name in one.

    Args:
        numbers: The published numbers of params.yaml.
        tests_by_corpus: The names of the test sets of each corpus.
        trained_systems_by_corpus: The names of the systems that are trained on each corpus.
        untrained_systems: The names of the systems that are not trained here.
    """
    earlier_numbers = set()
    for position, number in enumerate(numbers):
        keys: list[str | int] = ["published", position]
        if number.system in untrained_systems:
            message = f"{number.system} is an external system; name a system that is trained here"
            raise SettingError([*keys, "system"], message)
        if number.corpus not in tests_by_corpus:
            known_names = list_known_names(number.corpus, tests_by_corpus)
            raise SettingError([*keys, "corpus"], f"no corpus {number.corpus!r}; {known_names}")
        tests = tests_by_corpus[number.corpus]
        if number.test not in tests:
            known_names = list_known_names(number.test, tests)
            raise SettingError([*keys, "test"], f"no test set {number.test!r}; {known_names}")
        systems = trained_systems_by_corpus[number.corpus]
        if number.system is not None and number.system not in systems:
            known_names = list_known_names(number.system, systems)
            message = f"no system {number.system!r} on {number.corpus}; {known_names}"
            raise SettingError([*keys, "system"], message)
        row_and_column = (number.name, number.source, number.corpus, number.test, number.metric)
        if row_and_column in earlier_numbers:
            raise SettingError(keys, f"a second number of {', '.join(row_and_column)}")
        earlier_numbers.add(row_and_column)
