"""The stages of dvc.yaml, resolved, and what each depends on.

Uses DVC's stage classes, an undocumented interface: DVC's version is therefore pinned.
"""

import hashlib
import json
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from bleuprint.config import experiment, paths
from bleuprint.pipeline.dvc_lock import open_repo
from bleuprint.pipeline.params_files import contents
from bleuprint.runtime.errors import UserError

WORK = Path("work", "snakemake")
FINISHED = WORK / "finished"


@dataclass(frozen=True)
class Stage:
    """One stage of the resolved dvc.yaml, a job for Snakemake.

    `outputs` includes metrics; `kept`: the outputs that are in git instead of DVC's cache.
    `parameters`: the values of the stage's `params`, by dotted key. `threads`, `gpu`, `memory_gb`
    and `hours` are its resources. A `sharded` stage can process shards of its corpus and join them.
    """

    name: str
    command: str
    dependencies: tuple[str, ...]
    outputs: tuple[str, ...]
    kept: tuple[str, ...]
    parameters: Mapping[str, Any]
    threads: int
    memory_gb: int
    hours: int
    gpu: int
    sharded: bool

    @property
    def kind(self) -> str:
        """The stage's name in dvc.yaml: `train` for `train@small-phrasebook-1`."""
        return self.name.partition("@")[0]

    @property
    def digest(self) -> str:
        """The SHA-256 of the command and the parameters."""
        text = json.dumps([self.command, self.parameters], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def mark(self) -> Path:
        """A file that exists once the stage has finished; it contains the state it started from."""
        return mark_of(self.name)

    def begin_command(self) -> str:
        """The shell command that notes what the stage starts from; its input files are added."""
        name = shlex.quote(self.name)
        return f"env PYTHONPATH=src python -m bleuprint record --begin {name} {self.digest}"

    def marked_command(self, shards: int = 1) -> str:
        """The shell command that runs the stage, joins its shards, and leaves the mark."""
        mark = shlex.quote(str(self.mark))
        gather = f" --gather {shards}" if shards > 1 and self.sharded else ""
        return f"{self.command}{gather} && mv {mark}.begun {mark}"


def stages(root: Path = Path()) -> list[Stage]:
    """All stages. Raises UserError at a mistake in params.yaml or dvc.yaml."""
    settings = experiment.load(root / "params.yaml")
    written = contents(settings, root)
    overrides = {
        f"{system}.{corpus}.{section}": value
        for system, of_system in written[paths.OVERRIDES].items()
        for corpus, sections in of_system.items()
        for section, value in sections.items()
    }
    params = {str(paths.OVERRIDES): overrides, str(paths.INPUTS): written[paths.INPUTS]}
    left_out = {
        (system, corpus)
        for system, row in settings.systems.items()
        for corpus in settings.corpora
        if row.on(corpus) is None
    }
    with open_repo(root) as repo:
        loaded = repo.stage.load_all(str(root / "dvc.yaml"))
        if not loaded:
            raise UserError(f"{root / 'dvc.yaml'}: no stages; git checkout dvc.yaml restores them")
        return [_stage(stage, params, left_out) for stage in loaded]


def inputs(graph: Iterable[Stage], root: Path = Path()) -> dict[str, list[str]]:
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
        return at_or_below.get(dependency, above) or list(files_at(dependency, root))

    return {
        stage.name: list(dict.fromkeys(chain.from_iterable(map(resolved, stage.dependencies))))
        for stage in graph
    }


def files_at(dependency: str, root: Path) -> Iterator[str]:
    """The files of a folder, without those that DVC ignores; or the file itself."""
    if not (root / dependency).is_dir():
        yield dependency
        return
    for path in sorted((root / dependency).rglob("*")):
        ignored = "__pycache__" in path.parts or path.name == ".snakemake_timestamp"
        if path.is_file() and not ignored:
            yield str(path.relative_to(root))


def mark_of(name: str) -> Path:
    """`Stage.mark` of the stage of a name."""
    return FINISHED / name


def _stage(
    stage: Any,
    params: Mapping[str, Mapping[str, Any]],
    left_out: Collection[tuple[str, str]],
) -> Stage:
    """One of DVC's stages as a Stage; `left_out`: systems with corpora they are not trained on.

    `params`: the values by dotted key of the params files that stages write. Such a file is no
    dependency, since Snakemake would run all cells again when it is written; files in inputs/ are.
    """
    written = [entry for entry in stage.params if entry.def_path in params]
    known = {key: params[entry.def_path][key] for entry in written for key in entry.params}
    read = {k: v for entry in stage.params for k, v in entry.read_params().items()}
    local = [known[key] for e in written if e.def_path == str(paths.INPUTS) for key in e.params]
    cell = Path(stage.outs[0].def_path).parts[1:3]  # models/SYSTEM/CORPUS/SEED
    return Stage(
        name=stage.name,
        command=stage.cmd,
        dependencies=(
            *(entry.def_path for entry in stage.deps if entry not in stage.params),
            # without those that are missing, which download says
            *(path for files in local for path, md5 in files.items() if md5),
        ),
        outputs=tuple(output.def_path for output in stage.outs),
        kept=tuple(output.def_path for output in stage.outs if not output.use_cache),
        parameters=read | known,
        threads=stage.meta["threads"],
        memory_gb=stage.meta["memory_gb"],
        hours=stage.meta["hours"],
        # none for a cell that is left out, whose stages do nothing (stage_args)
        gpu=0 if cell in left_out else stage.meta.get("gpu", 0),
        sharded=stage.meta.get("sharded", False),
    )


def _parents(path: str) -> list[str]:
    return [str(folder) for folder in PurePosixPath(path).parents]
