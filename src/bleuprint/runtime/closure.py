"""Fingerprints of the code that decides what each stage writes.

A stage runs again when its code changes. Its code is the *closure* of its script: the script in
stages/, the modules of the package that the script imports, those that these modules import, and so
on, with the data files beside them. Modules that do not affect results are excluded; the constants
below name them.

The fingerprint of a closure is a hash of its syntax trees, in which comments, docstrings and
formatting do not count. DVC compares it as a key of reports/resolved.json. Code that a user has
accepted counts as older code, with its fingerprint (accepted_code.py).
"""

import ast
import hashlib
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bleuprint.runtime.accepted_code import counted_code, read_accepted_changes
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json
from bleuprint.runtime.schema import read_record

# Files and folders of the package, and the names of scripts in stages/. A test checks that each of
# them exists: a module that was renamed would leave the fingerprints without a message.
#
# Packages that decide how things are found, run, shown or written, but no result.
PACKAGES_WITHOUT_RESULTS = (
    "runtime",
    "config",
    "tracking",
    "serving",
    "cli",
    "pipeline/stage_args.py",
)
# Modules of these packages that decide a result all the same: they translate a training text.
MODULES_WITH_RESULTS = (
    "serving/back_translate.py",
    "serving/translated_pieces.py",
    "serving/translation_noise.py",
    "serving/translator.py",
)
# The report shows what all other packages write; only these packages decide nothing of it.
PACKAGES_WITHOUT_REPORT = ("cli",)
# This package searches its folder for rules: where one module decides, all of them do.
RULES_PACKAGE = "rules"
# The modules of this package decide nothing themselves, but the modules that they import do.
PIPELINE_PACKAGE = "pipeline"
RESOLVE_SCRIPT = "resolve"
REPORT_SCRIPT = "report"

# A cache of parsed files: to parse the whole package takes most of a second.
_CACHE = Path("work", "code.json")
# The start of each key of the cache, so that an edit of this module makes all entries invalid.
_HASH_OF_THIS_MODULE = hashlib.sha256(Path(__file__).read_bytes())
# The nodes of a syntax tree that may have a docstring.
_DOCUMENTED_NODES = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# The ends of names under which editors and git leave copies beside the code.
_COPY_SUFFIXES = ("~", "#", ".orig", ".rej", ".bak")


@dataclass(frozen=True)
class ParsedFile:
    """What the fingerprints need of one file.

    Attributes:
        sha256: The hash of what decides results: of Python, the syntax tree.
        imports: What the file imports from the package, such as `model/transformer/Transformer`
            for `from bleuprint.model.transformer import Transformer`.
    """

    sha256: str
    imports: list[str]


def code_fingerprints(root: Path = Path()) -> dict[str, str]:
    """Return the fingerprint as which the code of each stage counts, for DVC to compare.

    It is the fingerprint of the present code, or of older code in place of which a user has
    accepted the present code.

    Args:
        root: The project's folder.

    Returns:
        The fingerprints, by script.

    Raises:
        UserError: The file of accepted changes is not valid.
    """
    changes = read_accepted_changes(root)
    counted_fingerprints = {}
    for script, fingerprint in present_fingerprints(root).items():
        counted_fingerprints[script] = counted_code(changes, script, fingerprint)
    return counted_fingerprints


def present_fingerprints(root: Path = Path()) -> dict[str, str]:
    """Return a fingerprint of the present code of each stage.

    Args:
        root: The project's folder.

    Returns:
        For the script of each stage, such as `train`, the hash of all code that decides what the
        stage writes. The stage `resolve`, which writes the fingerprints, has none.
    """
    source_tree = SourceTree(root)
    scripts = sorted(path.stem for path in (root / "stages").glob("[!.]*.py"))
    fingerprints = {}
    for script in scripts:
        if script != RESOLVE_SCRIPT:
            fingerprints[script] = source_tree.fingerprint(script)
    source_tree.write_cache()
    return fingerprints


def code_fingerprint(script: str) -> str:
    """Return the fingerprint as which the code of one stage counts.

    Args:
        script: The name of the stage's script: `train` for stages/train.py.

    Raises:
        UserError: The file of accepted changes is not valid.
    """
    fingerprint = SourceTree(Path()).fingerprint(script)
    return counted_code(read_accepted_changes(), script, fingerprint)


class SourceTree:
    """The scripts in stages/ and the files of the package in one project, as they are now.

    The paths of files are relative to the package, such as `model/transformer.py`.
    """

    def __init__(self, root: Path) -> None:
        """List the files of the package, and read the cache of parsed files.

        Args:
            root: The project's root, with the folders src/bleuprint and stages.
        """
        self._root = root
        package_folder = root / "src" / "bleuprint"
        self._files: set[str] = set()
        for path in package_folder.rglob("*"):
            relative_path = path.relative_to(package_folder)
            if path.is_file() and not _is_leftover_file(relative_path):
                self._files.add(relative_path.as_posix())
        # Parsing all files takes a second, so the results are kept on the disk. A key of the cache
        # is a hash of a file's content.
        self._cache: dict[str, ParsedFile] = {}
        self._cache_keys: dict[str, str] = {}  # The key of each file that was needed, by its path.
        # Without a readable cache, all files are parsed again.
        with suppress(OSError, UserError):
            self._cache = read_record(dict[str, ParsedFile], root / _CACHE)

    def write_cache(self) -> None:
        """Write the parsed files to the cache on the disk, from which the next process reads them.

        Only the files that this process needed are written, so that entries of files that were
        removed or edited do not accumulate.
        """
        used_entries = {}
        for key in sorted(self._cache_keys.values()):
            used_entries[key] = asdict(self._cache[key])
        # If the cache cannot be written, the next process takes a second longer; this is harmless.
        with suppress(OSError):
            (self._root / _CACHE).parent.mkdir(exist_ok=True)
            write_json(self._root / _CACHE, used_entries)

    def fingerprint(self, script: str) -> str:
        """Return one SHA-256 of all code that decides what a stage of the pipeline writes.

        This is the script of the stage, and the files of the package that `closure` returns.

        Args:
            script: The name of the stage's script: `train` for stages/train.py.
        """
        # The name under which each file is hashed, and its path relative to the package.
        paths_by_name = {f"stages/{script}.py": _script_path(script)}
        for path in self.closure(script):
            paths_by_name[f"src/bleuprint/{path}"] = path
        digest = hashlib.sha256()
        for name, path in sorted(paths_by_name.items()):
            file_sha256 = self._parse(path).sha256
            digest.update(f"{name}\0{file_sha256}\n".encode())
        return digest.hexdigest()

    def closure(self, script: str) -> set[str]:
        """Return the files of the package that decide what a stage of the pipeline writes.

        These are the modules that the stage's script imports, directly or through other modules,
        and the data files in the folders of these modules. The report also depends on templates.

        Args:
            script: The name of the stage's script: `train` for stages/train.py.

        Returns:
            Paths relative to the package, such as `model/transformer.py`.
        """
        is_report = script == REPORT_SCRIPT
        modules = self._imported_modules(script)
        if not is_report:
            # These modules run the stages and decide nothing about their results. They are removed
            # only now, since they import modules that do.
            modules = {path for path in modules if not path.startswith(f"{PIPELINE_PACKAGE}/")}
        # The data files in the top folder of the package belong to no module.
        folders = {Path(path).parent for path in modules} - {Path()}
        if is_report:
            folders |= {folder / "templates" for folder in folders}
        data_files = set()
        for path in self._files:
            if not path.endswith(".py") and Path(path).parent in folders:
                data_files.add(path)
        return modules | data_files

    def _imported_modules(self, script: str) -> set[str]:
        """Return the modules that a script imports, directly or through other modules.

        A module that decides no result, such as one of the command line, is skipped, and so are
        the modules that only such modules import. If one cleaning rule is imported, all cleaning
        rules are returned, because their package loads every module in its folder.

        Args:
            script: The name of the stage's script: `train` for stages/train.py.
        """
        is_report = script == REPORT_SCRIPT
        modules: set[str] = set()
        files_to_read = [_script_path(script)]
        while files_to_read:
            imported = self.imports_of(files_to_read.pop())
            if any(path.startswith(f"{RULES_PACKAGE}/") for path in imported):
                imported |= self._rule_modules()
            for path in imported & self._files:
                if path not in modules and _decides_result(path, is_report):
                    modules.add(path)
                    files_to_read.append(path)
        return modules

    def _rule_modules(self) -> set[str]:
        """Return the modules directly in the package of the cleaning rules."""
        return {path for path in self._files if re.fullmatch(rf"{RULES_PACKAGE}/\w+\.py", path)}

    def imports_of(self, path: str) -> set[str]:
        """Return the modules of the package that a file imports, also inside functions."""
        return {self._module_of_import(name) for name in self._parse(path).imports}

    def _parse(self, path: str) -> ParsedFile:
        """Return the hash and the imports of a file, from the cache if the file was parsed before.

        A key of the cache is a hash of the file's content and of the code of this module. After an
        edit of either, the key is another one, and the file is parsed again.

        Args:
            path: The file, relative to the package.
        """
        if path not in self._cache_keys:
            file = self._root / "src" / "bleuprint" / path
            content = file.read_bytes()
            digest = _HASH_OF_THIS_MODULE.copy()
            digest.update(content)
            cache_key = f"{digest.hexdigest()}{file.suffix}"
            self._cache_keys[path] = cache_key
            if cache_key not in self._cache:
                self._cache[cache_key] = _parse_file(file.suffix, content)
        return self._cache[self._cache_keys[path]]

    def _module_of_import(self, name: str) -> str:
        """Return the file of the package that an import reads.

        `from bleuprint.text import words` can import the module text/words.py, or the package
        text/words, or a name that is defined in the module or package `text`.

        Args:
            name: The import with slashes, such as `text/words`.
        """
        parent = name.rpartition("/")[0]
        for path in (f"{name}.py", f"{name}/__init__.py", f"{parent}.py"):
            if path in self._files:
                return path
        # The name is defined in a package. The parent of the top package is empty: no slash then.
        return f"{parent}/__init__.py".lstrip("/")


def _script_path(script: str) -> str:
    """Return the path of a script in stages/, relative to the package."""
    return f"../../stages/{script}.py"


def _is_leftover_file(path: Path) -> bool:
    """Return whether Python, an editor or Git has left a file in a folder of code.

    Such a file is not part of the code, so it must not change the fingerprint of the code.

    Args:
        path: The file, such as `__pycache__/words.cpython-311.pyc` or `words.py.orig`.
    """
    is_compiled = "__pycache__" in path.parts
    is_hidden = path.name.startswith(".")
    return is_compiled or is_hidden or path.name.endswith(_COPY_SUFFIXES)


def _decides_result(path: str, is_report: bool) -> bool:
    """Return whether an edit of a module may change what a stage of the pipeline writes.

    If so, the stage must run again after an edit. Modules of the command line, for example, only
    decide how a stage is started. The report describes nearly everything, so for it fewer modules
    are excluded.

    Args:
        path: The module, relative to the package.
        is_report: Whether the stage is the report.
    """
    if path in MODULES_WITH_RESULTS:
        return True
    excluded_paths = PACKAGES_WITHOUT_REPORT if is_report else PACKAGES_WITHOUT_RESULTS
    for file_or_folder in excluded_paths:
        if path == file_or_folder or path.startswith(f"{file_or_folder}/"):
            return False
    return True


def _parse_file(suffix: str, content: bytes) -> ParsedFile:
    """Return a hash of a file of code that ignores comments, and what the file imports.

    If only a comment is edited, the hash stays the same, and no stage needs to run again. For
    Python, the syntax tree is hashed; for C++, the text without comments; for other files, all
    bytes.

    Args:
        suffix: The end of the file's name, such as `.py`.
        content: The bytes of the file.
    """
    if suffix == ".py":
        tree = ast.parse(content)
        return ParsedFile(syntax_sha256(tree), _package_imports(tree))
    if suffix == ".cpp":
        content = re.sub(rb"\s*//[^\n]*", b"", content).strip()
    return ParsedFile(hashlib.sha256(content).hexdigest(), imports=[])


def syntax_sha256(tree: ast.Module) -> str:
    """Return a hash of a syntax tree, in which comments, docstrings and formatting do not count."""
    return hashlib.sha256(repr(_as_tuples(tree)).encode()).hexdigest()


def _package_imports(tree: ast.Module) -> list[str]:
    """Return what a module imports from the package `bleuprint`.

    `from bleuprint.text.words import find_words` becomes `text/words/find_words`. Our code imports
    the package only in this form, so the form `import bleuprint` is not looked for.
    """
    imports = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        top_package, *inner_packages = node.module.split(".")
        if top_package == "bleuprint":
            for alias in node.names:
                imports.append("/".join([*inner_packages, alias.name]))
    return imports


def _as_tuples(node: Any) -> Any:
    """Return a syntax tree as nested tuples that are the same in all versions of Python.

    The tuples are hashed, to notice when code changes. Docstrings and line numbers are omitted.
    Empty fields are omitted, too: newer versions of Python add fields to the nodes, which are empty
    for old syntax, and `ast.dump` would show some of them.

    Args:
        node: A node of the tree, a list of nodes, or a value such as a name or a number.
    """
    if isinstance(node, list):
        return tuple([_as_tuples(item) for item in node])
    if not isinstance(node, ast.AST):
        return node
    has_docstring = (
        isinstance(node, _DOCUMENTED_NODES) and ast.get_docstring(node, clean=False) is not None
    )
    fields = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value is None or value == []:
            continue
        if name == "body" and has_docstring:
            # The docstring is the first statement.
            value = value[1:]
        fields.append((name, _as_tuples(value)))
    return (type(node).__name__, *fields)
