"""The benchmark of large corpora: mistakes are refused, and its figures are those of the page."""

import importlib
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


def test_what_an_interrupted_measurement_has_left_does_not_count(tmp_path, monkeypatch):
    """A kill leaves an unfinished output beside the place of the output, under another name."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    scaling = importlib.import_module("scaling")
    (step,) = [step for step in scaling.steps() if step.name == "tokenize"]
    (output,) = step.outputs
    finished = tmp_path / output
    unfinished = finished.with_name(f".{finished.name}.partial-4711")
    output_of_another_step = tmp_path / "data" / "filter" / finished.name
    for folder in (finished, unfinished, output_of_another_step):
        folder.mkdir(parents=True)
        (folder / "train.en").write_text("text\n")

    scaling.remove_outputs(step, tmp_path)

    assert list(tmp_path.glob("data/*/*")) == [output_of_another_step]


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
