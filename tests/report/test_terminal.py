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
from bleuprint.cli.scores import _table
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.config.runs import settings_sha256
from bleuprint.report import frame as frames
from bleuprint.report import report
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import tables_by_test_set
from bleuprint.report.table import stack_tables, text_table
from result_rows import TWO_SYSTEMS, frame


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    settings = trees.settings_in(root)
    rows = []
    for row in TWO_SYSTEMS:
        cell = Run(*(row["facts"][name] for name in Run._fields))
        facts = row["facts"] | {"settings_sha256": settings_sha256(settings, cell)}
        rows.append({**row, "facts": facts})
    frame(*rows).save(root / "reports" / "results.json")
    return root


def printed(root, *arguments, status=0, **variables):
    """What `bleuprint table` prints, on stderr if it fails."""
    command = [sys.executable, "-m", "bleuprint", "table", *arguments]
    environment = {**os.environ, "PYTHONUTF8": "1", "COLUMNS": "200", **variables}
    if "PYTHONUTF8" in variables:  # which only a new process reads
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    else:
        done = processes.run_text(command, root, environment)
    assert done.returncode == status, done.stderr
    messages = processes.without_progress(done.stderr)
    assert not messages or status
    return messages if status else done.stdout


def shown(table, **variables):
    """The table as a process of its own prints it."""
    code = (
        "from bleuprint.report.table import *; from bleuprint.report.terminal import show;"
        f"show([{table!r}])"
    )
    environment = {**os.environ, "PYTHONUTF8": "1", **variables}
    done = processes.run([sys.executable, "-c", code], Path(), environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_weak_points_are_named_with_the_scores(project, tmp_path):
    assert "Weak points" not in printed(project)
    shutil.copytree(project, tmp_path / "weak")
    results = tmp_path / "weak" / "reports" / "results.json"
    content = json.loads(results.read_text("utf-8"))
    for cell in content["runs"]:
        cell["lines"] = 40
    results.write_text(json.dumps(content), "utf-8")
    text = " ".join(printed(tmp_path / "weak").split())
    assert "Weak points (see reports/index.html): Few test lines: only large differences sh" in text


def words(text):
    return sorted(re.findall(r"\d\d\.\d \[\d\d\.\d, |[+]10\.0\S*|p=0\.\d{3}|\de\d\d", text))


def test_every_width_shows_every_number():
    table = stack_tables(tables_by_test_set(score_frame(frame(*TWO_SYSTEMS))))
    wide = shown(table, COLUMNS="200")
    assert wide.count("System") == 1 and len(words(wide)) == 6 + 3 + 3 + 6
    for width in (40, 60):
        text = shown(table, COLUMNS=str(width))
        assert all(len(line) <= width for line in text.split("\n"))
        assert text.count("System") > 1
        assert words(text) == words(wide)


def test_names_and_numbers_stand_under_their_heads():
    rows = [("[b]one[/b]", "12", "3"), ("東京", "4", "5")]
    table = text_table(["name"], ["n", "a long head"], rows)
    head, rule, row, wide = shown(table, COLUMNS="80").strip("\n").split("\n")
    assert [head, row, wide] == [
        "name         n  a long head",
        "[b]one[/b]  12            3",  # text is no markup
        "東京         4            5",
    ]
    assert rule == "─" * len(head)


def test_no_color_in_a_pipe_and_utf_8_in_any_locale(project):
    utf8 = printed(project)
    assert "\x1b" not in utf8
    assert "+10.0‡ p=0.001" in utf8 and "─" in utf8
    assert printed(project, PYTHONUTF8="0", PYTHONIOENCODING="ascii") == utf8
    bold = printed(project, FORCE_COLOR="1", TERM="xterm")
    assert "\x1b[1m41.1 [40.1, 43.1]\x1b[0m" in bold, "the best is bold"


def test_published_numbers_are_shown_and_mistakes_told(project, tmp_path):
    (tmp_path / "reports").mkdir()
    message = "bleuprint: error: params.yaml: no such file; run from the project's root\n"
    assert printed(tmp_path, status=1) == message
    shutil.copy(project / "params.yaml", tmp_path / "params.yaml")
    message = "bleuprint: error: reports/results.json: no such file; run: make reproduce\n"
    assert printed(tmp_path, status=1) == message
    shutil.copy(project / "reports/results.json", tmp_path / "reports/results.json")
    number = (
        "{name: Paper, source: Doe 2020, corpus: talks-en-fr, test: only, bleu: 35, "
        "metric: tokenized}"
    )
    params = (project / "params.yaml").read_text("utf-8")
    params = params.replace("published: []", f"published: [{number}]")
    (tmp_path / "params.yaml").write_text(params, encoding="utf-8")
    for text in (printed(tmp_path), printed(tmp_path, "--all")):
        assert re.search(r"^Paper \(published\) .* 35\.0$", text, re.M)
        assert "2.57M" in text
    assert "Doe 2020; tokenized BLEU on talks-en-fr only" in text
    for part in ("--all", "reports/table.md", "make ui"):
        assert part in printed(tmp_path)


def test_scores_are_printed_though_the_page_cannot_be_written(project, monkeypatch, capsys):
    def read_only(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "reports/.index.html")

    monkeypatch.chdir(project)
    monkeypatch.setattr(report, "write_html_report_if_outdated", read_only)
    _table(argparse.Namespace(all=False))
    printed, note = capsys.readouterr()
    assert "small" in printed
    assert note == "bleuprint: note: reports/index.html is not written: Read-only file system\n"


@pytest.mark.parametrize(
    ("old", "new"), [("beam: 2", "beam: 3"), ("  small:", "  large:"), ("- 1\n", "- 2\n")]
)
def test_records_of_other_settings_are_refused(project, tmp_path, old, new):
    (tmp_path / "reports").mkdir()
    shutil.copy(project / "reports/results.json", tmp_path / "reports/results.json")
    params = (project / "params.yaml").read_text("utf-8")
    assert old in params
    (tmp_path / "params.yaml").write_text(params.replace(old, new), encoding="utf-8")
    message = (
        "reports/results.json: was made with another params.yaml; run: make reproduce, or if it "
        "runs nothing: dvc repro --force --single-item report"
    )
    assert printed(tmp_path, status=1) == f"bleuprint: error: {message}\n"


def test_a_part_shows_the_rows_that_have_a_value_in_it_and_their_groups():
    tables = {
        "en-de": text_table(["System"], ["BLEU", "chrF2"], [("one", "1.0", "–")]),
        "en-fr": text_table(["System"], ["BLEU", "chrF2"], [("both", "2.0", "3.0")]),
    }
    table = stack_tables(tables)
    blocks = shown(table, COLUMNS="13").strip("\n").split("\n\n")
    names = [[line.split()[0] for line in block.split("\n")[2:]] for block in blocks]
    assert names == [["en-de", "one", "en-fr", "both"], ["en-fr", "both"]]
    assert "one      1.0      –" in shown(table, COLUMNS="80")


def test_a_long_name_takes_several_lines():
    table = text_table(["System"], ["n"], [("ten chars " * 3, "1")])
    assert shown(table, COLUMNS="60").strip("\n").split("\n")[2:] == [
        "ten chars ten chars   1",
        "ten chars              ",
    ]


def test_a_part_of_a_group_shares_its_table_with_no_other():
    """Where a table needs two parts, the rows of each stand below the name of their own group."""
    scores = ["41.1 [40.1, 43.1]", "42.2 [41.2, 44.2]"]
    heads = ["first", "second", "third", "fourth"]
    tables = {
        "en-de": text_table(["System"], heads, [("small", *scores, *scores)]),
        "en-fr": text_table(
            ["System"], heads, [("big", *scores, *scores), ("tiny", *scores, "–", "–")]
        ),
    }
    narrow = shown(stack_tables(tables), COLUMNS="50").strip("\n").split("\n\n")
    names = [[line.split()[0] for line in part.split("\n")[2:]] for part in narrow]
    assert names == [
        ["en-de", "small", "en-fr", "big", "tiny"],
        ["en-de", "small", "en-fr", "big"],
    ]
    assert [part.split("\n")[0].split()[1:] for part in narrow] == [heads[:2], heads[2:]]
    # columns that fit share a table
    assert shown(stack_tables(tables), COLUMNS="200").strip("\n").count("\n\n") == 0


def test_latex_is_well_formed(project):
    settings = load_settings(project / "params.yaml")
    text = report.table_tex(settings, frames.load(project), project)
    assert "small & \\textbf{41.1 [40.1, 43.1]} & +10.0$^{\\ddagger}$ p=0.001 &" in text
    assert text.count("{") == text.count("}")
    assert text.isascii()
    tables = text.split("\\begin{table}")[1:]
    assert len(tables) == 2
    for table in tables:
        (layout,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", table)
        _, body = table.split("\\midrule\n", maxsplit=1)
        rows = [line for line in body.split("\n") if line.endswith("\\\\")]
        assert len(rows) >= 2
        assert {line.count(" & ") for line in rows} == {len(layout) - 1}
