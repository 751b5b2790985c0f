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
from bleuprint.runtime.files import format_json
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
        """Return the command with process and start time: `dvc repro (process 12, since 9:30)`."""
        start = time.localtime(self.since)
        is_today = time.strftime("%F", start) == time.strftime("%F")
        start_text = time.strftime("%H:%M" if is_today else "%F %H:%M", start)
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
def hold_project(program: str, wait: bool = True, writes: bool = True) -> Iterator[None]:
    """Hold the project within a `with` block, so that no other runner starts.

    Args:
        program: The name by which messages of other runners call this process.
        wait: Whether to wait for another runner, after a note; otherwise it is an error.
        writes: Whether this process writes outputs; otherwise `dvc repro` may start meanwhile.

    Raises:
        UserError: Another runner holds the project, and `wait` is false.
    """
    work = environment.work_folder()
    work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(work / "reproduce.lock")
    description = work / "runner.json"
    with ExitStack() as held:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _wait_or_refuse(_holder_of(lock, description), wait)
            lock.acquire()
        held.callback(lock.release)
        runner = Runner(program, os.getpid(), node(), time.time())
        description.write_text(format_json(asdict(runner)), encoding="utf-8")
        held.callback(description.unlink, missing_ok=True)
        held.enter_context(_held_from_dvc(environment.project_root(), wait, writes))
        yield


def other_runner() -> Runner | None:
    """Return the process that holds the project; None if it is free. Does not wait."""
    work = environment.work_folder()
    lock = FileLock(work / "reproduce.lock")
    if flock_holder(Path(lock.lock_file)) is not None:
        return _holder_of(lock, work / "runner.json")
    dvc_runners = _dvc_runners(environment.project_root())
    return dvc_runners[0] if dvc_runners else None


def _wait_or_refuse(runner: Runner, wait: bool) -> None:
    """Print a note that this process waits for a runner, or raise UserError if it may not wait."""
    if not wait:
        raise UserError(
            f"{runner.busy_message()}. Start this again when it has ended. {runner.stop_advice()}"
        )
    print_message(f"{runner.busy_message()}: waiting until it ends. {runner.stop_advice()}", "note")


def _holder_of(lock: FileLock, description: Path) -> Runner:
    """Return the runner that holds our lock.

    Args:
        lock: The lock.
        description: The path of runner.json.
    """
    process = flock_holder(Path(lock.lock_file))
    runner = _read_description(description)
    # A killed process leaves its description behind, so the process ids are compared. The kernel
    # does not name a process of another machine: then the description is all that is known.
    if runner is not None and process in (None, runner.process):
        return runner
    return _runner_of_process(process or 0)


def _read_description(path: Path) -> Runner | None:
    """Read runner.json; return None if the holder of the lock has not written it yet."""
    with suppress(OSError, ValueError, TypeError):
        return Runner(**json.loads(path.read_text(encoding="utf-8")))
    return None


def _runner_of_process(process: int, command: str | None = None) -> Runner:
    """Describe a process of this machine. It has held the project since it began.

    Args:
        process: The process id.
        command: Its command, if known; otherwise the operating system is asked.
    """
    import psutil

    # If the process has just ended, the time is now.
    start_time = time.time()
    with suppress(psutil.Error):
        running = psutil.Process(process)
        start_time = running.create_time()
        command = command or shlex.join(running.cmdline())
    program = _without_folder(command or "another process")
    return Runner(program, process, node(), start_time)


def _without_folder(command: str) -> str:
    """Return a command without the folder of its program: `dvc repro` for `/usr/bin/dvc repro`."""
    program, _, arguments = command.partition(" ")
    return f"{PurePosixPath(program).name} {arguments}".strip()


@contextmanager
def _held_from_dvc(root: Path, wait: bool, writes: bool) -> Iterator[None]:
    """Keep DVC from running a stage within a `with` block; first wait for a stage that it runs.

    Args:
        root: The project's folder.
        wait: As for `hold_project`.
        writes: As for `hold_project`; if false, DVC may start a stage within the block.
    """
    from dvc.repo import lock_repo

    while True:
        _note_long_wait_for_dvc(root)
        with ExitStack() as held, open_repo(root) as repo, lock_repo(repo):
            # While we hold DVC's lock, another DVC process either waits for it or runs a stage. If
            # it runs a stage, DVC's list contains it.
            runners = _dvc_runners(root)
            if not runners:
                if writes:
                    held.enter_context(_entered_as_writer(repo))
                # The entry must outlive this inner `with`, which releases DVC's lock.
                entry = held.pop_all()
                break
        _wait_or_refuse(runners[0], wait)
        _wait_for_end(runners[0].process)
    with entry:
        yield


@contextmanager
def _entered_as_writer(repo: Any) -> Iterator[None]:
    """Enter this process into DVC's list as the writer of all outputs, within a `with` block.

    DVC's own calls in this process are not refused: they enter themselves with the same command.
    """
    from dvc.rwlock import rwlock

    root = Path(repo.root_dir)
    # Each DVC call compares its paths with each entry of the list. A few folders are compared
    # faster than all the outputs in them.
    folders = set[str]()
    for output in repo.index.outs:
        path = Path(output.fs_path)
        if path.is_relative_to(root) and path != root:
            folder_name = path.relative_to(root).parts[0]
            folders.add(str(root / folder_name))
    command = " ".join(sys.argv)
    uses_hardlinks = repo.config["core"].get("hardlink_lock", False)
    with rwlock(
        repo.tmp_dir, repo.fs, command, read=[], write=sorted(folders), hardlink=uses_hardlinks
    ):
        yield


def _dvc_runners(root: Path) -> list[Runner]:
    """Return the other processes of this machine that DVC's list names as writers of outputs.

    DVC's list still names killed processes. They are omitted, even if their id has been reused.
    """
    try:
        content = json.loads((root / _DVC_RWLOCK).read_text(encoding="utf-8"))
        writers = content.get("write", {}).values()
        commands = {int(writer["pid"]): str(writer["cmd"]) for writer in writers}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        # If the list is damaged, DVC itself prints an error when it reads the list.
        return []
    runners = []
    for process, command in commands.items():
        if process != os.getpid() and _is_running(process, command):
            runners.append(_runner_of_process(process, command))
    return runners


def _is_running(process: int, command: str) -> bool:
    """Whether a process exists and runs this command, by the name of its program.

    After a command has ended, the operating system may give its process id to another one.
    """
    import psutil

    program = PurePosixPath(command.partition(" ")[0])
    # `python -m dvc` appears as .../dvc/__main__.py: its folder has the name of the program.
    name = program.parent.name if program.name == "__main__.py" else program.name
    with suppress(psutil.Error):
        return any(name in word for word in psutil.Process(process).cmdline())
    return False


def _wait_for_end(process: int) -> None:
    """Wait until a process has ended."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        psutil.Process(process).wait()


def _note_long_wait_for_dvc(root: Path) -> None:
    """Print a note if another DVC command, such as `dvc pull`, holds DVC's lock for long.

    Returns when the lock is free, or after the note; DVC then waits for the lock by itself.
    """
    note_time = time.monotonic() + _SECONDS_WITHOUT_NOTE
    process = flock_holder(root / _DVC_LOCK)
    while process is not None and process != os.getpid():
        if time.monotonic() > note_time:
            runner = _runner_of_process(process)
            print_message(
                f"{runner.busy_message()}: waiting until it ends. {runner.stop_advice()}", "note"
            )
            return
        time.sleep(0.1)
        process = flock_holder(root / _DVC_LOCK)
