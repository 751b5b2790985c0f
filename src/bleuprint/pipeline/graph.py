"""The pipeline's graph as dvc.yaml defines it, for the Snakefile; what finished goes back to DVC.

The only module that knows DVC's resolver, which is no public interface: hence DVC's pinned version.

A rule of the Snakefile leaves a mark when its stage has finished. At the end of a run `record`
tells DVC of the marked stages and of no others, for `dvc commit` takes whatever lies on disk for
up to date. `bleuprint record` records what a killed run has left.
"""

import hashlib
import json
import logging
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from bleuprint.config import experiment, paths
from bleuprint.runtime.errors import UserError, say

_STATE = Path("work", "snakemake")


@dataclass(frozen=True)
class Stage:
    """One stage of the resolved dvc.yaml: a rule for Snakemake.

    `outputs` holds the metrics too; `kept` are those of them that git keeps instead of DVC.
    `parameters` are the values of the stage's part of params.yaml, by dotted key. What it may take
    of a machine: `threads` and GPUs, and on a cluster `memory_gb` and `hours`. A `sharded` stage
    can work on a part of its corpus, and join such parts.
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
        """The stage's name in dvc.yaml: that of `train@small-phrasebook-1` is `train`."""
        return self.name.partition("@")[0]

    @property
    def folders(self) -> list[str]:
        """The outputs that are folders: those without a suffix."""
        return [path for path in self.outputs if not Path(path).suffix]

    @property
    def files(self) -> list[str]:
        """The outputs that are files of DVC's."""
        return [path for path in self.outputs if Path(path).suffix and path not in self.kept]

    @property
    def digest(self) -> str:
        """The SHA-256 of the command and the parameters."""
        text = json.dumps([self.command, self.parameters], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def log(self) -> str:
        return str(_STATE / "logs" / f"{self.name}.log")

    @property
    def mark(self) -> Path:
        """A file that is there when the stage has finished, and tells what it began from."""
        return _STATE / "finished" / self.name

    @property
    def shard(self) -> str:
        """The folder of a shard, which Snakemake's wildcard names."""
        _, _, corpus = self.name.partition("@")
        return str(paths.shards(corpus, self.kind) / "{scatteritem}")

    def marked_command(self, shards: int = 1) -> str:
        """The command for a shell, leaving the mark if it ends well; it gathers the shards."""
        name, mark = shlex.quote(self.name), shlex.quote(str(self.mark))
        begin = f"env PYTHONPATH=src python -m bleuprint record --begin {name} {self.digest}"
        gather = f" --gather {shards}" if shards > 1 and self.sharded else ""
        return f"{begin} && {self.command}{gather} && mv {mark}.begun {mark}"


def stages(root: Path = Path()) -> list[Stage]:
    """All stages, from a dvc.yaml and a params.yaml that are checked first."""
    experiment.load(root / "params.yaml")
    from dvc.exceptions import DvcException
    from dvc.parsing import DataResolver
    from dvc.repo import Repo
    from dvc.utils.serialize import load_yaml

    try:
        with Repo(str(root)) as repo:
            content = load_yaml(str(root / "dvc.yaml"))
            resolved = DataResolver(repo, str(root), content).resolve()["stages"]
        parameters = load_yaml(str(root / "params.yaml"))
    except DvcException as error:
        raise UserError(" ".join(str(error).split())) from error
    return [_stage(name, entry, parameters) for name, entry in resolved.items()]


def inputs(graph: Iterable[Stage], root: Path = Path()) -> dict[str, list[str]]:
    """By a stage's name the files it depends on, and the outputs of others, each by itself.

    A dependency may be an output, a folder in which outputs lie, something inside an output, or
    a file or folder that no stage makes.
    """
    graph = list(graph)
    outputs = {path: None for stage in graph for path in stage.outputs}
    at_or_below: dict[str, list[str]] = defaultdict(list)
    for output in outputs:
        for path in (output, *_above(output)):
            at_or_below[path].append(output)

    @cache
    def found(dependency: str) -> list[str]:
        around = [path for path in _above(dependency) if path in outputs]
        return at_or_below.get(dependency, around) or list(_files(dependency, root))

    return {
        stage.name: list(dict.fromkeys(path for each in stage.dependencies for path in found(each)))
        for stage in graph
    }


def begin(name: str, digest: str, root: Path = Path()) -> None:
    """Note what a stage begins from: its mark-to-be. `digest` is that of the command that runs."""
    graph = stages(root)
    (stage,) = [stage for stage in graph if stage.name == name]
    begun = root / f"{stage.mark}.begun"
    begun.parent.mkdir(parents=True, exist_ok=True)
    needed, known = inputs(graph, root)[name], _recorded(root)
    begun.write_text(f"{digest} {_beginning(stage, needed, known, root)}")


def record(root: Path = Path()) -> None:
    """Tell DVC of the stages that have finished; a failure is told, and can be made good.

    A mark counts only while it is true: the command and parameters are those of now, nothing
    the stage depends on has changed since it began, and DVC has not run the stage meanwhile.
    """
    graph = stages(root)
    needed, known = inputs(graph, root), _recorded(root)
    done = {stage.name for stage in graph if _true_mark(stage, needed[stage.name], known, root)}
    if done:
        try:
            _commit(done, root)
        except Exception as error:  # DVC has no one class of them; its own commands do the same
            raise UserError(
                f"DVC did not record what finished: {error}; to try again: bleuprint record"
            ) from error
    marks = [mark for mark in (root / _STATE / "finished").glob("*") if mark.suffix != ".begun"]
    for mark in marks:
        mark.unlink(missing_ok=True)
    if left := sorted({mark.name for mark in marks} - done):
        say(
            "not recorded, since what they depend on has changed after they began: "
            f"{', '.join(left)}; dvc repro runs them again",
            "note",
        )
    print(f"recorded in DVC: {len(done)} of {len(graph)} stages", file=sys.stderr)


def record_or_tell(*_: object) -> None:
    """Record at the end of a Snakemake run, whose own end a failure must not hide."""
    try:
        record()
    except UserError as error:
        say(str(error))


def use_this_python() -> None:
    """Have `python` in the stages' commands mean the one that runs now."""
    here = str(Path(sys.executable).parent)
    os.environ["PATH"] = f"{here}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def _stage(name: str, entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> Stage:
    outputs = dict(_output(item) for kind in ("outs", "metrics") for item in entry.get(kind, ()))
    meta = entry.get("meta", {})
    return Stage(
        name=name,
        command=entry["cmd"],
        dependencies=tuple(entry.get("deps", ())),
        outputs=tuple(outputs),
        kept=tuple(path for path, flags in outputs.items() if not flags.get("cache", True)),
        parameters={key: _lookup(parameters, key) for key in entry.get("params", ())},
        threads=meta["threads"],
        memory_gb=meta["memory_gb"],
        hours=meta["hours"],
        gpu=meta.get("gpu", 0),
        sharded=meta.get("sharded", False),
    )


def _output(item: str | Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """An output's path and flags: `path` or `{path: flags}` in dvc.yaml."""
    return (item, {}) if isinstance(item, str) else next(iter(item.items()))


def _lookup(parameters: Any, key: str) -> Any:
    for part in key.split("."):
        parameters = parameters[part]
    return parameters


def _above(path: str) -> list[str]:
    """The folders in which a path lies."""
    return [str(folder) for folder in PurePosixPath(path).parents]


def _files(dependency: str, root: Path) -> Iterator[str]:
    """A file by itself; of a folder the files in it, as DVC sees them."""
    if not (root / dependency).is_dir():
        yield dependency
        return
    for path in sorted((root / dependency).rglob("*")):
        ignored = "__pycache__" in path.parts or path.name == ".snakemake_timestamp"
        if path.is_file() and not ignored:
            yield str(path.relative_to(root))


def _commit(names: Collection[str], root: Path) -> None:
    """`dvc commit --force` of some stages, with one reading and one writing of dvc.lock.

    Where a stage fails, those before it are recorded.
    """
    from dvc.logger import set_loggers_level
    from dvc.repo import Repo, lock_repo

    with chdir(root), set_loggers_level(logging.CRITICAL), Repo() as repo, lock_repo(repo):
        stages = repo.stage.load_all()
        saved = []
        try:
            for stage in [stage for stage in stages if stage.name in names]:
                stage.save()
                # With links made anew, files would look changed to Snakemake.
                stage.commit(relink=False)
                saved.append(stage)
        finally:
            if saved:
                saved[0].dvcfile.dump_stages(saved, update_pipeline=False)


def _recorded(root: Path) -> Mapping[str, Any]:
    """What dvc.lock has of each stage, by its name."""
    from dvc.utils.serialize import load_yaml

    lock = root / "dvc.lock"
    return (load_yaml(str(lock)).get("stages") or {}) if lock.exists() else {}


def _beginning(stage: Stage, needed: Iterable[str], known: Mapping[str, Any], root: Path) -> str:
    """The SHA-256 of what decides a stage's outputs: its digest, and the files it depends on.

    Of these the sizes and modification times, to be compared with no clock but with what they
    were: where hosts share a file system, the clocks that made them need not agree. And what DVC
    had recorded of the stage, for `dvc repro` may have replaced its outputs since.
    """
    files = [(path, *_status(root / path)) for each in needed for path in _files(each, root)]
    text = json.dumps([stage.digest, files, known.get(stage.name)], default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _status(path: Path) -> tuple[int, int]:
    """A file's size and modification time; opened, since NFS may hold what they were before."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _true_mark(stage: Stage, needed: Iterable[str], known: Mapping[str, Any], root: Path) -> bool:
    try:
        began = (root / stage.mark).read_text()
        return (
            began.startswith(stage.digest)
            and all((root / path).exists() for path in stage.outputs)
            and began == f"{stage.digest} {_beginning(stage, needed, known, root)}"
        )
    except FileNotFoundError:
        return False
