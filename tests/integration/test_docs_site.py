"""The manual as a site: built without warnings, and read in a browser without a network."""

import re
import subprocess
import sys
from html import unescape
from urllib.parse import unquote, urlsplit

import pytest

from root import ROOT

pytestmark = pytest.mark.slow

PAGES = [
    *sorted(f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")),
    *sorted(path.stem for path in ROOT.glob("*.md")),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("furo")
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("docs")
    options = ["-q", "--fail-on-warning", "--keep-going", "-d", str(folder / "doctrees")]
    folders = ["-c", str(ROOT / "docs"), str(ROOT), str(folder / "site")]
    command = [sys.executable, "-m", "sphinx", *options, *folders]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_every_page_is_in_the_navigation(site):
    assert {"README", "docs/settings"} < set(PAGES)
    search = (site / "search.html").read_text(encoding="utf-8")
    for page in set(PAGES) - {"docs/index"}:
        assert f'<a class="reference internal" href="{page}.html">' in search


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_lead_to_what_there_is(site, page):
    path = site / f"{page}.html"
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r'(?:href|src|srcset)="([^"]*)"', text)
    assert len(targets) > 50
    for target in map(urlsplit, map(unescape, targets)):
        if target.scheme or target.netloc:
            continue
        file = path.parent / unquote(target.path) if target.path else path
        assert file.is_file(), target
        # the pages of reports are whole files, tables are Markdown
        assert file.suffix != ".md" or file.name == "table.md", target
        if target.fragment and file.suffix == ".html":
            anchor = f'id="{unquote(target.fragment)}"'
            assert anchor in file.read_text(encoding="utf-8"), target


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_and_request_nothing_from_other_hosts(site, browser, width):
    browser.resize(width)
    for page in PAGES:
        browser.open((site / f"{page}.html").as_uri())
        assert browser.script("return document.documentElement.scrollWidth") <= width, page
    assert browser.requests() == []
    assert browser.complaints() == []


def test_search_finds_a_setting_and_a_message(site, browser):
    for words, page in (
        ("label_smoothing_target", "docs/settings"),
        ("not parallel", "docs/troubleshooting"),
        ("two commands", "README"),
    ):
        browser.open(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
        browser.wait(f"document.querySelector('#search-results a[href^=\"{page}.html\"]')")
    assert browser.requests() == []
    assert browser.complaints() == []
