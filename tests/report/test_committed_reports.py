"""Today's code makes the tables of committed reports from their results.json, as version 1.0 did.

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
from dataclasses import dataclass

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
from pages import Page, Table
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
    """Run a Git command in the repository, and return the finished process."""
    command = ["git", "-C", ROOT, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8")


# Whether the commit of version 1.0 is there.
HAS_HISTORY = git("cat-file", "-e", f"{V1}^{{commit}}").returncode == 0
# Where the expected tables come from: files of today, or of version 1.0.
SOURCES = [
    pytest.param("reports", id="reports"),
    pytest.param(V1, id="version 1.0", marks=needs(HISTORY, HAS_HISTORY)),
]


def folder_of(recipe):
    """Return the folder of a recipe's report, relative to the root."""
    return "reports" if recipe == DEFAULT else f"reports/{recipe}"


def read_report_file(source, recipe, name):
    """Return the text of a file of a report.

    Args:
        source: "reports" for the file in reports/, or a commit.
        recipe: The recipe of the report.
        name: The name of the file.
    """
    path = f"{folder_of(recipe)}/{name}"
    if source == "reports":
        return (ROOT / path).read_text("utf-8")
    process = git("show", f"{source}:{path}")
    assert process.returncode == 0, process.stderr
    return process.stdout


def json_in_new_names(value):
    """Return a value of a JSON file of version 1.0, with today's keys and names of metrics."""
    if isinstance(value, list):
        return [json_in_new_names(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for key, entry in value.items():
        renamed[NEW_NAMES.get(key, key)] = json_in_new_names(entry)
    if "metric" in renamed:
        renamed["metric"] = NEW_NAMES.get(renamed["metric"], renamed["metric"])
    return renamed


def csv_in_new_names(text):
    """Return a table.csv of version 1.0, with today's names of columns and metrics."""
    head_line, *row_lines = text.splitlines()
    heads = [NEW_NAMES.get(name, name) for name in head_line.split(",")]
    lines = [",".join(heads)]
    for line in row_lines:
        # The metric is the fifth cell, and none of the first five is quoted.
        cells = line.split(",", maxsplit=5)
        cells[4] = NEW_NAMES.get(cells[4], cells[4])
        lines.append(",".join(cells))
    return "".join(f"{line}\n" for line in lines)


def markdown_tables(text):
    """Return the lines of headings and tables in a table.md.

    The section Data is left out, since it shows files that are not committed.
    """
    before_data, _, _ = text.partition("\n## Data\n")
    return [line for line in before_data.splitlines() if line.startswith(("#", "|"))]


def expected_markdown(source, recipe):
    """Return the headings and tables of table.md; those of version 1.0 get today's names."""
    lines = markdown_tables(read_report_file(source, recipe, "table.md"))
    return lines if source == "reports" else heads_of_1_0.markdown_of_today(lines)


def latex_tables(text):
    """Return the tables of a table.tex."""
    return re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL)


def expected_latex(source, recipe):
    """Return the tables of table.tex; those of version 1.0 get today's names."""
    tables = latex_tables(read_report_file(source, recipe, "table.tex"))
    if source == "reports":
        return tables
    return [heads_of_1_0.latex_of_today(table) for table in tables]


def cells_of(line):
    """Return the cells of a line of a Markdown table, without bold and escapes."""
    cells = []
    for cell in heads_of_1_0.markdown_cells(line):
        cells.append(cell.replace("**", "").replace("&lt;", "<").replace("\\", ""))
    return cells


def score_rows(lines):
    """Return the numbers in the score tables of a table.md by test set and system.

    The numbers of a row are its scores and then its costs, without empty cells.

    Args:
        lines: The lines of headings and tables of the file.
    """
    text = "\n" + "\n".join(lines)
    scores = {}
    costs = {}
    for title in ("BLEU", "Other scores"):
        section = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        for part in f"\n{section}".split("\n### ")[1:]:
            test_set, *table_lines = part.splitlines()
            heads, _, *rows = [cells_of(line) for line in table_lines if line.startswith("| ")]
            for name, *cells in rows:
                for head, cell in zip(heads[1:], cells, strict=True):
                    if cell != "–":
                        numbers = costs if head.startswith("FLOPs") else scores
                        numbers.setdefault((test_set, name), []).append(cell)
    numbers_of_row = {}
    for row in scores | costs:
        numbers_of_row[row] = scores.get(row, []) + costs.get(row, [])
    return numbers_of_row


def terminal_rows(text, test_sets):
    """Return the numbers in what a terminal shows by test set and system, as `score_rows` does.

    Args:
        text: What the terminal shows.
        test_sets: The names of the test sets, which stand above the rows.
    """
    numbers_of_row = {}
    test_set = ""
    for line in text.splitlines():
        name, *cells = re.split(r" {2,}", line.strip())
        if name in test_sets and not cells:
            test_set = name
        elif test_set and name and cells:  # Without a name, the line continues a head.
            numbers_of_row[test_set, name] = [cell for cell in cells if cell != "–"]
        elif not line:
            test_set = ""
    return numbers_of_row


@pytest.fixture(scope="module", params=RECIPES)
def rendered(request, tmp_path_factory):
    """Return a recipe, and what today's code makes of its results.json by the name of the file.

    The name of what a wide terminal shows is "terminal". The counts of training pairs are left out,
    since they are not committed.
    """
    recipe = request.param
    folder = ROOT / folder_of(recipe)
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")
    stored = frame.read(folder / "results.json", folder)
    records = with_published_numbers(stored, settings.published)
    empty_project = tmp_path_factory.mktemp("project")
    terminal = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(terminal):
        patch.setattr(report, "training_pairs_table", lambda *_: text_table([], [], []))
        patch.setenv("COLUMNS", "2000")
        show(everything(records))
        return recipe, {
            "table.md": report.table_md(settings, records, empty_project),
            "table.tex": report.table_tex(settings, records, empty_project),
            "table.csv": frame.csv_text(records),
            "terminal": terminal.getvalue(),
        }


@pytest.mark.parametrize("source", SOURCES)
def test_table_md_has_the_tables_of_the_committed_report(rendered, source):
    """Today's code must make the same table.md of a committed results.json as before.

    The committed table is today's in reports/, or that of version 1.0, read from Git's history with
    today's names. The fixture `rendered` is a recipe, and the files that today's code writes.
    """
    recipe, texts = rendered

    expected = expected_markdown(source, recipe)
    assert len(expected) > 10  # The committed file was found and contains tables.
    assert markdown_tables(texts["table.md"]) == expected


@pytest.mark.parametrize("source", SOURCES)
def test_table_tex_has_the_tables_of_the_committed_report(rendered, source):
    """Today's code must make the same LaTeX tables of a committed results.json as before.

    The committed file is today's in reports/, or that of version 1.0, read from Git's history with
    today's names. It contains a table of scores and one of costs.
    """
    recipe, texts = rendered

    expected = expected_latex(source, recipe)
    assert len(expected) == 2
    assert latex_tables(texts["table.tex"]) == expected


@pytest.mark.parametrize("source", SOURCES)
def test_table_csv_is_that_of_the_committed_report(rendered, source):
    """Today's code must make the same table.csv of a committed results.json as before.

    The committed file is today's in reports/, or that of version 1.0 (the commit V1), whose columns
    and metrics had other names.
    """
    recipe, texts = rendered

    expected = read_report_file(source, recipe, "table.csv")
    if source == V1:
        expected = csv_in_new_names(expected)
    assert texts["table.csv"] == expected


@pytest.mark.parametrize("source", SOURCES)
def test_the_terminal_shows_the_scores_of_table_md(rendered, source):
    """`bleuprint table` must print the same numbers for each test set and system as table.md.

    The committed table.md is today's in reports/, or that of version 1.0 in Git's history.
    """
    recipe, texts = rendered

    expected = score_rows(expected_markdown(source, recipe))

    test_sets = {test_set for test_set, _system in expected}
    assert terminal_rows(texts["terminal"], test_sets) == expected


# The recipes whose report contains a committed page.
RECIPES_WITH_PAGE = sorted(path.parent.name for path in ROOT.glob("reports/*/index.html"))


@pytest.fixture
def no_new_names(monkeypatch):
    """Let heads_of_1_0 rename nothing."""
    for names in ("HEADS", "TITLES", "CELLS"):
        monkeypatch.setattr(heads_of_1_0, names, {})


@needs(HISTORY, HAS_HISTORY)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.usefixtures("no_new_names")
def test_markdown_tables_of_1_0_do_not_change_if_nothing_is_renamed(recipe):
    """Otherwise the renaming could hide a difference that heads_of_1_0.py does not list."""
    tables = markdown_tables(read_report_file(V1, recipe, "table.md"))

    assert heads_of_1_0.markdown_of_today(tables) == tables


@needs(HISTORY, HAS_HISTORY)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.usefixtures("no_new_names")
def test_latex_tables_of_1_0_do_not_change_if_nothing_is_renamed(recipe):
    """Otherwise the renaming could hide a difference that heads_of_1_0.py does not list."""
    for table in latex_tables(read_report_file(V1, recipe, "table.tex")):
        assert heads_of_1_0.latex_of_today(table) == table


@dataclass
class SectionTables:
    """The tables of a section of a page.

    Attributes:
        tables: The tables.
        number_cells: The mark and the text of each cell that contains a number.
        sort_keys: The numbers by which scripts sort the columns.
    """

    tables: list[Table]
    number_cells: list[tuple[str, str]]
    sort_keys: list[float]


def tables_of(section):
    """Return the tables of a section's HTML."""
    page = Page(f'<section id="x">{section}</section>')
    keys = re.findall(r'<td class="number[^"]*" data-key="([^"]+)"', section)
    return SectionTables(
        tables=page.tables["x"],
        number_cells=re.findall(r'<td class="number (\w*)"[^>]*>(.*?)</td>', section, re.DOTALL),
        sort_keys=[float(key) for key in keys],
    )


def section_of_1_0(recipe, anchor):
    """Return the HTML of a section in a page of version 1.0, with today's names of settings."""
    page = git("show", f"{V1}:reports/{recipe}/index.html").stdout
    section = page.partition(f'<section id="{anchor}">')[2].partition("</section>")[0]
    for old_name, new_name in NEW_SETTINGS.items():
        section = section.replace(old_name, new_name)
    return section


def write_results_of_1_0(recipe, root):
    """Write the results and costs of version 1.0 to a project, with today's names.

    Its page shows the times of the costs.csv that stands beside its results.json.
    """
    (root / "reports").mkdir()
    results = json_in_new_names(json.loads(read_report_file(V1, recipe, "results.json")))
    (root / "reports" / "results.json").write_text(json.dumps(results), encoding="utf-8")
    costs = read_report_file(V1, recipe, "costs.csv")
    (root / "reports" / "costs.csv").write_text(costs, encoding="utf-8")


@pytest.fixture(scope="module", params=RECIPES_WITH_PAGE)
def page_sections(request, tmp_path_factory):
    """Return the tables of three sections, each as version 1.0 and as today's code makes it.

    The sections have the names of version 1.0: summary, faults and cost.
    """
    recipe = request.param
    root = tmp_path_factory.mktemp("project")
    write_results_of_1_0(recipe, root)
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")
    records = with_published_numbers(frame.load(root), settings.published)
    data = ReportData(settings, records, root)
    sections_of_today = {
        "summary": Section("scores", "", score_variables(data)),
        "faults": errors_section(data),
        "cost": cost_section(data),
    }
    tables = {}
    for anchor, section in sections_of_today.items():
        tables[anchor] = (tables_of(section_of_1_0(recipe, anchor)), tables_of(section.body))
    return tables


SECTIONS = pytest.mark.parametrize("anchor", ["summary", "faults", "cost"])


@needs(HISTORY, HAS_HISTORY)
@SECTIONS
def test_the_page_has_the_heads_and_rows_of_version_1_0(page_sections, anchor):
    """Today's code must make the same tables of results of version 1.0 as version 1.0 did.

    Version 1.0 gave some columns and cells other names, which `heads_of_1_0` translates. Captions
    are not compared: "1 thread" was "1 threads", and drawn intervals are explained now.
    """
    old, new = page_sections[anchor]

    for table, old_table in zip(new.tables, old.tables, strict=True):
        old_heads = [heads_of_1_0.head_of_today(head) for head in old_table.heads]
        old_rows = []
        for row in old_table.rows:
            old_rows.append([heads_of_1_0.cell_of_today(cell) for cell in row])
        assert table.heads == old_heads
        assert table.rows == old_rows


@needs(HISTORY, HAS_HISTORY)
@SECTIONS
def test_the_page_marks_the_rows_and_numbers_of_version_1_0(page_sections, anchor):
    """Marks are CSS classes: of rows, such as `baseline`, and of cells with numbers, as `best`.

    The same rows and numbers must be highlighted as on the page that version 1.0 wrote.
    """
    old, new = page_sections[anchor]

    marks_of_rows = [table.marks for table in new.tables]
    old_marks_of_rows = [table.marks for table in old.tables]
    assert marks_of_rows == old_marks_of_rows
    old_cells = []
    for mark, text in old.number_cells:
        old_cells.append((mark, heads_of_1_0.cell_of_today(text)))
    assert len(new.number_cells) > 1
    assert new.number_cells == old_cells


@needs(HISTORY, HAS_HISTORY)
@SECTIONS
def test_the_page_sorts_columns_by_the_numbers_of_version_1_0(page_sections, anchor):
    old, new = page_sections[anchor]

    assert new.sort_keys == pytest.approx(old.sort_keys)


@needs(HISTORY, HAS_HISTORY)
def test_sections_of_the_page_have_the_anchors_of_version_1_0_or_the_listed_new_ones(tmp_path):
    """A link to a section ends in its anchor, as index.html#cost, and must stay valid.

    One anchor changed: version 1.0 called the output errors faults.
    """
    recipe = RECIPES_WITH_PAGE[0]
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")
    write_results_of_1_0(recipe, tmp_path)
    records = with_published_numbers(frame.load(tmp_path), settings.published)
    data = ReportData(settings, records, tmp_path)

    new_anchor_of_faults, _ = heads_of_1_0.ANCHORS["faults"]
    assert errors_section(data).anchor == new_anchor_of_faults
    assert cost_section(data).anchor == "cost"
