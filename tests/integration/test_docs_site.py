"""Manual and results as a site: built without warnings, read in a browser without a network."""

import json
import re
import statistics
import subprocess
import sys
from html import unescape
from urllib.parse import unquote, urlsplit

import pytest

from bleuprint.config.experiment import load_settings
from root import ROOT

pytestmark = pytest.mark.slow

RECIPES = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))
REPORTS = sorted(path.parent for path in (ROOT / "reports").glob("**/table.md"))
PAGES = [
    *sorted(f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")),
    *sorted(path.stem for path in ROOT.glob("*.md")),
    *(f"{path.relative_to(ROOT)}/table" for path in REPORTS),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
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
        assert file.suffix != ".md", target
        if target.fragment and file.suffix == ".html":
            anchor = f'id="{unquote(target.fragment)}"'
            assert anchor in file.read_text(encoding="utf-8"), target


def test_the_start_page_lists_each_recipe_with_its_first_bleu(site):
    start = (site / "index.html").read_text(encoding="utf-8")
    (page,) = re.findall(r"url=([\w/.]+)", start)
    rows = re.findall(r"<tr.*?</tr>", (site / page).read_text(encoding="utf-8"), re.DOTALL)
    text = {re.findall(r"<p>.*?>([\w-]+)<", row)[0]: row for row in rows if "<td>" in row}
    assert sorted(text) == RECIPES
    assert REPORTS
    for report in REPORTS:
        name = "phrasebook" if report.name == "reports" else report.name
        cells = json.loads((report / "results.json").read_text("utf-8"))["metrics"]
        bleu = [each for each in cells if each["metric"] == "bleu" and not each["group"]]
        first = bleu[0]
        of_first = [
            each["value"]
            for each in bleu
            if all(each[key] == first[key] for key in ("system", "corpus", "test"))
        ]
        assert f"{first['system']}: {statistics.mean(of_first):.1f}" in text[name]


def test_pages_of_results_have_their_commands_and_quote_none_but_embedded_text(site):
    assert REPORTS
    for report in REPORTS:
        name = "phrasebook" if report.name == "reports" else report.name
        page = (site / report.relative_to(ROOT) / "table.html").read_text(encoding="utf-8")
        assert f"make recipe NAME={name} && make reproduce" in unescape(re.sub("<.*?>", "", page))
        assert '<figure class="curves"><svg' in page
    pages = list((ROOT / "reports").glob("*/index.html"))
    assert pages
    for path in pages:
        assert (site / path.relative_to(ROOT)).read_bytes() == path.read_bytes()
        for corpus in load_settings(ROOT / "recipes" / f"{path.parent.name}.yaml").corpora.values():
            urls = re.findall(r"url='([^']*)'", repr(corpus.files))
            assert urls and all(re.match("(phrasebook|copy|toy):", url) for url in urls)


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_and_request_nothing_from_other_hosts(site, browser, width):
    browser.resize(width)
    for page in PAGES:
        browser.open((site / f"{page}.html").as_uri())
        assert browser.script("return document.documentElement.scrollWidth") <= width, page
    assert browser.requests() == []
    assert browser.complaints() == []
