"""What the package imports is what pyproject.toml asks for, no more and no less."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from root import ROOT

# Distributions that another one installs in the right version, and the name of that one.
INSTALLED_WITH = {
    "dvc-data": "dvc",
    "mlflow-skinny": "mlflow",
    "mlflow-tracing": "mlflow",
    "pydantic-core": "pydantic",
    "triton": "torch",  # with PyTorch's builds for GPUs
}
# Imported by a script that the separate Python environment of COMET runs.
OF_COMET_ENVIRONMENT = "comet"


def imported_modules():
    """Return the top-level names of the modules that the package imports, wherever it does.

    Python's own modules and the package itself are not among them.
    """
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"bleuprint"}


def normalized(distribution):
    """Return the name of a distribution as package indexes compare names."""
    return re.sub("[-_.]+", "-", distribution).lower()


def imported_distributions():
    """Return the distributions that pyproject.toml must name for the package's imports."""
    distributions_by_module = packages_distributions()
    imported = set()
    for module in imported_modules():
        # A module whose distribution is not installed usually has its name.
        distribution = normalized(distributions_by_module.get(module, [module])[0])
        if distribution != OF_COMET_ENVIRONMENT:
            imported.add(INSTALLED_WITH.get(distribution, distribution))
    return imported


def project_table():
    """Return the table [project] of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_library_that_the_package_imports_is_declared_in_pyproject_toml():
    """It is a dependency, or belongs to an optional set of dependencies for users.

    The optional set dev is only for tests. An undeclared library would be missing for users.
    """
    project = project_table()
    declared = list(project["dependencies"])
    for extra, dependencies in project["optional-dependencies"].items():
        is_for_users = extra != "dev"
        if is_for_users:
            declared += dependencies

    undeclared = imported_distributions() - {normalized(name) for name in declared}

    assert undeclared == set()


def test_every_dependency_is_imported():
    """A library that nothing imports would be installed for nothing."""
    dependencies = {normalized(name) for name in project_table()["dependencies"]}

    dependencies_without_import = dependencies - imported_distributions()

    assert dependencies_without_import == set()
