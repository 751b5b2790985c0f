"""Counts with their nouns, and durations, in messages and reports."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: `1 sentence`, `1,000 sentences`.

    Args:
        number: How many there are.
        noun: What is counted, in the singular.
        plural: The plural of the noun if it is not the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds: `1:02:05`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
