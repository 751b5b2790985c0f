"""Lets only one runner use a project at a time: `bleuprint reproduce`, Snakemake or `dvc repro`.

Two runners at the same time would remove outputs that the other one reads. `hold_project` keeps
others out by two locks:

- Our own runners lock work/reproduce.lock with the kernel, which releases it when the process ends,
  even by a kill. work/runner.json describes the process for messages.
- DVC lists in .dvc/tmp/rwlock which process writes or reads which outputs. We enter ourselves there
  as the writer of all outputs, so that `dvc repro` refuses to start and names our process. If
  `dvc repro` is listed there, we wait for it.
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from platform import node
from typing import Any

from filelock import Timeout

from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.json_files import format_json
from bleuprint.runtime.locks import FileLock, flock_holder

_DVC_RWLOCK = Path(".dvc", "tmp", "rwlock")
_DVC_LOCK = Path(".dvc", "tmp", "lock")
# Most DVC commands hold DVC's lock for less than this. Only a longer wait is worth a note.
_SECONDS_WITHOUT_NOTE = 2.0


@dataclass(frozen=True)
class Runner:
    """A process that holds the project.

    work/runner.json contains these fields, too.

    Attributes:
        program: The command, for messages: `dvc repro`.
        process: The process id.
        host: The name of its machine.
        since: When it took the project, in seconds of the Unix epoch.
    """

    program: str
    process: int
    host: str
    since: float

    def __str__(self) -> str:
        """Describe the process for messages, such as `dvc repro (process 12, since 09:30)`.

        The date is added if the process started on another day, and the host if it is another one.
        """
        start = time.localtime(self.since)
        is_today = time.strftime("%F", start) == time.strftime("%F")
        time_format = "%H:%M" if is_today else "%F %H:%M"
        start_text = time.strftime(time_format, start)
        return f"{self.program} (process {self.process}{self._on_other_host()}, since {start_text})"

    def busy_message(self) -> str:
        """Return the sentence that this process uses the project."""
        return f"{self} is running in this project"

    def stop_advice(self) -> str:
        """Return the sentence that tells how to stop this process."""
        return f"To stop it: kill {self.process}{self._on_other_host()}"

    def _on_other_host(self) -> str:
        """Return ` on HOST` if the process runs on another machine, else an empty text."""
        return "" if self.host == node() else f" on {self.host}"


@contextmanager
def hold_project(
    program: str, should_wait: bool = True, writes_outputs: bool = True
) -> Iterator[None]:
    """Lock the project for a `with` block, so that no other program runs its stages meanwhile.

    Stages of two programs would overwrite each other's outputs. Two locks are needed: one file lock
    for bleuprint's own commands and Snakemake, and one for `dvc repro`, which only knows the lock
    files of DVC.

    Args:
        program: The name of this program, for the messages of programs that have to wait.
        should_wait: Whether to print a note and wait while another program runs stages; otherwise
            this is an error.
        writes_outputs: Whether this program writes outputs of stages; if not, `dvc repro` may run,
            too.

    Raises:
        UserError: Another program runs stages, and `should_wait` is false.
    """
    work = environment.work_folder()
    work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(work / "reproduce.lock")
    description_file = work / "runner.json"
    # When the block ends, the stack calls what was added to it, in reverse order.
    with ExitStack() as stack:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _announce_wait_or_raise(_holder_of(lock, description_file), should_wait)
            lock.acquire()  # Without a timeout, so this waits.
        stack.callback(lock.release)
        this_process = Runner(program, os.getpid(), node(), time.time())
        description_file.write_text(format_json(asdict(this_process)), encoding="utf-8")
        stack.callback(description_file.unlink, missing_ok=True)
        stack.enter_context(_lock_for_dvc(environment.project_root(), should_wait, writes_outputs))
        yield


def other_runner() -> Runner | None:
    """Return the process that runs stages of this project now; None if there is none.

    It is one of our own commands, Snakemake or `dvc repro`. This function does not wait for locks.
    """
    work = environment.work_folder()
    lock = FileLock(work / "reproduce.lock")
    is_locked = flock_holder(Path(lock.lock_file)) is not None
    if is_locked:
        return _holder_of(lock, work / "runner.json")
    dvc_runners = _dvc_runners(environment.project_root())
    if dvc_runners:
        return dvc_runners[0]
    return None


def _announce_wait_or_raise(runner: Runner, should_wait: bool) -> None:
    """Print a note that this process waits for another one; raise UserError if it may not wait.

    The caller does the waiting.

    Args:
        runner: The other process, which runs stages of this project.
        should_wait: Whether this process may wait; otherwise this is an error.
    """
    if not should_wait:
        raise UserError(
            f"{runner.busy_message()}. Start this again when it has ended. {runner.stop_advice()}"
        )
    print_message(f"{runner.busy_message()}. Waiting until it ends. {runner.stop_advice()}", "note")


def _holder_of(lock: FileLock, description_file: Path) -> Runner:
    """Describe the process that holds a lock, for a message to the user.

    Each process that takes the lock writes a description of itself to a file. A killed process
    leaves this file behind. So the description is used only if its process id is the one that the
    kernel gives for the lock. Otherwise only the kernel's answer is used.

    Args:
        lock: The lock.
        description_file: The path of the file, runner.json.
    """
    # None if the process runs on another machine, whose processes this kernel does not know. Then
    # the description is all there is.
    holder_id = flock_holder(Path(lock.lock_file))
    described = _read_description(description_file)
    if described is not None and holder_id in (None, described.process):
        return described
    # No process has the id 0; the message then says `another process`.
    return _runner_of_process(holder_id or 0)


def _read_description(path: Path) -> Runner | None:
    """Read runner.json; return None if the holder of the lock has not written it yet."""
    with suppress(OSError, ValueError, TypeError):
        return Runner(**json.loads(path.read_text(encoding="utf-8")))
    return None


def _runner_of_process(process: int, command: str | None = None) -> Runner:
    """Describe a process of this machine by its id: its command, and when it started.

    Args:
        process: The process id.
        command: The command of the process if it is known; None to ask the operating system.
    """
    import psutil

    # Used if the process has just ended: then the operating system no longer knows its start time.
    start_time = time.time()
    with suppress(psutil.Error):
        system_process = psutil.Process(process)
        start_time = system_process.create_time()
        command = command or shlex.join(system_process.cmdline())
    program = _without_folder(command or "another process")
    return Runner(program, process, node(), start_time)


def _without_folder(command: str) -> str:
    """Return a command without the folder of its program: `dvc repro` for `/usr/bin/dvc repro`."""
    program, _, arguments = command.partition(" ")
    return f"{PurePosixPath(program).name} {arguments}".strip()


def _lock_for_dvc(root: Path, should_wait: bool, writes_outputs: bool) -> ExitStack:
    """Wait until `dvc repro` runs no stage, and keep it from running one from then on.

    The file .dvc/tmp/rwlock lists which process writes which outputs. `dvc repro` refuses to write
    an output for which the list names another process. So this process lists itself as the writer
    of all outputs.

    Args:
        root: The project's folder.
        should_wait: Whether to wait while `dvc repro` runs a stage; otherwise this is a UserError.
        writes_outputs: Whether this process writes outputs of stages, so that it is listed. If not,
            `dvc repro` may run stages at the same time.

    Returns:
        A context manager that removes this process from the list at its end.
    """
    from dvc.repo import lock_repo

    while True:
        _announce_long_wait_for_dvc(root)
        with ExitStack() as stack, open_repo(root) as repo, lock_repo(repo):
            # This process holds DVC's global lock now. DVC releases that lock while the command of
            # a stage runs, but such a stage is in the list.
            dvc_runners = _dvc_runners(root)
            if not dvc_runners:
                if writes_outputs:
                    stack.enter_context(_listed_as_writer(repo))
                # At its end, the `with` block releases DVC's global lock, and would also remove
                # this process from the list. `pop_all` prevents that: it moves the removal to a
                # new stack, which the caller ends later.
                return stack.pop_all()
        _announce_wait_or_raise(dvc_runners[0], should_wait)
        _wait_for_end(dvc_runners[0].process)


@contextmanager
def _listed_as_writer(repo: Any) -> Iterator[None]:
    """List this process in DVC's file rwlock as the writer of all outputs, for a `with` block.

    Other DVC processes then refuse to run stages. Calls of DVC in this process still work, since
    DVC finds this process's own id and command in the list.

    Args:
        repo: DVC's repository object.
    """
    from dvc.rwlock import rwlock

    root = Path(repo.root_dir)
    # DVC compares each path with each entry of the list, which would be slow for hundreds of
    # outputs. An entry for a folder covers all that is in it, so a few top-level folders suffice.
    folders = set[str]()
    for output in repo.index.outs:
        path = Path(output.fs_path)
        if path.is_relative_to(root) and path != root:
            top_level_name = path.relative_to(root).parts[0]
            folders.add(str(root / top_level_name))
    command = " ".join(sys.argv)
    uses_hardlinks = repo.config["core"].get("hardlink_lock", False)
    with rwlock(
        repo.tmp_dir, repo.fs, command, read=[], write=sorted(folders), hardlink=uses_hardlinks
    ):
        yield


def _dvc_runners(root: Path) -> list[Runner]:
    """Return the other processes of this machine that run stages by DVC, from DVC's own list.

    In .dvc/tmp/rwlock, DVC lists the processes that write outputs. A killed process stays in the
    list, and its id may belong to another program now. So only processes that still run count.

    Args:
        root: The project's folder.
    """
    try:
        content = json.loads((root / _DVC_RWLOCK).read_text(encoding="utf-8"))
        writers = content.get("write", {}).values()
        command_by_process = {int(writer["pid"]): str(writer["cmd"]) for writer in writers}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        # The list is missing or damaged. DVC itself prints an error when it reads a damaged one.
        return []
    runners = []
    for process, command in command_by_process.items():
        is_this_process = process == os.getpid()
        if not is_this_process and _is_running(process, command):
            runners.append(_runner_of_process(process, command))
    return runners


def _is_running(process: int, command: str) -> bool:
    """Return whether a process from DVC's list is still running.

    After the process has ended, the operating system may give its id to another program. So the
    name of the program must still be the same.

    Args:
        process: The process id.
        command: The command line in the list, such as `/usr/bin/dvc repro`.
    """
    import psutil

    program = PurePosixPath(command.partition(" ")[0])
    # `python -m dvc` has the command .../dvc/__main__.py: the folder has the program's name.
    name = program.parent.name if program.name == "__main__.py" else program.name
    # An error means that there is no such process, or that it belongs to another user.
    with suppress(psutil.Error):
        words = psutil.Process(process).cmdline()
        return any(name in word for word in words)
    return False


def _wait_for_end(process: int) -> None:
    """Wait until a process has ended.

    Args:
        process: The process id.
    """
    import psutil

    with suppress(psutil.NoSuchProcess):
        psutil.Process(process).wait()


def _announce_long_wait_for_dvc(root: Path) -> None:
    """Wait for DVC's lock for a short time; if it is still held then, print a note that names why.

    The caller then asks DVC for the lock, and DVC waits without a message. Another command, such as
    `dvc pull`, may hold the lock for hours, and the user should know which one.

    Args:
        root: The project's folder.
    """
    note_time = time.monotonic() + _SECONDS_WITHOUT_NOTE
    process = flock_holder(root / _DVC_LOCK)
    while process is not None and process != os.getpid():
        if time.monotonic() > note_time:
            runner = _runner_of_process(process)
            print_message(
                f"{runner.busy_message()}. Waiting until it ends. {runner.stop_advice()}", "note"
            )
            return
        time.sleep(0.1)
        process = flock_holder(root / _DVC_LOCK)
