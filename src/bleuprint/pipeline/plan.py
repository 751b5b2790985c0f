"""What `make reproduce` would run, why, and how long it took before."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import chdir, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import Settings, load_settings
from bleuprint.config.paths import Run
from bleuprint.pipeline.dvc_lock import LockFile
from bleuprint.pipeline.dvc_repo import changed_stages
from bleuprint.pipeline.dvc_yaml import load_entries
from bleuprint.pipeline.graph import Stage, input_paths, load_stages
from bleuprint.pipeline.resolve import resolved_content
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.tracking.timings import (
    last_stage_seconds_with_any_seed,
    last_training_seconds,
    last_training_seconds_with_any_seed,
    read_seconds,
    stage_seconds_file,
)
from bleuprint.training.fingerprints import Fingerprints, work_folder
from bleuprint.training.job import job_for_run

_NEW = "has not finished here yet"


@dataclass(frozen=True)
class PlannedStage:
    """A stage that `make reproduce` would run, and `why`; `is_of_runs`: see dvc_yaml.Entry."""

    stage: Stage
    why: str
    is_of_runs: bool

    @property
    def last_seconds(self) -> float | None:
        """Its seconds when it last ran here, with whatever settings; None: unknown."""
        command = _script_with_arguments(self.stage)
        if not command:  # a stage of the user's own
            return None
        if self.stage.kind == "train":
            return last_training_seconds(_run(self.stage))
        return read_seconds(stage_seconds_file(command))

    @property
    def last_seconds_with_another_seed(self) -> float | None:
        """The seconds of the same stage with another seed, where only those are known."""
        command = _script_with_arguments(self.stage)
        if not self.is_of_runs or self.last_seconds is not None or not command:
            return None
        if self.stage.kind == "train":
            return last_training_seconds_with_any_seed(_run(self.stage))
        return last_stage_seconds_with_any_seed(command)


def _script_with_arguments(stage: Stage) -> list[str]:
    """The script of a stage and its arguments; empty for a command of the user's own."""
    words = stage.command.split()
    scripts = [word for word in words if word.startswith("stages/")]
    return words[words.index(scripts[0]) :] if scripts else []


def _run(stage: Stage) -> Run:
    """The training that a stage belongs to."""
    _, system, corpus, seed = _script_with_arguments(stage)
    return Run(system, corpus, int(seed))


def planned_stages(root: Path = Path()) -> list[PlannedStage]:
    """The stages that would run, in order; those after the first only if their inputs change.

    Outputs that are missing but in DVC's cache are left out, since DVC restores them; it restores
    others, too, if a stage ran with the same inputs before. Raises UserError at a mistake in
    params.yaml or dvc.yaml, or a conflict in dvc.lock. No file is written.
    """
    recorded = LockFile.read(root).blocks
    # as if `resolve` had run, which `dvc repro` does before the others
    settings = load_settings(root / "params.yaml")
    content = resolved_content(settings, root)
    graph = load_stages(root, content)
    status = changed_stages(root, content)
    makers = {path: stage.name for stage in graph for path in stage.outputs}
    # those that are up to date have ended since; reports/resolved.json is as if written already
    running = status.keys() - {"resolve"}
    kinds = load_entries(root)
    planned: dict[str, PlannedStage] = {}
    for stage, needed in zip(graph, input_paths(graph, root).values(), strict=True):
        changes = [change for change in status.get(stage.name, ()) if isinstance(change, Mapping)]
        reasons = [] if stage.name in recorded else [_NEW]
        made = {path for path in needed if makers.get(path, "resolve") in running}
        reasons += _reasons(changes, made, stage.git_outputs)
        if "changed command" in status.get(stage.name, ()):
            reasons.append("its command has changed")
        if not reasons:
            before = (makers.get(path) for path in needed)
            reasons = [f"after {name}" for name in before if name in planned and "@" in name]
        is_new_training = reasons[:1] == [_NEW] and stage.kind == "train"
        # If its text is prepared again, the fingerprint of the training is not known yet. A stage
        # that reads no files writes what it always writes.
        changed_inputs = {name for name, each in planned.items() if each.stage.dependencies}
        if is_new_training and not any(makers.get(path) in changed_inputs for path in needed):
            reasons = [_reused(stage, settings, root) or _NEW]
        if reasons:
            is_of_runs = kinds[stage.kind].is_of_runs()
            planned[stage.name] = PlannedStage(stage, reasons[0], is_of_runs)
    return list(planned.values())


def _reused(stage: Stage, settings: Settings, root: Path) -> str | None:
    """Why a new training takes no time: a row of another name has had it, as after a renaming."""
    with chdir(root), suppress(UserError, OSError):
        run = _run(stage)
        job = job_for_run(run, settings)
        folder = work_folder(job, Fingerprints.from_job(job))
        if folder.is_dir():
            place = folder.relative_to(environment.project_root())
            return f"is new under this name; its training is in {place} already"
    return None


def _reasons(
    changes: list[Mapping[str, Any]], made: Collection[str], kept: Collection[str]
) -> Iterator[str]:
    """Why a stage runs even if all stages before it write what they wrote before.

    `changes`: as `dvc status` has them; `made`: what those stages write; `kept`: see `Stage`.
    """
    for change in changes:
        for path, state in change.get("changed deps", {}).items():
            if isinstance(state, Mapping):
                yield f"{_what(next(iter(state)))} changed"
            elif path not in made and not any(each.startswith(f"{path}/") for each in made):
                yield f"{path} has changed"
        for path, state in change.get("changed outs", {}).items():
            if state == "not in cache":
                yield f"{path} is neither here nor in DVC's cache"
            elif path in kept and state == "modified":
                yield f"{path} has changed"


def _what(key: str) -> str:
    """What a key of reports/resolved.json stands for."""
    kind, _, name = key.partition(".")
    return {"code": "its code has", "inputs": f"files of {name} in inputs/ have"}.get(
        kind, f"{key.replace('runs.', 'systems.', 1)} has"
    )
