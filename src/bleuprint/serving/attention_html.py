"""Jinja templates of attention maps, for the pages of the server and of the report."""

import unicodedata
from pathlib import Path

from jinja2 import Environment

from bleuprint.runtime.html import template_environment


def attention_environment(*folders: Path) -> Environment:
    """Return the templates in some folders together with those of attention maps.

    The filter `printable` is for the tokens of a map.
    """
    templates = template_environment(*folders, Path(__file__).with_name("templates"))
    templates.filters["printable"] = printable
    return templates


def printable(token: str) -> str:
    """Return a token as it can be shown on its own.

    Control characters are replaced, and a combining character gets a dotted circle to combine with.
    """
    text = ""
    for character in token:
        is_control = unicodedata.category(character) == "Cc"
        text += "\ufffd" if is_control else character
    if unicodedata.category(text[0]).startswith("M"):
        return f"◌{text}"
    return text
