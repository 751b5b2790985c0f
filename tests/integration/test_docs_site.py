"""The manual as a site: built without warnings, and read in a browser without a network."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Browser, chromium
from root import ROOT

PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("furo")
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("docs")
    options = ["-q", "--fail-on-warning", "--keep-going", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(folder / "site")]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def browser(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:  # noqa: ARG001
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


def test_every_page_of_docs_is_in_the_navigation(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    for page in set(PAGES) - {"index"}:
        assert f'<a class="reference internal" href="{page}.html">' in index


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_and_request_nothing_from_other_hosts(
    site: Path, browser: Browser, width: int
) -> None:
    browser.resize(width)
    for page in PAGES:
        browser.driver.get((site / f"{page}.html").as_uri())
        assert browser.script("return document.documentElement.scrollWidth") <= width, page
    assert browser.requests() == []
    assert browser.complaints() == []


def test_search_finds_a_setting_and_a_message(site: Path, browser: Browser) -> None:
    for words, page in (
        ("label_smoothing_target", "settings"),
        ("not parallel", "troubleshooting"),
    ):
        browser.driver.get(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
        browser.wait(f"document.querySelector('#search-results a[href^=\"{page}.html\"]')")
    assert browser.requests() == []
    assert browser.complaints() == []
