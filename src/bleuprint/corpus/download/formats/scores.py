"""Scores of the pairs of a table, by tools such as bicleaner and LASER: pairs below a limit go."""

import math
from decimal import Decimal
from typing import Any

from bleuprint.config.corpus_files import Text
from bleuprint.config.text_formats import PairScore
from bleuprint.corpus.steps.filter_stats import SetCounts
from bleuprint.runtime.errors import UserError

# The rule by which the filtering statistics count the dropped pairs.
_RULE = "score"
# Messages show so many characters of a value.
_SHOWN_CHARACTERS = 40


def score_limit(text: Text, counts: SetCounts) -> "ScoreLimit | None":
    """Return the limit of a text's scores; None if the text has no setting `score`.

    Args:
        text: The settings of the text.
        counts: Statistics to which pairs with a lower score are added, as dropped by `score`.
    """
    return ScoreLimit(text.score, counts) if text.score is not None else None


class ScoreLimit:
    """Keeps the pairs of a table whose score is high enough, and counts the others as dropped."""

    def __init__(self, score: PairScore, counts: SetCounts) -> None:
        """Create the limit.

        Args:
            score: The column of the scores, and the lowest score of a pair that is kept.
            counts: Statistics to which pairs with a lower score are added, as dropped by `score`.
        """
        self.column = score.column
        self._min = score.min
        self._counts = counts

    def keeps(self, value: Any, location: str) -> bool:
        """Return whether a pair is kept.

        Args:
            value: Its score: a number, or a number as text.
            location: The file and the row, for messages.

        Raises:
            UserError: The value is not a finite number.
        """
        if _to_number(value, self.column, location) >= self._min:
            return True
        self._counts.count_dropped(_RULE)
        return False


def _to_number(value: Any, column: int | str, location: str) -> float:
    """Return a score as a number.

    Args:
        value: The cell of the table.
        column: The column of the scores, for messages.
        location: The file and the row, for messages.

    Raises:
        UserError: The value is not a finite number.
    """
    number = math.nan
    # In Python, true is the number 1. Parquet has decimal numbers, too.
    if isinstance(value, int | float | Decimal | str) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
    if not math.isfinite(number):
        shown = repr(value)
        if isinstance(value, str) and len(value) > _SHOWN_CHARACTERS:
            shown = repr(f"{value[:_SHOWN_CHARACTERS]}...")
        raise UserError(
            f"{location}: the score in column {column!r} is {shown}, not a number. Correct the "
            "row, or name another column: score.column"
        )
    return number
