"""Commands that tests start in processes with loaded libraries run the code of their project."""

import os
import subprocess

import warm


def test_a_warm_process_runs_a_stage_with_the_package_of_its_project(tmp_path):
    """To save time, tests run stages in warm processes: forks of a process with loaded libraries.

    That process has not imported bleuprint, since each project of a test has its own copy in src.
    The stage here prints the file of its bleuprint and ends with status 3.
    """
    package = tmp_path / "src" / "bleuprint"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    stages = tmp_path / "stages"
    stages.mkdir()
    (stages / "x.py").write_text(
        "import sys, bleuprint\nprint(bleuprint.__file__, *sys.argv[1:])\nsys.exit(3)\n"
    )
    # In this folder, `python` is a program that forks a warm process.
    path = f"{warm.folder()}{os.pathsep}{os.environ['PATH']}"

    done = subprocess.run(
        ["env", "PYTHONPATH=src", "python", "stages/x.py", "an argument"],
        cwd=tmp_path,
        env={"PATH": path},
        capture_output=True,
        text=True,
    )

    assert done.stdout == f"{package}/__init__.py an argument\n"
    assert done.returncode == 3
