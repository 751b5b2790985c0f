"""Tests that start processes have the mark `processes`: `make test-fast` leaves them out."""

import ast
import os
import subprocess
import sys

import pytest

import process_tests
from root import ROOT

CONFTEST = """
import pytest

pytest_plugins = ["process_tests"]

@pytest.fixture
def made_once(): ...

@pytest.fixture
def project(made_once): ...
"""
MODULES = {
    "test_unmarked.py": "import json\n\ndef test_it(tmp_path): ...\n",
    "faults/test_in_faults.py": "def test_it(): ...\n",
    "integration/test_in_integration.py": "def test_it(): ...\n",
    "test_import.py": "import subprocess\n\ndef test_it(): ...\n",
    "test_import_from.py": "from multiprocessing import Process\n\ndef test_it(): ...\n",
    "test_support.py": "import hosts\n\ndef test_it(): ...\n",
    "test_support_of_support.py": "from slurmprojects import make_project\n\ndef test_it(): ...\n",
    "test_fixture.py": "def test_it(made_once): ...\n",
    "test_fixture_of_fixture.py": "def test_it(project): ...\n",
}
MARKED = sorted(set(MODULES) - {"test_unmarked.py"})


@pytest.fixture(scope="module")
def selected(tmp_path_factory):
    """The modules of a small project whose tests pytest runs with -m "not processes"."""
    folder = tmp_path_factory.mktemp("tests")
    for name, text in MODULES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  processes: processes\n")
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    paths = [str(ROOT / "tests" / "support"), str(ROOT / "src")]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    own_folder = f"--basetemp={folder / 'base'}"
    command = [sys.executable, "-m", "pytest", "-v", own_folder, "-m", "not processes"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return [line.partition("::")[0] for line in done.stdout.splitlines() if "PASSED" in line]


def test_a_test_without_processes_is_selected(selected):
    assert "test_unmarked.py" in selected


@pytest.mark.parametrize("module", MARKED)
def test_a_test_that_starts_processes_is_left_out(selected, module):
    assert module not in selected


def imported_names(tree):
    """Return the module that each imported name of a tree is, or is imported from."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                modules[alias.asname or alias.name] = node.module
    return modules


def starts_processes(module):
    """Return whether a module starts processes, itself or by modules of tests/support."""
    if module in {"subprocess", "multiprocessing", "selenium"}:
        return True
    path = ROOT / "tests" / "support" / f"{module}.py"
    if not path.exists():
        return False
    return any(map(starts_processes, imported_names(ast.parse(path.read_text())).values()))


def shared_fixtures():
    """Return the fixtures of tests/conftest.py: their names and syntax trees."""
    tree = ast.parse((ROOT / "tests" / "conftest.py").read_text())
    fixtures = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if any(decorator.startswith("pytest.fixture") for decorator in decorators):
                fixtures[node.name] = node
    return tree, fixtures


def test_the_shared_fixtures_that_start_processes_are_known():
    """The plugin knows a fixture by its name, or by the name of a fixture that it uses."""
    tree, fixtures = shared_fixtures()
    imported = imported_names(tree)

    def is_known(name):
        if name in process_tests._FIXTURES:
            return True
        arguments = fixtures[name].args.args if name in fixtures else []
        return any(is_known(argument.arg) for argument in arguments)

    starting = set()
    for name, function in fixtures.items():
        words = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        used = {imported[word] for word in words & imported.keys()}
        used |= set(imported_names(function).values())
        if any(map(starts_processes, used)):
            starting.add(name)
    assert {"toy", "browser", "mlserver", "cluster", "two_hosts", "clean"} <= starting
    assert {name for name in starting if not is_known(name)} == set()
    assert is_known("reproduced")
    assert is_known("slurm_project")
    assert is_known("mldatabase")
