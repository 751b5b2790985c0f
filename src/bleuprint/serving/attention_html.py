"""Attention maps on the pages of the server and of the report: templates, and tokens as text."""

import unicodedata
from pathlib import Path

from jinja2 import Environment

from bleuprint.runtime.html import template_environment


def attention_environment(*folders: Path) -> Environment:
    """Return the HTML templates of a page that shows attention maps.

    Args:
        folders: The folders with the page's own templates. The templates for the style and script
            of attention maps are added.
    """
    return template_environment(*folders, Path(__file__).with_name("templates"))


def visible_token(token: str) -> str:
    """Return a token as text that a browser can show without the tokens around it.

    Control characters become U+FFFD, the replacement character. A token that starts with a
    combining character, such as an accent, gets a dotted circle before it to combine with.
    """
    text = ""
    for character in token:
        is_control_character = unicodedata.category(character) == "Cc"
        text += "\ufffd" if is_control_character else character
    # The Unicode categories of combining characters (marks) are Mn, Mc and Me.
    starts_with_mark = unicodedata.category(text[0]).startswith("M")
    if starts_with_mark:
        return f"◌{text}"
    return text
