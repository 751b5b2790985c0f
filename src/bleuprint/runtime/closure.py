"""The code that decides what each stage writes: its script, and the modules that it imports."""

import ast
import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import write_json
from bleuprint.runtime.schema import read_record

# Files and folders of the package, and the names of scripts in stages/. A test checks that each of
# them exists: a module that was renamed would leave the fingerprints without a message.
#
# Packages that decide how things are found, run, shown or written, but no result.
UNDECIDING = ("runtime", "config", "tracking", "serving", "cli", "pipeline/stage_args.py")
# But these translate a training text.
DECIDING = ("serving/back_translate.py", "serving/translator.py")
# The report shows what all the others write; only these decide nothing of it.
NOT_REPORTED = ("cli",)
# This package searches its folder for rules: where one module decides, all do.
RULES = "rules"
# Of this package only what its modules import decides.
GRAPH = "pipeline"
RESOLVE_SCRIPT = "resolve"
REPORT_SCRIPT = "report"
# What parsing has found, which takes most of a second for all of the package, by the SHA-256 of a
# file's content after that of this one.
_PARSED = Path("work", "code.json")
_THIS = hashlib.sha256(Path(__file__).read_bytes())
_Parsed = dict[str, tuple[str, list[tuple[str, str]]]]
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_fingerprints(root: Path = Path()) -> dict[str, str]:
    """The fingerprint of each script in stages/ and what it imports, by the script's name."""
    code = SourceTree(root)
    scripts = sorted(path.stem for path in (root / "stages").glob("[!.]*.py"))
    found = {name: code.fingerprint(name) for name in scripts if name != RESOLVE_SCRIPT}
    code.keep()
    return found


def code_fingerprint(name: str) -> str:
    """That of the script stages/NAME.py."""
    return SourceTree(Path()).fingerprint(name)


def _is_left_over(path: Path) -> bool:
    """Whether a file is Python's, or a copy that an editor or git leaves beside the code."""
    ends = ("~", "#", ".orig", ".rej", ".bak")
    return "__pycache__" in path.parts or path.name.startswith(".") or path.name.endswith(ends)


class SourceTree:
    """The scripts and the package below `root`, as they are now; paths are relative to it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        package = root / "src" / "bleuprint"
        files = (path.relative_to(package) for path in package.rglob("*") if path.is_file())
        self._files = {path.as_posix() for path in files if not _is_left_over(path)}
        self._keys: dict[str, str] = {}
        self._parsed: _Parsed = {}
        # a cache, which is made again where it is missing or damaged
        with suppress(OSError, UserError):
            self._parsed = read_record(_Parsed, root / _PARSED)

    def keep(self) -> None:
        """Write what was parsed, for the next process."""
        used = {key: self._parsed[key] for key in sorted(self._keys.values())}
        with suppress(OSError):
            (self._root / _PARSED).parent.mkdir(exist_ok=True)
            write_json(self._root / _PARSED, used)

    def fingerprint(self, name: str) -> str:
        """The SHA-256 of a script and its closure: of Python the syntax trees.

        Comments, docstrings and formatting do not count.
        """
        digest = hashlib.sha256()
        script = f"stages/{name}.py"
        files = {f"src/bleuprint/{path}": path for path in self.closure(name)}
        for path, inner in sorted({**files, script: f"../../{script}"}.items()):
            digest.update(f"{path}\0{self._of_file(inner)[0]}\n".encode())
        return digest.hexdigest()

    def closure(self, name: str) -> set[str]:
        """The files of the package that decide what a script does.

        Modules that it imports, those that they import, and so on, with the data files beside
        them, of the report also the templates; with one rule all, since their folder is searched.
        """
        whole = name == REPORT_SCRIPT
        found, todo = set[str](), [f"../../stages/{name}.py"]
        while todo:
            new = self.imports_of(todo.pop())
            if any(path.startswith(f"{RULES}/") for path in new):
                new |= {path for path in self._files if re.fullmatch(rf"{RULES}/\w+\.py", path)}
            new = {path for path in new & self._files if _decides(path, whole)} - found
            found |= new
            todo += new
        if not whole:
            found = {path for path in found if not path.startswith(f"{GRAPH}/")}
        folders = {Path(path).parent for path in found} - {Path()}
        if whole:
            folders |= {folder / "templates" for folder in folders}
        data = {path for path in self._files if not path.endswith(".py")}
        return found | {path for path in data if Path(path).parent in folders}

    def imports_of(self, path: str) -> set[str]:
        """The modules of the package that a file imports, wherever in the file it does."""
        return {self._module(package, name) for package, name in self._of_file(path)[1]}

    def _of_file(self, path: str) -> tuple[str, list[tuple[str, str]]]:
        """See `_parse`."""
        if path not in self._keys:
            file = self._root / "src" / "bleuprint" / path
            (digest := _THIS.copy()).update(content := file.read_bytes())
            key = self._keys[path] = f"{digest.hexdigest()}{file.suffix}"
            if key not in self._parsed:
                self._parsed[key] = _parse(file.suffix, content)
        return self._parsed[self._keys[path]]

    def _module(self, package: str, name: str) -> str:
        """The file from which `from bleuprint.PACKAGE import NAME` takes something."""
        inner = f"{package}/{name}".lstrip("/")
        for path in (f"{inner}.py", f"{inner}/__init__.py", f"{package}.py"):
            if path in self._files:
                return path
        return f"{package}/__init__.py".lstrip("/")


def _decides(path: str, whole: bool) -> bool:
    """Whether a module decides what a stage writes; `whole`: the stage report."""
    if path in DECIDING:
        return True
    without = NOT_REPORTED if whole else UNDECIDING
    return not any(path == each or path.startswith(f"{each}/") for each in without)


def _parse(suffix: str, content: bytes) -> tuple[str, list[tuple[str, str]]]:
    """The SHA-256 of what of a file decides results, and what a module imports of the package.

    Of Python the first is that of the syntax tree, of C++ of the text without comments. An import
    is a folder, "" for the package itself, and a name.
    """
    imports = list[tuple[str, str]]()
    if suffix == ".py":
        content = repr(_syntax(tree := ast.parse(content))).encode()
        imports = [
            ("/".join(package), alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for top, *package in [(node.module or "").split(".")]
            if top == "bleuprint"
            for alias in node.names
        ]
    elif suffix == ".cpp":
        content = re.sub(rb"\s*//[^\n]*", b"", content).strip()
    return hashlib.sha256(content).hexdigest(), imports


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
