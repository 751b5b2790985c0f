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
from bleuprint.runtime.files import read_json_object
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
        """The file that exists once the stage has finished under Snakemake.

        `recording.py` explains its content, the state from which the stage started.
        """
        return FINISHED / self.name

    def begin_command(self) -> str:
        """Return the shell command that notes the state from which the stage starts.

        The caller appends the input files of the stage.
        """
        name = shlex.quote(self.name)
        return f"env PYTHONPATH=src python -m bleuprint sync --begin {name} {self.digest}"

    def marked_command(self, shards: int = 1) -> str:
        """Return the shell command that runs the stage and then writes its mark.

        Args:
            shards: The number of shards of the corpus, which the stage joins if there are several.
        """
        mark = shlex.quote(str(self.mark))
        gather = f" --gather {shards}" if shards > 1 and self.is_sharded else ""
        return f"{self.command}{gather} && mv {mark}.begun {mark}"


def load_stages(root: Path = Path(), content: Mapping[str, Any] | None = None) -> list[Stage]:
    """Return all stages of dvc.yaml, resolved by reports/resolved.json.

    Args:
        root: The project's folder.
        content: The content of reports/resolved.json in place of the file on disk.

    Raises:
        UserError: dvc.yaml has a mistake, or there is no reports/resolved.json.
    """
    settings = read_json_object(root / RESOLVED) if content is None else content
    with open_repo(root, content) as repo:
        dvc_stages = repo.stage.load_all(str(root / "dvc.yaml"))
        return [_describe_stage(dvc_stage, settings) for dvc_stage in dvc_stages]


def input_paths(graph: Iterable[Stage], root: Path = Path()) -> dict[str, list[str]]:
    """Return the inputs of each stage, as outputs of other stages and as single files.

    A dependency in dvc.yaml may be an output, a folder of outputs, a file inside an output, or a
    file or folder that no stage writes.

    Args:
        graph: All stages.
        root: The project's folder.

    Returns:
        The paths by the stage's name.
    """
    stages = list(graph)
    outputs = set[str]()
    outputs_below: dict[str, list[str]] = defaultdict(list)
    for stage in stages:
        for output in stage.outputs:
            if output in outputs:
                continue
            outputs.add(output)
            outputs_below[output].append(output)
            for folder in _parent_folders(output):
                outputs_below[folder].append(output)

    # Many stages share a dependency, and listing the files of a folder takes time.
    @cache
    def inputs_of_dependency(dependency: str) -> list[str]:
        """Return the outputs at, below or around a dependency; if there are none, its files."""
        if dependency in outputs_below:
            return outputs_below[dependency]
        outputs_around = [folder for folder in _parent_folders(dependency) if folder in outputs]
        return outputs_around or list(files_of_dependency(dependency, root))

    inputs_by_stage = {}
    for stage in stages:
        inputs: list[str] = []
        for dependency in stage.dependencies:
            inputs.extend(inputs_of_dependency(dependency))
        inputs_by_stage[stage.name] = list(dict.fromkeys(inputs))
    return inputs_by_stage


def files_of_dependency(dependency: str, root: Path) -> Iterator[str]:
    """Yield the files of a folder, without those that DVC ignores; of a file, the file itself.

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
    """Describe one of DVC's stages as a Stage.

    Args:
        dvc_stage: DVC's object for the stage.
        settings: The content of reports/resolved.json.
    """
    resources = dvc_stage.meta or {}
    _check_resources(dvc_stage.name, resources)
    # DVC lists each file of `params` as a dependency, too. Of reports/resolved.json, only the keys
    # count: as a file, it would make Snakemake run all stages again whenever it is written. Only
    # the report depends on the file as a whole, without keys.
    entries_with_keys = [
        entry
        for entry in dvc_stage.params
        if entry.def_path == RESOLVED.as_posix() and entry.params
    ]
    dependencies = [entry.def_path for entry in dvc_stage.deps if entry not in entries_with_keys]
    parameters = {}
    for entry in entries_with_keys:
        for key in entry.params:
            parameters[key] = _setting(settings, key, dvc_stage.name)
            # inputs.CORPUS has the MD5 of each of the user's own files, by path.
            if key.startswith("inputs."):
                dependencies.extend(parameters[key])
    # Portable training uses one thread and no GPU. `arithmetic` is false for an excluded run, and
    # for an external system, whose translations are only copied.
    is_small = any(
        key.endswith(".arithmetic") and value != "native" for key, value in parameters.items()
    )
    command = dvc_stage.cmd
    return Stage(
        name=dvc_stage.name,
        command=command if isinstance(command, str) else " && ".join(command),
        dependencies=tuple(dependencies),
        outputs=tuple(output.def_path for output in dvc_stage.outs),
        git_outputs=tuple(output.def_path for output in dvc_stage.outs if not output.use_cache),
        parameters=parameters,
        threads=1 if is_small else resources["threads"],
        memory_gb=resources["memory_gb"],
        hours=resources["hours"],
        gpu=0 if is_small else resources.get("gpu", 0),
        is_sharded=resources.get("sharded", False),
    )


def _check_resources(stage_name: str, resources: Mapping[str, Any]) -> None:
    """Raise UserError if the `meta` of a stage lacks what is to be reserved for it."""
    missing = [name for name in ("threads", "memory_gb", "hours") if name not in resources]
    if missing:
        raise UserError(
            f"dvc.yaml: stage {stage_name}: meta lacks {join_with_and(missing)}: "
            "name what a job of this stage needs"
        )


def _setting(settings: Mapping[str, Any], key: str, stage_name: str) -> Any:
    """Return the value of a dotted key of reports/resolved.json.

    Raises:
        UserError: The key, which a stage depends on, is missing.
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
