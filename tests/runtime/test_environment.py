"""A user whom no password database knows, without a home, can run DVC and Snakemake by us."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bleuprint.runtime import environment
from requirements import PRIVILEGES, skip_without
from root import ROOT

# All rights to read, since the interpreter may be in the home of another user.
_RIGHT = "-all,+dac_read_search"
UNNAMED = [
    *("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"),
    *(f"--inh-caps={_RIGHT}", f"--ambient-caps={_RIGHT}"),
]
_PROGRAM = """
import os, subprocess, sys
from bleuprint.runtime.environment import set_missing_user_variables
assert os.getuid() == 12345
set_missing_user_variables()
for command in sys.argv[1:]:
    subprocess.run([sys.executable, "-m", *command.split()], check=True)
"""


@pytest.fixture
def project(clean, tmp_path):
    skip_without("setpriv")
    if os.getuid() != 0:
        pytest.skip(PRIVILEGES)
    project = clean.copy(tmp_path / "project")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    for path in (project.root, *project.root.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    return project.root


@pytest.mark.parametrize("home", [{}, {"HOME": "/"}])
def test_the_tools_run_for_an_unnamed_user(project, home):
    unset = {"USER", "LOGNAME", "LNAME", "USERNAME", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"}
    kept = {name: text for name, text in os.environ.items() if name not in unset}
    kept["PYTHONPATH"] = str(ROOT / "src")
    commands = "dvc status resolve", "snakemake --dry-run --quiet all"
    done = subprocess.run(
        [*UNNAMED, sys.executable, "-c", _PROGRAM, *commands],
        cwd=project,
        env={**kept, **home},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_make_sets_the_same(project):
    shutil.copy(ROOT / "Makefile", project)
    command = "print-%:; @echo $$USER $$HOME $$XDG_CACHE_HOME"
    done = subprocess.run(
        [*UNNAMED, "make", "--silent", f"--eval={command}", "print-x"],
        cwd=project,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    home = f"{project}/work/home"
    assert done.stdout.split() == ["12345", home, f"{project}/work/cache"], done.stderr


@pytest.mark.parametrize("is_known", [True, False])
def test_the_variables_that_a_user_has_set_stay(tmp_path, monkeypatch, is_known):
    """Also where no password database knows the user."""

    def getpwuid(_):
        if not is_known:
            raise KeyError("uid not found")
        return SimpleNamespace(pw_dir="/home/known")

    monkeypatch.setattr(environment.pwd, "getpwuid", getpwuid)
    monkeypatch.setenv("USER", "me")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    environment.set_missing_user_variables()
    assert os.environ["USER"] == "me"
    assert os.environ["HOME"] == str(tmp_path)
    assert "XDG_CACHE_HOME" not in os.environ
