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
    """Return the density of a package or folder of scripts: a rate for each kind of construct."""
    return asdict(density_of(FOLDERS[name].rglob("*.py")))


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_a_package_has_few_constructs_that_pack_code(name):
    """Such constructs are comprehensions, walruses, and assignments of several values at once.

    The limits are numbers per 1,000 lines: AIM, or an entry of LIMITS for an older package.
    """
    limits = asdict(AIM) | LIMITS.get(name, {})
    rates = package_density(name)

    too_dense = {kind: rate for kind, rate in rates.items() if rate > limits[kind]}

    assert too_dense == {}, f"unpack the code of {name}; the limits are {limits}"


def test_the_limits_of_a_package_that_became_clearer_are_lowered():
    """A package that was denser when the limits were set has its own limits, in LIMITS.

    If its density is 10% below its limit, the limit must be lowered, down to AIM, the general one.
    """
    aim = asdict(AIM)
    proposed_limits = {}
    for name, limits in LIMITS.items():
        density = package_density(name)
        for kind, limit in limits.items():
            if limit <= aim[kind] or density[kind] < limit * (1 - SLACK) - 1:
                proposed_limits[f"{kind} of {name}"] = max(math.ceil(density[kind]), aim[kind])

    message = "this code is clearer than its limits: lower them, or remove them at AIM"
    assert proposed_limits == {}, message


def test_every_module_has_at_most_500_lines():
    long_modules = set()
    for path in MODULES:
        if path.read_text(encoding="utf-8").count("\n") > MAX_MODULE_LINES:
            long_modules.add(path.relative_to(ROOT).as_posix())

    assert long_modules == set()


def test_every_function_has_at_most_60_lines():
    """MODULES are the Python files in src, stages, tools and benchmarks.

    LONG_FUNCTIONS are the exceptions from the limit.
    """
    long_functions = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                line_count = node.end_lineno - node.lineno + 1
                if line_count > MAX_FUNCTION_LINES:
                    long_functions.add(f"{node.name} of {path.relative_to(ROOT).as_posix()}")

    assert long_functions == LONG_FUNCTIONS


def test_every_function_keeps_the_limits_of_complexity():
    """Ruff refuses a complex function unless it has the comment `# noqa: C901` or similar.

    COMPLEX_FUNCTIONS are the numbers of such exceptions, by file.
    """
    exemptions_by_file = {}
    for folder in ("src", "stages", "tools", "benchmarks", "docs", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            comments = re.findall(r"  # noqa: (?:C901|PLR09)", path.read_text(encoding="utf-8"))
            if comments:
                exemptions_by_file[path.relative_to(ROOT).as_posix()] = len(comments)

    assert exemptions_by_file == COMPLEX_FUNCTIONS


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
