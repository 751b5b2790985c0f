"""Draw faults that are spread over the packages; equal seeds draw equal faults."""

import ast
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.fault_experiment.fault import Fault, is_another_program
from tools.fault_experiment.faults import faults_in

# The least number of faults in each package.
MIN_FAULTS_PER_PACKAGE = 2


def python_files_by_package(folder: Path) -> dict[str, list[Path]]:
    """Return the Python files of each package in a folder, without files of the folder itself."""
    files = defaultdict[str, list[Path]](list)
    for path in sorted(folder.glob("*/**/*.py")):
        package = path.relative_to(folder).parts[0]
        files[package].append(path)
    return dict(files)


def count_functions(paths: list[Path]) -> int:
    """Count the functions and methods of Python files."""
    count = 0
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count += 1
    return count


def faults_per_package(function_counts: Mapping[str, int], fault_count: int) -> dict[str, int]:
    """Distribute faults over packages, in proportion to their functions.

    Each package first gets `MIN_FAULTS_PER_PACKAGE`, or fewer if there are not enough for all. The
    proportional shares of the remaining faults are rounded down. The faults that rounding leaves
    over go to the packages with the largest remainders, one each.

    Args:
        function_counts: The number of functions of each package.
        fault_count: The number of faults to distribute.

    Returns:
        The number of faults of each package; their sum is `fault_count`.
    """
    minimum = min(MIN_FAULTS_PER_PACKAGE, fault_count // len(function_counts))
    rest = fault_count - minimum * len(function_counts)
    all_functions = sum(function_counts.values())
    shares = dict[str, int]()
    remainders = dict[str, int]()
    for package, functions in function_counts.items():
        quotient, remainders[package] = divmod(rest * functions, all_functions)
        shares[package] = minimum + quotient
    undistributed = fault_count - sum(shares.values())
    by_remainder = sorted(shares, key=lambda package: (-remainders[package], package))
    for package in by_remainder[:undistributed]:
        shares[package] += 1
    return shares


def draw_faults(root: Path, paths: list[Path], seed: str) -> Iterator[Fault]:
    """Yield faults of one package in random order, at most one in each function.

    First a kind of fault is drawn, then a fault of this kind. So rare kinds are as likely as
    frequent ones, such as dropped calls. The sequence ends when each function has been used, or
    has no valid fault left.

    Args:
        root: The project's folder, from which the faults name their files.
        paths: The files of the package.
        seed: The sequence is the same for the same seed and files.
    """
    generator = random.Random(seed)
    sources = dict[str, str]()
    faults_by_kind = defaultdict[str, list[Fault]](list)
    for path in paths:
        name = path.relative_to(root).as_posix()
        sources[name] = path.read_text("utf-8")
        for fault in faults_in(name, sources[name]):
            faults_by_kind[fault.kind].append(fault)
    used_functions = set[tuple[str, str]]()
    while faults_by_kind:
        kind = generator.choice(sorted(faults_by_kind))
        remaining = faults_by_kind[kind]
        fault = remaining.pop(generator.randrange(len(remaining)))
        if not remaining:
            del faults_by_kind[kind]
        function = (fault.path, fault.function)
        if function in used_functions:
            continue
        if not is_another_program(sources[fault.path], fault):
            continue
        used_functions.add(function)
        yield fault
