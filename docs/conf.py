"""Sphinx's configuration of the manual as a site: make docs.

Pages are docs/*.md, the root's and the tables in reports/, so that links are those that GitHub has.
"""

import re
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

from bleuprint import __version__

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))
import reference  # noqa: E402
import results  # noqa: E402

# made from the code, below the text of the page in git
GENERATED = {"docs/commands": reference.commands}

project = "bleuprint"
author = "the bleuprint authors"
release = version = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 3  # the anchors that GitHub gives, for links between pages
root_doc = "docs/index"
include_patterns = ["docs/*.md", "*.md", "reports/table.md", "reports/*/table.md"]
# not searched for pages
exclude_patterns = [
    path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in ("docs", "reports")
]
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
    """Change a page for the site, so that in Git the pages stay plain Markdown for GitHub."""
    if page.startswith("reports/"):
        source[0] = results.page(ROOT / f"{page}.md", source[0])
    source[0] = _PICTURE.sub(_IMAGES, source[0])
    # the pages of reports, copied by _finish, in place of downloads
    source[0] = re.sub(
        r"\[([^]]+)\]\(((?:[\w./-]*/)?index\.html)\)", r'<a href="\2">\1</a>', source[0]
    )
    if page in GENERATED:
        source[0] += "\n" + GENERATED[page]()
    if page == "docs/index":  # the recipes, and the navigation, from its lists
        pages = source[0]
        source[0] = pages.replace("<!-- recipes -->", results.recipes())
        for heading, text in re.findall(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)", pages):
            listed = "\n".join(re.findall(r"^- .*?\(([\w./]+)\.md\)", text, re.MULTILINE))
            if listed:
                source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{listed}\n```\n"


def _finish(app: Sphinx, error: Exception | None) -> None:
    """Copy the committed pages of reports to their addresses; write a start page for the root."""
    if error is None:
        for path in ROOT.glob("reports/*/index.html"):
            place = app.outdir / path.relative_to(ROOT)
            place.parent.mkdir(exist_ok=True)
            shutil.copy(path, place)
        (app.outdir / "index.html").write_text(
            '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">\n', "utf-8"
        )


def setup(app: Sphinx) -> None:
    """Connect the changes above with Sphinx, which calls this function."""
    app.connect("source-read", _edit)
    app.connect("build-finished", _finish)
