"""Limits on how densely code is written, as guard rails: clear code is judged by reading it."""

import ast
import functools
import re
import tomllib
from dataclasses import asdict

import pytest

from root import ROOT
from tools.density import MAX_DENSITY, Density, code_folders, density_of

MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 500

FOLDERS = code_folders(ROOT)
MODULES = []
for folder in FOLDERS.values():
    MODULES += folder.rglob("*.py")


@functools.cache
def package_density(name):
    """Return the density of a package or folder of scripts: a rate for each kind of construct."""
    return asdict(density_of(FOLDERS[name].rglob("*.py")))


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_a_package_has_few_constructs_that_pack_code(name):
    """Such constructs are comprehensions, walruses, and assignments of several values at once.

    The rates are numbers per 1,000 lines; MAX_DENSITY has the highest one of each construct.
    """
    limits = asdict(MAX_DENSITY)
    rates = package_density(name)

    too_dense = {kind: rate for kind, rate in rates.items() if rate > limits[kind]}

    assert too_dense == {}, f"unpack the code of {name}; the limits are {limits}"


def test_every_module_has_at_most_500_lines():
    """A reader finds a function or a test faster in a module with one topic.

    MODULES are the Python files in src, stages, tools, benchmarks and docs; the limit also holds
    for tests.
    """
    test_modules = (ROOT / "tests").rglob("*.py")
    long_modules = set()
    for path in [*MODULES, *test_modules]:
        if path.read_text(encoding="utf-8").count("\n") > MAX_MODULE_LINES:
            long_modules.add(path.relative_to(ROOT).as_posix())

    assert long_modules == set()


def test_every_function_has_at_most_60_lines():
    """MODULES are the Python files in src, stages, tools, benchmarks and docs."""
    long_functions = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                line_count = node.end_lineno - node.lineno + 1
                if line_count > MAX_FUNCTION_LINES:
                    long_functions.add(f"{node.name} of {path.relative_to(ROOT).as_posix()}")

    assert long_functions == set()


def test_ruff_limits_the_complexity_of_all_functions_and_checks_their_docstrings():
    """C901: at most 10 paths; PLR0912: at most 12 branches; PLR0915: at most 50 statements."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lint = settings["tool"]["ruff"]["lint"]

    assert {"C901", "PLR0912", "PLR0915", "D"} <= set(lint["select"])
    assert lint["mccabe"]["max-complexity"] == 10
    assert "pylint" not in lint  # where higher numbers of branches or statements could be allowed
    assert lint["pydocstyle"]["convention"] == "google"
    for codes in [lint["ignore"], *lint["per-file-ignores"].values()]:
        for code in codes:
            assert not code.startswith(("C9", "PLR")), code


def test_no_function_is_exempt_from_the_limits_of_complexity():
    """Ruff accepts a complex function that has the comment `# noqa: C901` or similar."""
    exempt_files = []
    for folder in ("src", "stages", "tools", "benchmarks", "docs", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            if re.search(r"  # noqa: (?:C901|PLR09)", path.read_text(encoding="utf-8")):
                exempt_files.append(path.relative_to(ROOT).as_posix())

    assert exempt_files == []


def test_density_counts_each_construct_per_thousand_lines(tmp_path):
    code = '''"""A docstring does not count: [a for a in b]."""
# nor does a comment: (a := 1)

first, second = 1, 2
pair = second, first
squares = [x * x for x in range(3)]
products = [x * y for x in range(3) for y in range(3)]
deep = {x: [y for y in x] for x in squares}
if (count := len(squares)) > 2:
    call(*(1, 2), **{"a": 1})
    merged = {**{"a": 1}, **merged}
doubled = map(lambda x: 2 * x, squares)
total = functools.reduce(lambda a, b: a + b, squares)
'''
    path = tmp_path / "code.py"
    path.write_text(code)

    density = density_of([path])

    # The code has ten lines, so each construct counts as 100 per 1,000 lines.
    assert density == Density(
        comprehensions=6 * 100,  # squares, products, two in deep, and two lambdas
        nested_comprehensions=2 * 100,
        walrus=1 * 100,
        tuple_assignments=1 * 100,
        star_packed=3 * 100,
    )


def test_a_file_without_code_has_a_density_of_zero(tmp_path):
    path = tmp_path / "empty.py"
    path.write_text("# A comment is no code.\n")

    assert density_of([path]) == Density()
