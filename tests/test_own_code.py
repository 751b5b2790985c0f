"""Tests run the code of the checkout that they are in, whichever .venv starts them."""

import os
import subprocess
import sys
import sysconfig
import venv

import pytest

import processes
from root import ROOT

# Prints from which file Python imports the package.
PRINT_PACKAGE_FILE = "import bleuprint; print(bleuprint.__file__)"


@pytest.mark.parametrize("start", ["new", "loaded"])
def test_a_process_runs_the_code_of_this_checkout(start, tmp_path):
    """A .venv may be shared by several checkouts of the repository, and name another one.

    A loaded process is a fork of a process that has imported the package already.
    """
    command = [sys.executable, "-c", PRINT_PACKAGE_FILE]
    if start == "loaded":
        command = processes.in_loaded_python(command)

    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert process.stdout == f"{ROOT / 'src/bleuprint/__init__.py'}\n"


def test_a_project_made_for_a_test_runs_its_own_code(clean):
    """Such a project contains a copy of src."""
    output = clean.run("python", "-c", PRINT_PACKAGE_FILE)

    assert output == f"{clean.root / 'src/bleuprint/__init__.py'}\n"


def test_a_stage_in_a_loaded_process_runs_the_code_of_its_project(clean, tmp_path):
    """A loaded process has imported libraries such as torch, but not bleuprint.

    The project of a test contains its own copy of bleuprint, which its stages must use.
    """
    project = clean.copy(tmp_path / "project")
    check_is_loaded = "import sys; assert 'torch' in sys.modules"
    project.write("stages/where.py", f"{check_is_loaded}\n{PRINT_PACKAGE_FILE}\n")

    output = project.run("python", "stages/where.py")

    assert output == f"{project.root / 'src/bleuprint/__init__.py'}\n"


@pytest.fixture
def other_checkout(tmp_path):
    """Return the file of an empty package bleuprint in another folder."""
    package = tmp_path / "other" / "bleuprint"
    package.mkdir(parents=True)
    file = package / "__init__.py"
    file.write_text("")
    return file


@pytest.fixture
def other_python(tmp_path, other_checkout):
    """Return the Python of a .venv which has our libraries and the other checkout as bleuprint."""
    venv.create(tmp_path / "venv")
    (site_packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    folders = [str(other_checkout.parent.parent), sysconfig.get_path("purelib")]
    (site_packages / "another.pth").write_text("\n".join(folders))
    return tmp_path / "venv" / "bin" / "python"


@pytest.fixture
def plain_environment():
    """Return the environment without variables by which pytest finds the code of this checkout.

    Without WARM_PROCESSES, pytest starts a server of loaded processes of its own.
    """
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    environment.pop("WARM_PROCESSES", None)
    return environment


def test_outside_of_pytest_a_venv_runs_the_checkout_that_it_was_made_for(
    other_python, other_checkout, plain_environment
):
    """`other_python` belongs to a .venv of another checkout. This is the setting of the next test.

    There, pytest must use this checkout nevertheless.
    """
    command = [other_python, "-c", PRINT_PACKAGE_FILE]

    process = subprocess.run(
        command, env=plain_environment, capture_output=True, text=True, check=True
    )

    assert process.stdout == f"{other_checkout}\n"


def test_pytest_runs_the_code_of_this_checkout_with_the_venv_of_another_one(
    other_python, plain_environment, tmp_path
):
    """Another pytest process runs the first test of this file, which has two cases.

    Its Python, `other_python`, would import bleuprint from another checkout by itself.
    """
    first_test = test_a_process_runs_the_code_of_this_checkout.__name__
    # In a folder of its own, it does not remove the temporary folders of this process.
    options = ["-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}", "-k", first_test]
    command = [other_python, "-m", "pytest", *options, __file__]

    process = subprocess.run(command, cwd=ROOT, env=plain_environment, capture_output=True)

    assert process.returncode == 0, process.stdout.decode()
    assert b"2 passed" in process.stdout
