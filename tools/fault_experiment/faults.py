"""Find the places of a Python file where one small fault can be put, by its syntax tree.

A fault replaces the text of one node, so that the rest of the file keeps its form. Wording, types,
assertions, decorators and `__repr__` stay as they are, and kernels that only run on a GPU.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from tools.fault_experiment.fault import Fault

# For each operator, the regular expression that finds it in the text, and the operator that takes
# its place.
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

Function = ast.FunctionDef | ast.AsyncFunctionDef
Jump = ast.Return | ast.Raise | ast.Continue | ast.Break


def faults_in(path: str, source: str) -> list[Fault]:
    """Return the faults that can be put into a file.

    Not all of them are valid Python: see `fault.is_another_program`.

    Args:
        path: The path of the file, which the faults name.
        source: The text of the file.
    """
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    finder.end_scope()
    return finder.faults


@dataclass(frozen=True)
class _NameUse:
    """An attribute or key that a function uses.

    Attributes:
        name: The name of the attribute, or the string that is the key.
        node: The expression: of an attribute with its object, of a key alone.
        function: The function, as in `Fault`.
    """

    name: str
    node: ast.expr
    function: str


@dataclass
class _Scope:
    """What was seen so far in one outermost function, or outside functions.

    Attributes:
        first_lines: The line in which each variable is assigned first.
        last_statement: The last statement of the function that is being visited.
        attributes: The attributes that are used of each object, by the object's text.
        keys: The keys that are used of each mapping, by the mapping's text.
    """

    first_lines: dict[str, int] = field(default_factory=dict)
    last_statement: ast.stmt | None = None
    attributes: dict[str, list[_NameUse]] = field(default_factory=lambda: defaultdict(list))
    keys: dict[str, list[_NameUse]] = field(default_factory=lambda: defaultdict(list))


class _Finder(ast.NodeVisitor):
    """Visits the syntax tree of one file and collects its faults.

    Attributes:
        faults: The faults found so far.
    """

    def __init__(self, path: str, source: str) -> None:
        """Prepare a visit.

        Args:
            path: The path of the file, which the faults name.
            source: The text of the file.
        """
        self.faults = list[Fault]()
        self._path = path
        # Bytes, since syntax trees count columns in bytes of UTF-8.
        self._content = source.encode()
        self._line_starts = [0]
        for line in self._content.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        # The names of the classes and functions around the current node, from outside to inside.
        self._enclosing_names = list[str]()
        # The file, and inside a function also the outermost function.
        self._scopes = [_Scope()]
        self._imported_names = set[str]()
        # The expressions that are called, such as `path.exists` in `path.exists()`.
        self._called = set[ast.expr]()
        self._is_in_f_string = False

    @property
    def _is_at_module_level(self) -> bool:
        """Return whether the current node is outside all classes and functions."""
        return not self._enclosing_names

    # Places in the text, and adding faults

    def _start_byte(self, node: ast.expr | ast.stmt) -> int:
        return self._line_starts[node.lineno - 1] + node.col_offset

    def _end_byte(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._line_starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self._content[self._start_byte(node) : self._end_byte(node)].decode(errors="replace")

    def _has_right_position(self, node: ast.expr) -> bool:
        """Return whether the syntax tree gives the right position of an expression in the file.

        Before Python 3.12, positions inside f-strings can be wrong, and a fault would change other
        text. So the text at the position is parsed, and compared with the expression.
        """
        if not self._is_in_f_string:
            return True
        try:
            parsed = ast.parse(self._text(node), mode="eval").body
        except SyntaxError:
            return False
        return ast.unparse(parsed) == ast.unparse(node)

    def _add(self, kind: str, start: int, end: int, replacement: str) -> None:
        """Add a fault that replaces the bytes from `start` to before `end`."""
        self._add_in(".".join(self._enclosing_names), kind, start, end, replacement)

    def _add_in(self, function: str, kind: str, start: int, end: int, replacement: str) -> None:
        """Like `_add`, in a function that is not the current one."""
        line = self._content.count(b"\n", 0, start) + 1
        self.faults.append(Fault(self._path, function, kind, line, start, end, replacement))

    def _add_operator(
        self,
        kind: str,
        left: ast.expr,
        right: ast.expr,
        operator: tuple[str, str],
    ) -> None:
        """Add a fault that replaces the operator between two operands.

        Args:
            kind: The kind of the fault.
            left: The operand before the operator.
            right: The operand after the operator.
            operator: The regular expression that finds the operator, and its replacement.
        """
        pattern, replacement = operator
        after_left = self._end_byte(left)
        between = self._content[after_left : self._start_byte(right)].decode(errors="replace")
        match = re.search(pattern, between)
        # A comment between the operands may contain the operator as well.
        if match is None or "#" in between:
            return
        self._add(kind, after_left + match.start(), after_left + match.end(), replacement)

    def _add_swap(self, kind: str, first: ast.expr, second: ast.expr) -> None:
        """Add a fault that exchanges two expressions, given in the order of the text."""
        if ast.dump(first) == ast.dump(second):
            return
        between = self._content[self._end_byte(first) : self._start_byte(second)].decode()
        swapped = f"{self._text(second)}{between}{self._text(first)}"
        self._add(kind, self._start_byte(first), self._end_byte(second), swapped)

    def _add_dropped(self, statement_kind: str, node: ast.stmt) -> None:
        """Add a fault that replaces a statement by `pass`."""
        self._add(f"dropped {statement_kind}", self._start_byte(node), self._end_byte(node), "pass")

    # Functions, classes, and what is left as it is

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: Function) -> None:
        """Look for faults in the default values and the body of a function.

        An outermost function gets a scope, which inner functions share. `__repr__`, which is
        wording, and GPU kernels, which no test on a CPU runs, are skipped.
        """
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        is_kernel = "triton.jit" in decorators
        if node.name == "__repr__" or is_kernel:
            return
        self._enclosing_names.append(node.name)
        is_outermost = len(self._scopes) == 1
        if is_outermost:
            self._scopes.append(_Scope())
        scope = self._scopes[-1]
        for line, name in sorted(_assigned_names(node)):
            scope.first_lines.setdefault(name, line)
        last_statement_outside = scope.last_statement
        scope.last_statement = node.body[-1]
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        self._visit_all(defaults)
        self._visit_all(node.body)
        scope.last_statement = last_statement_outside
        self._enclosing_names.pop()
        if is_outermost:
            self.end_scope()
            self._scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit the body of a class; a protocol has no code that runs."""
        if any(ast.unparse(base).startswith("Protocol") for base in node.bases):
            return
        self._enclosing_names.append(node.name)
        self._visit_all(node.body)
        self._enclosing_names.pop()

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def end_scope(self) -> None:
        """Add faults that replace an attribute or key by another one of the same object."""
        scope = self._scopes[-1]
        for uses in scope.attributes.values():
            self._add_other_attributes(uses)
        for uses in scope.keys.values():
            self._add_other_keys(uses)

    def _add_other_attributes(self, uses: list[_NameUse]) -> None:
        """Add faults that replace attributes of one object by each other."""
        for use in uses:
            end = self._end_byte(use.node)
            start = end - len(use.name.encode())
            for name in _other_names(use, uses):
                self._add_in(use.function, "attribute", start, end, name)

    def _add_other_keys(self, uses: list[_NameUse]) -> None:
        """Add faults that replace keys of one mapping by each other."""
        for use in uses:
            start = self._start_byte(use.node)
            end = self._end_byte(use.node)
            for name in _other_names(use, uses):
                self._add_in(use.function, "key", start, end, f'"{name}"')

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imported_names.add((alias.asname or alias.name).partition(".")[0])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._imported_names.add(alias.asname or alias.name)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions as they are: mypy needs them."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Leave the type as it is."""
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave the wording of an f-string as it is, and visit its expressions."""
        is_nested = self._is_in_f_string
        self._is_in_f_string = True
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)
        self._is_in_f_string = is_nested

    # Statements

    def visit_If(self, node: ast.If) -> None:
        """Add a fault that drops a guard: an `if` that leaves the function or the loop."""
        # Blocks such as `if TYPE_CHECKING` do not run.
        if ast.unparse(node.test) in KEPT_BLOCKS:
            return
        is_guard = not node.orelse and isinstance(node.body[-1], Jump)
        if is_guard and not self._is_at_module_level:
            self._add_dropped("guard", node)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Drop a call whose value is not used."""
        if not self._is_at_module_level and isinstance(node.value, ast.Call):
            self._add_dropped("call", node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Add a fault that drops an assignment, if its target would still have a value.

        An attribute or an item, as in `self.size = 1`, may have a value from other code; a variable
        has one if it was assigned before. Every test would notice an undefined variable.
        """
        target = node.targets[0]
        is_attribute_or_item = isinstance(target, ast.Attribute | ast.Subscript)
        if is_attribute_or_item and not self._is_at_module_level:
            self._add_dropped("assignment", node)
        if isinstance(target, ast.Name) and self._is_assigned_before(target):
            self._add_dropped("assignment", node)
        self.generic_visit(node)

    def _is_assigned_before(self, variable: ast.Name) -> bool:
        """Return whether the current function assigns a variable in an earlier line as well."""
        first_lines = self._scopes[-1].first_lines
        # At module level, first lines are not recorded.
        if variable.id not in first_lines:
            return False
        return first_lines[variable.id] < variable.lineno

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Add faults that drop an assignment such as `total += 1`, or change its operator."""
        self._add_dropped("assignment", node)
        if type(node.op) in ARITHMETIC:
            self._add_operator("arithmetic", node.target, node.value, ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        # Dropping the last statement would only change the value, as other faults do.
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
        """Add a fault for each operator of a comparison; `a < b < c` has two operators."""
        operands = [node.left, *node.comparators]
        if self._has_right_position(node):
            for (left, right), operator in zip(pairwise(operands), node.ops, strict=True):
                if type(operator) in BOUNDS:
                    self._add_operator("bound", left, right, BOUNDS[type(operator)])
                else:
                    self._add_operator("comparison", left, right, COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Add faults that exchange `and` and `or`."""
        if self._has_right_position(node):
            for left, right in pairwise(node.values):
                self._add_operator("and/or", left, right, LOGIC[type(node.op)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Add a fault that changes an arithmetic operator, unless it joins or formats strings."""
        is_text = any(_is_text(operand) for operand in (node.left, node.right))
        if not is_text and type(node.op) in ARITHMETIC and self._has_right_position(node):
            self._add_operator("arithmetic", node.left, node.right, ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Add a fault that drops a `not` or a minus sign."""
        start = self._start_byte(node)
        if self._has_right_position(node):
            if isinstance(node.op, ast.Not):
                space = re.match(r"not\s*", self._text(node))
                assert space is not None
                self._add("dropped not", start, start + space.end(), "")
            if isinstance(node.op, ast.USub):
                self._add("sign", start, start + 1, "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Add faults that change a number by 1, a float by a factor of 2, or True to False."""
        value = node.value
        if not self._has_right_position(node):
            return
        start = self._start_byte(node)
        end = self._end_byte(node)
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
        """Add faults that exchange neighboring arguments; note the key of `mapping.get("key")`."""
        self._called.add(node.func)
        # The function's name without module or object: `get` for `mapping.get`.
        name = ast.unparse(node.func).rpartition(".")[2]
        if name not in KEPT_ARGUMENTS and self._has_right_position(node):
            for first, second in pairwise(node.args):
                if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                    self._add_swap("swapped arguments", first, second)
            for keyword, next_keyword in pairwise(node.keywords):
                # `**options` has no name.
                if keyword.arg is not None and next_keyword.arg is not None:
                    self._add_swap("swapped arguments", keyword.value, next_keyword.value)
        if name == "get" and isinstance(node.func, ast.Attribute) and node.args:
            self._note_key(node.func.value, node.args[0])
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """Add faults that exchange the values of neighboring keys of a dict display."""
        items = zip(node.keys, node.values, strict=True)
        for (key, value), (next_key, next_value) in pairwise(items):
            # An unpacked mapping, `**mapping`, has the key None.
            if key is not None and next_key is not None:
                self._add_swap("key", value, next_value)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._note_key(node.value, node.slice)
        self.generic_visit(node)

    def _note_key(self, mapping: ast.expr, key: ast.expr) -> None:
        """Note that a literal key is used, so that `end_scope` can replace it by another key."""
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return
        uses = self._scopes[-1].keys[ast.unparse(mapping)]
        if self._has_right_position(key):
            uses.append(_NameUse(key.value, key, ".".join(self._enclosing_names)))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Note that an attribute is read, so that `end_scope` can replace it; not of modules."""
        owner = ast.unparse(node.value)
        is_imported = owner.partition(".")[0] in self._imported_names
        is_read = isinstance(node.ctx, ast.Load)
        if not is_imported and is_read and self._has_right_position(node):
            # Methods have a group of their own, so that they are replaced by methods only.
            group = f"{owner}()" if node in self._called else owner
            uses = self._scopes[-1].attributes[group]
            uses.append(_NameUse(node.attr, node, ".".join(self._enclosing_names)))
        self.generic_visit(node)


def _assigned_names(function: Function) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each assignment in a function, parameters included."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def _other_names(use: _NameUse, uses: list[_NameUse]) -> list[str]:
    """Return the names in `uses` that differ from the name of `use`, sorted."""
    return sorted({other.name for other in uses} - {use.name})


def _is_text(node: ast.expr) -> bool:
    """Return whether an operand is a literal string, with which other operators always fail."""
    if isinstance(node, ast.JoinedStr):
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
