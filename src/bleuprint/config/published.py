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
        """Raise SettingError if a text that the table shows contains a non-printing character.

        A control character, for example, could garble the table in a terminal.
        """
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
    """Check the published scores of params.yaml: the names in them, and that none comes twice.

    Args:
        numbers: The published scores, in the order of params.yaml.
        tests_by_corpus: The names of the test sets by corpus.
        trained_systems_by_corpus: The names of the systems that are trained on each corpus.
        untrained_systems: The names of external systems, which are not trained here.

    Raises:
        SettingError: A score names a corpus, a test set or a system that does not exist, or two
            scores would be in one cell of the table.
    """
    earlier_cells = set()
    for position, number in enumerate(numbers):
        keys: list[str | int] = ["published", position]
        if number.system in untrained_systems:
            message = f"{number.system} is an external system; name a system that is trained here"
            raise SettingError([*keys, "system"], message)
        _check_names(number, keys, tests_by_corpus, trained_systems_by_corpus)
        # The row of the table has the name and the source, the column everything else.
        cell = (number.name, number.source, number.corpus, number.test, number.metric)
        if cell in earlier_cells:
            raise SettingError(keys, f"a second number of {', '.join(cell)}")
        earlier_cells.add(cell)


def _check_names(
    number: Published,
    keys: Sequence[str | int],
    tests_by_corpus: Mapping[str, Collection[str]],
    trained_systems_by_corpus: Mapping[str, Collection[str]],
) -> None:
    """Raise SettingError if the corpus, test set or system that a published score names is missing.

    Args:
        number: The published score.
        keys: Where params.yaml has it: `published` and its position.
        tests_by_corpus: The names of the test sets by corpus.
        trained_systems_by_corpus: The names of the systems that are trained on each corpus.
    """
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
