"""Sphinx's configuration of the manual as a site: make docs.

Pages are docs/*.md and README.md, so that links are those that GitHub has.
"""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

from bleuprint import __version__

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import reference  # noqa: E402

# made from the code, below the text of the page in git
GENERATED = {"docs/settings": reference.settings, "docs/commands": reference.commands}

project = "bleuprint"
author = "the bleuprint authors"
release = version = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 3  # the anchors that GitHub gives, for links between pages
root_doc = "docs/index"
include_patterns = ["docs/*.md", "README.md"]
# not searched for pages
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs"]
html_theme = "furo"
html_show_search_summary = False  # read by fetch, which browsers refuse from files
html_title = f"bleuprint {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = html_copy_source = False

# a picture that differs in dark mode, in HTML that GitHub reads, and in the theme's terms
_PICTURE = re.compile(
    r'<picture>\s*<source .* srcset="(.*)">\s*<img src="(.*?)" alt="(.*)">\s*</picture>'
)
_IMAGES = "".join(
    f"```{{image}} \\{group}\n:class: only-{mode}\n:alt: \\3\n```\n"
    for group, mode in ((1, "dark"), (2, "light"))
)


def _edit(_: Sphinx, page: str, source: list[str]) -> None:
    """What the site needs and GitHub would show: so that the pages stay plain Markdown."""
    source[0] = _PICTURE.sub(_IMAGES, source[0])
    # tables are copied into the site as they are
    source[0] = re.sub(
        r"\[([^]`]+)\]\(([./]*reports/[^)]+\.md)\)", r"{download}`\1 <\2>`", source[0]
    )
    if page in GENERATED:
        source[0] += "\n" + GENERATED[page]()
    if page == "docs/index":  # the navigation, from its lists
        for heading, text in re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", source[0]):
            pages = "\n".join(re.findall(r"^- .*?\(([\w./]+)\.md\)", text, re.MULTILINE))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", _edit)
