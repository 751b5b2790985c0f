"""What the package imports is what pyproject.toml asks for, no more and no less."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from root import ROOT

# Parts of another, which pins them; COMET has a Python of its own.
PARTS = {
    "dvc-data": "dvc",
    "mlflow-skinny": "mlflow",
    "mlflow-tracing": "mlflow",
    "pydantic-core": "pydantic",
    "triton": "torch",  # its builds for GPUs
    "comet": "",
}
# As commands, by the names of plugins, or by MLflow's monitor, which requires it for GPUs alone.
STARTED = {"nvidia-ml-py"}


def imported():
    """The top names that modules of the package import, wherever they do."""
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"bleuprint"}


def test_imports_are_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = set(project["dependencies"])
    extras = project["optional-dependencies"]
    optional = {each for name in extras if name != "dev" for each in extras[name]}
    of = packages_distributions()
    found = {re.sub("[-_.]+", "-", of.get(name, [name])[0]).lower() for name in imported()}
    found = {PARTS.get(name, name) for name in found} - {""}
    needed = {re.sub("[-_.]+", "-", name) for name in needed}
    assert found - needed - optional == set()
    assert needed - found == STARTED
