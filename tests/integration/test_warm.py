"""Commands that tests start in processes with loaded libraries run the code of their project."""

import os
import subprocess

import warm


def test_a_stage_loads_the_package_of_its_project(tmp_path):
    package = tmp_path / "src" / "bleuprint"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (tmp_path / "stages").mkdir()
    code = "import sys, bleuprint; print(bleuprint.__file__, *sys.argv[1:]); sys.exit(3)"
    (tmp_path / "stages" / "x.py").write_text(code)
    path = f"{warm.folder()}{os.pathsep}{os.environ['PATH']}"
    command = ["env", "PYTHONPATH=src", "python", "stages/x.py", "a b"]
    done = subprocess.run(command, cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True)
    assert done.stdout == f"{package}/__init__.py a b\n"
    assert done.returncode == 3
