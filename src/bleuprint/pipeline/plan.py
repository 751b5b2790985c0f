"""Tells what `make reproduce` would run, why, and how long it took before; writes no file.

`planned_stages` asks DVC which stages have changed, as if reports/resolved.json had already been
written for the present settings, and adds the stages that come after the changed ones.
"""

from collections.abc import Collection, Iterable, Mapping
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
    """A stage that `make reproduce` would run.

    Attributes:
        stage: The stage.
        why: The first reason, such as "its code has changed".
        is_of_runs: Whether there is such a stage for each system, corpus and seed.
    """

    stage: Stage
    why: str
    is_of_runs: bool

    @property
    def last_seconds(self) -> float | None:
        """How many seconds the stage took when it last ran here, with any settings.

        None if that is unknown.
        """
        command = _script_with_arguments(self.stage)
        if not command:
            return None
        if self.stage.kind == "train":
            return last_training_seconds(_run_of(self.stage))
        return read_seconds(stage_seconds_file(command))

    @property
    def last_seconds_with_another_seed(self) -> float | None:
        """How many seconds the stage took with another seed.

        None if that is unknown, or if `last_seconds` is known.
        """
        command = _script_with_arguments(self.stage)
        if not self.is_of_runs or self.last_seconds is not None or not command:
            return None
        if self.stage.kind == "train":
            return last_training_seconds_with_any_seed(_run_of(self.stage))
        return last_stage_seconds_with_any_seed(command)


def _script_with_arguments(stage: Stage) -> list[str]:
    """Return the script of a stage in stages/ and its arguments.

    Returns:
        An empty list for a stage that the user has added with a command of another kind.
    """
    words = stage.command.split()
    for index, word in enumerate(words):
        if word.startswith("stages/"):
            return words[index:]
    return []


def _run_of(stage: Stage) -> Run:
    """Return the run of a stage train, from the arguments of its command."""
    _, system, corpus, seed = _script_with_arguments(stage)
    return Run(system, corpus, int(seed))


def planned_stages(root: Path = Path()) -> list[PlannedStage]:
    """Return the stages that would run, in their order.

    A stage after a changed one runs only if the changed one writes other outputs than before. The
    list omits stages whose outputs are missing but in DVC's cache, since DVC restores them. When a
    listed stage has run with the same inputs before, DVC will restore its outputs, too.

    Args:
        root: The project's folder.

    Raises:
        UserError: There is a mistake in params.yaml or dvc.yaml, or a merge conflict in dvc.lock.
    """
    recorded = LockFile.read(root).blocks
    # DVC runs the stage resolve before all others. This takes its result as if it had run already.
    settings = load_settings(root / "params.yaml")
    content = resolved_content(settings, root)
    stages = load_stages(root, content)
    inputs_by_stage = input_paths(stages, root)
    status = changed_stages(root, content)
    entries = load_entries(root)
    writers: dict[str, str] = {}
    for stage in stages:
        for path in stage.outputs:
            writers[path] = stage.name
    # reports/resolved.json counts as written already, so nothing waits for the stage resolve.
    running = status.keys() - {"resolve"}
    planned: dict[str, PlannedStage] = {}
    for stage in stages:
        inputs = inputs_by_stage[stage.name]
        earlier_stages = [writers[path] for path in inputs if path in writers]
        rewritten_inputs = {path for path in inputs if writers.get(path) in running}
        is_new = stage.name not in recorded
        why = _NEW if is_new else None
        if why is None:
            why = _reason_to_run(stage, status.get(stage.name, ()), rewritten_inputs)
        if why is None:
            why = _reason_of_earlier_stage(earlier_stages, planned)
        if is_new and stage.kind == "train" and _is_text_prepared(earlier_stages, planned):
            why = _reason_of_finished_training(stage, settings, root) or _NEW
        if why is not None:
            planned[stage.name] = PlannedStage(stage, why, entries[stage.kind].is_of_runs())
    return list(planned.values())


def _reason_to_run(
    stage: Stage, changes: Collection[Any], rewritten_inputs: Collection[str]
) -> str | None:
    """Return why a stage would run even if all earlier stages write the same as before.

    Args:
        stage: The stage.
        changes: Its changes, as `dvc_repo.changed_stages` returns them.
        rewritten_inputs: The inputs that earlier stages are going to write.

    Returns:
        The first reason; None if there is none.
    """
    for change in changes:
        if not isinstance(change, Mapping):
            continue
        for path, state in change.get("changed deps", {}).items():
            if isinstance(state, Mapping):
                # Settings have changed: `state` maps their keys in reports/resolved.json.
                first_key = next(iter(state))
                return f"{_describe_key(first_key)} changed"
            if not _contains_any(path, rewritten_inputs):
                return f"{path} has changed"
        for path, state in change.get("changed outs", {}).items():
            if state == "not in cache":
                return f"{path} is neither here nor in DVC's cache"
            # DVC restores an output from its cache, but not one that Git tracks.
            if path in stage.git_outputs and state == "modified":
                return f"{path} has changed"
    return "its command has changed" if "changed command" in changes else None


def _contains_any(path: str, files: Collection[str]) -> bool:
    """Whether a path is one of some files, or a folder with one of them in it."""
    return any(file == path or file.startswith(f"{path}/") for file in files)


def _reason_of_earlier_stage(earlier_stages: Iterable[str], planned: Collection[str]) -> str | None:
    """Return that a stage may run after the first planned stage that writes one of its inputs.

    Stages that exist once, such as resolve, have no `@` in their name and are no reason.

    Args:
        earlier_stages: The names of the stages that write the inputs.
        planned: The names of the stages that are planned so far.
    """
    for name in earlier_stages:
        if name in planned and "@" in name:
            return f"after {name}"
    return None


def _is_text_prepared(earlier_stages: Iterable[str], planned: Mapping[str, PlannedStage]) -> bool:
    """Whether the text of a training is final, so that its fingerprint can be computed.

    It is not, as long as a stage that prepares the text has to run. A stage without dependencies
    does not matter, since it always writes the same.

    Args:
        earlier_stages: The names of the stages that write the inputs of the training.
        planned: The stages that are planned so far, by name.
    """
    for name in earlier_stages:
        if name in planned and planned[name].stage.dependencies:
            return False
    return True


def _reason_of_finished_training(stage: Stage, settings: Settings, root: Path) -> str | None:
    """Return why a new training takes no time: another name had the same training before.

    A training belongs to its settings and data. After a system was renamed, its work folder is
    found again.

    Returns:
        None if there is no such training, or if its data does not exist yet.
    """
    with chdir(root), suppress(UserError, OSError):
        job = job_for_run(_run_of(stage), settings)
        folder = work_folder(job, Fingerprints.from_job(job))
        if folder.is_dir():
            relative_path = folder.relative_to(environment.project_root())
            return f"is new under this name; its training is in {relative_path} already"
    return None


def _describe_key(key: str) -> str:
    """Return what a key of reports/resolved.json is about, with a verb: `its code has`."""
    section, _, name = key.partition(".")
    if section == "code":
        return "its code has"
    if section == "inputs":
        return f"files of {name} in inputs/ have"
    # The settings of a run, runs.SYSTEM.CORPUS, come from systems.SYSTEM in params.yaml.
    return f"{key.replace('runs.', 'systems.', 1)} has"
