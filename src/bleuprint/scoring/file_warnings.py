"""Warnings on files of translations that were not made here: what would make their scores wrong.

A warning is stored beside the scores as a figure: its `group` is the sentence, its `value` the
share of the lines that it is about, per cent.
"""

from collections.abc import Iterator, Sequence

from bleuprint.config.corpus import Corpus
from bleuprint.corpus.text_notes import forms_on_purpose
from bleuprint.scoring.measure import Measured, figure
from bleuprint.text.text_form import FormCounter

WARNING = "warning"
# The share of the lines from which equal ones are reported: short sentences may be equal by chance.
_MOST = 0.5


def file_warnings(
    translations: Sequence[str],
    sources: Sequence[str],
    references: Sequence[str],
    corpus: Corpus,
) -> Iterator[Measured]:
    """The warnings on a file of translations.

    Args:
        translations: Its lines.
        sources: Those of the test set; empty while it is not prepared.
        references: Those of the test set; empty while it is not prepared.
        corpus: Its settings say whether the text is tokenized on purpose.
    """
    ignored = [] if references else forms_on_purpose(corpus, is_cleaned=False)
    found = FormCounter(translations).found(ignored, FormCounter(references))
    if found:
        text = f"{found.text()}; BLEU is of sentences: {found.form.remedy}"
        yield figure(WARNING, 100 * found.share, len(translations), text)
    for name, others in (("references", references), ("sources", sources)):
        share = _equal_share(translations, others)
        if share >= _MOST:
            part = "all" if share == 1 else f"{share:.0%} of the"
            text = f"{part} translations are identical to the {name}"
            yield figure(WARNING, 100 * share, len(translations), text)


def _equal_share(translations: Sequence[str], others: Sequence[str]) -> float:
    """The share of equal lines, apart from spaces; 0 of files of different lengths."""
    if len(translations) != len(others) or not others:
        return 0.0
    pairs = zip(translations, others, strict=True)
    equal = sum(ours.split() == theirs.split() for ours, theirs in pairs)
    return equal / len(others)
