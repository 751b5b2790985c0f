"""The stages of dvc.yaml for the Snakefile, and recording of finished stages in DVC.

Uses DVC's stage classes, an undocumented interface: DVC's version is therefore pinned.

A rule of the Snakefile leaves a mark when its stage has finished. At the end of a run `record`
commits the marked stages to DVC and no others, since `dvc commit` takes any output on disk for up
to date. `bleuprint record` records what a killed run has left.
"""

import atexit
import hashlib
import json
import logging
import os
import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from bleuprint.config import experiment, paths
from bleuprint.pipeline.dvc_lock import open_repo
from bleuprint.pipeline.params_files import contents, current_params
from bleuprint.runtime.errors import UserError, say

WORK = Path("work", "snakemake")


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
        return _mark(self.name)

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
        return at_or_below.get(dependency, above) or list(_files(dependency, root))

    return {
        stage.name: list(dict.fromkeys(chain.from_iterable(map(resolved, stage.dependencies))))
        for stage in graph
    }


def begin(name: str, digest: str, *dependencies: str, root: Path = Path()) -> None:
    """Write the state that a stage starts from beside its mark.

    `digest` and `dependencies` (see `inputs`) are given by its rule: resolving the graph here would
    delay each stage by a second.
    """
    begun = root / f"{_mark(name)}.begun"
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.write_text(_state(name, digest, dependencies, _read_lock(root), root))


def record(root: Path = Path()) -> None:
    """Commit the stages that have finished to DVC. Raises UserError if DVC fails.

    A mark is valid if the command and parameters are unchanged, no dependency has changed since the
    stage started, and DVC has not run the stage since.
    """
    graph = stages(root)
    files, lock = inputs(graph, root), _read_lock(root)
    done = {stage.name for stage in graph if _is_valid(stage, files[stage.name], lock, root)}
    if done:
        try:
            with current_params(root):
                _commit(done, root)
        except Exception as error:  # DVC's errors have no common class; its own commands do this
            raise UserError(
                f"DVC did not record the finished stages: {error}; to try again: bleuprint record"
            ) from error
    marks = [mark for mark in (root / WORK / "finished").glob("*") if mark.suffix != ".begun"]
    for mark in marks:
        mark.unlink(missing_ok=True)
    if left := sorted({mark.name for mark in marks} - done):
        say(
            f"not recorded, since a dependency has changed after the start: {', '.join(left)}; "
            "dvc repro runs them again",
            "note",
        )
    print(f"recorded in DVC: {len(done)} of {len(graph)} stages", file=sys.stderr)


def record_or_print_error() -> None:
    """Record at the end of a Snakemake run; a failure must not hide the run's own result."""
    try:
        record()
    except UserError as error:
        say(str(error))


def record_at_exit(workflow: Any) -> None:
    """Record what a killed run has finished if Snakemake ends because nothing is left to do.

    It calls neither onsuccess nor onerror then.
    """

    def record_left() -> None:
        runs = workflow.executor_plugin is not None and not workflow.dryrun
        if runs and any(mark.suffix != ".begun" for mark in (WORK / "finished").glob("*")):
            record_or_print_error()

    atexit.register(record_left)


def use_this_python() -> None:
    """Put this Python first on PATH, for the stages' commands."""
    here = str(Path(sys.executable).parent)
    os.environ["PATH"] = f"{here}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def lift_default_rate_limit(workflow: Any) -> None:
    """Remove Snakemake's default limit of 100 new jobs a second; one given by the user stays.

    For each job that has ended, Snakemake looks at all waiting jobs again once in the limit's time
    until the run is over: a third of a core after 400 jobs.
    """
    limiter = workflow.scheduler.job_rate_limiter
    if limiter and (limiter.max_jobs, limiter.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


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


def _mark(name: str) -> Path:
    return WORK / "finished" / name


def _parents(path: str) -> list[str]:
    return [str(folder) for folder in PurePosixPath(path).parents]


def _files(dependency: str, root: Path) -> Iterator[str]:
    """The files of a folder, without those that DVC ignores; or the file itself."""
    if not (root / dependency).is_dir():
        yield dependency
        return
    for path in sorted((root / dependency).rglob("*")):
        ignored = "__pycache__" in path.parts or path.name == ".snakemake_timestamp"
        if path.is_file() and not ignored:
            yield str(path.relative_to(root))


def _commit(names: Collection[str], root: Path) -> None:
    """`dvc commit --force` of some stages, which reads and writes dvc.lock once.

    If a stage fails, those before it are recorded.
    """
    from dvc.logger import set_loggers_level
    from dvc.repo import lock_repo

    with (
        chdir(root),
        set_loggers_level(logging.CRITICAL),
        open_repo(Path()) as repo,
        lock_repo(repo),
    ):
        stages = repo.stage.load_all()
        saved = []
        try:
            for stage in [stage for stage in stages if stage.name in names]:
                stage.save()
                # relinked files would look changed to Snakemake
                stage.commit(relink=False)
                saved.append(stage)
        finally:
            if saved:
                saved[0].dvcfile.dump_stages(saved, update_pipeline=False)


def _read_lock(root: Path) -> str:
    path = root / "dvc.lock"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _state(name: str, digest: str, dependencies: Iterable[str], lock: str, root: Path) -> str:
    """The digest of a stage's rule, and the SHA-256 of all that decides its outputs.

    Files count by size and modification time, which are compared with their former values and with
    no clock: the clocks of hosts that share a file system may differ. The stage's entry in `lock`,
    the text of dvc.lock, is included, since `dvc repro` may have replaced the outputs.
    """
    files = [(path, *_status(root / path)) for each in dependencies for path in _files(each, root)]
    # the lines of the entry; to parse all of dvc.lock would take seconds
    entry = re.search(rf"^  {re.escape(name)}:\n(?: {{3,}}.*\n)*", lock, re.MULTILINE)
    text = json.dumps([digest, files, entry and entry[0]])
    return f"{digest} {hashlib.sha256(text.encode()).hexdigest()}"


def _status(path: Path) -> tuple[int, int]:
    """A file's size and modification time; opened first, since NFS may return cached values."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _is_valid(stage: Stage, dependencies: Iterable[str], lock: str, root: Path) -> bool:
    """Whether a stage has a valid mark (see `record`) and all outputs."""
    try:
        mark = (root / stage.mark).read_text()
        return all((root / path).exists() for path in stage.outputs) and mark == _state(
            stage.name, stage.digest, dependencies, lock, root
        )
    except FileNotFoundError:
        return False
