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
        is_sharded: Whether the stage can process shards of its text and join them.
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
        """The path of the file that marks the stage as finished, until DVC records the stage.

        DVC records the stages of a Snakemake run all together, when the run ends. The file contains
        a hash of the settings and inputs with which the stage ran. If they have changed since, DVC
        must not record the stage.
        """
        return FINISHED / self.name

    def begin_command(self) -> str:
        """Return the shell command that a Snakemake job runs before the stage itself.

        It writes a hash of the stage's settings and inputs to a file. At the end of the run, the
        hash shows whether they have been edited since. The caller has to append the paths of the
        input files to the command.
        """
        name = shlex.quote(self.name)
        return f"env PYTHONPATH=src python -m bleuprint sync --begin {name} {self.digest}"

    def marked_command(self, shards: int = 1) -> str:
        """Return the shell command that runs the stage and, if it succeeds, marks it as finished.

        The mark is a file that the command of `begin_command` has written as MARK.begun. This
        command renames it to MARK: `python stages/clean.py own && mv MARK.begun MARK`.

        Args:
            shards: Into how many parts other jobs have divided the text. If there are several,
                they have done the work, and this stage only joins their results (option
                `--gather`).
        """
        mark = shlex.quote(str(self.mark))
        gather_option = ""
        if shards > 1 and self.is_sharded:
            gather_option = f" --gather {shards}"
        return f"{self.command}{gather_option} && mv {mark}.begun {mark}"


def load_stages(root: Path = Path(), content: Mapping[str, Any] | None = None) -> list[Stage]:
    """Return all stages of the pipeline, with the values of the settings that they depend on.

    An entry of dvc.yaml describes one kind of stage, such as `train`. DVC makes a stage of it for
    each system, corpus and seed in the settings.

    Args:
        root: The project's folder.
        content: The settings, as in reports/resolved.json; None to read them from this file.

    Raises:
        UserError: dvc.yaml has a mistake, or there is no reports/resolved.json.
    """
    settings = read_json_object(root / RESOLVED) if content is None else content
    with open_repo(root, content) as repo:
        dvc_stages = repo.stage.load_all(str(root / "dvc.yaml"))
        return [_describe_stage(dvc_stage, settings) for dvc_stage in dvc_stages]


def input_paths(stages: Iterable[Stage], root: Path = Path()) -> dict[str, list[str]]:
    """Return the input paths of each stage, by which Snakemake finds the order of its jobs.

    Snakemake runs one job before another only if an output of the first is, letter for letter, an
    input of the second. A dependency in dvc.yaml may instead be a folder with outputs of several
    stages, or one file in an output folder. So each dependency is replaced by these outputs:

        models/small           ->  models/small/own/1/averaged, models/small/own/2/averaged
        data/split/own/test.de ->  data/split/own

    A dependency that no stage writes, such as the code, is replaced by the files in it.

    Args:
        stages: All stages of dvc.yaml.
        root: The project's folder.

    Returns:
        The paths, by the name of the stage that reads them.
    """
    all_stages = list(stages)
    all_outputs = dict[str, None]()  # A dict, since it keeps the order and has each output once.
    for stage in all_stages:
        all_outputs.update(dict.fromkeys(stage.outputs))
    outputs_below = _group_by_folder(all_outputs)

    # Many stages share a dependency, and listing the files of a folder takes time.
    @cache
    def inputs_of_dependency(dependency: str) -> list[str]:
        """Return the outputs by which to replace a dependency; without any, the files in it."""
        # The dependency is an output itself, or a folder with outputs in it.
        if dependency in outputs_below:
            return outputs_below[dependency]
        # The dependency is a file in an output folder.
        outputs_around = [folder for folder in _parent_folders(dependency) if folder in all_outputs]
        if outputs_around:
            return outputs_around
        # No stage writes the dependency.
        return list(files_of_dependency(dependency, root))

    inputs_by_stage = {}
    for stage in all_stages:
        inputs: list[str] = []
        for dependency in stage.dependencies:
            inputs.extend(inputs_of_dependency(dependency))
        without_repetitions = dict.fromkeys(inputs)
        inputs_by_stage[stage.name] = list(without_repetitions)
    return inputs_by_stage


def _group_by_folder(outputs: Iterable[str]) -> dict[str, list[str]]:
    """List the outputs below each folder, so that a dependency on a folder finds them fast.

    For the output `models/small/own`, the result contains it under `models`, under `models/small`
    and under its own path.

    Args:
        outputs: The paths of all outputs.

    Returns:
        The outputs, by the path of a folder above them or by their own path.
    """
    outputs_by_path: dict[str, list[str]] = defaultdict(list)
    for output in outputs:
        outputs_by_path[output].append(output)
        for folder in _parent_folders(output):
            outputs_by_path[folder].append(output)
    return outputs_by_path


def writer_by_output(stages: Iterable[Stage]) -> dict[str, str]:
    """Return, for the path of each output, the name of the stage that writes it."""
    names: dict[str, str] = {}
    for stage in stages:
        for path in stage.outputs:
            names[path] = stage.name
    return names


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
    """Turn DVC's object for a stage into a `Stage`, which has only what bleuprint needs.

    Args:
        dvc_stage: DVC's object.
        settings: The content of reports/resolved.json, with the values of the settings.
    """
    resources = dvc_stage.meta or {}
    _check_resources(dvc_stage.name, resources)
    # Most stages depend on a few settings, that is, on keys of the file reports/resolved.json. DVC
    # lists the file as their dependency; here the values of the keys replace it. Otherwise
    # Snakemake would run all stages whenever the file is written.
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
    for key, value in parameters.items():
        # inputs.CORPUS maps the path of each of the user's own files to its MD5. The stage depends
        # on these files, too.
        if key.startswith("inputs."):
            dependencies.extend(value)
    needs_one_core = _needs_one_core(parameters)
    # Such a stage may work with several processes, each of which needs one core.
    is_sharded = resources.get("sharded", False)
    command = dvc_stage.cmd
    return Stage(
        name=dvc_stage.name,
        # DVC also accepts a list of commands, and stops at the first one that fails.
        command=command if isinstance(command, str) else " && ".join(command),
        dependencies=tuple(dependencies),
        outputs=tuple(output.def_path for output in dvc_stage.outs),
        git_outputs=tuple(output.def_path for output in dvc_stage.outs if not output.use_cache),
        parameters=parameters,
        threads=1 if needs_one_core and not is_sharded else resources["threads"],
        memory_gb=resources["memory_gb"],
        hours=resources["hours"],
        gpu=0 if needs_one_core else resources.get("gpu", 0),
        is_sharded=is_sharded,
    )


def _needs_one_core(parameters: Mapping[str, Any]) -> bool:
    """Return whether each process of a stage needs one core and no GPU, whatever dvc.yaml reserves.

    The setting `arithmetic` of a run decides. Only with the value `native` does the run use several
    threads or a GPU. With `portable`, it computes the same on every processor, but in one thread.
    With false, there is nothing to compute: params.yaml excludes the run, or its translations are
    copied from a file.

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
            raise UserError(f"{RESOLVED} lacks {key} for {stage_name}. Run: dvc repro resolve")
        value = value[name]
    return value


def _parent_folders(path: str) -> list[str]:
    """Return all folders above a path, the nearest first."""
    return [str(folder) for folder in PurePosixPath(path).parents]
