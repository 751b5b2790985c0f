"""Output on a terminal, in a real process: of any width, with and without UTF-8 and color."""

import argparse
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import processes
import result_trees as trees
from bleuprint.cli import scores as scores_command
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import settings_sha256
from bleuprint.report import report
from bleuprint.report.frame import load
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set
from bleuprint.report.table import stack_tables, text_table
from result_rows import TWO_SYSTEMS, records_from_rows


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return the folder of a project with params.yaml and the results of TWO_SYSTEMS."""
    root = tmp_path_factory.mktemp("project")
    settings = trees.settings_in(root)
    rows = []
    for row in TWO_SYSTEMS:
        facts = row["facts"]
        run = Run(facts["system"], facts["corpus"], facts["seed"])
        new_facts = {**facts, "settings_sha256": settings_sha256(settings, run)}
        rows.append({**row, "facts": new_facts})
    records_from_rows(*rows).save(root / "reports" / "results.json")
    return root


@pytest.fixture
def empty_project(tmp_path):
    """Return a folder with an empty folder `reports`."""
    (tmp_path / "reports").mkdir()
    return tmp_path


def copy_files(project, root, *names):
    """Copy files of a project to another folder."""
    for name in names:
        shutil.copy(project / name, root / name)


def print_table(root, *arguments, status=0, **variables):
    """Run `bleuprint table` in a project.

    Args:
        root: The folder of the project.
        arguments: The arguments of the command.
        status: The status that the command must end with.
        variables: Environment variables.

    Returns:
        What the command prints: to standard error if it fails, else to standard output.
    """
    command = [sys.executable, "-m", "bleuprint", "table", *arguments]
    environment = {**os.environ, "PYTHONUTF8": "1", "COLUMNS": "200", **variables}
    if "PYTHONUTF8" in variables:  # Only a new process reads it.
        process = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    else:
        process = processes.run_text(command, root, environment)
    assert process.returncode == status, process.stderr
    messages = processes.without_progress(process.stderr)
    if status:
        return messages
    assert not messages
    return process.stdout


def show_in_process(table, columns):
    """Return what another process prints of a table on a terminal with so many columns."""
    code = (
        "from bleuprint.report.table import *; from bleuprint.report.terminal import show;"
        f"show([{table!r}])"
    )
    environment = {**os.environ, "PYTHONUTF8": "1", "COLUMNS": str(columns)}
    process = processes.run([sys.executable, "-c", code], Path(), environment)
    assert process.returncode == 0, process.stderr
    return process.stdout.decode()


def test_the_table_names_no_weak_points_if_there_are_none(project):
    assert "Weak points" not in print_table(project)


def test_the_table_names_weak_points_of_the_experiment(project, tmp_path):
    """Results.json is changed to say that test sets have 40 lines, which a warning calls few."""
    root = shutil.copytree(project, tmp_path / "weak")
    results = root / "reports" / "results.json"
    content = json.loads(results.read_text("utf-8"))
    for run in content["runs"]:
        run["lines"] = 40
    results.write_text(json.dumps(content), "utf-8")

    printed = print_table(root)

    on_one_line = " ".join(printed.split())
    weak_points = "Weak points (see reports/index.html): Few test lines: only large differences sh"
    assert weak_points in on_one_line


def numbers_in(text):
    """Return the beginnings of scores with intervals, differences, p-values and FLOPs, sorted."""
    return sorted(re.findall(r"\d\d\.\d \[\d\d\.\d, |[+]10\.0\S*|p=0\.\d{3}|\de\d\d", text))


@pytest.fixture(scope="module")
def two_systems_table():
    """Return the table of two systems on three test sets."""
    return stack_tables(tables_by_test_set(score_frame(records_from_rows(*TWO_SYSTEMS))))


def test_a_wide_terminal_shows_all_columns_side_by_side(two_systems_table):
    """Two systems on three test sets have six scores and six numbers of FLOPs.

    The second system also has a difference from the first, with a p-value, on each test set. In a
    table of several parts, the head `System` would appear several times.
    """
    text = show_in_process(two_systems_table, columns=200)

    scores = 2 * 3
    differences = 3
    p_values = 3
    flops = 2 * 3
    assert text.count("System") == 1
    assert len(numbers_in(text)) == scores + differences + p_values + flops


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_shows_all_numbers_in_several_parts(two_systems_table, width):
    """The columns that do not fit stand below the others; each part begins with `System` again."""
    all_numbers = numbers_in(show_in_process(two_systems_table, columns=200))

    text = show_in_process(two_systems_table, columns=width)

    assert all(len(line) <= width for line in text.split("\n"))
    assert text.count("System") > 1
    assert numbers_in(text) == all_numbers


def test_texts_are_left_and_numbers_right_in_their_column():
    """Characters of 東京 are twice as wide as letters on a terminal.

    The library Rich, which prints the table, would read [b] as bold type.
    """
    rows = [("[b]one[/b]", "12", "3"), ("東京", "4", "5")]
    table = text_table(["name"], ["n", "a long head"], rows)

    lines = show_in_process(table, columns=80).strip("\n").split("\n")

    assert lines == [
        "name         n  a long head",
        "───────────────────────────",
        "[b]one[/b]  12            3",
        "東京         4            5",
    ]


def test_the_table_has_no_colors_in_a_pipe(project):
    """The test reads the output of `bleuprint table` through a pipe, as `| grep` does.

    A color begins with the character ESC, which grep would print as garbage.
    """
    text = print_table(project)

    escape = "\x1b"
    assert escape not in text
    assert "+10.0‡ p=0.001" in text
    assert "─" in text


def test_the_table_is_in_utf_8_in_any_locale(project):
    text = print_table(project, PYTHONUTF8="0", PYTHONIOENCODING="ascii")

    assert text == print_table(project)


def test_the_best_score_is_bold_on_a_terminal(project):
    text = print_table(project, FORCE_COLOR="1", TERM="xterm")

    assert "\x1b[1m41.1 [40.1, 43.1]\x1b[0m" in text


def test_a_folder_that_is_not_a_project_is_refused(empty_project):
    assert print_table(empty_project, status=1) == (
        "bleuprint: error: params.yaml: no such file. Run the command from the project's root\n"
    )


def test_a_project_without_results_is_refused(project, empty_project):
    """The folder contains params.yaml, and nothing has been run yet."""
    copy_files(project, empty_project, "params.yaml")

    error = print_table(empty_project, status=1)

    assert error == "bleuprint: error: reports/results.json: no such file. Run: make reproduce\n"


@pytest.fixture
def project_with_published_number(project, empty_project):
    """Return a project whose params.yaml names a published number."""
    copy_files(project, empty_project, "params.yaml", "reports/results.json")
    number = (
        "{name: Paper, source: Doe 2020, corpus: talks-en-fr, test: only, bleu: 35, "
        "metric: tokenized}"
    )
    params = empty_project / "params.yaml"
    text = params.read_text("utf-8").replace("published: []", f"published: [{number}]")
    params.write_text(text, encoding="utf-8")
    return empty_project


@pytest.mark.parametrize("arguments", [[], ["--all"]], ids=["short", "all"])
def test_the_table_shows_published_numbers(project_with_published_number, arguments):
    text = print_table(project_with_published_number, *arguments)

    assert re.search(r"^Paper \(published\) .* 35\.0$", text, re.M)
    assert "2.57M" in text  # the parameters of our systems


def test_the_whole_table_names_the_source_of_published_numbers(project_with_published_number):
    text = print_table(project_with_published_number, "--all")

    assert "Doe 2020; tokenized BLEU on talks-en-fr only" in text


@pytest.mark.parametrize("hint", ["--all", "reports/table.md", "make ui"])
def test_the_short_table_says_where_to_read_more(project_with_published_number, hint):
    assert hint in print_table(project_with_published_number)


def test_the_table_is_shown_if_the_page_cannot_be_written(project, monkeypatch, capsys):
    """`bleuprint table` also writes the page if it is out of date.

    On a disk that can only be read, this fails, and the user should still see the table.
    """

    def refuse_to_write(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "reports/.index.html")

    monkeypatch.chdir(project)
    monkeypatch.setattr(report, "write_html_report_if_outdated", refuse_to_write)

    scores_command._table(argparse.Namespace(all=False))

    output = capsys.readouterr()
    assert "small" in output.out
    assert output.err == (
        "bleuprint: note: reports/index.html could not be written: Read-only file system\n"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("beam: 2", "beam: 3", id="other setting"),
        pytest.param("  small:", "  large:", id="other system"),
        pytest.param("- 1\n", "- 2\n", id="other seed"),
    ],
)
def test_results_of_other_settings_are_refused(project, empty_project, old, new):
    """Params.yaml is edited after the results were made; the table must not pass as that of it."""
    copy_files(project, empty_project, "reports/results.json")
    params = (project / "params.yaml").read_text("utf-8")
    assert old in params
    (empty_project / "params.yaml").write_text(params.replace(old, new), encoding="utf-8")

    error = print_table(empty_project, status=1)

    assert error == (
        "bleuprint: error: reports/results.json was computed with another params.yaml. Run: make "
        "reproduce. If that runs nothing, run: dvc repro --force --single-item report\n"
    )


def first_words(text):
    """Return the first word of each row, for each part of a table that empty lines separate."""
    words = []
    for part in text.strip("\n").split("\n\n"):
        head_and_rule = 2
        rows = part.split("\n")[head_and_rule:]
        words.append([row.split()[0] for row in rows])
    return words


@pytest.fixture
def table_with_an_empty_cell():
    """Return a table of two groups, whose system `one` has no chrF2."""
    return stack_tables(
        {
            "en-de": text_table(["System"], ["BLEU", "chrF2"], [("one", "1.0", "–")]),
            "en-fr": text_table(["System"], ["BLEU", "chrF2"], [("both", "2.0", "3.0")]),
        }
    )


def test_a_part_of_a_table_shows_only_rows_with_a_value_and_their_groups(
    table_with_an_empty_cell,
):
    """13 characters have room for one score, so the table has a part for BLEU and one for chrF2.

    System `one`, the only one of the group en-de, has no chrF2.
    """
    text = show_in_process(table_with_an_empty_cell, columns=13)

    bleu_part, chrf2_part = first_words(text)
    assert bleu_part == ["en-de", "one", "en-fr", "both"]
    assert chrf2_part == ["en-fr", "both"]


def test_a_table_in_one_part_shows_a_dash_for_a_missing_value(table_with_an_empty_cell):
    text = show_in_process(table_with_an_empty_cell, columns=80)

    assert "one      1.0      –" in text


def test_a_long_name_takes_several_lines():
    """A name may take a part of the 60 characters, so that numbers still fit at its right."""
    table = text_table(["System"], ["n"], [("ten chars " * 3, "1")])

    _heads, _line, *rows = show_in_process(table, columns=60).strip("\n").split("\n")

    assert rows == [
        "ten chars ten chars   1",
        "ten chars              ",
    ]


@pytest.fixture
def four_columns():
    """Return a table of two groups with four columns; tiny has values in two of them."""
    scores = ["41.1 [40.1, 43.1]", "42.2 [41.2, 44.2]"]
    heads = ["first", "second", "third", "fourth"]
    return stack_tables(
        {
            "en-de": text_table(["System"], heads, [("small", *scores, *scores)]),
            "en-fr": text_table(
                ["System"], heads, [("big", *scores, *scores), ("tiny", *scores, "–", "–")]
            ),
        }
    )


def test_each_part_of_a_table_repeats_the_names_of_groups(four_columns):
    """50 characters have room for two of four columns.

    In the columns of the second part, tiny has no value, so its row is left out there.
    """
    text = show_in_process(four_columns, columns=50)

    first_part, second_part = first_words(text)
    assert first_part == ["en-de", "small", "en-fr", "big", "tiny"]
    assert second_part == ["en-de", "small", "en-fr", "big"]


def test_each_part_of_a_table_has_the_columns_that_fit(four_columns):
    text = show_in_process(four_columns, columns=50)

    heads = [part.split("\n")[0].split() for part in text.strip("\n").split("\n\n")]
    assert heads == [["System", "first", "second"], ["System", "third", "fourth"]]


def test_columns_that_fit_are_one_part(four_columns):
    text = show_in_process(four_columns, columns=200)

    assert "\n\n" not in text.strip("\n")


@pytest.fixture
def table_tex(project):
    """Return table.tex of the project."""
    return report.table_tex(load_settings(project / "params.yaml"), load(project), project)


def test_latex_shows_the_best_score_in_bold_and_its_difference(table_tex):
    assert "small & \\textbf{41.1 [40.1, 43.1]} & +10.0$^{\\ddagger}$ p=0.001 &" in table_tex


def test_latex_is_ascii_with_balanced_braces(table_tex):
    assert table_tex.isascii()
    assert table_tex.count("{") == table_tex.count("}")


def test_each_row_of_a_latex_table_has_a_cell_for_each_column(table_tex):
    r"""LaTeX refuses a row with more cells than `\begin{tabular}{lrr}` lists columns.

    `table_tex` is table.tex with a table of scores and one of costs.
    """
    _text_before, *tables = table_tex.split("\\begin{table}")

    assert len(tables) == 2
    for table in tables:
        (columns,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", table)
        _, body = table.split("\\midrule\n", maxsplit=1)
        end_of_row = "\\\\"
        rows = [line for line in body.split("\n") if line.endswith(end_of_row)]
        assert len(rows) >= 2
        for row in rows:
            assert row.count(" & ") == len(columns) - 1
