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
from bleuprint.pipeline.graph import Stage, input_paths, load_stages, writer_by_output
from bleuprint.pipeline.resolve import resolved_content
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.own_code import edited_modules
from bleuprint.runtime.wording import join_with_and
from bleuprint.tracking.timings import (
    last_stage_seconds_with_any_seed,
    last_training_seconds,
    last_training_seconds_with_any_seed,
    read_seconds,
    stage_seconds_file,
)
from bleuprint.training.fingerprints import Fingerprints, work_folder
from bleuprint.training.job import job_for_run

# The reason to run a stage that dvc.lock does not record.
_NEW = "it has not finished here yet"
# The reason to run a stage whose code differs from the code that dvc.lock records.
CODE_HAS_CHANGED = "its code has changed"


@dataclass(frozen=True)
class PlannedStage:
    """A stage that `make reproduce` would run.

    Attributes:
        stage: The stage.
        why: The first reason, such as "its code has changed".
        is_per_run: Whether there is such a stage for each system, corpus and seed.
    """

    stage: Stage
    why: str
    is_per_run: bool

    @property
    def last_seconds(self) -> float | None:
        """How many seconds the stage took when it last ran in this project; None if unknown.

        The settings may have been different then, so this is only an estimate for the next time.
        """
        command = _script_with_arguments(self.stage)
        if not command:
            return None
        # The time of a training is stored with its run, the time of any other stage by its command.
        if self.stage.kind == "train":
            return last_training_seconds(_run_of(self.stage))
        return read_seconds(stage_seconds_file(command))

    @property
    def last_seconds_with_another_seed(self) -> float | None:
        """How many seconds the same stage took with another seed; None if unknown.

        This estimate replaces `last_seconds` for a stage that has never run with its own seed. It
        is None if `last_seconds` is known, and for a stage that does not depend on a seed.
        """
        command = _script_with_arguments(self.stage)
        has_seed = self.is_per_run
        is_needed = self.last_seconds is None
        if not command or not has_seed or not is_needed:
            return None
        if self.stage.kind == "train":
            return last_training_seconds_with_any_seed(_run_of(self.stage))
        return last_stage_seconds_with_any_seed(command)


def _script_with_arguments(stage: Stage) -> list[str]:
    """Return the script that a stage runs and its arguments, without the interpreter before them.

    For the command `python stages/train.py small own 1`, these are the last four words.

    Returns:
        The words; an empty list if the user has added a stage that runs no script of stages/.
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
    """Return the stages that `make reproduce` would run now, in their order, each with a reason.

    These are the stages that DVC finds out of date, and all stages after them. In the end, fewer
    may run. If a stage writes the same outputs as before, the stages after it are up to date. If it
    ran with the same inputs at any time before, DVC restores its outputs instead of running it.

    Args:
        root: The project's folder.

    Raises:
        UserError: There is a mistake in params.yaml or dvc.yaml, or a merge conflict in dvc.lock.
    """
    # The stages that DVC has recorded in dvc.lock have run before.
    lock = LockFile.read(root)
    # `make reproduce` begins with the stage resolve, which writes all settings to a file that the
    # other stages read. Here its content is only computed, and DVC compares the stages with that.
    settings = load_settings(root / "params.yaml")
    content = resolved_content(settings, root)
    stages = load_stages(root, content)
    inputs_by_stage = input_paths(stages, root)
    status = changed_stages(root, content)
    entries = load_entries(root)
    writers = writer_by_output(stages)
    # The content that resolve will write is known already. A stage that reads it has to run only if
    # this content differs, which `status` contains, and not just because resolve runs before it.
    changed = status.keys() - {"resolve"}
    planned: dict[str, PlannedStage] = {}
    for stage in stages:
        inputs = inputs_by_stage[stage.name]
        earlier_stages = [writers[path] for path in inputs if path in writers]
        why: str | None
        if stage.name in lock.blocks:
            rewritten_inputs = {path for path in inputs if writers.get(path) in changed}
            why = _reason_to_run(stage, status.get(stage.name, ()), rewritten_inputs, lock)
            if why is None:
                why = _reason_of_earlier_stage(earlier_stages, planned)
        elif stage.kind == "train" and _is_text_prepared(earlier_stages, planned):
            # The same training may have run before, for a system with another name.
            why = _reason_of_finished_training(stage, settings, root) or _NEW
        else:
            why = _NEW
        if why is not None:
            planned[stage.name] = PlannedStage(stage, why, entries[stage.kind].is_per_run())
    return list(planned.values())


def _reason_to_run(
    stage: Stage, changes: Collection[Any], rewritten_inputs: Collection[str], lock: LockFile
) -> str | None:
    """Return why a stage has to run, by the first change that counts; None if no change counts.

    A changed input does not count if an earlier stage is going to write it again: it may become the
    same as before. A changed output does not count if DVC can restore it from its cache.

    Args:
        stage: The stage.
        changes: The changes that `dvc status` reports for the stage: texts such as "changed
            command", and mappings such as {"changed deps": {"data/raw/own": "modified"}}.
        rewritten_inputs: The inputs that earlier stages are going to write again.
        lock: The dvc.lock of the project, with the settings with which the stage ran.
    """
    for change in changes:
        if not isinstance(change, Mapping):
            continue  # A text, such as "changed command", which is checked after the loop.
        for path, state in change.get("changed deps", {}).items():
            if isinstance(state, Mapping):
                # The path is reports/resolved.json. DVC reports the keys that have changed in it:
                # {"systems.tiny.train": "modified"}.
                first_key = next(iter(state))
                recorded_value = lock.settings(stage.name).get(first_key)
                present_value = stage.parameters.get(first_key)
                return _describe_change(first_key, recorded_value, present_value)
            if not _contains_any(path, rewritten_inputs):
                return f"{path} has changed"
        for path, state in change.get("changed outs", {}).items():
            if state == "not in cache":
                return f"{path} is neither here nor in DVC's cache"
            # DVC would restore an edited output from its cache. An output that Git tracks is not
            # in the cache, so the stage has to write it again.
            if path in stage.git_outputs and state == "modified":
                return f"{path} has changed"
    if "changed command" in changes:
        return "its command has changed"
    return None


def _contains_any(path: str, files: Collection[str]) -> bool:
    """Return whether a path is one of some files, or a folder with one of them in it."""
    return any(file == path or file.startswith(f"{path}/") for file in files)


def _reason_of_earlier_stage(earlier_stages: Iterable[str], planned: Collection[str]) -> str | None:
    """Return `after STAGE` if a stage that writes an input is planned; None if there is none.

    Args:
        earlier_stages: The names of the stages that write the inputs, such as `clean@own`. A name
            without `@` belongs to a stage that exists only once: resolve. It is not a reason, since
            what it will write is known and has been compared already.
        planned: The names of the stages that are planned so far.
    """
    for name in earlier_stages:
        exists_once = "@" not in name
        if name in planned and not exists_once:
            return f"after {name}"
    return None


def _is_text_prepared(earlier_stages: Iterable[str], planned: Mapping[str, PlannedStage]) -> bool:
    """Return whether a planned training will read the training text that is now on disk.

    It will read another text if one of the stages that prepare the text has to run first. Only
    stages with dependencies matter: without them, a stage writes the same output whenever it runs.

    Args:
        earlier_stages: The names of the stages that write the inputs of the training.
        planned: The stages that are planned so far, by name.
    """
    for name in earlier_stages:
        if name in planned and planned[name].stage.dependencies:
            return False
    return True


def _reason_of_finished_training(stage: Stage, settings: Settings, root: Path) -> str | None:
    """Return the reason for a stage whose training has already run under another system name.

    A training has a folder in work/, which is named after a hash of its settings and data. So
    renaming a system does not repeat its training: the stage `train` finds the folder, and only
    copies the results. The reason tells the user so.

    Args:
        stage: A stage of the kind `train`.
        settings: The settings in params.yaml.
        root: The project's folder.

    Returns:
        A text such as `it has a new name; its training is in work/... already`; None if there
        is no such folder, or if the training data does not exist yet.
    """
    # An error here means that the data is missing. The stage itself reports it when it runs.
    with chdir(root), suppress(UserError, OSError):
        job = job_for_run(_run_of(stage), settings)
        folder = work_folder(job, Fingerprints.from_job(job))
        if folder.is_dir():
            relative_path = folder.relative_to(environment.project_root())
            return f"it has a new name; its training is in {relative_path} already"
    return None


def _describe_change(key: str, recorded_value: Any, present_value: Any) -> str:
    """Return the sentence that a setting, the code of a stage, or a user's file has changed.

    Examples: `code.train` -> `its code has changed`; `inputs.own` -> `files of own in inputs/ have
    changed`; `runs.tiny.own.train` -> `systems.tiny.own.train has changed`. If a setting names own
    code and only this code has changed: `the code of own.relative has changed`.

    Args:
        key: The key in reports/resolved.json: `code.STAGE` for the hash of a stage's code,
            `inputs.CORPUS` for the hashes of the user's own files, or a setting.
        recorded_value: The value with which the stage ran; None if it ran without this key.
        present_value: The present value; None if the stage no longer has this key.
    """
    section, _, name = key.partition(".")
    if section == "code":
        return CODE_HAS_CHANGED
    if section == "inputs":
        return f"files of {name} in inputs/ have changed"
    modules = edited_modules(recorded_value, present_value)
    if modules:
        return f"the code of {join_with_and(modules)} has changed"
    if section == "dvc":
        # DVC gets some settings in a form of their own, such as `part.own/a.filter`.
        kind, _, setting = name.partition(".")
        return f"{kind.replace('_', ' ')} {setting} has changed"
    # The settings of a run, runs.SYSTEM.CORPUS, come from systems.SYSTEM in params.yaml.
    return f"{key.replace('runs.', 'systems.', 1)} has changed"
