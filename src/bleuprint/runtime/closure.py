"""The code that decides what each stage writes: its script, and the modules that it imports."""

import ast
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

# Packages that decide how things are found, run, shown or written, but no result.
_UNDECIDING = ("runtime", "config", "tracking", "serving", "cli", "pipeline/stage_args.py")
# But these translate a training text, or score translations.
_DECIDING = ("serving/made_text.py", "serving/score_outside.py", "serving/translator.py")
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_fingerprints(root: Path = Path()) -> dict[str, str]:
    """The fingerprint of each script in stages/ and what it imports, by the script's name."""
    code = Code(root)
    scripts = sorted(path.stem for path in (root / "stages").glob("*.py"))
    return {name: code.fingerprint(name) for name in scripts if name != "resolve"}


def code_fingerprint(name: str, root: Path = Path()) -> str:
    """That of the script stages/NAME.py."""
    return Code(root).fingerprint(name)


class Code:
    """The scripts and the package below `root`, as they are now; paths are relative to it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        package = root / "src" / "bleuprint"
        files = (path.relative_to(package) for path in package.rglob("*") if path.is_file())
        self._files = {path.as_posix() for path in files if "__pycache__" not in path.parts}
        self._imports: dict[str, set[str]] = {}

    def fingerprint(self, name: str) -> str:
        """The SHA-256 of a script and its closure: of Python the syntax trees.

        Comments, docstrings and formatting do not count.
        """
        digest = hashlib.sha256()
        files = (Path("src/bleuprint", path) for path in self.closure(name))
        for path in sorted([Path(f"stages/{name}.py"), *files]):
            content = (self._root / path).read_bytes()
            digest.update(f"{path.as_posix()}\0{_of_file(path.suffix, content)}\n".encode())
        return digest.hexdigest()

    def closure(self, name: str) -> set[str]:
        """The files of the package that decide what a script does.

        Modules that it imports, those that they import, and so on, with the data files beside
        them, of the report also the templates; with one rule all, since their folder is searched.
        """
        whole = name == "report"  # it shows what the others write: all of them decide it
        found, todo = set[str](), [f"../../stages/{name}.py"]
        while todo:
            new = self.imports_of(todo.pop())
            if any(path.startswith("rules/") for path in new):
                new |= {path for path in self._files if re.fullmatch(r"rules/\w+\.py", path)}
            new = {path for path in new & self._files if _decides(path, whole)} - found
            found |= new
            todo += new
        if not whole:  # what the modules of pipeline import decides, but not they themselves
            found = {path for path in found if not path.startswith("pipeline/")}
        folders = {Path(path).parent for path in found} - {Path()}
        if whole:
            folders |= {folder / "templates" for folder in folders}
        data = {path for path in self._files if not path.endswith(".py")}
        return found | {path for path in data if Path(path).parent in folders}

    def imports_of(self, path: str) -> set[str]:
        """The modules of the package that a file imports, wherever in the file it does."""
        if path not in self._imports:
            code = (self._root / "src" / "bleuprint" / path).read_bytes()
            self._imports[path] = {
                self._module("/".join(package), alias.name)
                for node in ast.walk(ast.parse(code))
                if isinstance(node, ast.ImportFrom)
                for top, *package in [(node.module or "").split(".")]
                if top == "bleuprint"
                for alias in node.names
            }
        return set(self._imports[path])

    def _module(self, package: str, name: str) -> str:
        """The file from which `from bleuprint.PACKAGE import NAME` takes something."""
        inner = f"{package}/{name}".lstrip("/")
        for path in (f"{inner}.py", f"{inner}/__init__.py", f"{package}.py"):
            if path in self._files:
                return path
        return f"{package}/__init__.py".lstrip("/")


def _decides(path: str, whole: bool) -> bool:
    without = ("cli",) if whole else _UNDECIDING
    return path in _DECIDING or not any(
        path == each or path.startswith(f"{each}/") for each in without
    )


@cache
def _of_file(suffix: str, content: bytes) -> str:
    """The SHA-256 of a file's syntax tree (Python), its bytes without comments (C++), or bytes."""
    if suffix == ".py":
        content = repr(_syntax(ast.parse(content))).encode()
    elif suffix == ".cpp":
        content = re.sub(rb"\s*//[^\n]*", b"", content).strip()
    return hashlib.sha256(content).hexdigest()


def _syntax(node: Any) -> Any:
    """A syntax tree as nested tuples, without docstrings, positions and empty fields.

    ast.dump() differs between versions of Python, which add fields.
    """
    if isinstance(node, list):
        return tuple([_syntax(each) for each in node])
    if not isinstance(node, ast.AST):
        return node
    fields = {name: getattr(node, name, None) for name in node._fields}
    given = {name: value for name, value in fields.items() if value not in (None, [])}
    if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        given["body"] = given["body"][1:]
    return (type(node).__name__, *((name, _syntax(value)) for name, value in given.items()))
