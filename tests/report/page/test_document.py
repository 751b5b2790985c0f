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

HOSTILE = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first", "second")})
    trees.write_all(root, settings)
    return ReportData(settings, collect(settings, root), root)


@pytest.fixture(scope="module")
def text(context):
    return html_page(context)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_every_section_is_there_and_linked(page):
    names = ["summary", "curves", "errors", "cost", "provenance"]
    assert [name for name in page.sections if name in names] == names
    links = [value for value in page.values("href") if value.startswith("#")]
    assert {link[1:] for link in links} <= set(page.ids)
    assert {f"#{name}" for name in page.sections} <= set(links)
    assert len(set(page.ids)) == len(page.ids)


def test_the_page_begins_with_what_it_shows(text):
    head = " ".join(text[text.index("<header>") : text.index("</header>")].split())
    assert "2 systems (tiny, small), trained with seed 1 on" in head
    # seven stages drop a pair each
    assert "news-en-de (en to de, 9,993 sentence pairs to train on)." in head


def test_the_commands_are_those_that_were_tried(page, context):
    """The commit of a training is named, and need not hold the page: none is checked out."""
    text = page.sections["provenance"]
    assert "git checkout" not in text and "make reproduce" in text
    scored = "sacrebleu data/split/news-en-de/test.first.de -i results/tiny/news-en-de/1/hypotheses"
    assert f"{scored}/test.first.de -m bleu -w 2 --tokenize 13a" in text
    (commit,) = context.records.runs.commit.unique()
    assert f"at commit {commit}" in text


def test_nothing_is_asked_of_a_network(text, page):
    for name in ("src", "href", "xlink:href", "action", "srcset", "poster"):
        assert [v for v in page.values(name) if not v.startswith(("#", "data:"))] == []
    assert "@import" not in text and "url(http" not in text
    assert {tag for tag, _, _ in page.attributes} & {"link", "img", "iframe", "object"} == set()
    assert len(text.encode()) < 1_000_000


def test_what_comes_from_outside_is_escaped(context):
    settings = dataclasses.replace(context.settings, experiment=HOSTILE)
    outside = dict.fromkeys(("device", "versions", "commit", "signature"), HOSTILE)
    records = changed(context.records, **outside)
    text = html_page(ReportData(settings, records, context.root))
    assert "<script>alert" not in re.sub('base64,[^"]*', "", text)
    assert text.count("<script>") == 1
    assert HOSTILE in Page(text).sections["provenance"]


def test_what_is_not_there_is_left_out(context, tmp_path):
    """Neither curves nor timings: a page of what the records hold."""
    shutil.copytree(context.root, tmp_path / "copy")
    for cell in context.training_runs:
        (tmp_path / "copy" / cell.results_folder / "curves.json").unlink()
    shutil.rmtree(tmp_path / "copy" / "timings")
    records = collect(context.settings, tmp_path / "copy")
    bare = ReportData(context.settings, records, tmp_path / "copy")
    page = Page(html_page(bare))
    assert "curves" not in page.sections and "#curves" not in page.values("href")
    assert "Training time" not in page.tables["summary"][0].heads  # without a value no column


def test_a_damaged_curve_is_named(context, tmp_path):
    shutil.copytree(context.root, tmp_path / "copy")
    path = tmp_path / "copy" / context.training_runs[1].results_folder / "curves.json"
    path.write_text('{"training": [{"update": 3}], "validation": []}')
    with pytest.raises(
        UserError, match=r"curves\.json is damaged: field training\.0\.tokens is missing"
    ):
        html_page(dataclasses.replace(context, root=tmp_path / "copy"))
