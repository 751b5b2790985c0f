"""The stages of dvc.yaml, resolved, and what each depends on.

Uses DVC's stage classes, an undocumented interface: DVC's version is therefore pinned.
"""

import hashlib
import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json_object

WORK = Path("work", "snakemake")
FINISHED = WORK / "finished"


@dataclass(frozen=True)
class Stage:
    """One stage of the resolved dvc.yaml, a job for Snakemake.

    `outputs` includes metrics; `kept`: the outputs that are in git instead of DVC's cache.
    `parameters`: the values of the stage's `params`, by dotted key; `recorded`: those in dvc.lock,
    if there are any. `threads`, `gpu`, `memory_gb` and `hours` are its resources. A `sharded` stage
    can process shards of its corpus and join them.
    """

    name: str
    command: str
    dependencies: tuple[str, ...]
    outputs: tuple[str, ...]
    git_outputs: tuple[str, ...]
    parameters: Mapping[str, Any]
    recorded: Mapping[str, Any]
    threads: int
    memory_gb: int
    hours: int
    gpu: int
    is_sharded: bool

    @property
    def kind(self) -> str:
        """What it does, and its entry in dvc.yaml: `train` for `train@small-phrasebook-1`."""
        return self.name.partition("@")[0]

    @property
    def digest(self) -> str:
        """The SHA-256 of the command and the parameters."""
        text = json.dumps([self.command, self.parameters], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def mark(self) -> Path:
        """A file that exists once the stage has finished; it contains the state it started from."""
        return FINISHED / self.name

    def begin_command(self) -> str:
        """The shell command that notes what the stage starts from; its input files are added."""
        name = shlex.quote(self.name)
        return f"env PYTHONPATH=src python -m bleuprint sync --begin {name} {self.digest}"

    def marked_command(self, shards: int = 1) -> str:
        """The shell command that runs the stage, joins its shards, and leaves the mark."""
        mark = shlex.quote(str(self.mark))
        gather = f" --gather {shards}" if shards > 1 and self.is_sharded else ""
        return f"{self.command}{gather} && mv {mark}.begun {mark}"


def load_stages(root: Path = Path(), content: Mapping[str, Any] | None = None) -> list[Stage]:
    """Return all stages of dvc.yaml, resolved.

    Args:
        root: The project's folder.
        content: The content of reports/resolved.json in place of the file on disk.

    Raises:
        UserError: dvc.yaml has a mistake, or there is no reports/resolved.json.
    """
    values = read_json_object(root / RESOLVED) if content is None else content
    with open_repo(root, content) as repo:
        return [_stage(stage, values) for stage in repo.stage.load_all(str(root / "dvc.yaml"))]


def input_paths(graph: Iterable[Stage], root: Path = Path()) -> dict[str, list[str]]:
    """The dependencies by stage, as outputs of other stages and as single files.

    A dependency in dvc.yaml may be an output, a folder of outputs, a file inside an output, or a
    file or folder that no stage makes.
    """
    graph = list(graph)
    outputs = {path: None for stage in graph for path in stage.outputs}
    at_or_below: dict[str, list[str]] = defaultdict(list)
    for output in outputs:
        for path in (output, *_parents(output)):
            at_or_below[path].append(output)

    @cache
    def resolved(dependency: str) -> list[str]:
        above = [path for path in _parents(dependency) if path in outputs]
        return at_or_below.get(dependency, above) or list(files_of_dependency(dependency, root))

    return {
        stage.name: list(dict.fromkeys(chain.from_iterable(map(resolved, stage.dependencies))))
        for stage in graph
    }


def files_of_dependency(dependency: str, root: Path) -> Iterator[str]:
    """The files of a folder, without those that DVC ignores; or the file itself."""
    if not (root / dependency).is_dir():
        yield dependency
        return
    for path in sorted((root / dependency).rglob("*")):
        ignored = "__pycache__" in path.parts or path.name == ".snakemake_timestamp"
        if path.is_file() and not ignored:
            yield str(path.relative_to(root))


def _stage(stage: Any, content: Mapping[str, Any]) -> Stage:
    """One of DVC's stages as a Stage.

    Only the report depends on the whole of reports/resolved.json; the other stages depend on keys
    of it, since Snakemake would run them all again when the file is written.
    """
    own = [each for each in stage.params if each.def_path == RESOLVED.as_posix() and each.params]
    keys = [key for entry in own for key in entry.params]
    meta = stage.meta or {}
    if lacking := ", ".join(key for key in ("threads", "memory_gb", "hours") if key not in meta):
        raise UserError(f"dvc.yaml: stage {stage.name}: meta has no {lacking}, to reserve for it")
    values = {key: _at(content, key, stage.name) for key in keys}
    local = (path for key in keys if key.startswith("inputs.") for path in values[key])
    # of the run; it is false if the run is left out, or if files are copied instead
    arithmetic = [value for key, value in values.items() if key.endswith(".arithmetic")]
    is_small = any(value != "native" for value in arithmetic)
    return Stage(
        name=stage.name,
        command=stage.cmd if isinstance(stage.cmd, str) else " && ".join(stage.cmd),
        dependencies=(*(each.def_path for each in stage.deps if each not in own), *local),
        outputs=tuple(output.def_path for output in stage.outs),
        git_outputs=tuple(output.def_path for output in stage.outs if not output.use_cache),
        parameters=values,
        recorded={
            key: value for entry in own for key, value in (entry.hash_info.value or {}).items()
        },
        threads=1 if is_small else meta["threads"],
        memory_gb=meta["memory_gb"],
        hours=meta["hours"],
        gpu=0 if is_small else meta.get("gpu", 0),
        is_sharded=meta.get("sharded", False),
    )


def _at(content: Any, key: str, stage: str) -> Any:
    for name in key.split("."):
        if not isinstance(content, Mapping) or name not in content:
            raise UserError(f"{RESOLVED} has no {key} for {stage}: dvc repro resolve")
        content = content[name]
    return content


def _parents(path: str) -> list[str]:
    return [str(folder) for folder in PurePosixPath(path).parents]
