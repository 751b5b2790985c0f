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
    """Yield warnings on a file of translations that the user has got from another program.

    A warning names what would make the scores wrong: empty lines, subwords or tokens instead of
    sentences, or a copy of the references or sources instead of translations.

    Args:
        translations: The lines of the file.
        sources: The source lines of the test set; empty while the test set is not prepared.
        references: The reference lines of the test set; empty while it is not prepared.
        corpus: The corpus of the test set. Its settings say whether its text is, for example,
            lower-cased on purpose.
    """
    yield from _emptiness_warnings(translations, sources)
    yield from _form_warnings(translations, references, corpus)
    yield from _equality_warnings(translations, references, "references")
    yield from _equality_warnings(translations, sources, "sources")


def _emptiness_warnings(
    translations: Sequence[str], sources: Sequence[str]
) -> Iterator[MetricValue]:
    """Yield a warning if translations are empty whose source lines are not.

    Args:
        translations: The lines of the file of translations.
        sources: The source lines; empty while they are not known.
    """
    empty_lines = []
    for index, translation in enumerate(translations):
        is_source_empty = index < len(sources) and not sources[index].strip()
        is_translation_empty = not translation.strip()
        if is_translation_empty and not is_source_empty:
            # Line numbers count from 1.
            empty_lines.append(index + 1)
    if not empty_lines:
        return
    count = f"{len(empty_lines):,} of {counted(len(translations), 'translation')}"
    text = f"{count} {is_or_are(len(empty_lines))} empty: line {empty_lines[0]}"
    if len(empty_lines) > 1:
        text += " and others"
    share = 100 * len(empty_lines) / len(translations)
    yield untested_value(WARNING, share, units=len(translations), group=text)


def _form_warnings(
    translations: Sequence[str], references: Sequence[str], corpus: Corpus
) -> Iterator[MetricValue]:
    """Yield a warning if translations look like subwords, JSON or the like, not like sentences.

    Args:
        translations: The lines of the file of translations.
        references: The reference lines; empty while they are not known. A form that they have, too,
            is not warned of.
        corpus: The corpus. While there are no references, its settings say which forms are meant to
            be there, such as lower case.
    """
    right_forms = [] if references else forms_on_purpose(corpus)
    form_counter = FormCounter(translations)
    found_form = form_counter.frequent_form(right_forms, FormCounter(references))
    if found_form is None:
        return
    remedy = found_form.form.translations_remedy or found_form.form.remedy
    text = f"{found_form.describe()}. BLEU compares sentences. {remedy}"
    yield untested_value(WARNING, 100 * found_form.share, units=len(translations), group=text)


def _equality_warnings(
    translations: Sequence[str], other_lines: Sequence[str], other_name: str
) -> Iterator[MetricValue]:
    """Yield a warning if many translations equal the lines of another file.

    Args:
        translations: The lines of the file of translations.
        other_lines: The lines of the other file.
        other_name: What the warning calls these lines: `references` or `sources`.
    """
    share = _equal_share(translations, other_lines)
    if share < _MIN_EQUAL_SHARE:
        return
    quantity = "all" if share == 1 else f"{share:.0%} of the"
    text = f"{quantity} translations are identical to the {other_name}"
    yield untested_value(WARNING, 100 * share, units=len(translations), group=text)


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
