"""English phrases for messages and reports: counts with their nouns, lists, and durations.

Every message that counts or lists something uses these functions, so that plurals, commas and
"and" are the same everywhere. `runtime/schema.py` suggests a name in place of an unknown one.
"""

from collections.abc import Iterable, Sequence


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: `1 sentence`, `1,000 sentences`.

    Args:
        number: How many there are.
        noun: What is counted, in the singular.
        plural: The plural of the noun; by default the noun with an s.
    """
    if number == 1:
        return f"{number} {noun}"
    if plural is None:
        plural = f"{noun}s"
    return f"{number:,} {plural}"


def is_or_are(number: int) -> str:
    """Return the verb that follows a count: `is` after one, `are` after any other number."""
    return "is" if number == 1 else "are"


def join_with_and(items: Iterable[object]) -> str:
    """Join items as in a sentence: `a`, `a and b`, `a, b and c`; an empty text without items."""
    texts = list(map(str, items))
    if len(texts) <= 1:
        return "".join(texts)
    all_but_last = ", ".join(texts[:-1])
    return f"{all_but_last} and {texts[-1]}"


def list_first(items: Sequence[object], limit: int, separator: str = ", ") -> str:
    """List the first items and count the rest: `a, b and 3 more`.

    Args:
        items: All items.
        limit: How many of them are listed at most.
        separator: The text between two items. A separator other than a comma also precedes the
            count of the rest: `a; b; and 3 more`.
    """
    listed = separator.join(map(str, items[:limit]))
    rest = len(items) - limit
    if rest <= 0:
        return listed
    before_and = " " if separator == ", " else separator
    return f"{listed}{before_and}and {rest:,} more"


def duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds: `1:02:05`."""
    total_minutes, remaining_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(total_minutes, 60)
    return f"{hours}:{minutes:02}:{remaining_seconds:02}"
