"""Finds the first stage from which two runs of an experiment differ, and why, by their dvc.lock.

dvc.lock records the settings of each stage and the MD5 of its inputs and outputs. Stages are
compared in the order in which they run, so the first one whose outputs differ is where the two
runs part.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.flatten import flatten_settings

# These outputs record how a stage ran, for example how long. They may differ although its texts or
# weights are the same, so they are not compared.
_RUN_REPORTS = re.compile("^data/filter_stats/|/(training|translation).json$")


@dataclass(frozen=True)
class Difference:
    """The first difference between two runs.

    Attributes:
        stage_kind: The kind of the first stage whose outputs differ, such as `train`.
        causes: What the stage depends on and what differs, such as `code of stages/train.py`.
    """

    stage_kind: str
    causes: list[str]


def first_difference(
    first_stages: Mapping[str, Any], second_stages: Mapping[str, Any], last_stage: str
) -> Difference | None:
    """Find the first stage whose outputs differ in two files dvc.lock.

    Args:
        first_stages: The stages of the first dvc.lock, by name.
        second_stages: The stages of the second dvc.lock, by name.
        last_stage: The name of a stage. It and the stages that it needs are compared.

    Returns:
        None if no outputs differ.
    """
    for name in _chain_of(last_stage, first_stages):
        first = first_stages.get(name, {})
        second = second_stages.get(name, {})
        if _compared_outputs(first) != _compared_outputs(second):
            kind = name.partition("@")[0]
            return Difference(kind, list(_causes(first_stages, first, second)))
    return None


def _compared_outputs(stage: Mapping[str, Any]) -> dict[str, str]:
    """Return the MD5 of each output of a stage that contains results."""
    outputs = _md5_by_path(stage, "outs")
    return {path: md5 for path, md5 in outputs.items() if not _RUN_REPORTS.search(path)}


def _causes(
    stages: Mapping[str, Any], first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[str]:
    """Yield why the outputs of one stage differ: other settings, code or data.

    Args:
        stages: All stages of the first dvc.lock.
        first: The stage in the first dvc.lock.
        second: The stage in the second dvc.lock; empty if it is missing there.
    """
    if not second:
        yield "no such stage there"
        return
    yield from _changed_settings(first, second)
    outputs = set[str]()
    for stage in stages.values():
        outputs.update(_md5_by_path(stage, "outs"))
    first_inputs = _md5_by_path(first, "deps")
    second_inputs = _md5_by_path(second, "deps")
    for path in dict.fromkeys((*first_inputs, *second_inputs)):
        is_changed = first_inputs.get(path) != second_inputs.get(path)
        # Outputs of earlier stages were compared before. What is left are the user's own files.
        is_output = any(_overlap(path, output) for output in outputs)
        if is_changed and not is_output:
            yield f"data {path}"


def _changed_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings, code and input files that differ, by the stage's recorded parameters."""
    first_values = _parameters(first)
    second_values = _parameters(second)
    for key in dict.fromkeys((*first_values, *second_values)):
        first_value = first_values.get(key, "none")
        second_value = second_values.get(key, "none")
        if first_value == second_value:
            continue
        # Keys are code.STAGE, inputs.CORPUS.FILE, or a setting such as runs.SYSTEM.CORPUS.train.
        section, _, name = key.partition(".")
        if section == "code":
            yield f"code of stages/{name}.py"
        elif section == "inputs":
            yield f"data {name.partition('.')[2]}"
        else:
            yield f"settings {key} {first_value} and {second_value}"


def _parameters(stage: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the keys of reports/resolved.json that a stage ran with, and their values as text."""
    return flatten_settings(stage.get("params", {}).get(str(RESOLVED), {}))


def _chain_of(last_stage: str, stages: Mapping[str, Any]) -> list[str]:
    """Return a stage and all that it needs, each after those that it needs itself.

    Args:
        last_stage: The name of the stage.
        stages: All stages of a dvc.lock, by name.
    """
    # A dict, since it keeps the order and finds a name fast.
    chain: dict[str, None] = {}

    def add_with_inputs(name: str) -> None:
        """Add the stages that write the inputs of a stage, then the stage itself."""
        for path in _md5_by_path(stages.get(name, {}), "deps"):
            for writer in _writers_of(path, stages):
                if writer not in chain and writer != name:
                    add_with_inputs(writer)
        chain.setdefault(name)

    add_with_inputs(last_stage)
    return list(chain)


def _writers_of(path: str, stages: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the stages that write a path, a file in it, or a folder around it."""
    for name, stage in stages.items():
        for output in _md5_by_path(stage, "outs"):
            if _overlap(path, output):
                yield name


def _md5_by_path(stage: Mapping[str, Any], section: str) -> dict[str, str]:
    """Return the MD5 of each path that dvc.lock records for a stage.

    Args:
        stage: The stage in dvc.lock.
        section: `deps` for the inputs, `outs` for the outputs.
    """
    return {entry["path"]: entry.get("md5", "") for entry in stage.get(section, ())}


def _overlap(first: str, second: str) -> bool:
    """Whether two paths are equal, or one is a folder that contains the other."""
    return Path(first).is_relative_to(second) or Path(second).is_relative_to(first)
