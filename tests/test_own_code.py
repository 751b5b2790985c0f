"""Tests run the code of the checkout that they are in, whichever .venv starts them."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import processes
from root import ROOT

WHERE = [sys.executable, "-c", "import bleuprint; print(bleuprint.__file__)"]
OWN = str(ROOT / "src" / "bleuprint" / "__init__.py")


@pytest.mark.parametrize("start", ["new", "loaded"])
def test_a_process_runs_the_code_of_this_checkout(start, tmp_path):
    command = WHERE if start == "new" else processes.loaded(WHERE)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{OWN}\n"


def test_a_project_made_for_a_test_runs_its_own_code(clean):
    where = clean.run("python", "-c", WHERE[-1])
    assert where == f"{clean.root / 'src/bleuprint/__init__.py'}\n"


def test_a_stage_in_a_loaded_process_runs_the_code_of_its_project(clean, tmp_path):
    """The process has loaded the libraries, such as torch, but not the package."""
    project = clean.copy(tmp_path / "project")
    is_loaded = "import sys; assert 'torch' in sys.modules"
    project.write("stages/where.py", f"{is_loaded}\n{WHERE[-1]}\n")
    where = project.run("python", "stages/where.py")
    assert where == f"{project.root / 'src/bleuprint/__init__.py'}\n"


def test_the_venv_of_another_checkout_is_no_obstacle(tmp_path):
    """A .venv with the packages of this one, in which `bleuprint` is another checkout's."""
    other = tmp_path / "other" / "bleuprint"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    addresses = [str(other.parent), sysconfig.get_path("purelib")]
    (packages / "another.pth").write_text("\n".join(addresses))
    clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    # without pytest, the other checkout's code is what this .venv runs
    where = subprocess.run(
        [python, *WHERE[1:]], env=clean, capture_output=True, text=True, check=True
    )
    assert Path(where.stdout.strip()) == other / "__init__.py"

    # a server of processes of its own, started by this .venv
    clean.pop("WARM_PROCESSES", None)
    own_folder = f"--basetemp={tmp_path / 'base'}"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", own_folder, __file__]
    test = test_a_process_runs_the_code_of_this_checkout.__name__
    done = subprocess.run([*command, "-k", test], cwd=ROOT, env=clean, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()
    assert b"2 passed" in done.stdout
