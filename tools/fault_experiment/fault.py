"""One small fault of a Python file, and the file with it."""

import ast
import warnings
from dataclasses import dataclass


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
    """Return the text of a file with a fault in it.

    Args:
        source: The text of the file without a fault.
        fault: The fault.
    """
    content = source.encode()
    return (content[: fault.start] + fault.replacement.encode() + content[fault.end :]).decode()


def is_another_program(source: str, fault: Fault) -> bool:
    """Return whether a fault makes another program: valid Python with another syntax tree.

    Args:
        source: The text of the file without the fault.
        fault: The fault.
    """
    faulty = with_fault(source, fault)
    try:
        with warnings.catch_warnings():
            # A fault may cause warnings, such as for `is` with a literal.
            warnings.simplefilter("ignore", SyntaxWarning)
            compile(faulty, fault.path, "exec")
    except SyntaxError:
        return False
    return ast.dump(ast.parse(faulty)) != ast.dump(ast.parse(source))
