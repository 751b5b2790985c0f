"""Warnings on translation files of external systems: problems that make their scores wrong.

A warning is stored next to the scores as a figure. Its `group` is the text of the warning; its
`value` is the share of the lines that have the problem, in percent.
"""

from collections.abc import Iterator, Sequence

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.text_notes import forms_on_purpose
from bleuprint.runtime.wording import counted, is_or_are
from bleuprint.scoring.metric import MetricValue, untested_value
from bleuprint.text.form_counter import FormCounter

WARNING = "warning"
# The share of the lines from which equal lines are reported. Below it, they may be short sentences
# that are equal by chance.
_MIN_EQUAL_SHARE = 0.5


def file_warnings(
    translations: Sequence[str],
    sources: Sequence[str],
    references: Sequence[str],
    corpus: Corpus,
) -> Iterator[MetricValue]:
    """Yield the warnings on a file of translations.

    Args:
        translations: The lines of the file.
        sources: The source lines of the test set; empty while the test set is not prepared.
        references: The reference lines of the test set; empty while it is not prepared.
        corpus: The corpus of the test set. Its settings say which forms its text has on purpose.
    """
    yield from _emptiness_warnings(translations, sources)
    yield from _form_warnings(translations, references, corpus)
    yield from _equality_warnings(translations, references, "references")
    yield from _equality_warnings(translations, sources, "sources")


def _emptiness_warnings(
    translations: Sequence[str], sources: Sequence[str]
) -> Iterator[MetricValue]:
    """Warn of empty translations of lines that are not empty, as far as the sources are known."""
    empty_lines = []
    for number, translation in enumerate(translations, 1):
        is_source_empty = number <= len(sources) and not sources[number - 1].strip()
        if not translation.strip() and not is_source_empty:
            empty_lines.append(number)
    if empty_lines:
        count = f"{len(empty_lines):,} of {counted(len(translations), 'translation')}"
        text = f"{count} {is_or_are(len(empty_lines))} empty: line {empty_lines[0]}"
        if len(empty_lines) > 1:
            text += " and others"
        share = 100 * len(empty_lines) / len(translations)
        yield untested_value(WARNING, share, len(translations), text)


def _form_warnings(
    translations: Sequence[str], references: Sequence[str], corpus: Corpus
) -> Iterator[MetricValue]:
    """Warn if translations look like subwords or tokens, while the references do not.

    Without references, the settings of the corpus say which forms are right.
    """
    ignored = [] if references else forms_on_purpose(corpus, is_cleaned=False)
    form_counter = FormCounter(translations)
    frequent = form_counter.frequent_form(ignored, FormCounter(references))
    if frequent is None:
        return
    remedy = frequent.form.translations_remedy or frequent.form.remedy
    text = f"{frequent.describe()}; BLEU is of sentences: {remedy}"
    yield untested_value(WARNING, 100 * frequent.share, len(translations), text)


def _equality_warnings(
    translations: Sequence[str], other_lines: Sequence[str], other_name: str
) -> Iterator[MetricValue]:
    """Warn if many translations equal the lines of another file, which is called `other_name`."""
    share = _equal_share(translations, other_lines)
    if share < _MIN_EQUAL_SHARE:
        return
    quantity = "all" if share == 1 else f"{share:.0%} of the"
    text = f"{quantity} translations are identical to the {other_name}"
    yield untested_value(WARNING, 100 * share, len(translations), text)


def _equal_share(translations: Sequence[str], other_lines: Sequence[str]) -> float:
    """Return the share of lines that have equal tokens in both files, between 0 and 1.

    Files with different numbers of lines cannot be compared: their share is 0.
    """
    if len(translations) != len(other_lines) or not other_lines:
        return 0.0
    equal_lines = 0
    for translation, other_line in zip(translations, other_lines, strict=True):
        if translation.split() == other_line.split():
            equal_lines += 1
    return equal_lines / len(other_lines)
