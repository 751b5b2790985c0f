"""The benchmark of large corpora refuses mistakes before it measures anything."""

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
