"""Recording of finished stages in DVC, for runs of Snakemake.

A rule of the Snakefile leaves a mark when its stage has finished. At the end of a run `record`
commits the marked stages to DVC and no others, since `dvc commit` takes any output on disk for up
to date. `bleuprint sync` records what a killed run has left.
"""

import hashlib
import json
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import chdir
from pathlib import Path

from bleuprint.pipeline.dvc_lock import LockFile, write_lock
from bleuprint.pipeline.dvc_repo import changed_stages, open_repo
from bleuprint.pipeline.graph import FINISHED, Stage, files_of_dependency, input_paths, load_stages
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import open_regular_file, read_bytes
from bleuprint.runtime.machine_errors import describe_machine_error


def mark_started(name: str, digest: str, *dependencies: str, root: Path = Path()) -> None:
    """Write the state that a stage starts from beside its mark.

    `digest` and `dependencies` (see `inputs`) are given by its rule: resolving the graph here would
    delay each stage by a second.
    """
    begun = root / FINISHED / f"{name}.begun"
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.write_text(_state(name, digest, dependencies, LockFile.read(root), root))


def record_finished(root: Path = Path()) -> None:
    """Commit the stages that have finished to DVC. Raises UserError if DVC fails.

    A mark is valid if the command and parameters are unchanged, no dependency has changed since the
    stage started, and DVC has not run the stage since.
    """
    graph = load_stages(root)
    done = finished_stages(graph, root)
    if done:
        try:
            _commit(done, root)
        except Exception as error:  # DVC's errors have no common class; its own commands do this
            raise UserError(
                "DVC did not record the finished stages: "
                f"{describe_machine_error(error) or error}; "
                "to try again: bleuprint sync"
            ) from error
    found = finished_marks(root)
    for mark in found:
        mark.unlink(missing_ok=True)
    left = sorted({mark.name for mark in found} - done)
    # of the others DVC has run some since
    if left and (left := [name for name in changed_stages(root) if name in left]):
        print_message(
            f"not recorded, since a dependency has changed after the start: {', '.join(left)}; "
            "make reproduce runs them again",
            "note",
        )
    print(f"recorded in DVC: {len(done)} of {len(graph)} stages", file=sys.stderr)


def finished_stages(graph: Sequence[Stage], root: Path = Path()) -> set[str]:
    """Return the names of the stages with a valid mark (see `record`)."""
    files, lock = input_paths(graph, root), LockFile.read(root)
    return {stage.name for stage in graph if _is_valid(stage, files[stage.name], lock, root)}


def finished_marks(root: Path = Path()) -> list[Path]:
    """The marks of finished stages that are not recorded."""
    return [mark for mark in (root / FINISHED).glob("*") if mark.suffix != ".begun"]


def _commit(names: Collection[str], root: Path) -> None:
    """`dvc commit --force` of some stages, which reads and writes dvc.lock once.

    If a stage fails, those before it are recorded.
    """
    from dvc.repo import lock_repo

    with chdir(root), open_repo(Path()) as repo, lock_repo(repo):
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
                write_lock(saved)


def _state(name: str, digest: str, dependencies: Iterable[str], lock: LockFile, root: Path) -> str:
    """The digest of a stage's rule, and the SHA-256 of all that decides its outputs.

    Files count by size and modification time, which are compared with their former values and with
    no clock: the clocks of hosts that share a file system may differ. The stage's lines in
    dvc.lock are included, since `dvc repro` may have replaced the outputs.
    """
    files = [
        (path, *_status(root / path))
        for each in dependencies
        for path in files_of_dependency(each, root)
    ]
    text = json.dumps([digest, files, lock.blocks.get(name)])
    return f"{digest} {hashlib.sha256(text.encode()).hexdigest()}"


def _status(path: Path) -> tuple[int, int]:
    """A file's size and modification time; opened first, since NFS may return cached values."""
    with open_regular_file(path) as file:
        status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _is_valid(stage: Stage, dependencies: Iterable[str], lock: LockFile, root: Path) -> bool:
    """Whether a stage has a valid mark (see `record`) and all outputs."""
    try:
        mark = read_bytes(root / stage.mark)
        state = _state(stage.name, stage.digest, dependencies, lock, root)
        return all((root / path).exists() for path in stage.outputs) and mark == state.encode()
    except FileNotFoundError:
        return False
