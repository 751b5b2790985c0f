"""Names in params.yaml become parts of shell commands: the first stage refuses unsafe ones.

All other stages come after it: test_graph.py.
"""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("runner", "old_line"),
    [
        pytest.param(["dvc", "repro"], "  wide:\n", id="dvc, the name of a system"),
        pytest.param(["snakemake", "-c1"], "  own:\n", id="snakemake, the name of a corpus"),
    ],
)
def test_a_name_that_contains_a_shell_command_is_refused_and_not_run(
    clean, tmp_path, runner, old_line
):
    """The names of systems and corpora become words of shell commands: `stages/train.py NAME`.

    A params.yaml from the internet could run any command in this way.
    """
    root = clean.copy(tmp_path / "project").root
    params = (root / "params.yaml").read_text(encoding="utf-8")
    assert old_line in params
    hostile_name = "x; touch hostile #"  # A shell would create the file `hostile`.
    hostile_params = params.replace(old_line, f'  "{hostile_name}":\n', 1)
    (root / "params.yaml").write_text(hostile_params, encoding="utf-8")

    result = subprocess.run(
        [sys.executable, "-m", *runner],
        cwd=root,
        env={**os.environ, "DVC_NO_ANALYTICS": "true"},
        capture_output=True,
        text=True,
    )

    assert result.returncode != 0
    assert "x; touch hostile #: a name is of letters" in result.stderr
    assert result.stderr.count("bleuprint: error: ") == 1
    assert "Traceback" not in result.stderr
    assert not (root / "hostile").exists()
