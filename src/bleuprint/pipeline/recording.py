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
from bleuprint.runtime.machine_errors import describe_machine_error
from bleuprint.runtime.regular_files import open_regular_file, read_bytes


def mark_started(name: str, digest: str, *dependencies: str, root: Path = Path()) -> None:
    """Write a hash of a stage's settings and inputs to a file, before Snakemake runs the stage.

    At the end of the run, DVC records the finished stages. It would hash the inputs of that moment,
    which the user may have edited since the stage read them. By this first hash, such a stage is
    noticed and not recorded. The file is named NAME.begun; when the stage has finished, its job
    renames it to NAME.

    Args:
        name: The name of the stage.
        digest: The hash of the stage's command and settings. The job passes it as an argument,
            since reading it from dvc.yaml would take a second.
        dependencies: The input files and folders of the stage.
        root: The project's folder.
    """
    begun_file = root / FINISHED / f"{name}.begun"
    begun_file.parent.mkdir(parents=True, exist_ok=True)
    lock = LockFile.read(root)
    begun_file.write_text(_hash_of_inputs(name, digest, dependencies, lock, root))


def record_finished(root: Path = Path()) -> None:
    """Let DVC record the stages that Snakemake has finished, and remove their marks.

    For each stage that it has finished, a Snakemake job leaves a file, the mark. DVC records the
    stage, unless its inputs have changed since it started. A message says how many stages DVC has
    recorded, and a note names the stages that have to run again.

    Args:
        root: The project's folder.

    Raises:
        UserError: DVC failed. The marks are kept, so that the user can try again.
    """
    stages = load_stages(root)
    finished = finished_stages(stages, root)
    if finished:
        try:
            _record_in_dvc(finished, root)
        except Exception as error:  # DVC's errors have no common class.
            reason = describe_machine_error(error) or error
            raise UserError(
                f"DVC did not record the finished stages: {reason}. To try again: bleuprint sync"
            ) from error
    marks = finished_marks(root)
    for mark in marks:
        mark.unlink(missing_ok=True)
    outdated = {mark.name for mark in marks} - finished
    if outdated:
        _print_stages_to_run_again(outdated, root)
    print(f"recorded in DVC: {len(finished)} of {len(stages)} stages", file=sys.stderr)


def _print_stages_to_run_again(outdated: Collection[str], root: Path) -> None:
    """Print a note that names finished stages that DVC could not record and that must run again.

    Args:
        outdated: The names of the stages whose inputs have changed since they started. `dvc repro`
            may have run some of them again already; the note does not name these.
        root: The project's folder.
    """
    to_run_again = [name for name in changed_stages(root) if name in outdated]
    if to_run_again:
        print_message(
            "DVC did not record these stages, since an input changed after they started: "
            f"{', '.join(to_run_again)}. To run them again: make reproduce",
            "note",
        )


def finished_stages(stages: Sequence[Stage], root: Path = Path()) -> set[str]:
    """Return the names of the stages that Snakemake has finished and DVC has not recorded yet.

    A stage does not count if its inputs have changed since it started.

    Args:
        stages: All stages of dvc.yaml.
        root: The project's folder.
    """
    inputs_by_stage = input_paths(stages, root)
    lock = LockFile.read(root)
    names = set()
    for stage in stages:
        if _is_finished(stage, inputs_by_stage[stage.name], lock, root):
            names.add(stage.name)
    return names


def finished_marks(root: Path = Path()) -> list[Path]:
    """Return the marks of the stages that have finished but are not recorded."""
    return [mark for mark in (root / FINISHED).glob("*") if mark.suffix != ".begun"]


def _record_in_dvc(names: Collection[str], root: Path) -> None:
    """Record stages in DVC: store their outputs in DVC's cache, and their hashes in dvc.lock.

    `dvc commit --force` does the same, but rewrites dvc.lock after each stage, which is slow. Here
    it is written once, at the end.

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
                # With `relink`, DVC would replace the files by links into its cache. Snakemake
                # would take the links for new files.
                dvc_stage.commit(relink=False)
                saved.append(dvc_stage)
        finally:
            # Also after an error of DVC, so that the stages before it are recorded.
            if saved:
                write_lock(saved)


def _hash_of_inputs(
    name: str, digest: str, dependencies: Iterable[str], lock: LockFile, root: Path
) -> str:
    """Return one line of text that is different if a stage would have to run again.

    The line consists of two hashes. The first one, `digest`, is of the command and the settings.
    The second one also includes the input files and what dvc.lock records for the stage. A file
    counts by its size and its modification time, since reading a large file would take long. What
    dvc.lock records changes if `dvc repro` has run the stage and replaced its outputs.

    Args:
        name: The name of the stage.
        digest: The SHA-256 of the stage's command and settings.
        dependencies: The input files and folders of the stage.
        lock: The dvc.lock of the project.
        root: The project's folder.
    """
    files = []
    for dependency in dependencies:
        for path in files_of_dependency(dependency, root):
            # The clocks of machines that share a file system may differ. So a time is never
            # compared with a clock, only with the time that the same file had before.
            size, modified_ns = _size_and_time(root / path)
            files.append((path, size, modified_ns))
    text = json.dumps([digest, files, lock.blocks.get(name)])
    return f"{digest} {hashlib.sha256(text.encode()).hexdigest()}"


def _size_and_time(path: Path) -> tuple[int, int]:
    """Return the size of a file in bytes, and its modification time in nanoseconds.

    The file is opened first: a network file system may otherwise return values that are out of
    date.
    """
    with open_regular_file(path) as file:
        status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _is_finished(stage: Stage, dependencies: Iterable[str], lock: LockFile, root: Path) -> bool:
    """Return whether Snakemake has finished a stage and its inputs are still the same.

    The job of a finished stage leaves a file, the mark, with a hash of the settings and inputs at
    the start of the stage. It is compared with a hash of the present ones.

    Args:
        stage: The stage.
        dependencies: The input files and folders of the stage.
        lock: The dvc.lock of the project.
        root: The project's folder.
    """
    try:
        hash_at_start = read_bytes(root / stage.mark)
        hash_now = _hash_of_inputs(stage.name, stage.digest, dependencies, lock, root)
    except FileNotFoundError:
        return False  # There is no mark, or an input has been removed.
    has_outputs = all((root / path).exists() for path in stage.outputs)
    return has_outputs and hash_at_start == hash_now.encode()
