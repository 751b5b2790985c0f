"""Choose the tests that may catch a fault in a file of the package."""

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

# Tests of the whole program, which take minutes each.
WHOLE_PROGRAM = ("tests/integration/", "tests/faults/")
# Some packages are also tested in the folder of another one.
OTHER_FOLDERS = {"cli": ("tests/serving/",), "runs": ("tests/tracking/",)}


class Round(StrEnum):
    """The tests for a fault run in three rounds, the likeliest to fail first.

    Attributes:
        NAMED: Tests of the package that are named after the module or import it.
        PACKAGE: All other tests of the package.
        ELSEWHERE: Tests of other packages that import the module, tests in `OTHER_FOLDERS`, and
            tests of the whole program.
    """

    NAMED = "named"
    PACKAGE = "package"
    ELSEWHERE = "elsewhere"


# The rounds with tests of the package itself.
PACKAGE_ROUNDS = (Round.NAMED, Round.PACKAGE)


def select_tests(root: Path, path: str) -> dict[Round, list[str]]:
    """Return the test files that may catch a fault in a module, likeliest first, in three rounds.

    The first round has tests of the same package that are named after the module or import it; the
    second one has all other tests of the package; the third one has tests of other packages and of
    the whole program. If the package has no folder in tests/, all tests that import the package
    count as its own.

    Args:
        root: The project's folder.
        path: The file of the module, relative to that folder: `src/bleuprint/text/moses.py`.

    Returns:
        For each round its test files, relative to that folder; no file is in two rounds.
    """
    texts = _texts_of_tests(root)
    module = module_of(path)
    stem = module.rpartition(".")[2]
    # The part after src/bleuprint/.
    package = Path(path).parts[2]
    importing_tests = _importing(texts, module)
    whole_program_tests = _in_folders(texts, WHOLE_PROGRAM)
    other_folder_tests = _in_folders(texts, OTHER_FOLDERS.get(package, ()))
    if (root / "tests" / package).is_dir():
        package_tests = _in_folders(texts, (f"tests/{package}/",))
    else:
        dotted_package = ".".join(module.split(".")[:2])
        package_tests = _without(_importing(texts, dotted_package), whole_program_tests)
    tests_by_name = [file for file in texts if Path(file).stem.startswith(f"test_{stem}")]
    named_or_importing = _unique([*tests_by_name, *importing_tests])
    likeliest = [file for file in named_or_importing if file in package_tests]
    others = _unique([*importing_tests, *other_folder_tests, *whole_program_tests])
    return {
        Round.NAMED: likeliest,
        Round.PACKAGE: _without(package_tests, likeliest),
        Round.ELSEWHERE: _without(others, package_tests),
    }


def _texts_of_tests(root: Path) -> dict[str, str]:
    """Return the text of each test file, by its path from the project's folder."""
    texts = dict[str, str]()
    for folder in ("tests", "tools"):
        for path in sorted((root / folder).glob("**/test_*.py")):
            texts[path.relative_to(root).as_posix()] = path.read_text("utf-8")
    return texts


def _in_folders(files: Iterable[str], folders: tuple[str, ...]) -> list[str]:
    """Return the files in some folders, such as `tests/faults/`."""
    return [file for file in files if file.startswith(folders)]


def _without(files: list[str], excluded: list[str]) -> list[str]:
    """Return the files that are not excluded."""
    return [file for file in files if file not in excluded]


def _importing(texts: dict[str, str], module: str) -> list[str]:
    """Return the files whose text names a module."""
    return [file for file, text in texts.items() if names_module(text, module)]


def _unique(files: list[str]) -> list[str]:
    """Return the files without repetitions, in the order in which each is first."""
    return list(dict.fromkeys(files))


def names_module(text: str, module: str) -> bool:
    """Return whether the text of a test names a module, in an import or as a string.

    Two forms are found: `package.module`, and `from package import ..., module`.

    Args:
        text: The text of the test file.
        module: The dotted name of the module.
    """
    parent, _, stem = module.rpartition(".")
    dotted_name = rf"\b{re.escape(module)}\b"
    from_parent = rf"from {re.escape(parent)} import [^\n]*\b{stem}\b"
    return re.search(f"{dotted_name}|{from_parent}", text) is not None


def module_of(path: str) -> str:
    """Return the dotted name of the module in a file of src/."""
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(part for part in parts if part != "__init__")
