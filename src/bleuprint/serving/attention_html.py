"""Attention maps on the pages of the server and of the report: templates, and tokens as text."""

import unicodedata
from pathlib import Path

from jinja2 import Environment

from bleuprint.runtime.html import template_environment


def attention_environment(*folders: Path) -> Environment:
    """Return the templates in some folders together with the style and script of attention maps."""
    return template_environment(*folders, Path(__file__).with_name("templates"))


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
