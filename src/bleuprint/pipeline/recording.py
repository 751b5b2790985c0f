"""Records the stages that Snakemake has finished in DVC.

Each job of Snakemake leaves a mark, a file in work/snakemake/finished. At the end of a run,
`record_finished` commits the marked stages to DVC, and no others, since `dvc commit` would record
any output on disk. `bleuprint sync` does the same after a run that was killed.

A mark contains the state from which its stage started: a hash of its settings, the sizes and times
of its input files, and its lines in dvc.lock. The mark is valid as long as the state is the same.
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
    """Write the state from which a stage starts. The stage's job renames the file at its end.

    Args:
        name: The stage's name.
        digest: The stage's digest. The job passes it, since loading the graph takes a second.
        dependencies: The stage's inputs, as `input_paths` returns them.
        root: The project's folder.
    """
    begun = root / FINISHED / f"{name}.begun"
    begun.parent.mkdir(parents=True, exist_ok=True)
    lock = LockFile.read(root)
    begun.write_text(_state(name, digest, dependencies, lock, root))


def record_finished(root: Path = Path()) -> None:
    """Commit the stages with a valid mark to DVC, and remove all marks.

    Prints how many stages were recorded, and a note on those that must run again.

    Args:
        root: The project's folder.

    Raises:
        UserError: DVC failed.
    """
    stages = load_stages(root)
    finished = finished_stages(stages, root)
    if finished:
        try:
            _commit(finished, root)
        except Exception as error:  # DVC's errors have no common class
            reason = describe_machine_error(error) or error
            raise UserError(
                f"DVC did not record the finished stages: {reason}; to try again: bleuprint sync"
            ) from error
    marks = finished_marks(root)
    for mark in marks:
        mark.unlink(missing_ok=True)
    invalid = {mark.name for mark in marks} - finished
    if invalid:
        # DVC may have run such a stage since. Then it is up to date and needs no note.
        not_recorded = [name for name in changed_stages(root) if name in invalid]
        if not_recorded:
            print_message(
                "not recorded, since a dependency has changed after the start: "
                f"{', '.join(not_recorded)}; make reproduce runs them again",
                "note",
            )
    print(f"recorded in DVC: {len(finished)} of {len(stages)} stages", file=sys.stderr)


def finished_stages(stages: Sequence[Stage], root: Path = Path()) -> set[str]:
    """Return the names of the stages with a valid mark, which DVC has not recorded yet.

    Args:
        stages: All stages of dvc.yaml.
        root: The project's folder.
    """
    inputs = input_paths(stages, root)
    lock = LockFile.read(root)
    names = set()
    for stage in stages:
        if _is_valid(stage, inputs[stage.name], lock, root):
            names.add(stage.name)
    return names


def finished_marks(root: Path = Path()) -> list[Path]:
    """Return the marks of the stages that have finished but are not recorded."""
    return [mark for mark in (root / FINISHED).glob("*") if mark.suffix != ".begun"]


def _commit(names: Collection[str], root: Path) -> None:
    """Record some stages in DVC, as `dvc commit --force` does, but write dvc.lock only once.

    If DVC fails at a stage, the stages before it are recorded nevertheless.

    Args:
        names: The names of the stages.
        root: The project's folder.
    """
    from dvc.repo import lock_repo

    with chdir(root), open_repo(Path()) as repo, lock_repo(repo):
        saved = []
        try:
            for dvc_stage in repo.stage.load_all():
                if dvc_stage.name not in names:
                    continue
                dvc_stage.save()
                # DVC would replace files by links into its cache, which look new to Snakemake.
                dvc_stage.commit(relink=False)
                saved.append(dvc_stage)
        finally:
            if saved:
                write_lock(saved)


def _state(name: str, digest: str, dependencies: Iterable[str], lock: LockFile, root: Path) -> str:
    """Return a stage's digest, and the SHA-256 of all that decides its outputs.

    A file counts by its size and modification time. The time is only compared with an earlier time
    of the same file, since the clocks of machines that share a file system may differ. The stage's
    lines in dvc.lock count, too, since `dvc repro` may have replaced the outputs meanwhile.

    Args:
        name: The stage's name.
        digest: The SHA-256 of its command and settings.
        dependencies: Its inputs, as `input_paths` returns them.
        lock: The dvc.lock of the project.
        root: The project's folder.
    """
    files = []
    for dependency in dependencies:
        for path in files_of_dependency(dependency, root):
            size, modified_ns = _size_and_time(root / path)
            files.append((path, size, modified_ns))
    text = json.dumps([digest, files, lock.blocks.get(name)])
    return f"{digest} {hashlib.sha256(text.encode()).hexdigest()}"


def _size_and_time(path: Path) -> tuple[int, int]:
    """Return the size of a file in bytes, and its modification time in nanoseconds.

    The file is opened, since a network file system may return old values for an unopened one.
    """
    with open_regular_file(path) as file:
        status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _is_valid(stage: Stage, dependencies: Iterable[str], lock: LockFile, root: Path) -> bool:
    """Whether a stage has a mark for its present state, and all outputs.

    Args:
        stage: The stage.
        dependencies: Its inputs, as `input_paths` returns them.
        lock: The dvc.lock of the project.
        root: The project's folder.
    """
    try:
        mark = read_bytes(root / stage.mark)
        state = _state(stage.name, stage.digest, dependencies, lock, root)
    except FileNotFoundError:
        return False
    has_outputs = all((root / path).exists() for path in stage.outputs)
    return has_outputs and mark == state.encode()
