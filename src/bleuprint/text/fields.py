"""Texts as fields of a line that separates them by ` ||| `, as lines of Moses and Marian do."""

import re

SEPARATOR = " ||| "

_BARS = re.compile(r"\|{3,}")
# What a reader would take for an escaped bar, at any depth.
_ESCAPED = re.compile("&(?=(?:amp;)*#124;)")


def escape_field(text: str) -> str:
    """`text` without `|||`: each bar in it is written `&#124;`, as Moses escapes bars.

    A `&#124;` of the text is written `&amp;#124;`, so that two texts never have the same field.
    """
    if "|||" not in text and "#124;" not in text:
        return text
    bars_in_text = _ESCAPED.sub("&amp;", text)
    return _BARS.sub(lambda bars: "&#124;" * len(bars[0]), bars_in_text)


def join_fields(*fields: str) -> str:
    """A line of texts, of which each becomes a field."""
    return SEPARATOR.join(map(escape_field, fields))
