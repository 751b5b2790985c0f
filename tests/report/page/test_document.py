"""The report page as a file: complete, self-contained, and the same each time."""

import dataclasses
import re
import shutil

import pytest

import result_trees as trees
from bleuprint.report.page.document import html_page
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from pages import Page
from result_rows import changed


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the data of a page with two systems. Tests must not change its files."""
    root = tmp_path_factory.mktemp("page")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first", "second")})
    trees.write_all(root, settings)
    return ReportData(settings, collect(settings, root), root)


@pytest.fixture
def root_copy(data, tmp_path):
    """Return a copy of the folder of results, which a test may change."""
    return shutil.copytree(data.root, tmp_path / "copy")


@pytest.fixture(scope="module")
def text(data):
    """Return the HTML of the page."""
    return html_page(data)


@pytest.fixture(scope="module")
def page(text):
    """Return the parsed page."""
    return Page(text)


def test_the_page_has_its_sections_in_order(page):
    expected = ["summary", "curves", "errors", "cost", "provenance"]

    assert [name for name in page.sections if name in expected] == expected


def test_every_section_is_linked_and_every_link_has_a_target(page):
    links = {value for value in page.values("href") if value.startswith("#")}

    assert {f"#{name}" for name in page.sections} <= links
    assert links <= {f"#{name}" for name in page.ids}


def test_ids_are_unique(page):
    assert len(set(page.ids)) == len(page.ids)


def test_the_page_begins_with_its_systems_and_corpora(text):
    """The corpus begins with 10,000 pairs, of which each of seven stages drops one."""
    header_html = text[text.index("<header>") : text.index("</header>")]
    header = " ".join(header_html.split())  # Lines of HTML end anywhere.

    assert "2 systems (tiny, small), trained with seed 1 on" in header
    kept_pairs = 10_000 - 7
    assert f"news-en-de (en to de, {kept_pairs:,} sentence pairs to train on)." in header


def test_the_page_shows_the_command_that_reproduces_the_results(page):
    """`make reproduce` works in the present checkout.

    `git checkout` of the commit that trained would be wrong: that commit may lack these results.
    """
    provenance = page.sections["provenance"]

    assert "make reproduce" in provenance
    assert "git checkout" not in provenance


def test_the_page_shows_the_command_that_scores_with_sacrebleu(page):
    """Readers can check a BLEU score with sacreBLEU alone, without this program."""
    command = (
        "sacrebleu data/split/news-en-de/test.first.de "
        "-i results/tiny/news-en-de/1/hypotheses/test.first.de -m bleu -w 2 --tokenize 13a"
    )
    assert command in page.sections["provenance"]


def test_the_page_names_the_commit_of_the_trainings(page, data):
    (commit,) = data.records.runs.commit.unique()

    assert f"at commit {commit}" in page.sections["provenance"]


@pytest.mark.parametrize("attribute", ["src", "href", "xlink:href", "action", "srcset", "poster"])
def test_no_attribute_refers_to_another_file(page, attribute):
    """The page is one file that can be mailed, so a link to another file would be broken.

    A value that begins with # points into the page, and one with data: contains the data itself.
    """
    links_to_other_files = []
    for value in page.values(attribute):
        if not value.startswith(("#", "data:")):
            links_to_other_files.append(value)

    assert links_to_other_files == []


def test_the_page_loads_nothing_from_other_files(text, page):
    """Style sheets, images and fonts are inside the page, so that it works without internet."""
    tags = {tag for tag, _attribute, _value in page.attributes}

    tags_that_load_files = {"link", "img", "iframe", "object"}
    assert not tags & tags_that_load_files
    assert "@import" not in text
    assert "url(http" not in text


def test_the_page_is_smaller_than_a_megabyte(text):
    assert len(text.encode()) < 1_000_000


def test_text_from_outside_is_escaped(data):
    """Results may come from a stranger; a <script> in a name must not run in the reader's browser.

    The page has one script of its own.
    """
    hostile = "<script>alert(1)</script>\"'&"
    settings = dataclasses.replace(data.settings, experiment=hostile)
    records = changed(
        data.records, device=hostile, versions=hostile, commit=hostile, signature=hostile
    )

    text = html_page(ReportData(settings, records, data.root))

    text_without_embedded_files = re.sub('base64,[^"]*', "", text)
    assert "<script>alert" not in text_without_embedded_files
    assert text.count("<script>") == 1
    shown_text = Page(text).sections["provenance"]
    assert hostile in shown_text


@pytest.fixture
def bare_page(data, root_copy):
    """Return the page of results without curves and timings."""
    for run in data.training_runs:
        (root_copy / run.results_folder / "curves.json").unlink()
    shutil.rmtree(root_copy / "timings")
    records = collect(data.settings, root_copy)
    return Page(html_page(ReportData(data.settings, records, root_copy)))


def test_a_page_without_curves_has_no_section_of_curves(bare_page):
    assert "curves" not in bare_page.sections
    assert "#curves" not in bare_page.values("href")


def test_a_page_without_timings_has_no_column_of_training_times(bare_page):
    assert "Training time" not in bare_page.tables["summary"][0].heads


def test_a_damaged_curve_is_refused_with_its_path(data, root_copy):
    """The first point of this training curve contains the update, but no number of tokens."""
    path = root_copy / data.training_runs[1].results_folder / "curves.json"
    path.write_text('{"training": [{"update": 3}], "validation": []}')

    message = r"curves\.json is damaged: field training\.0\.tokens is missing"
    with pytest.raises(UserError, match=message):
        html_page(dataclasses.replace(data, root=root_copy))
