"""Measures how densely code is written: `python -m tools.density`.

Comprehensions, assignment expressions and packed tuples make code short and slow to read. Each is
counted per 1,000 lines of code, without blank lines, comments and docstrings. The command prints a
table of all packages; tests/test_readability.py fails if a package is above a limit.
"""

import ast
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Density:
    """Counts per 1,000 lines of code.

    Attributes:
        comprehensions: List, set, dict and generator comprehensions, and the lambdas that are given
            to map, filter and reduce, which are comprehensions in another form.
        nested_comprehensions: Those with several `for`, or with another one inside.
        walrus: Assignment expressions, `:=`.
        tuple_assignments: Such as `a, b = 1, 2`.
        star_packed: Literals that are unpacked into another literal or a call: `[*(a, b)]`,
            `{**{"a": 1}}`, `f(**{"a": 1})`.
    """

    comprehensions: float = 0.0
    nested_comprehensions: float = 0.0
    walrus: float = 0.0
    tuple_assignments: float = 0.0
    star_packed: float = 0.0


# The most that a package may have. Clear toolkits have 7 to 31 comprehensions and no walrus.
MAX_DENSITY = Density(
    comprehensions=25,
    nested_comprehensions=1,
    walrus=2,
    tuple_assignments=6,
    star_packed=0,
)


def code_folders(root: Path) -> dict[str, Path]:
    """Return the folders whose code must not be too dense: each package, and the scripts.

    Args:
        root: The project's folder.

    Returns:
        The folders, by the name of the package or of the folder.
    """
    folders = {name: root / name for name in ("stages", "tools", "benchmarks", "docs")}
    for package in (root / "src" / "bleuprint").glob("*/__init__.py"):
        folders[package.parent.name] = package.parent
    return folders


def density_of(files: Iterable[Path]) -> Density:
    """Return how often dense forms, such as comprehensions, occur per 1,000 lines of code.

    Args:
        files: Python files, which are counted together.

    Returns:
        The rates; zeros if the files have no code.
    """
    total = Density()
    lines = 0
    for path in files:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        lines += _code_lines(text, tree)
        for node in ast.walk(tree):
            _count(node, total)
    if lines == 0:
        return total
    rates = {name: 1000 * count / lines for name, count in asdict(total).items()}
    return Density(**rates)


def _code_lines(text: str, tree: ast.Module) -> int:
    """Count the lines of a Python file without blank lines, comments and docstrings.

    Args:
        text: The text of the file.
        tree: Its syntax tree.
    """
    docstring_lines = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            last_line = docstring.end_lineno or docstring.lineno
            docstring_lines.update(range(docstring.lineno, last_line + 1))
    count = 0
    for number, line in enumerate(text.split("\n"), 1):
        is_comment = line.lstrip().startswith("#")
        if line.strip() and not is_comment and number not in docstring_lines:
            count += 1
    return count


def _count(node: ast.AST, total: Density) -> None:
    """Add 1 to the count of each dense form that a node of a syntax tree is.

    Args:
        node: The node, without the nodes below it.
        total: The counts; changed in place.
    """
    if isinstance(node, _COMPREHENSIONS):
        total.comprehensions += 1
        if _is_nested(node):
            total.nested_comprehensions += 1
    elif _maps_a_lambda(node):
        total.comprehensions += 1
    elif isinstance(node, ast.NamedExpr):
        total.walrus += 1
    elif isinstance(node, ast.Assign):
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            total.tuple_assignments += 1
    else:
        total.star_packed += _star_packed(node)


def _maps_a_lambda(node: ast.AST) -> bool:
    """Return whether a node calls map, filter or reduce with a lambda: `map(lambda x: ..., xs)`.

    This is a comprehension in another form, and counts as one.
    """
    if not isinstance(node, ast.Call) or not node.args:
        return False
    function = ast.unparse(node.func).rpartition(".")[2]
    return function in ("map", "filter", "reduce") and isinstance(node.args[0], ast.Lambda)


def _is_nested(comprehension: _COMPREHENSIONS) -> bool:
    """Return whether a comprehension has several `for`, or contains another comprehension."""
    if len(comprehension.generators) > 1:
        return True
    # `ast.walk` yields the node itself first.
    below = list(ast.walk(comprehension))[1:]
    return any(isinstance(node, _COMPREHENSIONS) for node in below)


def _star_packed(node: ast.AST) -> int:
    """Count the literals that a node unpacks with a star, as in `f(*(1, 2))` or `{**{"a": 1}}`."""
    match node:
        case ast.Starred(value=ast.Tuple() | ast.List()):
            return 1
        case ast.keyword(arg=None, value=ast.Dict()):
            return 1
        case ast.Dict(keys=keys, values=values):
            # Where a dict display unpacks a mapping, its syntax tree has the key None.
            unpacked = [value for key, value in zip(keys, values, strict=True) if key is None]
            return sum(isinstance(value, ast.Dict) for value in unpacked)
    return 0


def main() -> None:
    """Print a table: the density of each package and folder of scripts, and the limits."""
    limits = asdict(MAX_DENSITY)
    header = f"{'':12}" + "".join(f"{measure:>24}" for measure in limits)
    print(header)
    print(_table_line("limit", limits))
    for name, folder in sorted(code_folders(Path()).items()):
        print(_table_line(name, asdict(density_of(folder.rglob("*.py")))))


def _table_line(name: str, rates: dict[str, float]) -> str:
    """Return a line of the table: a name, and a rate for each measure."""
    return f"{name:12}" + "".join(f"{rate:24.1f}" for rate in rates.values())


if __name__ == "__main__":
    main()
