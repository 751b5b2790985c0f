"""The first stage from which two runs differ, and why, by their dvc.lock."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.flatten import flatten_settings

# Outputs that tell how a stage ran, and so may differ where its texts or weights do not.
_ACCOUNTS = re.compile("^data/filter_stats/|/(training|translation).json$")


def first_difference(
    first: Mapping[str, Any], second: Mapping[str, Any], last: str
) -> tuple[str, list[str]] | None:
    """The kind of the first stage whose outputs differ in two dvc.locks, and why.

    Of the stages that the `last` needs, and itself; None if there is none. Outputs that only tell
    how a stage ran are not compared.
    """
    for name in _chain(first, last):
        stages = [lock.get(name, {}) for lock in (first, second)]
        made = [
            {(path, md5) for path, md5 in _sums(stage, "outs") if not _ACCOUNTS.search(path)}
            for stage in stages
        ]
        if made[0] != made[1]:
            return name.partition("@")[0], list(_causes(first, *stages))
    return None


def _causes(lock: Mapping[str, Any], *stages: Mapping[str, Any]) -> Iterator[str]:
    if not stages[1]:
        yield "no such stage there"
        return
    params = [flatten_settings(stage.get("params", {}).get(str(RESOLVED), {})) for stage in stages]
    for key in dict.fromkeys((*params[0], *params[1])):
        values = [side.get(key, "none") for side in params]
        kind, _, name = key.partition(".")
        if values[0] != values[1]:
            named = {
                "code": f"code of stages/{name}.py",
                "inputs": f"data {name.partition('.')[2]}",
            }
            yield named.get(kind, f"settings {key} {' and '.join(values)}")
    made = [out for stage in lock.values() for out, _ in _sums(stage, "outs")]
    old, new = (dict(_sums(stage, "deps")) for stage in stages)
    for path in dict.fromkeys((*old, *new)):
        if old.get(path) != new.get(path) and not any(_overlap(path, out) for out in made):
            yield f"data {path}"


def _chain(lock: Mapping[str, Any], name: str) -> list[str]:
    """The stages that a stage needs, each after those that it needs, and itself."""
    makers = [(out, of) for of, stage in lock.items() for out, _ in _sums(stage, "outs")]
    chain: dict[str, None] = {}

    def add(stage: str) -> None:
        for path, _ in _sums(lock.get(stage, {}), "deps"):
            for maker in (of for out, of in makers if _overlap(path, out)):
                if maker not in chain and maker != stage:
                    add(maker)
        chain.setdefault(stage)

    add(name)
    return list(chain)


def _sums(stage: Mapping[str, Any], what: str) -> list[tuple[str, str]]:
    return [(each["path"], each.get("md5", "")) for each in stage.get(what, ())]


def _overlap(first: str, second: str) -> bool:
    return Path(first).is_relative_to(second) or Path(second).is_relative_to(first)
