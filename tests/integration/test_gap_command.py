"""`bleuprint gap` on a small project: what it prints, and how the report shows it."""

import pytest

import micro

NUMBER = """\
published:
  - {name: A paper, source: Table 1, corpus: own, test: held-out, bleu: 60.0, scored: tokenized,
     system: tiny, average: {last: 1}, beam: 3, length_penalty: {kind: length, alpha: 1.0}}
"""
HEADING = "tiny against A paper: own, held-out"


@pytest.mark.slow
def test_a_gap_is_measured_by_a_command_and_shown_by_the_report(reproduced):
    arguments = ("bleuprint", "gap", "--system", "tiny")
    told = reproduced.run(*arguments, "--seed", "2", status=1)
    assert "error: params.yaml: no published number names such a system" in told
    reproduced.edit("params.yaml", "published: []\n", NUMBER)
    assert reproduced.repro() == ["overrides", "report"]
    hint = f"{HEADING}: not measured. To measure it: bleuprint gap --system tiny --corpus own"
    assert hint in reproduced.read("reports/table.md")

    output = reproduced.run(*arguments)
    assert f"{HEADING}\nOurs is " in output and "Traceback" not in output
    steps = ("scoring", "averaging", "beam and length penalty", "unexplained")
    assert all(f"\n{step} " in output for step in steps)
    assert reproduced.changed() == set()  # DVC does not own its file
    assert micro.ran(reproduced.run("dvc", "repro", "--single-item", "--force", "report"))
    page = reproduced.read("reports/table.md")
    assert hint not in page and f"### {HEADING}" in page
    for line in output.split("\n"):
        if line.startswith("averaging "):
            assert line.split()[1] in page
