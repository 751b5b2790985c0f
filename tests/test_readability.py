"""Limits on how densely code is written, as guard rails: clear code is judged by reading it.

`AIM` holds for new packages. A package that was denser when these limits were set has its own in
`LIMITS`, and these only go down: where a package has become clearer, the test below asks for the
lower number, and where it has reached the aim, for the removal of the entry. Raising a number, or
adding an entry, needs a better reason than a change that does not fit.
"""

import ast
import functools
import math
import re
from dataclasses import asdict

import pytest

from root import ROOT
from tools.density import AIM, Density, code_folders, density_of

# Per 1,000 lines of code, as `python -m tools.density` prints them.
LIMITS: dict[str, dict[str, int]] = {}
# A limit is lowered once the package is this far below it.
SLACK = 0.1
MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 500
LONG_FUNCTIONS: set[str] = set()
# The functions that ruff finds too complex, by file.
COMPLEX_FUNCTIONS: dict[str, int] = {}

FOLDERS = code_folders(ROOT)
MODULES = []
for folder in FOLDERS.values():
    MODULES += folder.rglob("*.py")


@functools.cache
def package_density(name):
    return asdict(density_of(FOLDERS[name].rglob("*.py")))


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_code_is_not_packed(name):
    limits = asdict(AIM) | LIMITS.get(name, {})
    rates = package_density(name)
    too_dense = {each: rate for each, rate in rates.items() if rate > limits[each]}
    assert too_dense == {}, f"unpack the code of {name}; the limits are {limits}"


def test_limits_only_go_down():
    aim = asdict(AIM)
    lowered = {}
    for name, limits in LIMITS.items():
        density = package_density(name)
        for each, limit in limits.items():
            if limit <= aim[each] or density[each] < limit * (1 - SLACK) - 1:
                lowered[f"{each} of {name}"] = max(math.ceil(density[each]), aim[each])
    assert lowered == {}, "this code is clearer than its limits: lower them, or remove them at AIM"


def test_modules_and_functions_are_not_long():
    long_modules = set()
    long_functions = set()
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        if text.count("\n") > MAX_MODULE_LINES:
            long_modules.add(name)
        for node in ast.walk(ast.parse(text)):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES:
                long_functions.add(f"{node.name} of {name}")
    assert long_modules == set()
    assert long_functions == LONG_FUNCTIONS


def test_complex_functions_only_become_fewer():
    """Ruff refuses a complex function without a `noqa`, and a `noqa` without need."""
    found = {}
    for folder in ("src", "stages", "tools", "benchmarks", "docs", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            comments = re.findall(r"  # noqa: (?:C901|PLR09)", path.read_text(encoding="utf-8"))
            if comments:
                found[path.relative_to(ROOT).as_posix()] = len(comments)
    assert found == COMPLEX_FUNCTIONS


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
    # by hand: 10 lines of code
    assert density_of([path]) == Density(
        comprehensions=6 * 100,
        nested_comprehensions=2 * 100,
        walrus=1 * 100,
        tuple_assignments=1 * 100,
        star_packed=3 * 100,
    )


def test_files_without_code_have_no_density(tmp_path):
    (tmp_path / "empty.py").write_text("# nothing\n")
    assert density_of([tmp_path / "empty.py"]) == Density()
