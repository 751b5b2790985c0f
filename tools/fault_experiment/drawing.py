"""Draw faults that are spread over the packages, equal for equal seeds."""

import ast
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.fault_experiment.faults import Fault, faults_in, is_another_program

# The least number of faults in each package.
LEAST = 2


def sources_by_package(folder: Path) -> dict[str, list[Path]]:
    """Return the Python files of each package in a folder, without those of the folder itself."""
    found = defaultdict[str, list[Path]](list)
    for path in sorted(folder.glob("*/**/*.py")):
        package = path.relative_to(folder).parts[0]
        found[package].append(path)
    return dict(found)


def count_functions(paths: list[Path]) -> int:
    """Count the functions and methods of Python files."""
    count = 0
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            count += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return count


def shares(weights: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many of `count` faults each package gets.

    Each gets `LEAST`, or fewer if there are not enough; the rest is in proportion to the weights,
    and what is left after rounding down goes to the largest remainders.
    """
    least = min(LEAST, count // len(weights))
    rest = count - least * len(weights)
    total = sum(weights.values())
    parts = {package: least + rest * weight // total for package, weight in weights.items()}
    remainders = {package: rest * weight % total for package, weight in weights.items()}
    by_remainder = sorted(weights, key=lambda package: (-remainders[package], package))
    for package in by_remainder[: count - sum(parts.values())]:
        parts[package] += 1
    return parts


def drawn(root: Path, paths: list[Path], seed: str) -> Iterator[Fault]:
    """Yield faults of one package at random, without end; at most one in each function.

    Every kind is equally likely, so that frequent ones, such as calls, do not displace others.

    Args:
        root: The project's folder, from which paths are given.
        paths: The files of the package.
        seed: The sequence is the same for the same seed and files.
    """
    generator = random.Random(seed)
    sources = dict[str, str]()
    by_kind = defaultdict[str, list[Fault]](list)
    for path in paths:
        name = path.relative_to(root).as_posix()
        sources[name] = path.read_text("utf-8")
        for fault in faults_in(name, sources[name]):
            by_kind[fault.kind].append(fault)
    used = set[tuple[str, str]]()
    while by_kind:
        kind = generator.choice(sorted(by_kind))
        fault = by_kind[kind].pop(generator.randrange(len(by_kind[kind])))
        if not by_kind[kind]:
            del by_kind[kind]
        place = (fault.path, fault.function)
        if place in used or not is_another_program(sources[fault.path], fault):
            continue
        used.add(place)
        yield fault
