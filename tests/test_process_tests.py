"""Tests that start processes have the mark `processes`: `make test-fast` leaves them out."""

import ast
import os
import subprocess
import sys

import pytest

import process_tests
from root import ROOT

# A small folder of tests. Its fixture `project` starts processes by way of `shared_folder`.
CONFTEST = """
import pytest

pytest_plugins = ["process_tests"]

@pytest.fixture
def shared_folder(): ...

@pytest.fixture
def project(shared_folder): ...
"""
MODULES = {
    "test_unmarked.py": "import json\n\ndef test_it(tmp_path): ...\n",
    "faults/test_in_faults.py": "def test_it(): ...\n",
    "integration/test_in_integration.py": "def test_it(): ...\n",
    "test_import.py": "import subprocess\n\ndef test_it(): ...\n",
    "test_import_from.py": "from multiprocessing import Process\n\ndef test_it(): ...\n",
    "test_support.py": "import hosts\n\ndef test_it(): ...\n",
    "test_support_of_support.py": "from slurmprojects import make_project\n\ndef test_it(): ...\n",
    "test_fixture.py": "def test_it(shared_folder): ...\n",
    "test_fixture_of_fixture.py": "def test_it(project): ...\n",
}
MODULES_WITH_PROCESSES = sorted(set(MODULES) - {"test_unmarked.py"})


@pytest.fixture(scope="module")
def selected_modules(tmp_path_factory):
    """Return the modules of MODULES whose tests pytest runs with -m "not processes"."""
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
    options = ["-v", f"--basetemp={folder / 'base'}", "-m", "not processes"]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stdout
    modules = []
    for line in process.stdout.splitlines():
        if "PASSED" in line:
            modules.append(line.partition("::")[0])
    return modules


def test_a_test_without_processes_is_selected(selected_modules):
    assert "test_unmarked.py" in selected_modules


@pytest.mark.parametrize("module", MODULES_WITH_PROCESSES)
def test_a_test_that_starts_processes_is_left_out(selected_modules, module):
    assert module not in selected_modules


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
    imported_modules = imported_names(ast.parse(path.read_text())).values()
    return any(map(starts_processes, imported_modules))


class SharedFixtures:
    """The fixtures of tests/conftest.py.

    Attributes:
        functions: The syntax trees of the fixtures' functions, by name.
        imports: The modules of the names that conftest.py imports.
    """

    def __init__(self):
        tree = ast.parse((ROOT / "tests" / "conftest.py").read_text())
        self.imports = imported_names(tree)
        self.functions = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    if ast.unparse(decorator).startswith("pytest.fixture"):
                        self.functions[node.name] = node

    def starts_processes(self, name):
        """Return whether a fixture uses a module that starts processes."""
        function = self.functions[name]
        words = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        modules = {self.imports[word] for word in words & self.imports.keys()}
        modules |= set(imported_names(function).values())
        return any(map(starts_processes, modules))

    def is_known(self, name):
        """Return whether the plugin knows a fixture by its name or by one that it uses."""
        if name in process_tests._FIXTURES:
            return True
        if name not in self.functions:
            return False
        arguments = self.functions[name].args.args
        return any(self.is_known(argument.arg) for argument in arguments)

    def names_that_start_processes(self):
        """Return the names of the fixtures that start processes by a module that they use."""
        return {name for name in self.functions if self.starts_processes(name)}


def test_shared_fixtures_that_start_processes_are_found():
    """If this test fails, the search in conftest.py is wrong, and the next one says nothing."""
    expected_names = {"toy", "browser", "mlserver", "cluster", "two_hosts", "clean"}

    assert expected_names <= SharedFixtures().names_that_start_processes()


def test_the_plugin_knows_all_shared_fixtures_that_start_processes():
    """The plugin marks tests that start processes, by the fixtures that they use.

    `make test-fast` skips these tests. Add an unknown fixture to tests/support/process_tests.py.
    """
    fixtures = SharedFixtures()

    unknown_names = set()
    for name in fixtures.names_that_start_processes():
        if not fixtures.is_known(name):
            unknown_names.add(name)
    assert unknown_names == set()


@pytest.mark.parametrize("name", ["reproduced", "slurm_project", "mldatabase"])
def test_the_plugin_knows_a_fixture_by_a_fixture_that_it_uses(name):
    assert name not in process_tests._FIXTURES
    assert SharedFixtures().is_known(name)
