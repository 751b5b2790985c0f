"""The user's own code, in the folder own/ of a project: found, hashed and imported.

A setting names a module of this folder, such as `own.relative` for own/relative.py. The module's
fingerprint is added to the name when params.yaml is read: `own.relative@0123456789abcdef`. This
pinned name is in reports/resolved.json and in model.json. So an edit of the module makes those
results out of date that use it, and no others.
"""

import ast
import hashlib
import importlib
import inspect
import json
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

from bleuprint.runtime.closure import syntax_sha256
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.machine_errors import is_out_of_memory
from bleuprint.runtime.regular_files import read_bytes
from bleuprint.runtime.schema import list_known_names

FOLDER = "own"
# A pinned name has so many hexadecimal digits of the fingerprint: 64 bits, so that two versions of
# a module never have the same digits by chance.
_DIGITS = 16
_PINNED_NAME = re.compile(rf"({FOLDER}(?:\.[A-Za-z_]\w*)+)(?:@([0-9a-f]{{{_DIGITS}}}))?")
# A pinned name in a text, such as settings as JSON.
_NAME_IN_TEXT = re.compile(rf"\b({FOLDER}(?:\.\w+)+)@[0-9a-f]{{{_DIGITS}}}\b")
# The modules that this process has imported, by name: the project and the pinned name of each.
_IMPORTED: dict[str, str] = {}
# Messages show so many characters of an error that own code raises.
_SHOWN_CHARACTERS = 300


def is_own_name(value: object) -> TypeGuard[str]:
    """Return whether a setting names a module in own/, with or without its fingerprint."""
    return isinstance(value, str) and _PINNED_NAME.fullmatch(value) is not None


def module_name(value: str) -> str:
    """Return a name without its fingerprint: `own.relative` for `own.relative@01...`."""
    return value.partition("@")[0]


def pinned_name(value: str, root: Path) -> str:
    """Return the name of a module with its fingerprint, such as `own.relative@0123456789abcdef`.

    Args:
        value: The name, with or without a fingerprint.
        root: The project's root, with the folder own/.

    Raises:
        UserError: The module does not exist or is not Python; or `value` has another fingerprint.
    """
    name, _, expected_digits = value.partition("@")
    digits = own_fingerprint(name, root)[:_DIGITS]
    if expected_digits and expected_digits != digits:
        file = module_file(name, root).relative_to(root)
        raise UserError(
            f"{file} has changed: {value} is expected, but it is {name}@{digits} now. Restore the "
            "file. Or run: make reproduce"
        )
    return f"{name}@{digits}"


def module_file(name: str, root: Path) -> Path:
    """Return the file of a module: own/relative.py, or own/relative/__init__.py.

    Args:
        name: The name of the module, such as `own.relative`.
        root: The project's root, with the folder own/.

    Raises:
        UserError: There is no such file.
    """
    file = _find_module(name, root)
    if file is None:
        known_names = []
        for path in sorted((root / FOLDER).glob("*.py")):
            known_names.append(f"{FOLDER}.{path.stem}")
        path_text = name.replace(".", "/")
        raise UserError(f"{path_text}.py: no such file; {list_known_names(name, known_names)}")
    return file


def defined_names(name: str, root: Path) -> set[str]:
    """Return the names that a module defines or imports at its top level, without importing it.

    Args:
        name: The name of the module, such as `own.relative`.
        root: The project's root, with the folder own/.

    Raises:
        UserError: The module does not exist, or is not Python.
    """
    module_file(name, root)  # Raises an error if there is no such file.
    names = set[str]()
    unvisited_names = [name]
    visited_names = set[str]()
    while unvisited_names:
        visited_name = unvisited_names.pop()
        file = _find_module(visited_name, root)
        if file is None or visited_name in visited_names:
            continue
        visited_names.add(visited_name)
        names |= _names_in_file(file, root)
        for imported in _imported_names(file, root):
            # `from own.base import *` defines all names of own/base.py here.
            parent, _, imported_name = imported.rpartition(".")
            if imported_name == "*":
                unvisited_names.append(parent)
    return names


def own_fingerprint(name: str, root: Path) -> str:
    """Return a SHA-256 of a module and of the modules in own/ that it imports.

    Comments, docstrings and formatting do not count. If the module is a folder with __init__.py,
    the other files in the folder count, too, such as a list of words.

    Args:
        name: The name of the module, such as `own.relative`.
        root: The project's root, with the folder own/.

    Raises:
        UserError: A module does not exist, or is not Python.
    """
    digest = hashlib.sha256()
    for file in sorted(_files_of_module(name, root)):
        if file.suffix == ".py":
            sha256 = syntax_sha256(_parse(file, root))
        else:
            sha256 = hashlib.sha256(read_bytes(file)).hexdigest()
        digest.update(f"{file.relative_to(root).as_posix()}\0{sha256}\n".encode())
    return digest.hexdigest()


def edited_modules(before: Any, after: Any) -> list[str]:
    """Return the modules of own code that a user has edited, if nothing else has changed.

    Settings contain the name of a module with the fingerprint of its code, `own.relative@01...`.
    So an edit of the code changes the settings.

    Args:
        before: The settings before the edit, as JSON values.
        after: The settings after it.

    Returns:
        The names of the edited modules, such as `own.relative`; an empty list if the settings are
        equal, or if they differ in more than fingerprints.
    """
    text_before = json.dumps(before, sort_keys=True)
    text_after = json.dumps(after, sort_keys=True)
    # Compared without the fingerprints in the names.
    if _NAME_IN_TEXT.sub(r"\1", text_before) != _NAME_IN_TEXT.sub(r"\1", text_after):
        return []
    names = dict[str, None]()
    for match in _NAME_IN_TEXT.finditer(text_after):
        if match[0] not in text_before:
            names[match[1]] = None
    return list(names)


def import_own(value: str, root: Path | None = None) -> ModuleType:
    """Import a module from own/.

    Args:
        value: The name of the module. If it has a fingerprint, the module must still have it.
        root: The project's root; by default the working folder.

    Raises:
        UserError: The module does not exist, has changed, or its import fails. The message begins
            with the file and, for a failed import, the line.
    """
    root = (Path() if root is None else root).resolve()
    name = module_name(value)
    # The root is compared, too, since a process may import from several projects.
    imported = f"{root} {pinned_name(value, root)}"
    # Without a cache of compiled code: Python finds out by the second whether such a cache is out
    # of date, which is too coarse for an edit between two commands of a script.
    writes_no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        package_path = list(getattr(sys.modules.get(FOLDER), "__path__", []))
        if package_path != [str(root / FOLDER)] or _IMPORTED.get(name, imported) != imported:
            _import_package(root)
        with own_errors():
            module = importlib.import_module(name)
    finally:
        sys.dont_write_bytecode = writes_no_bytecode
    _IMPORTED[name] = imported
    return module


@contextmanager
def own_errors() -> Iterator[None]:
    """Turn an exception of own code in the `with` block into a message with its file and line.

    An exception that no line of own code has caused is not changed, and neither is a lack of
    memory. A call of `exit()` counts as an exception: the stage would end without its outputs, and
    without a message.

    Raises:
        UserError: Own code has raised an exception.
    """
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # Own code may raise errors of any class.
        place = place_of_error(error)
        if place is None or is_out_of_memory(error):
            raise
        text = " ".join(str(error).split())[:_SHOWN_CHARACTERS]
        raise UserError(f"{place}: {type(error).__name__}: {text}") from error


def error_at(value: Any, message: str) -> UserError:
    """Return an error about a class or function of own code, which begins with its file and line.

    Args:
        value: The class or function.
        message: What is wrong with it.
    """
    file = inspect.getsourcefile(value)
    _, line_number = inspect.getsourcelines(value)
    return UserError(f"{_shown_path(str(file))}:{line_number}: {message}")


def _find_module(name: str, root: Path) -> Path | None:
    """Return the file of a module in own/; None if there is none.

    Args:
        name: The name of the module, such as `own.relative`.
        root: The project's root, with the folder own/.
    """
    path = root.joinpath(*name.split("."))
    # If there are both, Python imports the folder.
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return file
    return None


def _names_in_file(file: Path, root: Path) -> set[str]:
    """Return the names that the statements at the top level of a file define or import.

    Args:
        file: The file of a module.
        root: The project's root, with the folder own/.

    Raises:
        UserError: The file is not Python.
    """
    names = set[str]()
    for node in _parse(file, root).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def _files_of_module(name: str, root: Path) -> set[Path]:
    """Return the files that decide what a module does: its own and those that it imports.

    Args:
        name: The name of the module, such as `own.relative`.
        root: The project's root, with the folder own/.
    """
    files = {module_file(name, root)}
    unvisited_names = [name]
    visited_names = set[str]()
    while unvisited_names:
        visited_name = unvisited_names.pop()
        visited_names.add(visited_name)
        file = _find_module(visited_name, root)
        if file is None:
            continue  # A folder without __init__.py, or a name that a module defines.
        files.add(file)
        if file.name == "__init__.py" and file.parent != root / FOLDER:
            files.update(_data_files(file.parent))
        for imported in _imported_names(file, root):
            unvisited_names += _with_packages(imported) - visited_names
        unvisited_names += _with_packages(visited_name) - visited_names
    return files


def _data_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a module that is a folder, except Python code and hidden files."""
    for path in sorted(folder.rglob("*")):
        is_left_over = "__pycache__" in path.parts or path.name.startswith(".")
        if path.is_file() and path.suffix != ".py" and not is_left_over:
            yield path


def _with_packages(name: str) -> set[str]:
    """Return a name and the packages above it: own.a.b, own.a and own."""
    parts = name.split(".")
    return {".".join(parts[: length + 1]) for length in range(len(parts))}


def _imported_names(file: Path, root: Path) -> Iterator[str]:
    """Yield the full name of everything that a module imports from own/.

    `from own.buckets import bucket_of` gives `own.buckets.bucket_of`. This may be the name of a
    module, or of a function in the module `own.buckets`; the statement does not tell which.

    Args:
        file: The file of the module.
        root: The project's root, with the folder own/.
    """
    package = file.parent.relative_to(root).parts
    for node in ast.walk(_parse(file, root)):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # Of `from .buckets import bucket_of`, the level is 1: the package of the module.
            above = package[: len(package) + 1 - node.level] if node.level else ()
            parent = ".".join([*above, *([node.module] if node.module else [])])
            imported = [f"{parent}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in imported:
            if name.split(".")[0] == FOLDER:
                yield name


def _parse(file: Path, root: Path) -> ast.Module:
    """Return the syntax tree of a module.

    Args:
        file: The file of the module.
        root: The project's root, for the message.

    Raises:
        UserError: The file is not Python.
    """
    try:
        return ast.parse(read_bytes(file), str(file))
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise UserError(f"{file.relative_to(root)}{line}: {error.msg}") from None
    except ValueError as error:  # The file contains a null byte.
        raise UserError(f"{file.relative_to(root)}: {error}") from None


def _import_package(root: Path) -> None:
    """Make the folder own/ of a project importable as the package `own`, without other folders.

    Args:
        root: The project's root.
    """
    for name in list(sys.modules):
        if name == FOLDER or name.startswith(f"{FOLDER}."):
            del sys.modules[name]
    _IMPORTED.clear()
    importlib.invalidate_caches()
    spec = PathFinder.find_spec(FOLDER, [str(root)])
    assert spec is not None
    package = module_from_spec(spec)
    sys.modules[FOLDER] = package
    # A folder without __init__.py has no loader, and nothing to run.
    if spec.loader is not None:
        with own_errors():
            spec.loader.exec_module(package)


def place_of_error(error: BaseException) -> str | None:
    """Return the last line of own code that an exception has come through: `own/relative.py:12`.

    Args:
        error: The exception.

    Returns:
        The file and line; None if no line of own code has caused it.
    """
    folder = f"{Path().resolve() / FOLDER}/"
    if isinstance(error, SyntaxError) and str(error.filename).startswith(folder):
        return f"{_shown_path(str(error.filename))}:{error.lineno}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folder):
            return f"{_shown_path(frame.filename)}:{frame.lineno}"
    return None


def _shown_path(file: str) -> str:
    """Return a path as messages show it: relative to the working folder, if it is in there."""
    folder = Path().resolve()
    path = Path(file).resolve()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file
