"""Names of params.yaml are parts of shell commands: the first stage refuses those that are none.

All others come after it: test_graph.py.
"""

import os
import subprocess
import sys

import pytest

NAME = '"x; touch hostile #"'


@pytest.mark.parametrize(
    ("command", "entry"), [(["dvc", "repro"], "  wide:\n"), (["snakemake", "-c1"], "  own:\n")]
)
def test_a_name_with_a_command_runs_nothing(clean, tmp_path, command, entry):
    root = clean.copy(tmp_path / "project").root
    params = (root / "params.yaml").read_text(encoding="utf-8")
    name = entry.strip().partition(":")[0]
    hostile = params.replace(entry, entry.replace(name, NAME, 1), 1)
    assert hostile != params
    (root / "params.yaml").write_text(hostile, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env={**os.environ, "DVC_NO_ANALYTICS": "true"},
        capture_output=True,
        text=True,
    )
    assert done.returncode and "x; touch hostile #: a name is of letters" in done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("bleuprint: error: ") == 1
    assert not (root / "hostile").exists()
