"""Checks that compare the two sides of a pair: copies, numbers, ends of sentences, meaning."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import regex
from annotated_types import Interval

from bleuprint.rules.rule import Candidate, Check
from bleuprint.text.numbers import have_equal_numbers
from bleuprint.text.unicode import comparison_key, replace_unprintable

# A row of marks that end a sentence, in any script, at the end of a word: not in 3.5 or
# example.org. Quotation marks and brackets may follow. The look-behind and the possessive ++ make
# it match a complete row or nothing, so that a long row is read once.
_END_MARKS = regex.compile(
    r"(?<![\p{STerm}…])[\p{STerm}…]++(?=[\"'”“’»)\]]*(?:\s|$))|[。！？]+",
)
_QUESTION_MARK = re.compile("[?？؟]")
# The code of Greek, in which a semicolon is a question mark.
_GREEK = "el"


@dataclass(frozen=True)
class Identical(Check):
    """Drops a pair whose sides differ only in spaces, punctuation and letter case.

    This includes a name or number alone: `Paris` is the same in many languages.
    """

    rank: ClassVar[int] = 10

    def keeps(self, candidate: Candidate) -> bool:
        """Return whether the two sides differ in more than spaces, punctuation and letter case."""
        return comparison_key(candidate.pair.source) != comparison_key(candidate.pair.target)


@dataclass(frozen=True)
class Numerals(Check):
    """Drops a pair if the numbers of its sides differ, in any order.

    Equal numbers in other forms are equal: thousands and decimals, dates, times, fractions, digits
    of other scripts, telephone numbers (text/numbers.py lists them). Numbers in words are not
    found: 3 for `three` drops the pair.
    """

    rank: ClassVar[int] = 80

    def keeps(self, candidate: Candidate) -> bool:
        """Return whether both sides contain the same numbers."""
        return have_equal_numbers(candidate.pair.source, candidate.pair.target)


@dataclass(frozen=True)
class TerminalPunctuation(Check):
    """Drops a pair if one side has more ends of sentences, or more of questions, than the other.

    Marks that follow each other count as one. An abbreviation (`Dr.`) counts as an end too.
    Armenian's mark of a question, inside a word, counts as none.
    """

    rank: ClassVar[int] = 90

    def keeps(self, candidate: Candidate) -> bool:
        """Return whether both sides have equally many sentences, and equally many questions.

        They are counted by the marks that end them, such as a period or a question mark.
        """
        source_language, target_language = candidate.languages
        source_ends = _count_ends(candidate.pair.source, source_language)
        target_ends = _count_ends(candidate.pair.target, target_language)
        return source_ends == target_ends


class _Ends(NamedTuple):
    """The number of ends of sentences in a text, and of the questions among them."""

    sentences: int
    questions: int


def _count_ends(text: str, language: str) -> _Ends:
    """Count the sentences of a text, and the questions among them, by their end marks.

    `Really?! Yes.` has two sentences, and one of them is a question: marks that follow each other
    end one sentence.

    Args:
        text: The text.
        language: The code of its language. In Greek, a semicolon is a question mark.
    """
    if language == _GREEK:
        text = text.replace(";", "?")
    # The marks at the end of each sentence, such as ["?!", "."].
    ends_of_sentences = _END_MARKS.findall(replace_unprintable(text))
    questions = 0
    for marks in ends_of_sentences:
        if _QUESTION_MARK.search(marks):
            questions += 1
    return _Ends(sentences=len(ends_of_sentences), questions=questions)


@dataclass(frozen=True)
class WordAlignment(Check):
    """Drops a pair if its words explain each other less than `min`.

    The score is the mean over the words of both sides of log(p(word | other side) / p(word)), by
    word translations that the stage learns from the corpus itself; sides that are not translations
    of each other score about -1, those that are about 2.
    """

    rank: ClassVar[int] = 300
    needs_translations: ClassVar[bool] = True
    # A pair with an empty side has the lowest score, log 0.05 = -3.0.
    min: Annotated[float, Interval(ge=-3, le=10)]

    def keeps(self, candidate: Candidate) -> bool:
        """Return whether the alignment score is high enough."""
        return candidate.alignment_score >= self.min
