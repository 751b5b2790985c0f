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
# Runs a command as the user 12345, whom no password database knows.
AS_UNNAMED_USER = [
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
    """The root of a project that belongs to the user 12345, whom no password database knows."""
    skip_without("setpriv")
    if os.getuid() != 0:
        pytest.skip(PRIVILEGES)
    project = clean.copy(tmp_path / "project")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    for path in (project.root, *project.root.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    return project.root


@pytest.mark.parametrize(
    "home", [pytest.param({}, id="no home"), pytest.param({"HOME": "/"}, id="home not writable")]
)
def test_dvc_and_snakemake_run_for_a_user_without_a_name(project, home):
    """As in a container of `docker run -u 12345`, where both would end with a traceback."""
    unset = {"USER", "LOGNAME", "LNAME", "USERNAME", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"}
    variables = {name: text for name, text in os.environ.items() if name not in unset}
    variables["PYTHONPATH"] = str(ROOT / "src")
    variables |= home
    commands = ["dvc status resolve", "snakemake --dry-run --quiet all"]

    process = subprocess.run(
        [*AS_UNNAMED_USER, sys.executable, "-c", _PROGRAM, *commands],
        cwd=project,
        env=variables,
        capture_output=True,
        text=True,
    )

    assert process.returncode == 0, process.stderr


def test_make_sets_user_home_and_cache_for_a_user_without_a_name(project):
    """The programs that the Makefile starts need these variables, too."""
    shutil.copy(ROOT / "Makefile", project)
    print_rule = "print-%:; @echo $$USER $$HOME $$XDG_CACHE_HOME"

    process = subprocess.run(
        [*AS_UNNAMED_USER, "make", "--silent", f"--eval={print_rule}", "print-x"],
        cwd=project,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )

    user, home, cache = process.stdout.split()
    assert user == "12345"
    assert home == f"{project}/work/home"
    assert cache == f"{project}/work/cache"


@pytest.mark.parametrize("has_name", [True, False])
def test_variables_that_a_user_has_set_are_kept(tmp_path, monkeypatch, has_name):
    """Only a missing USER or HOME is set, and a cache folder only if HOME is not writable."""

    def getpwuid(_):
        """Stand in for the password database of the system."""
        if not has_name:
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
