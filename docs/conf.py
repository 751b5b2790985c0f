"""Sphinx's configuration of the manual as a site: make docs."""

import re

from sphinx.application import Sphinx

from bleuprint import __version__

project = "bleuprint"
author = "the bleuprint authors"
release = version = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 3  # the anchors that GitHub gives, for links between pages
html_theme = "furo"
html_show_search_summary = False  # read by fetch, which browsers refuse from files
html_title = f"bleuprint {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = html_copy_source = False


def _edit(_: Sphinx, page: str, source: list[str]) -> None:
    """What the site needs and GitHub would show: so that the pages stay plain Markdown."""
    # files outside docs/ are copied into the site
    source[0] = re.sub(r"\[([^]`]+)\]\((\.\./[^)]+)\)", r"{download}`\1 <\2>`", source[0])
    if page == "index":  # the navigation, from its lists
        for heading, text in re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", source[0]):
            pages = "\n".join(re.findall(r"^- .*?\((\w+)\.md\)", text, re.MULTILINE))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", _edit)
