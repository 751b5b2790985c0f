"""One runner of a project at a time: `bleuprint reproduce`, Snakemake or `dvc repro`.

Two of them beside each other would remove outputs that the other one reads. Ours take a lock of
the kernel, which ends with their process. DVC has its own: .dvc/tmp/rwlock names the processes that
write and read outputs. Ours are entered there for as long as they run, so that `dvc repro` ends
before its first stage and names them; and they wait for a `dvc repro` that is entered there.
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

_RWLOCK = Path(".dvc", "tmp", "rwlock")
_DVC_LOCK = Path(".dvc", "tmp", "lock")
# Seconds for which another command of DVC may use the project without a note.
_SHORT = 2.0


@dataclass(frozen=True)
class Runner:
    """A process that holds the project; `since`: seconds of the Unix epoch."""

    program: str
    process: int
    host: str
    since: float

    def __str__(self) -> str:
        began = time.localtime(self.since)
        today = time.strftime("%F", began) == time.strftime("%F")
        when = time.strftime("%H:%M" if today else "%F %H:%M", began)
        place = "" if self.host == node() else f" on {self.host}"
        return f"{self.program} (process {self.process}{place}, since {when})"

    def busy_message(self) -> str:
        """Say that this process holds the project."""
        return f"{self} is running in this project"

    def stop_advice(self) -> str:
        """Say how to stop it."""
        place = "" if self.host == node() else f" on {self.host}"
        return f"To stop it: kill {self.process}{place}"


@contextmanager
def hold_project(program: str, wait: bool = True, writes: bool = True) -> Iterator[None]:
    """Hold the project until the end of a `with`, so that no other runner starts.

    Args:
        program: The name by which others call this process.
        wait: Whether to wait for another runner, with a note; otherwise it is an error.
        writes: Whether outputs are written; otherwise `dvc repro` may start meanwhile.

    Raises:
        UserError: Another runner holds the project, and `wait` is false.
    """
    work = environment.work_folder()
    work.mkdir(parents=True, exist_ok=True)
    lock, described = FileLock(work / "reproduce.lock"), work / "runner.json"
    with ExitStack() as held:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _wait_or_refuse(_holder(lock, described), wait)
            lock.acquire()
        held.callback(lock.release)
        runner = Runner(program, os.getpid(), node(), time.time())
        described.write_text(format_json(asdict(runner)), encoding="utf-8")
        held.callback(described.unlink, missing_ok=True)
        held.enter_context(_held_from_dvc(environment.project_root(), wait, writes))
        yield


def other_runner() -> Runner | None:
    """Return the process that holds the project, if there is one; nothing waits."""
    described = environment.work_folder() / "runner.json"
    lock = FileLock(environment.work_folder() / "reproduce.lock")
    if flock_holder(Path(lock.lock_file)) is not None:
        return _holder(lock, described)
    return next(iter(_dvc_runners(environment.project_root())), None)


def _wait_or_refuse(runner: Runner, wait: bool) -> None:
    """Say that the project is waited for, or raise UserError."""
    if not wait:
        raise UserError(
            f"{runner.busy_message()}. Start this again when it has ended. {runner.stop_advice()}"
        )
    print_message(f"{runner.busy_message()}: waiting until it ends. {runner.stop_advice()}", "note")


def _holder(lock: FileLock, described: Path) -> Runner:
    """The process that holds the lock."""
    process = flock_holder(Path(lock.lock_file))
    runner = _described(described)
    # the description may be of a killed process; of another machine, the kernel names none
    if runner is not None and process in (None, runner.process):
        return runner
    return _of_process(process or 0)


def _described(path: Path) -> Runner | None:
    """The process that describes itself in a file; None if it has not done so yet."""
    with suppress(OSError, ValueError, TypeError):
        return Runner(**json.loads(path.read_text(encoding="utf-8")))
    return None


def _of_process(process: int, command: str | None = None) -> Runner:
    """A process of this machine, which has taken the project when it began."""
    import psutil

    began = time.time()
    with suppress(psutil.Error):
        found = psutil.Process(process)
        began = found.create_time()
        command = command or shlex.join(found.cmdline())
    return Runner(_short(command or "another process"), process, node(), began)


def _short(command: str) -> str:
    """A command without the folder of its program: `dvc repro` for `/usr/bin/dvc repro`."""
    program, _, arguments = command.partition(" ")
    return f"{PurePosixPath(program).name} {arguments}".strip()


@contextmanager
def _held_from_dvc(root: Path, wait: bool, writes: bool) -> Iterator[None]:
    """Wait for a stage that DVC runs here; with `writes`, keep DVC from running another one."""
    from dvc.repo import lock_repo

    while True:
        _note_other_command(root)
        with ExitStack() as held, open_repo(root) as repo, lock_repo(repo):
            # While DVC's lock is held here, other processes of DVC either wait for it or run a
            # stage, which is in DVC's list.
            runners = _dvc_runners(root)
            if not runners:
                if writes:
                    held.enter_context(_entered(repo))
                entered = held.pop_all()
                break
        _wait_or_refuse(runners[0], wait)
        _wait_for_end(runners[0].process)
    with entered:
        yield


@contextmanager
def _entered(repo: Any) -> Iterator[None]:
    """Enter this process into DVC's list as the writer of all outputs.

    DVC's own calls in this process enter themselves with the same command, and pass.
    """
    from dvc.rwlock import rwlock

    outputs = (Path(output.fs_path) for output in repo.index.outs)
    root = Path(repo.root_dir)
    # each call of DVC is compared with each entry: the folders, not the outputs in them
    folders = {root / path.relative_to(root).parts[0] for path in outputs if root in path.parents}
    command = " ".join(sys.argv)
    hardlink = repo.config["core"].get("hardlink_lock", False)
    written = sorted(map(str, folders))
    with rwlock(repo.tmp_dir, repo.fs, command, read=[], write=written, hardlink=hardlink):
        yield


def _dvc_runners(root: Path) -> list[Runner]:
    """The other processes of this machine that DVC's list names as writers."""
    try:
        content = json.loads((root / _RWLOCK).read_text(encoding="utf-8"))
        entries = [*content.get("write", {}).values()]
        commands = {int(entry["pid"]): str(entry["cmd"]) for entry in entries}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return []  # DVC says what is wrong with the file
    return [
        _of_process(process, command)
        for process, command in commands.items()
        if process != os.getpid() and _runs(process, command)
    ]


def _runs(process: int, command: str) -> bool:
    """Whether a process runs a command, and is not another one that has its number, by its name."""
    import psutil

    program = PurePosixPath(command.partition(" ")[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    with suppress(psutil.Error):
        return any(name in word for word in psutil.Process(process).cmdline())
    return False


def _wait_for_end(process: int) -> None:
    import psutil

    with suppress(psutil.NoSuchProcess):
        psutil.Process(process).wait()


def _note_other_command(root: Path) -> None:
    """Say so if another command of DVC, such as `dvc pull`, keeps its lock for long."""
    ends = time.monotonic() + _SHORT
    process = flock_holder(root / _DVC_LOCK)
    while process is not None and process != os.getpid():
        if time.monotonic() > ends:
            runner = _of_process(process)
            print_message(
                f"{runner.busy_message()}: waiting until it ends. {runner.stop_advice()}", "note"
            )
            return
        time.sleep(0.1)
        process = flock_holder(root / _DVC_LOCK)
