"""The stages of dvc.yaml as DVC resolves them, and what each stage depends on.

DVC resolves an entry such as `train` into one stage for each system, corpus and seed, named
`train@SYSTEM-CORPUS-SEED`. `load_stages` describes them all, `input_paths` links them. This uses
DVC's classes, an undocumented interface: DVC's version is therefore pinned.
"""

import hashlib
import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.wording import join_with_and

WORK = Path("work", "snakemake")
FINISHED = WORK / "finished"


@dataclass(frozen=True)
class Stage:
    """One resolved stage of dvc.yaml, which is a job for Snakemake.

    Attributes:
        name: The name, such as `train@small-phrasebook-1`.
        command: The shell command.
        dependencies: The paths that it depends on: files, folders, and outputs of other stages.
        outputs: The paths that it writes, metrics included.
        git_outputs: The outputs that Git tracks instead of DVC's cache.
        parameters: The settings that it depends on, by their dotted key in reports/resolved.json.
        threads: The number of threads that it uses.
        memory_gb: The memory to reserve.
        hours: The time to reserve.
        gpu: The number of GPUs to reserve.
        is_sharded: Whether the stage can process shards of its corpus and join them.
    """

    name: str
    command: str
    dependencies: tuple[str, ...]
    outputs: tuple[str, ...]
    git_outputs: tuple[str, ...]
    parameters: Mapping[str, Any]
    threads: int
    memory_gb: int
    hours: int
    gpu: int
    is_sharded: bool

    @property
    def kind(self) -> str:
        """The name of its entry in dvc.yaml: `train` for `train@small-phrasebook-1`."""
        return self.name.partition("@")[0]

    @property
    def digest(self) -> str:
        """The SHA-256 of the command and the parameters."""
        text = json.dumps([self.command, self.parameters], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def mark(self) -> Path:
        """The path of the file that says that Snakemake has finished the stage.

        It exists until the stage is recorded in DVC. It contains a hash of the stage's settings and
        inputs, so that a stage whose inputs have changed since is not recorded.
        """
        return FINISHED / self.name

    def begin_command(self) -> str:
        """Return the shell command that a Snakemake job runs before the stage itself.

        It writes a hash of the stage's settings and inputs to a file, so that later changes are
        noticed. The caller has to append the paths of the input files to the command.
        """
        name = shlex.quote(self.name)
        return f"env PYTHONPATH=src python -m bleuprint sync --begin {name} {self.digest}"

    def marked_command(self, shards: int = 1) -> str:
        """Return the shell command that runs the stage, and then marks it as finished.

        The mark is a file: `begin_command` has written MARK.begun, and `mv` renames it to MARK.

        Args:
            shards: The number of parts into which the corpus was divided. If there are several, and
                other jobs have processed them, the stage only joins the results.
        """
        mark = shlex.quote(str(self.mark))
        gather_option = ""
        if shards > 1 and self.is_sharded:
            gather_option = f" --gather {shards}"
        return f"{self.command}{gather_option} && mv {mark}.begun {mark}"


def load_stages(root: Path = Path(), content: Mapping[str, Any] | None = None) -> list[Stage]:
    """Return all stages of the pipeline, with the values of their settings.

    DVC reads dvc.yaml, and makes a stage for each system, corpus and seed of the settings.

    Args:
        root: The project's folder.
        content: If given, these settings are used instead of the file reports/resolved.json.

    Raises:
        UserError: dvc.yaml has a mistake, or there is no reports/resolved.json.
    """
    settings = read_json_object(root / RESOLVED) if content is None else content
    with open_repo(root, content) as repo:
        dvc_stages = repo.stage.load_all(str(root / "dvc.yaml"))
        return [_describe_stage(dvc_stage, settings) for dvc_stage in dvc_stages]


def input_paths(graph: Iterable[Stage], root: Path = Path()) -> dict[str, list[str]]:
    """Return the paths that each stage reads, in the form in which Snakemake links its jobs.

    A dependency in dvc.yaml may be a folder that contains outputs of several stages, or a file in
    an output folder. Snakemake needs the outputs themselves, just as the stages write them. A file
    or folder that no stage writes is listed as single files.

    Args:
        graph: All stages.
        root: The project's folder.

    Returns:
        The paths, by the name of the stage that reads them.
    """
    stages = list(graph)
    all_outputs = dict[str, None]()  # A dict, since it keeps the order and has each output once.
    for stage in stages:
        all_outputs.update(dict.fromkeys(stage.outputs))
    outputs_in = _group_by_folder(all_outputs)

    # Many stages share a dependency, and listing the files of a folder takes time.
    @cache
    def inputs_of_dependency(dependency: str) -> list[str]:
        """Return the outputs of stages that a dependency stands for, or else its files.

        If the dependency is an output, or a folder of outputs, these are returned. If it is in an
        output folder, that folder is returned.
        """
        if dependency in outputs_in:
            return outputs_in[dependency]
        outputs_around = [folder for folder in _parent_folders(dependency) if folder in all_outputs]
        if outputs_around:
            return outputs_around
        return list(files_of_dependency(dependency, root))

    inputs_by_stage = {}
    for stage in stages:
        inputs: list[str] = []
        for dependency in stage.dependencies:
            inputs.extend(inputs_of_dependency(dependency))
        without_repetitions = dict.fromkeys(inputs)
        inputs_by_stage[stage.name] = list(without_repetitions)
    return inputs_by_stage


def _group_by_folder(outputs: Iterable[str]) -> dict[str, list[str]]:
    """Return the outputs in each folder, and in all folders below it, by the folder's path.

    Args:
        outputs: The paths of all outputs. `models/small/own/1/averaged`, for example, is in the
            folders `models`, `models/small` and so on. It is also listed at its own path.
    """
    outputs_by_path: dict[str, list[str]] = defaultdict(list)
    for output in outputs:
        outputs_by_path[output].append(output)
        for folder in _parent_folders(output):
            outputs_by_path[folder].append(output)
    return outputs_by_path


def files_of_dependency(dependency: str, root: Path) -> Iterator[str]:
    """Yield the files in a folder that a stage depends on; if it is a file, the file itself.

    Files that DVC ignores are omitted: Python's compiled files, and the time stamps that Snakemake
    writes into folders. A path that does not exist is yielded like a file.

    Args:
        dependency: The path, relative to the project's folder.
        root: The project's folder.
    """
    if not (root / dependency).is_dir():
        yield dependency
        return
    for path in sorted((root / dependency).rglob("*")):
        is_ignored = "__pycache__" in path.parts or path.name == ".snakemake_timestamp"
        if path.is_file() and not is_ignored:
            yield str(path.relative_to(root))


def _describe_stage(dvc_stage: Any, settings: Mapping[str, Any]) -> Stage:
    """Turn DVC's object for a stage into our description of it.

    Args:
        dvc_stage: DVC's object.
        settings: The content of reports/resolved.json, with the values of the settings.
    """
    resources = dvc_stage.meta or {}
    _check_resources(dvc_stage.name, resources)
    # DVC lists reports/resolved.json among the dependencies of each stage that reads some of its
    # keys. Such an entry is replaced by the keys: as a file, it would make Snakemake run all stages
    # whenever it is written. Only the stage report depends on the complete file.
    entries_with_keys = [
        entry
        for entry in dvc_stage.params
        if entry.def_path == RESOLVED.as_posix() and entry.params
    ]
    parameters = {}
    for entry in entries_with_keys:
        for key in entry.params:
            parameters[key] = _setting(settings, key, dvc_stage.name)
    dependencies = [entry.def_path for entry in dvc_stage.deps if entry not in entries_with_keys]
    for key, value in parameters.items():
        # inputs.CORPUS maps the path of each of the user's own files to its MD5. The stage depends
        # on these files, too.
        if key.startswith("inputs."):
            dependencies.extend(value)
    needs_one_core = _needs_one_core(parameters)
    command = dvc_stage.cmd
    return Stage(
        name=dvc_stage.name,
        command=command if isinstance(command, str) else " && ".join(command),
        dependencies=tuple(dependencies),
        outputs=tuple(output.def_path for output in dvc_stage.outs),
        git_outputs=tuple(output.def_path for output in dvc_stage.outs if not output.use_cache),
        parameters=parameters,
        threads=1 if needs_one_core else resources["threads"],
        memory_gb=resources["memory_gb"],
        hours=resources["hours"],
        gpu=0 if needs_one_core else resources.get("gpu", 0),
        is_sharded=resources.get("sharded", False),
    )


def _needs_one_core(parameters: Mapping[str, Any]) -> bool:
    """Whether one core and no GPU suffice for a stage, whatever dvc.yaml reserves for its kind.

    That is so for a system with portable arithmetic, which computes the same on every processor,
    but in one thread. It is also so where the setting `arithmetic` is false: the stages of an
    excluded run write empty outputs, and those of an external system only copy translations.

    Args:
        parameters: The settings of the stage, by keys such as `runs.small.own.arithmetic`.
    """
    return any(
        key.endswith(".arithmetic") and value != "native" for key, value in parameters.items()
    )


def _check_resources(stage_name: str, resources: Mapping[str, Any]) -> None:
    """Raise UserError if dvc.yaml does not say what Snakemake has to reserve for a stage.

    Args:
        stage_name: The name of the stage, for the message.
        resources: The section `meta` of the stage in dvc.yaml.
    """
    missing = [name for name in ("threads", "memory_gb", "hours") if name not in resources]
    if missing:
        raise UserError(
            f"dvc.yaml: stage {stage_name}: meta lacks {join_with_and(missing)}. "
            "Add what a job of this stage needs"
        )


def _setting(settings: Mapping[str, Any], key: str, stage_name: str) -> Any:
    """Return the value of a setting on which a stage depends.

    Args:
        settings: The content of reports/resolved.json.
        key: The names on the way to the value, with dots between them: `runs.small.own.train`.
        stage_name: The name of the stage, for the message.

    Raises:
        UserError: The setting is missing.
    """
    value: Any = settings
    for name in key.split("."):
        if not isinstance(value, Mapping) or name not in value:
            raise UserError(f"{RESOLVED} has no {key} for {stage_name}. Run: dvc repro resolve")
        value = value[name]
    return value


def _parent_folders(path: str) -> list[str]:
    """Return all folders above a path, the nearest first."""
    return [str(folder) for folder in PurePosixPath(path).parents]
