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
    scores: Sequence[Published],
    tests_by_corpus: Mapping[str, Collection[str]],
    trained_systems_by_corpus: Mapping[str, Collection[str]],
    untrained_systems: Collection[str],
) -> None:
    """Check the published scores of params.yaml: their names must exist, and none may come twice.

    Args:
        scores: The published scores, in the order of params.yaml.
        tests_by_corpus: The names of the test sets by corpus.
        trained_systems_by_corpus: The names of the systems that are trained on each corpus.
        untrained_systems: The names of external systems, which are not trained here.

    Raises:
        SettingError: A score names a corpus, a test set or a system that does not exist, or two
            scores would be in one cell of the table.
    """
    earlier_cells = set()
    for position, score in enumerate(scores):
        keys: list[str | int] = ["published", position]
        if score.system in untrained_systems:
            message = f"{score.system} is an external system. Name a system that is trained here"
            raise SettingError([*keys, "system"], message)
        _check_names(score, keys, tests_by_corpus, trained_systems_by_corpus)
        # The name and the source are the row of the table; the other three are its column.
        cell = (score.name, score.source, score.corpus, score.test, score.metric)
        if cell in earlier_cells:
            raise SettingError(keys, f"a second score for {', '.join(cell)}. Remove one")
        earlier_cells.add(cell)


def _check_names(
    score: Published,
    keys: Sequence[str | int],
    tests_by_corpus: Mapping[str, Collection[str]],
    trained_systems_by_corpus: Mapping[str, Collection[str]],
) -> None:
    """Raise SettingError if a published score names a corpus, test set or system that is unknown.

    Args:
        score: The published score.
        keys: The keys of the score in params.yaml: `published` and its position in this list.
        tests_by_corpus: The names of the test sets by corpus.
        trained_systems_by_corpus: The names of the systems that are trained on each corpus.
    """
    if score.corpus not in tests_by_corpus:
        known_names = list_known_names(score.corpus, tests_by_corpus)
        raise SettingError([*keys, "corpus"], f"no corpus {score.corpus!r}; {known_names}")
    tests = tests_by_corpus[score.corpus]
    if score.test not in tests:
        known_names = list_known_names(score.test, tests)
        raise SettingError([*keys, "test"], f"no test set {score.test!r}; {known_names}")
    systems = trained_systems_by_corpus[score.corpus]
    if score.system is not None and score.system not in systems:
        known_names = list_known_names(score.system, systems)
        message = f"no system {score.system!r} on {score.corpus}; {known_names}"
        raise SettingError([*keys, "system"], message)
