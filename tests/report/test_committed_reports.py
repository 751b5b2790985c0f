"""The tables of committed reports: results.json gives them, and they are those of version 1.0.

Heads that have another name today are listed in heads_of_1_0.py, each with the reason; nothing else
may differ. What version 1.0 printed is read from Git's history, so that no table is compared with
one that today's code wrote. Where the history is missing, as in a shallow clone, the files in
reports/ are compared alone.
"""

import io
import json
import re
import subprocess
from contextlib import redirect_stdout

import pytest

import heads_of_1_0
from bleuprint.config.experiment import load_settings
from bleuprint.report import frame, report
from bleuprint.report.overview import everything
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.scores import cost_section, errors_section, score_variables
from bleuprint.report.page.section import Section
from bleuprint.report.published.literature import with_published_numbers
from bleuprint.report.table import text_table
from bleuprint.report.terminal import show
from pages import Page
from requirements import HISTORY, needs
from root import ROOT

# The last commit of version 1.0.
V1 = "d97fdb56555518fdf79686762d74bd12d4f12bd6"
# The recipe whose report is in reports/ itself.
DEFAULT = "phrasebook"
RECIPES = sorted(
    DEFAULT if path.parent.name == "reports" else path.parent.name
    for path in ROOT.glob("reports/**/results.json")
)
# What version 1.0 called columns of table.csv, metrics, and keys of results.json.
NEW_NAMES = {
    "any fault": "any error",
    "loop": "repetition",
    "other language": "wrong language",
    "source copied": "untranslated",
    "cells": "runs",
    "high": "ci_high",
    "low": "ci_low",
    "measure": "metric",
    "measures": "metrics",
    "outside": "about",
    "otherwise": "unknown",
}
# What version 1.0 called settings that pages name beside systems.
NEW_SETTINGS = {
    "clean.tags": "clean.html_tags",
    "filter.numbers": "filter.numerals",
    "filter.sentence_marks": "filter.terminal_punctuation",
    "filter.language_id.likelier": "filter.language_id.min_odds",
}


def git(*arguments):
    command = ["git", "-C", ROOT, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8")


HAS_HISTORY = git("cat-file", "-e", f"{V1}^{{commit}}").returncode == 0
SOURCES = [
    pytest.param("reports", id="reports"),
    pytest.param(V1, id="version 1.0", marks=needs(HISTORY, HAS_HISTORY)),
]


def folder_of(recipe):
    return "reports" if recipe == DEFAULT else f"reports/{recipe}"


def printed(source, recipe, name):
    """A file of a report as it is in reports/, or as a commit has it."""
    path = f"{folder_of(recipe)}/{name}"
    if source == "reports":
        return (ROOT / path).read_text("utf-8")
    shown = git("show", f"{source}:{path}")
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def in_new_names(value):
    """The value of a JSON file of version 1.0, with today's keys and names of metrics."""
    if isinstance(value, list):
        return [in_new_names(each) for each in value]
    if not isinstance(value, dict):
        return value
    renamed = {NEW_NAMES.get(key, key): in_new_names(each) for key, each in value.items()}
    if "metric" in renamed:
        renamed["metric"] = NEW_NAMES.get(renamed["metric"], renamed["metric"])
    return renamed


def csv_in_new_names(text):
    """A table.csv of version 1.0, with today's names of columns and metrics."""
    heads, *rows = (line.split(",", maxsplit=5) for line in text.splitlines())
    heads = [NEW_NAMES.get(name, name) for name in ",".join(heads).split(",")]
    for row in rows:
        row[4] = NEW_NAMES.get(row[4], row[4])
    return "".join(f"{','.join(line)}\n" for line in (heads, *rows))


def markdown_tables(text):
    """The tables of a table.md, each after its heading; those of the data are of other files."""
    before_data, _, _ = text.partition("\n## Data\n")
    return [line for line in before_data.splitlines() if line.startswith(("#", "|"))]


def expected_markdown(source, recipe):
    """The titles and tables of table.md, those of version 1.0 with today's names."""
    lines = markdown_tables(printed(source, recipe, "table.md"))
    return lines if source == "reports" else heads_of_1_0.markdown_of_today(lines)


def latex_tables(text):
    return re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL)


def expected_latex(source, recipe):
    """The tables of table.tex, those of version 1.0 with today's names."""
    tables = latex_tables(printed(source, recipe, "table.tex"))
    return tables if source == "reports" else [*map(heads_of_1_0.latex_of_today, tables)]


def cells_of(line):
    """The cells of a line of a Markdown table, without marks."""
    cells = [cell.replace("**", "") for cell in heads_of_1_0.markdown_cells(line)]
    return [cell.replace("&lt;", "<").replace("\\", "") for cell in cells]


def score_rows(lines):
    """By test set and system, the scores in a table.md that are not empty, then the costs."""
    text = "\n" + "\n".join(lines)
    scores, costs = {}, {}
    for title in ("BLEU", "Other scores"):
        section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        for part in f"\n{section}".split("\n### ")[1:]:
            test_set, *lines = part.splitlines()
            heads, _, *rows = [cells_of(line) for line in lines if line.startswith("| ")]
            for name, *cells in rows:
                for head, cell in zip(heads[1:], cells, strict=True):
                    if cell != "–":
                        kind = costs if head.startswith("FLOPs") else scores
                        kind.setdefault((test_set, name), []).append(cell)
    return {row: scores.get(row, []) + costs.get(row, []) for row in (scores | costs)}


def terminal_rows(text, test_sets):
    """The same of what a terminal shows; long names of columns take several lines."""
    found, test_set = {}, ""
    for line in text.splitlines():
        name, *cells = re.split(r" {2,}", line.strip())
        if name in test_sets and not cells:
            test_set = name
        elif test_set and name and cells:
            found[test_set, name] = [cell for cell in cells if cell != "–"]
        elif not line:
            test_set = ""
    return found


@pytest.fixture(scope="module", params=RECIPES)
def rendered(request, tmp_path_factory):
    """What today's code prints of a recipe's results.json, by file; and on a wide terminal.

    The counts of the corpora are left out, since they are not committed.
    """
    recipe = request.param
    folder = ROOT / folder_of(recipe)
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")
    stored = frame.read(folder / "results.json", folder)
    records = with_published_numbers(stored, settings.published)
    empty = tmp_path_factory.mktemp("project")
    terminal = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(terminal):
        patch.setattr(report, "training_pairs_table", lambda *_: text_table([], [], []))
        patch.setenv("COLUMNS", "2000")
        show(everything(records))
        return recipe, {
            "table.md": report.table_md(settings, records, empty),
            "table.tex": report.table_tex(settings, records, empty),
            "table.csv": frame.csv_text(records),
            "terminal": terminal.getvalue(),
        }


@pytest.mark.parametrize("source", SOURCES)
def test_table_md_has_the_same_tables(rendered, source):
    recipe, texts = rendered
    expected = expected_markdown(source, recipe)
    assert len(expected) > 10
    assert markdown_tables(texts["table.md"]) == expected


@pytest.mark.parametrize("source", SOURCES)
def test_table_tex_has_the_same_tables(rendered, source):
    recipe, texts = rendered
    expected = expected_latex(source, recipe)
    assert len(expected) == 2
    assert latex_tables(texts["table.tex"]) == expected


@pytest.mark.parametrize("source", SOURCES)
def test_table_csv_is_the_same(rendered, source):
    recipe, texts = rendered
    expected = printed(source, recipe, "table.csv")
    assert texts["table.csv"] == (csv_in_new_names(expected) if source == V1 else expected)


@pytest.mark.parametrize("source", SOURCES)
def test_the_terminal_shows_the_scores_of_table_md(rendered, source):
    recipe, texts = rendered
    expected = score_rows(expected_markdown(source, recipe))
    test_sets = {test_set for test_set, _ in expected}
    assert terminal_rows(texts["terminal"], test_sets) == expected


PAGES = sorted(path.parent.name for path in ROOT.glob("reports/*/index.html"))


@needs(HISTORY, HAS_HISTORY)
@pytest.mark.parametrize("recipe", RECIPES)
def test_tables_of_1_0_are_taken_apart_and_put_together_without_a_change(recipe, monkeypatch):
    """So that nothing but the listed names can hide a difference."""
    for names in ("HEADS", "TITLES", "CELLS"):
        monkeypatch.setattr(heads_of_1_0, names, {})
    markdown = markdown_tables(printed(V1, recipe, "table.md"))
    assert heads_of_1_0.markdown_of_today(markdown) == markdown
    latex = latex_tables(printed(V1, recipe, "table.tex"))
    assert [*map(heads_of_1_0.latex_of_today, latex)] == latex


def number_cells(section):
    """The cells of numbers in the tables of a section: their marks and texts, and sort keys."""
    cells = re.findall(r'<td class="number (\w*)"[^>]*>(.*?)</td>', section, re.DOTALL)
    keys = re.findall(r'<td class="number[^"]*" data-key="([^"]+)"', section)
    return cells, [float(key) for key in keys]


@needs(HISTORY, HAS_HISTORY)
@pytest.mark.parametrize("recipe", PAGES)
def test_the_html_report_has_the_same_tables(recipe, tmp_path):
    """Of version 1.0, whose page shows times of the costs.csv beside its results.json.

    Their captions differ: "1 thread" was "1 threads", and drawn intervals are explained.
    """
    (tmp_path / "reports").mkdir()
    results = in_new_names(json.loads(printed(V1, recipe, "results.json")))
    (tmp_path / "reports" / "results.json").write_text(json.dumps(results), encoding="utf-8")
    costs = printed(V1, recipe, "costs.csv")
    (tmp_path / "reports" / "costs.csv").write_text(costs, encoding="utf-8")
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")
    context = ReportData(
        settings, with_published_numbers(frame.load(tmp_path), settings.published), tmp_path
    )
    page = git("show", f"{V1}:reports/{recipe}/index.html").stdout
    sections = {
        "summary": Section("scores", "", score_variables(context)),
        "faults": errors_section(context),
        "cost": cost_section(context),
    }
    for anchor, section in sections.items():
        assert section.anchor in ("scores", heads_of_1_0.ANCHORS.get(anchor, (anchor, ""))[0])
        expected = page.partition(f'<section id="{anchor}">')[2].partition("</section>")[0]
        for old, new in NEW_SETTINGS.items():
            expected = expected.replace(old, new)
        expected_tables = Page(f'<section id="x">{expected}</section>').tables["x"]
        tables = Page(f'<section id="x">{section.body}</section>').tables["x"]
        for table, expected_table in zip(tables, expected_tables, strict=True):
            heads = [heads_of_1_0.head_of_today(head) for head in expected_table.heads]
            assert table.heads == heads
            rows = [[*map(heads_of_1_0.cell_of_today, row)] for row in expected_table.rows]
            assert table.rows == rows
        assert [table.marks for table in tables] == [table.marks for table in expected_tables]
        cells, keys = number_cells(section.body)
        expected_cells, expected_keys = number_cells(expected)
        assert len(cells) > 1
        assert cells == [(mark, heads_of_1_0.cell_of_today(text)) for mark, text in expected_cells]
        assert keys == pytest.approx(expected_keys)
