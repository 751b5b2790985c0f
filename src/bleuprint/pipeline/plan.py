"""What `dvc repro` would run, and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.paths import INPUTS
from bleuprint.pipeline.dvc_lock import check_whole, open_repo, recorded_stages
from bleuprint.pipeline.graph import Stage, inputs, stages
from bleuprint.pipeline.params_files import current_params

_NEW = "has not run yet"


@dataclass(frozen=True)
class PlannedStage:
    """A stage that `dvc repro` would run, and `why`."""

    stage: Stage
    why: str


def planned_stages(root: Path = Path()) -> list[PlannedStage]:
    """The stages that would run, in order; those after the first only if their inputs change.

    Outputs that are missing but in DVC's cache are left out, since DVC restores them; it restores
    others, too, if a stage ran with the same inputs before. Raises UserError at a mistake in
    params.yaml or dvc.yaml, or a conflict in dvc.lock.
    """
    from dvc.repo import lock_repo

    if (lock := root / "dvc.lock").exists():
        check_whole(lock)
    graph = stages(root)
    # under DVC's lock, since a `dvc repro` that runs would read these files
    with open_repo(root) as repo, lock_repo(repo), current_params(root):
        # the names of stages have a path in front of them if this is not run from the root
        status = {name.rpartition(":")[2]: changes for name, changes in repo.status().items()}
    recorded = recorded_stages(root)
    makers = {path: stage.name for stage in graph for path in stage.outputs}
    planned: dict[str, PlannedStage] = {}
    for stage, needed in zip(graph, inputs(graph, root).values(), strict=True):
        changes = [change for change in status.get(stage.name, ()) if isinstance(change, Mapping)]
        reasons = [] if stage.name in recorded else [_NEW]
        reasons += _reasons(changes, needed, makers)
        if "changed command" in status.get(stage.name, ()):
            reasons.append("its command has changed")
        if not reasons:
            before = (makers.get(path) for path in needed)
            reasons = [f"after {name}" for name in before if name in planned and "@" in name]
        if reasons:
            planned[stage.name] = PlannedStage(stage, reasons[0])
    return list(planned.values())


def _reasons(
    changes: list[Mapping[str, Any]], needed: list[str], makers: Mapping[str, str]
) -> Iterator[str]:
    """Why a stage runs even if all stages before it write what they wrote before.

    `changes`: as `dvc status` has them.
    """
    made = {path for path in needed if path in makers}
    for change in changes:
        for path, state in change.get("changed deps", {}).items():
            if path == str(INPUTS):
                yield "its files in inputs/ have changed"
            elif isinstance(state, Mapping):  # settings
                yield f"{path}: {next(iter(state))}"
            elif path not in made and not any(each.startswith(f"{path}/") for each in made):
                yield f"{path} has changed"
        for path, state in change.get("changed outs", {}).items():
            if state == "not in cache":
                yield f"{path} is neither here nor in DVC's cache"
