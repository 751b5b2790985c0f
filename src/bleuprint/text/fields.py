"""Writes several texts into one line, as fields separated by ` ||| `, as Moses and Marian do."""

import re

SEPARATOR = " ||| "

_BARS = re.compile(r"\|{3,}")
# The & of `&#124;`, of `&amp;#124;`, and so on: of a text that looks like an escaped bar.
_ESCAPED_BAR_START = re.compile("&(?=(?:amp;)*#124;)")


def escape_field(text: str) -> str:
    """Return a text without `|||`: each of its bars is written `&#124;`, as Moses escapes bars.

    A `&#124;` that the text contains is written `&amp;#124;`, so that no two texts have the same
    field.
    """
    if "|||" not in text and "#124;" not in text:
        return text

    def escape_bars(match: re.Match[str]) -> str:
        """Return the escaped form of several bars."""
        return "&#124;" * len(match[0])

    unambiguous = _ESCAPED_BAR_START.sub("&amp;", text)
    return _BARS.sub(escape_bars, unambiguous)


def join_fields(*texts: str) -> str:
    """Return a line with a field for each text."""
    return SEPARATOR.join(escape_field(text) for text in texts)
