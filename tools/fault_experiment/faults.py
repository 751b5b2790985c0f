"""Find the places of a Python file where one small fault can be put, by its syntax tree.

A fault replaces the text of one node, so that the rest of the file keeps its form. Wording, types,
assertions, decorators and `__repr__` stay as they are, and kernels that only run on a GPU.
"""

import ast
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

# The operator that takes the place of another one.
BOUNDS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
COMPARISONS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
ARITHMETIC: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Pow: (r"\*\*", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
LOGIC: dict[type[ast.AST], tuple[str, str]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}

# Functions for which swapped arguments mean the same, always fail, or would end another process.
KEPT_ARGUMENTS = frozenset(
    {"cast", "getattr", "hasattr", "isinstance", "issubclass", "kill", "killpg", "max", "min"}
)

# Blocks that nothing runs, or that start a script.
KEPT_BLOCKS = ("TYPE_CHECKING", "__name__ == '__main__'")

Statement = ast.FunctionDef | ast.AsyncFunctionDef
Jump = ast.Return | ast.Raise | ast.Continue | ast.Break


@dataclass(frozen=True)
class Fault:
    """One change of a file.

    Attributes:
        path: The file, from the project's folder.
        function: Where in the file: "Class.function", or "" outside functions and classes.
        kind: What kind of change it is, such as "bound" or "dropped call".
        line: The line in which the change begins, from 1.
        start: The first byte that is replaced, from 0.
        end: The byte after the last one that is replaced.
        replacement: The text that takes their place.
    """

    path: str
    function: str
    kind: str
    line: int
    start: int
    end: int
    replacement: str


def with_fault(source: str, fault: Fault) -> str:
    """Return the text of a file with a fault in it."""
    content = source.encode()
    return (content[: fault.start] + fault.replacement.encode() + content[fault.end :]).decode()


def is_another_program(source: str, fault: Fault) -> bool:
    """Whether the file with the fault is valid Python and has another syntax tree."""
    faulty = with_fault(source, fault)
    try:
        with warnings.catch_warnings():
            # such as `is` with a literal
            warnings.simplefilter("ignore", SyntaxWarning)
            compile(faulty, fault.path, "exec")
    except SyntaxError:
        return False
    return ast.dump(ast.parse(faulty)) != ast.dump(ast.parse(source))


def faults_in(path: str, source: str) -> list[Fault]:
    """Return the faults that can be put into a file.

    Not all of them are valid Python: see `is_another_program`.

    Args:
        path: The path of the file, which the faults name.
        source: The text of the file.
    """
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    finder.end_scope()
    return finder.faults


@dataclass
class _Scope:
    """What was seen in one function, or outside functions.

    Attributes:
        first_lines: The line in which each name is assigned first.
        last_statement: The last statement of the function.
        attributes: For each object, the places of its attributes by their names.
        keys: For each object, the places of its keys by their names.
    """

    first_lines: dict[str, int] = field(default_factory=dict)
    last_statement: ast.stmt | None = None
    attributes: dict[str, list["_Named"]] = field(default_factory=lambda: defaultdict(list))
    keys: dict[str, list["_Named"]] = field(default_factory=lambda: defaultdict(list))


@dataclass(frozen=True)
class _Named:
    """The name of an attribute or key, and the node that ends with it or is it."""

    name: str
    node: ast.expr
    function: str


class _Finder(ast.NodeVisitor):
    """Collects the faults of one file."""

    def __init__(self, path: str, source: str) -> None:
        self.faults = list[Fault]()
        self._path = path
        self._content = source.encode()
        self._line_starts = [0]
        for line in self._content.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        self._names = list[str]()
        self._scopes = [_Scope()]
        self._imported = set[str]()
        self._called = set[ast.expr]()
        self._is_in_f_string = False

    # Places in the text

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._line_starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._line_starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self._content[self._start(node) : self._end(node)].decode(errors="replace")

    def _is_where_it_says(self, node: ast.expr) -> bool:
        """Whether the text of an expression is that expression.

        Before Python 3.12 the places of expressions in f-strings can be wrong.
        """
        if not self._is_in_f_string:
            return True
        try:
            found = ast.parse(self._text(node), mode="eval").body
        except SyntaxError:
            return False
        return ast.unparse(found) == ast.unparse(node)

    def _add(self, kind: str, start: int, end: int, replacement: str) -> None:
        line = self._content.count(b"\n", 0, start) + 1
        function = ".".join(self._names)
        fault = Fault(self._path, function, kind, line, start, end, replacement)
        self.faults.append(fault)

    def _add_operator(
        self,
        kind: str,
        left: ast.expr,
        right: ast.expr,
        operator: tuple[str, str],
    ) -> None:
        """Add a fault that replaces the operator between two operands."""
        pattern, replacement = operator
        first, last = self._end(left), self._start(right)
        between = self._content[first:last].decode(errors="replace")
        found = re.search(pattern, between)
        if found is None or "#" in between:
            return
        self._add(kind, first + found.start(), first + found.end(), replacement)

    def _add_swap(self, kind: str, one: ast.expr, other: ast.expr) -> None:
        """Add a fault that exchanges two expressions, of which `one` comes first."""
        if ast.dump(one) == ast.dump(other):
            return
        between = self._content[self._end(one) : self._start(other)].decode()
        swapped = f"{self._text(other)}{between}{self._text(one)}"
        self._add(kind, self._start(one), self._end(other), swapped)

    def _add_dropped(self, what: str, node: ast.stmt) -> None:
        self._add(f"dropped {what}", self._start(node), self._end(node), "pass")

    # Functions, classes, and what is left as it is

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: Statement) -> None:
        is_kernel = any(ast.unparse(each) == "triton.jit" for each in node.decorator_list)
        if node.name == "__repr__" or is_kernel:
            return
        self._names.append(node.name)
        is_outermost = len(self._scopes) == 1
        if is_outermost:
            self._scopes.append(_Scope())
        scope = self._scopes[-1]
        for line, name in sorted(_assigned(node)):
            scope.first_lines.setdefault(name, line)
        kept = scope.last_statement
        scope.last_statement = node.body[-1]
        self._visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body])
        scope.last_statement = kept
        self._names.pop()
        if is_outermost:
            self.end_scope()
            self._scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(ast.unparse(base).startswith("Protocol") for base in node.bases):
            return
        self._names.append(node.name)
        self._visit_all(node.body)
        self._names.pop()

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def end_scope(self) -> None:
        """Add the faults that take another attribute or key of the same object."""
        scope = self._scopes[-1]
        for kind, objects in (("attribute", scope.attributes), ("key", scope.keys)):
            for places in objects.values():
                self._add_renamed(kind, places)

    def _add_renamed(self, kind: str, places: list[_Named]) -> None:
        names = sorted({place.name for place in places})
        kept = self._names
        for place in places:
            self._names = [place.function]
            for name in names:
                if name == place.name:
                    continue
                end = self._end(place.node)
                if kind == "attribute":
                    self._add(kind, end - len(place.name.encode()), end, name)
                else:
                    self._add(kind, self._start(place.node), end, f'"{name}"')
        self._names = kept

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imported.add((alias.asname or alias.name).partition(".")[0])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._imported.add(alias.asname or alias.name)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions as they are: mypy needs them."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        kept = self._is_in_f_string
        self._is_in_f_string = True
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)
        self._is_in_f_string = kept

    # Statements

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in KEPT_BLOCKS:
            return
        if self._names and not node.orelse and isinstance(node.body[-1], Jump):
            self._add_dropped("guard", node)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if self._names and isinstance(node.value, ast.Call):
            self._add_dropped("call", node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if self._names and isinstance(target, ast.Attribute | ast.Subscript):
            self._add_dropped("assignment", node)
        if isinstance(target, ast.Name):
            first_line = self._scopes[-1].first_lines.get(target.id, node.lineno)
            if first_line < node.lineno:
                self._add_dropped("assignment", node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add_dropped("assignment", node)
        if type(node.op) in ARITHMETIC:
            self._add_operator("arithmetic", node.target, node.value, ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node is not self._scopes[-1].last_statement:
            self._add_dropped("return", node)
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add_dropped("raise", node)
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add_dropped("continue", node)

    def visit_Break(self, node: ast.Break) -> None:
        self._add_dropped("break", node)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        if self._is_where_it_says(node):
            for (left, right), operator in zip(pairwise(operands), node.ops, strict=True):
                if type(operator) in BOUNDS:
                    self._add_operator("bound", left, right, BOUNDS[type(operator)])
                else:
                    self._add_operator("comparison", left, right, COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if self._is_where_it_says(node):
            for left, right in pairwise(node.values):
                self._add_operator("and/or", left, right, LOGIC[type(node.op)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_text = any(_is_text(operand) for operand in (node.left, node.right))
        if not is_text and type(node.op) in ARITHMETIC and self._is_where_it_says(node):
            self._add_operator("arithmetic", node.left, node.right, ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start = self._start(node)
        if self._is_where_it_says(node):
            if isinstance(node.op, ast.Not):
                space = re.match(r"not\s*", self._text(node))
                assert space is not None
                self._add("dropped not", start, start + space.end(), "")
            if isinstance(node.op, ast.USub):
                self._add("sign", start, start + 1, "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if not self._is_where_it_says(node):
            return
        start, end = self._start(node), self._end(node)
        if isinstance(value, bool):
            self._add("true/false", start, end, str(not value))
        elif isinstance(value, int):
            self._add("number", start, end, str(value + 1))
            if value > 0:
                self._add("number", start, end, str(value - 1))
        elif isinstance(value, float):
            self._add("number", start, end, str(value * 2 if value else 1.0))
            self._add("number", start, end, str(value / 2 if value else 0.5))

    def visit_Call(self, node: ast.Call) -> None:
        self._called.add(node.func)
        name = ast.unparse(node.func).rpartition(".")[2]
        if name not in KEPT_ARGUMENTS and self._is_where_it_says(node):
            for one, other in pairwise(node.args):
                if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
                    self._add_swap("swapped arguments", one, other)
            for first, second in pairwise(node.keywords):
                if first.arg is not None and second.arg is not None:
                    self._add_swap("swapped arguments", first.value, second.value)
        if name == "get" and isinstance(node.func, ast.Attribute) and node.args:
            self._note_key(node.func.value, node.args[0])
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, other_key in pairwise(range(len(node.keys))):
            if node.keys[key] is not None and node.keys[other_key] is not None:
                self._add_swap("key", node.values[key], node.values[other_key])
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._note_key(node.value, node.slice)
        self.generic_visit(node)

    def _note_key(self, container: ast.expr, key: ast.expr) -> None:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            places = self._scopes[-1].keys[ast.unparse(container)]
            if self._is_where_it_says(key):
                places.append(_Named(key.value, key, ".".join(self._names)))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = ast.unparse(node.value)
        is_imported = owner.partition(".")[0] in self._imported
        is_read = isinstance(node.ctx, ast.Load)
        if not is_imported and is_read and self._is_where_it_says(node):
            # a method takes the place of methods alone
            of_same_use = f"{owner}()" if node in self._called else owner
            places = self._scopes[-1].attributes[of_same_use]
            places.append(_Named(node.attr, node, ".".join(self._names)))
        self.generic_visit(node)


def _assigned(function: Statement) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each assignment in a function, parameters included."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def _is_text(node: ast.expr) -> bool:
    """Whether an operand is a literal string, with which other operators always fail."""
    if isinstance(node, ast.JoinedStr):
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
