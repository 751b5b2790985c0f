"""Manual and results as a site: built without warnings, read in a browser without a network."""

import json
import re
import statistics
import subprocess
import sys
from html import unescape
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest

from bleuprint.config.experiment import load_settings
from root import ROOT

pytestmark = pytest.mark.slow

REPORT_FOLDERS = sorted(path.parent for path in (ROOT / "reports").glob("**/table.md"))
# The pages of the site, by their paths without .html.
MANUAL_PAGES = sorted(f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md"))
OTHER_PAGES = sorted(path.stem for path in ROOT.glob("*.md"))
TABLE_PAGES = [f"{folder.relative_to(ROOT)}/table" for folder in REPORT_FOLDERS]
PAGES = MANUAL_PAGES + OTHER_PAGES + TABLE_PAGES

for_each_report = pytest.mark.parametrize(
    "report_folder", REPORT_FOLDERS, ids=lambda folder: folder.name
)


def recipe_of(report_folder):
    """Return the name of the recipe whose results a report shows.

    The folder `reports` itself has those of the experiment in params.yaml.
    """
    return "phrasebook" if report_folder.name == "reports" else report_folder.name


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the site that Sphinx builds; fails if it prints a warning."""
    folder = tmp_path_factory.mktemp("docs")
    options = ["-q", "--fail-on-warning", "--keep-going", "-d", str(folder / "doctrees")]
    folders = ["-c", str(ROOT / "docs"), str(ROOT), str(folder / "site")]
    command = [sys.executable, "-m", "sphinx", *options, *folders]
    process = subprocess.run(command, text=True, capture_output=True)
    assert process.returncode == 0, process.stderr
    return folder / "site"


def test_the_site_has_the_readme_and_the_manual():
    assert "README" in PAGES
    assert "docs/settings" in PAGES


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"docs/index"}))
def test_the_navigation_has_a_link_to_each_page(site, page):
    """Every page shows the same navigation; that of the search page has plain addresses."""
    search_page = (site / "search.html").read_text(encoding="utf-8")

    assert f'<a class="reference internal" href="{page}.html">' in search_page


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_of_a_page_lead_to_files_and_anchors_that_exist(site, page):
    """`site` is the folder of HTML pages that Sphinx builds from the manual."""
    path = site / f"{page}.html"
    targets = re.findall(r'(?:href|src|srcset)="([^"]*)"', path.read_text(encoding="utf-8"))
    assert len(targets) > 50, "the pattern finds too few links"

    for target in targets:
        address = urlsplit(unescape(target))
        if address.scheme or address.netloc:
            continue  # It leads to another site.
        file = path.parent / unquote(address.path) if address.path else path
        assert file.is_file(), target
        assert file.suffix != ".md", target
        if address.fragment and file.suffix == ".html":
            anchor = f'id="{unquote(address.fragment)}"'
            assert anchor in file.read_text(encoding="utf-8"), target


@pytest.fixture(scope="module")
def recipe_rows(site):
    """Return the table rows of the start page by the name of the recipe in their first cell."""
    start_page = (site / "index.html").read_text(encoding="utf-8")
    # The file index.html only leads to the start page.
    (page,) = re.findall(r"url=([\w/.]+)", start_page)
    text = (site / page).read_text(encoding="utf-8")
    rows = {}
    for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL):
        is_head = "<td>" not in row
        if not is_head:
            recipe = re.findall(r"<p>.*?>([\w-]+)<", row)[0]
            rows[recipe] = row
    return rows


def test_the_start_page_lists_each_recipe_once(recipe_rows):
    recipes = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))

    assert sorted(recipe_rows) == recipes


def test_there_are_reports():
    assert REPORT_FOLDERS


def bleu_rows(report_folder):
    """Return the rows of BLEU over all lines of a test set, from the results of a report."""
    rows = []
    for row in json.loads((report_folder / "results.json").read_text("utf-8"))["metrics"]:
        if row["metric"] == "bleu" and not row["group"]:
            rows.append(row)
    return rows


@for_each_report
def test_the_start_page_shows_the_bleu_of_the_first_system_of_a_recipe(recipe_rows, report_folder):
    """The BLEU is on the first test set in the results of the recipe, and a mean over all seeds.

    The start page has a table with a row for each recipe.
    """
    rows = bleu_rows(report_folder)
    first_row = rows[0]
    bleu_by_seed = []
    for row in rows:
        is_first_system = row["system"] == first_row["system"]
        is_first_test = (row["corpus"], row["test"]) == (first_row["corpus"], first_row["test"])
        if is_first_system and is_first_test:
            bleu_by_seed.append(row["value"])
    mean_bleu = statistics.mean(bleu_by_seed)

    row_of_start_page = recipe_rows[recipe_of(report_folder)]

    assert f"{first_row['system']}: {mean_bleu:.1f}" in row_of_start_page


@for_each_report
def test_a_page_of_results_shows_the_commands_that_reproduce_them(site, report_folder):
    """`site` is the folder of HTML pages that Sphinx builds; each report has a page, table.html."""
    page = site / report_folder.relative_to(ROOT) / "table.html"
    html = page.read_text(encoding="utf-8")
    visible_text = unescape(re.sub("<.*?>", "", html))  # without tags such as <code>

    assert f"make recipe NAME={recipe_of(report_folder)} && make reproduce" in visible_text


@for_each_report
def test_a_page_of_results_shows_learning_curves(site, report_folder):
    page = site / report_folder.relative_to(ROOT) / "table.html"

    assert '<figure class="curves"><svg' in page.read_text(encoding="utf-8")


HTML_REPORTS = sorted((ROOT / "reports").glob("*/index.html"))
for_each_html_report = pytest.mark.parametrize(
    "html_report", HTML_REPORTS, ids=lambda path: path.parent.name
)


def test_there_are_html_reports():
    assert HTML_REPORTS


@for_each_html_report
def test_the_site_has_an_html_report_as_it_is_committed(site, html_report):
    assert (site / html_report.relative_to(ROOT)).read_bytes() == html_report.read_bytes()


@for_each_html_report
def test_an_html_report_quotes_only_text_that_bleuprint_contains(html_report):
    """Reports show sentences, and the licenses of other texts may not allow this.

    So the recipe of a committed report must use only the texts in the package, whose addresses
    begin with phrasebook:, copy: or toy:.
    """
    settings = load_settings(ROOT / "recipes" / f"{html_report.parent.name}.yaml")

    for corpus in settings.corpora.values():
        # Files are nested by set and side; their text contains each address as url='...'.
        urls = re.findall(r"url='([^']*)'", repr(corpus.files))
        assert urls != []
        for url in urls:
            assert url.startswith(("phrasebook:", "copy:", "toy:"))


@pytest.fixture(scope="module", params=[1280, 390], ids=["desktop", "phone"])
def visit(site, browser, request):
    """Return what happens when a browser opens all pages of the site in a window of a width.

    Attributes of the result: `window_width`; `page_widths`, by page; the addresses of `requests` to
    other hosts; and `complaints`, the messages in the browser's console.
    """
    browser.resize(request.param)
    page_widths = {}
    for page in PAGES:
        browser.open((site / f"{page}.html").as_uri())
        page_widths[page] = browser.script("return document.documentElement.scrollWidth")
    return SimpleNamespace(
        window_width=request.param,
        page_widths=page_widths,
        requests=browser.requests(),
        complaints=browser.complaints(),
    )


def test_every_page_fits_into_the_width_of_the_window(visit):
    """A browser has opened all pages, in a window of a desktop and one of a phone.

    On a page wider than the window, a reader has to scroll sideways in each line.
    """
    wide_pages = []
    for page, width in visit.page_widths.items():
        if width > visit.window_width:
            wide_pages.append(page)
    assert wide_pages == []


def test_pages_request_nothing_from_other_hosts(visit):
    assert visit.requests == []


def test_the_browser_finds_no_error_on_a_page(visit):
    assert visit.complaints == []
