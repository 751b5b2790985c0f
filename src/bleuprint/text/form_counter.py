"""Counts the lines of a text that have a form other than sentences, such as BPE subwords or JSON.

A single line may have a form by chance. So `FormCounter` examines the lines of a text, and reports
the first form of `text_form.FORMS` that is frequent enough.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from bleuprint.text.text_form import FORMS, Form

# To limit the time for a long text: all lines up to the first number are examined, then every line
# whose number is a multiple of the step.
_FIRST_LINES = 10_000
_LINE_STEP = 100
# A form is reported from this number of lines on: a single line may have it by chance.
_MIN_LINES = 2


@dataclass(frozen=True)
class FoundForm:
    """A form that a text has.

    Attributes:
        form: The form.
        share: The share of the lines that have the form, between 0 and 1.
        line: The number of the first line that has the form, counted from 1.
    """

    form: Form
    share: float
    line: int

    def describe(self, unit: str = "line") -> str:
        """Describe the form: `97% of the lines look like BPE subwords (@@), such as line 3`.

        Args:
            unit: What is counted: "line" or "pair".
        """
        # Such a share would be rounded to 100%, although some lines do not have the form.
        is_nearly_all = 0.995 <= self.share < 1
        share = "nearly all" if is_nearly_all else f"{self.share:.0%}"
        return f"{share} of the {unit}s look like {self.form.name}, such as {unit} {self.line:,}"


class FormCounter:
    """Counts the lines of a text that have each form, such as BPE subwords, JSON or lower case."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        """Start to count the lines of a text that have each form, such as BPE subwords or JSON.

        Args:
            lines: The first lines of the text. More lines can be added afterwards.
        """
        self._examined_lines = 0
        # Each list has one value for each form of `FORMS`: how many lines have the form, and the
        # number of the first such line, counted from 1; 0 if there is none.
        self._line_counts = [0] * len(FORMS)
        self._first_lines = [0] * len(FORMS)
        for number, line in enumerate(lines, 1):
            self.add(number, line)

    def add(self, number: int, line: str) -> None:
        """Examine which forms a line of the text has, such as JSON or lower case, and count them.

        Empty lines are skipped. To save time in a long text, only every hundredth line is examined
        after the first 10,000 lines.

        Args:
            number: The number of the line in the text, counted from 1.
            line: The line.
        """
        is_examined = number <= _FIRST_LINES or number % _LINE_STEP == 0
        if not is_examined or not line.strip():
            return
        self._examined_lines += 1
        for index, form in enumerate(FORMS):
            if not form.matches(line):
                continue
            self._line_counts[index] += 1
            is_first_with_form = self._first_lines[index] == 0
            if is_first_with_form:
                self._first_lines[index] = number

    def shares(self) -> dict[str, float]:
        """Return the share of the examined lines that have each form, by the name of the form.

        Forms that no line has are omitted.
        """
        shares = {}
        for form, line_count in zip(FORMS, self._line_counts, strict=True):
            if line_count > 0:
                shares[form.name] = line_count / self._examined_lines
        return shares

    def frequent_form(
        self, ignored: Collection[Form] = (), references: "FormCounter | None" = None
    ) -> FoundForm | None:
        """Find a form that so many lines have that the user should be warned: BPE subwords, JSON.

        Each form has a minimum share of lines, since a single line may have a form by chance. If
        several forms are frequent, the first in the list of forms is returned.

        Args:
            ignored: Forms that the text has on purpose.
            references: If this text consists of translations, the counts of the reference
                translations. A form is expected if it is at least half as frequent in the
                references.

        Returns:
            The form; None if the text looks like ordinary sentences.
        """
        reference_shares = {} if references is None else references.shares()
        for index, form in enumerate(FORMS):
            line_count = self._line_counts[index]
            if form in ignored or line_count < _MIN_LINES:
                continue
            share = line_count / self._examined_lines
            is_expected = reference_shares.get(form.name, 0.0) >= share / 2
            if share >= form.min_share and not is_expected:
                return FoundForm(form=form, share=share, line=self._first_lines[index])
        return None
