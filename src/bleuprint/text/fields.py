"""Writes several texts into one line, as fields separated by ` ||| `, as Moses and Marian do."""

import re

SEPARATOR = " ||| "

_BARS = re.compile(r"\|{3,}")
# The & of `&#124;`, of `&amp;#124;`, and so on: of a text that looks like an escaped bar.
_ESCAPED_BAR_START = re.compile("&(?=(?:amp;)*#124;)")


def escape_field(text: str) -> str:
    """Write a text so that it can be a field of a line whose fields are separated by ` ||| `.

    Three bars or more would look like a separator, so each of them is written as `&#124;`, as in
    Moses. If the text itself contains `&#124;`, it is written as `&amp;#124;`, so that a reader can
    tell the two apart.
    """
    if "|||" not in text and "#124;" not in text:
        return text

    def escape_bars(match: re.Match[str]) -> str:
        """Return the escaped form of the bars that a regular expression has found."""
        bars = match[0]
        return "&#124;" * len(bars)

    without_escaped_bars = _ESCAPED_BAR_START.sub("&amp;", text)
    return _BARS.sub(escape_bars, without_escaped_bars)


def join_fields(*texts: str) -> str:
    """Return a line with a field for each text."""
    return SEPARATOR.join(escape_field(text) for text in texts)
