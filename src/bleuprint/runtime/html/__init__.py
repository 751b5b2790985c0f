"""Templates of HTML and Markdown, and the parts that all HTML pages share.

base.html.j2 is the page that other templates extend, with its style in base.css. macros.html.j2
writes tables and figures. base.js builds elements in the browser.
"""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bleuprint.runtime.foreign_text import clean_value
from bleuprint.runtime.wording import counted

_SHARED_TEMPLATES = Path(__file__).parent
# The characters that Markdown (CommonMark, GFM) would not show as they are: its marks, an ampersand
# that begins an HTML entity, and an underscore at the start or end of a word.
_MARKDOWN_MARK = re.compile(r"[\\`*~\[\]<]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")


def template_environment(*folders: Path, autoescape: bool = True) -> Environment:
    """Return the Jinja environment with which all HTML and Markdown pages are written.

    A template that uses an undefined name raises an error. Control characters in values become
    spaces.

    Args:
        *folders: The folders with templates, searched in this order. The templates that all pages
            share are searched last.
        autoescape: Whether values are escaped for HTML.
    """
    environment = Environment(
        loader=FileSystemLoader([*folders, _SHARED_TEMPLATES]),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=clean_value,
    )
    environment.filters["counted"] = counted
    environment.filters["thousands"] = "{:,}".format
    environment.filters["markdown_text"] = escape_markdown
    return environment


def escape_markdown(text: str) -> str:
    """Return a text in one line of Markdown that shows the text as it is."""
    line = " ".join(text.split())
    return _MARKDOWN_MARK.sub(r"\\\g<0>", line)
