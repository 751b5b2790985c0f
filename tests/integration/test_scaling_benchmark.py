"""The benchmark of large corpora: mistakes are refused, and its figures are those of the page."""

import subprocess
import sys

from root import ROOT


def test_a_stage_that_does_not_exist_cannot_be_measured_again(tmp_path):
    """A misspelled name measured nothing, and the table of the last measurement was printed."""
    command = [sys.executable, str(ROOT / "benchmarks" / "scaling.py"), "measure", str(tmp_path)]

    process = subprocess.run(
        [*command, "--again", "splt"], check=False, capture_output=True, text=True, timeout=180
    )

    assert process.returncode == 2
    assert "argument --again: invalid choice: 'splt'" in process.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_computed_tables_of_the_page_are_those_of_the_documented_command():
    """The command is in the docstring of estimates.py: it is run in benchmarks/measured."""
    command = [sys.executable, "../estimates.py", "scaling-20k.json", "scaling-1m.json"]

    output = subprocess.check_output(
        command, cwd=ROOT / "benchmarks" / "measured", text=True, timeout=180
    )

    printed_rows = [line for line in output.splitlines() if line.startswith("|")]
    page_rows = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8").splitlines()
    assert len(printed_rows) > 15
    assert [row for row in printed_rows if row not in page_rows] == []
