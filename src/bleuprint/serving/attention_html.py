"""Templates of attention maps, for the pages of the server and of the report."""

import unicodedata
from pathlib import Path

from jinja2 import Environment

from bleuprint.runtime.html import template_environment


def attention_environment(*folders: Path) -> Environment:
    """Templates of `folders`, and those of maps; the filter `printable` is for tokens."""
    templates = template_environment(*folders, Path(__file__).with_name("templates"))
    templates.filters["printable"] = printable
    return templates


def printable(token: str) -> str:
    """A token as it can be shown alone: a combining character is given a circle to combine with."""
    text = "".join("\ufffd" if unicodedata.category(c) == "Cc" else c for c in token)
    return f"◌{text}" if unicodedata.category(text[0]).startswith("M") else text
