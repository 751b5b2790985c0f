"""Configure Sphinx, which builds the manual as a site: make docs.

The pages are docs/*.md, the Markdown files of the root and the tables in reports/, so that links
lead to the same pages as on GitHub.
"""

import re
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

from bleuprint import __version__

ROOT = Path(__file__).parents[1]
# Sphinx runs this file from elsewhere; the modules below are in docs/.
sys.path.insert(0, str(ROOT / "docs"))
import reference  # noqa: E402
import results  # noqa: E402

# Text that the code writes, added at the end of the page that Git stores.
GENERATED = {"docs/commands": reference.commands}

project = "bleuprint"
author = "the bleuprint authors"
release = __version__
version = __version__
extensions = ["myst_parser"]
# The anchors that GitHub gives to headings, for links between pages.
myst_heading_anchors = 3
root_doc = "docs/index"
include_patterns = ["docs/*.md", "*.md", "reports/table.md", "reports/*/table.md"]
# Sphinx need not search the other folders for pages.
exclude_patterns = []
for path in ROOT.iterdir():
    if path.is_dir() and path.name not in ("docs", "reports"):
        exclude_patterns.append(path.name)
html_theme = "furo"
# The search reads summaries by `fetch`, which browsers refuse for files on disk.
html_show_search_summary = False
html_title = f"bleuprint {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False

# A picture with another file in dark mode, in HTML that GitHub reads.
_PICTURE = re.compile(
    r'<picture>\s*<source .* srcset="(.*)">\s*<img src="(.*?)" alt="(.*)">\s*</picture>'
)
# The same picture in the theme's terms; the numbers are groups of the pattern above.
_IMAGES = """\
```{image} \\1
:class: only-dark
:alt: \\3
```
```{image} \\2
:class: only-light
:alt: \\3
```
"""
# A link to an HTML report.
_REPORT_LINK = re.compile(r"\[([^]]+)\]\(((?:[\w./-]*/)?index\.html)\)")
# A section of docs/index.md: its heading and its text.
_SECTION = re.compile(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)")
# An entry of a list that links to a page, without the suffix of the page.
_LISTED_PAGE = re.compile(r"^- .*?\(([\w./]+)\.md\)", re.MULTILINE)


def _edit(_: Sphinx, page: str, source: list[str]) -> None:
    """Change a page for the site, so that in Git the pages stay plain Markdown for GitHub.

    Args:
        _: Sphinx itself.
        page: The path of the page without its suffix, such as docs/index.
        source: A list with one item, the text of the page; changed in place.
    """
    text = source[0]
    if page.startswith("reports/"):
        text = results.page(ROOT / f"{page}.md", text)
    text = _PICTURE.sub(_IMAGES, text)
    # As a Markdown link, Sphinx would offer the report as a download. `_finish` copies it.
    text = _REPORT_LINK.sub(r'<a href="\2">\1</a>', text)
    if page in GENERATED:
        text += "\n" + GENERATED[page]()
    if page == "docs/index":
        navigation = _navigation(text)
        text = text.replace("<!-- recipes -->", results.recipes()) + navigation
    source[0] = text


def _navigation(index: str) -> str:
    """Return the navigation of the site: the pages that each section of docs/index.md lists.

    Args:
        index: The text of docs/index.md.
    """
    text = ""
    for heading, section in _SECTION.findall(index):
        pages = "\n".join(_LISTED_PAGE.findall(section))
        if pages:
            text += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"
    return text


def _finish(app: Sphinx, error: Exception | None) -> None:
    """Copy the committed HTML reports to their addresses, and write a start page for the root.

    Args:
        app: Sphinx itself, which knows the folder of the site.
        error: The error with which the build ended; None if it succeeded.
    """
    if error is not None:
        return
    for report in ROOT.glob("reports/*/index.html"):
        copied_report = app.outdir / report.relative_to(ROOT)
        copied_report.parent.mkdir(exist_ok=True)
        shutil.copy(report, copied_report)
    start_page = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">\n'
    (app.outdir / "index.html").write_text(start_page, "utf-8")


def setup(app: Sphinx) -> None:
    """Connect the changes above with Sphinx, which calls this function.

    Args:
        app: Sphinx itself.
    """
    app.connect("source-read", _edit)
    app.connect("build-finished", _finish)
