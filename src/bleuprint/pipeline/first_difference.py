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
    """Find the first stage whose outputs differ between two runs of an experiment.

    The file dvc.lock of each run records the MD5 of the outputs of each stage. Where these are
    equal, both runs computed the same. So the first stage with other outputs, in the order in which
    the stages run, is the one where the two runs part.

    Args:
        first_stages: The stages that dvc.lock records for the first run, by name.
        second_stages: The stages that dvc.lock records for the second run, by name.
        last_stage: The stage at which to stop, such as `score@small-phrasebook-1`. Only this stage
            and the stages whose outputs it needs are compared.

    Returns:
        The kind of the stage and what differs in its settings, code or data; None if all outputs
        are equal.
    """
    for name in _stages_up_to(last_stage, first_stages):
        first_stage = first_stages.get(name, {})
        second_stage = second_stages.get(name, {})
        if _compared_outputs(first_stage) != _compared_outputs(second_stage):
            # The part before the @: `train` for `train@small-phrasebook-1`.
            kind = name.partition("@")[0]
            causes = list(_causes(first_stages, first_stage, second_stage))
            return Difference(kind, causes)
    return None


def _compared_outputs(stage: Mapping[str, Any]) -> dict[str, str]:
    """Return the MD5 of each output of a stage by path, without outputs that contain run times."""
    outputs = _md5_by_path(stage, "outs")
    return {path: md5 for path, md5 in outputs.items() if not _RUN_REPORTS.search(path)}


def _causes(
    stages: Mapping[str, Any], first_stage: Mapping[str, Any], second_stage: Mapping[str, Any]
) -> Iterator[str]:
    """Yield why the outputs of a stage differ between two runs: other settings, code or data.

    Args:
        stages: All stages that dvc.lock records for the first run.
        first_stage: The stage in the first run.
        second_stage: The stage in the second run; empty if dvc.lock does not record it there.
    """
    if not second_stage:
        yield "the stage did not run there"
        return
    yield from _changed_parameters(first_stage, second_stage)
    all_outputs = set[str]()
    for stage in stages.values():
        all_outputs.update(_md5_by_path(stage, "outs"))
    first_inputs = _md5_by_path(first_stage, "deps")
    second_inputs = _md5_by_path(second_stage, "deps")
    all_inputs = dict.fromkeys((*first_inputs, *second_inputs))
    for path in all_inputs:
        is_changed = first_inputs.get(path) != second_inputs.get(path)
        # An output of an earlier stage cannot be the cause: the stages are compared in their order,
        # and this is the first one that differs. So the cause is a file of the user.
        is_output_of_stage = any(_overlap(path, output) for output in all_outputs)
        if is_changed and not is_output_of_stage:
            yield f"data {path}"


def _changed_parameters(
    first_stage: Mapping[str, Any], second_stage: Mapping[str, Any]
) -> Iterator[str]:
    """Describe each setting, code hash and file hash that differs between two runs of a stage.

    For each stage, dvc.lock records the values of the keys of reports/resolved.json on which it
    depends.

    Args:
        first_stage: What dvc.lock records for the stage in the first run.
        second_stage: What dvc.lock records for the stage in the second run.

    Yields:
        Texts such as `code of stages/clean.py`, `data inputs/train.de` or
        `settings runs.small.own.train.dropout 0.1 and 0.3`.
    """
    first_values = _parameters(first_stage)
    second_values = _parameters(second_stage)
    all_keys = dict.fromkeys((*first_values, *second_values))
    for key in all_keys:
        first_value = first_values.get(key, "none")
        second_value = second_values.get(key, "none")
        if first_value == second_value:
            continue
        section, _, name = key.partition(".")
        # The key is code.STAGE, inputs.CORPUS.FILE, or a setting such as runs.SYSTEM.CORPUS.train.
        if section == "code":
            yield f"code of stages/{name}.py"
        elif section == "inputs":
            _, _, file = name.partition(".")
            yield f"data {file}"
        else:
            yield f"settings {key} {first_value} and {second_value}"


def _parameters(stage: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the keys of reports/resolved.json that a stage ran with, and their values as text."""
    return flatten_settings(stage.get("params", {}).get(str(RESOLVED), {}))


def _stages_up_to(last_stage: str, stages: Mapping[str, Any]) -> list[str]:
    """Return a stage and all stages that it needs, directly or not, in the order in which they run.

    Each stage comes after the stages that write its inputs (a topological order).

    Args:
        last_stage: The name of the stage, which comes last in the result.
        stages: All stages that dvc.lock records, by name.
    """
    # A dict without values serves as an ordered set of names.
    ordered_names: dict[str, None] = {}

    def add_after_its_inputs(name: str) -> None:
        """Add the stages that write the inputs of a stage, by recursion, then the stage itself."""
        for path in _md5_by_path(stages.get(name, {}), "deps"):
            for writer in _writers_of(path, stages):
                # A stage may read and write files of one folder: it is not its own input.
                is_itself = writer == name
                if writer not in ordered_names and not is_itself:
                    add_after_its_inputs(writer)
        ordered_names.setdefault(name)

    add_after_its_inputs(last_stage)
    return list(ordered_names)


def _writers_of(path: str, stages: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the stages that write a path, a file in it, or a folder around it.

    Args:
        path: The path, relative to the project's folder.
        stages: All stages that dvc.lock records, by name.
    """
    for name, stage in stages.items():
        for output in _md5_by_path(stage, "outs"):
            if _overlap(path, output):
                yield name


def _md5_by_path(stage: Mapping[str, Any], section: str) -> dict[str, str]:
    """Return the MD5 of each input, or of each output, that dvc.lock records for a stage.

    Args:
        stage: What dvc.lock records for the stage.
        section: `deps` for the inputs (dependencies), `outs` for the outputs.
    """
    files = stage.get(section, [])
    return {file["path"]: file.get("md5", "") for file in files}


def _overlap(first: str, second: str) -> bool:
    """Return whether two paths are equal, or one is a folder that contains the other."""
    return Path(first).is_relative_to(second) or Path(second).is_relative_to(first)
