"""Jinja2 environments, and the templates that all HTML pages share.

base.html.j2 is the page that others extend, with base.css; macros.html.j2 has tables and figures;
base.js builds elements in the browser.
"""

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bleuprint.runtime.foreign_text import clean_value
from bleuprint.runtime.wording import counted

_HERE = Path(__file__).parent


def template_environment(*folders: Path, autoescape: bool = True) -> Environment:
    """Templates of `folders` and of this one; an undefined name raises.

    Values are escaped for HTML with `autoescape`; control characters in them become spaces.
    """
    templates = Environment(
        loader=FileSystemLoader([*folders, _HERE]),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=clean_value,
    )
    templates.filters |= {
        "counted": counted,
        "thousands": "{:,}".format,
        "markdown_text": escape_markdown,
    }
    return templates


def escape_markdown(text: str) -> str:
    """`text` in one line of Markdown that shows it as it is (CommonMark, GFM)."""
    line = " ".join(text.split())
    return re.sub(r"[\\`*~\[\]<]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", line)
