"""A fault at the first call on files, at the second, and so on, until an operation succeeds."""

import shutil
from pathlib import Path

import syscalls
from bleuprint.runtime.errors import run_main
from requirements import SECCOMP, needs
from syscalls import Fault

NEEDS_SECCOMP = needs(SECCOMP, syscalls.available())
# The program treats other errors of files, such as EROFS, like EIO.
FAULT_KINDS = ("SIGKILL", "ENOSPC", "EIO", "EMFILE", "ENOMEM")
# What the error message contains besides the file.
_MESSAGE_PARTS = {"ENOSPC": " free. ", "EMFILE": "The limit is ", "ENOMEM": "memory"}


def sweep_faults(tmp_path, operation, prepare_folder, read_state, fault_kinds=FAULT_KINDS, step=1):
    """Put a fault into each call on files in turn, and fail where a promise is broken.

    After each fault the folder has its old state or its new one, and an error is one line. The
    operation then succeeds without a fault, and leaves nothing else behind. A full disk is tried
    at a single call, and at all calls from one on.

    Args:
        tmp_path: A folder for the files of all trials.
        operation: The operation; its argument is the folder in which it works.
        prepare_folder: Writes the old state into that folder, which is empty.
        read_state: Returns what other programs would find in that folder.
        fault_kinds: Names of signals and errors, of `FAULT_KINDS`.
        step: Only every `step`-th call gets a fault, which saves time with long operations.
    """
    trial = _Trial(tmp_path / "trial", operation, prepare_folder, read_state)
    for fault_kind in fault_kinds:
        trial.put_fault_into_each_call(fault_kind, is_lasting=False, step=step)
        if fault_kind == "ENOSPC":
            trial.put_fault_into_each_call(fault_kind, is_lasting=True, step=step)


class _Trial:
    """An operation in a folder, and the two states between which it may leave the folder."""

    def __init__(self, folder, operation, prepare_folder, read_state):
        """Run the operation once without a fault, to learn the old and the new state.

        Args:
            folder: The folder in which the operation works.
            operation: The operation; its argument is the folder.
            prepare_folder: Writes the old state into the folder, which is empty.
            read_state: Returns what other programs would find in the folder.
        """
        self.folder = folder
        self.operation = operation
        self.prepare_folder = prepare_folder
        self.read_state = read_state

        self._start_anew()
        self.old_state = read_state(folder)
        undisturbed = self._outcome(Fault("none"))
        assert undisturbed.status == 0, undisturbed.output
        self.new_state = read_state(folder)
        self.new_names = _names_in(folder)

    def put_fault_into_each_call(self, fault_kind, is_lasting, step):
        """Run the operation once per call on files, each time with a fault at that call.

        Args:
            fault_kind: The name of a signal or error.
            is_lasting: Whether all later calls have the fault, too.
            step: Only every `step`-th call gets a fault.
        """
        call = 1
        while True:
            self._start_anew()
            outcome = self._outcome(Fault(fault_kind, call, is_lasting))
            label = f"{fault_kind} at call {call}{' and later' if is_lasting else ''}"
            check_end(fault_kind, outcome, label)
            self._check_state(outcome, label)
            has_fewer_calls = outcome.struck < call
            if has_fewer_calls:
                return
            self._check_that_running_again_completes(label)
            call += step

    def _check_state(self, outcome, label):
        """Fail unless the folder is in its old or its new state, in the new one after success."""
        state = self.read_state(self.folder)
        is_old_or_new = state in (self.old_state, self.new_state)
        assert is_old_or_new, f"{label}: neither old nor new: {state}"
        if outcome.status == 0:
            assert state == self.new_state, f"{label}: succeeded, and is not new: {state}"

    def _check_that_running_again_completes(self, label):
        """Fail unless the operation, run again, makes the new state and leaves nothing else."""
        self.operation(self.folder)
        state = self.read_state(self.folder)
        assert state == self.new_state, f"{label}, then: {state}"
        names = _names_in(self.folder)
        assert names == self.new_names, f"{label}: left {names - self.new_names}"

    def _start_anew(self):
        """Make the folder with its old state."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.prepare_folder(self.folder)

    def _outcome(self, fault):
        """Run the operation as a command, in a process with a fault."""
        return syscalls.run_with(
            fault, self.folder, lambda: run_main(lambda: self.operation(self.folder))
        )


def read_contents(folder):
    """Return the content of each file in a folder by name, except files that are being written."""
    contents = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and ".partial-" not in name:
            contents[name] = path.read_bytes()
    return contents


def unsynced(calls):
    """Return the files and folders that a power failure could lose.

    A written file or a folder with new entries must have been flushed before it is renamed, and the
    folder that gets the new name afterwards.

    Args:
        calls: The calls on files, as in `syscalls.Outcome`.
    """
    unflushed: set[str] = set()
    lost = []
    last_folder = None
    for call in calls:
        folder = str(Path(call.path).parent)
        if call.name in syscalls.WRITES:
            unflushed.update((call.path, folder))
        elif call.name == "mkdir":
            unflushed.add(folder)
        elif call.name in ("fsync", "fdatasync"):
            unflushed.discard(call.path)
        elif call.name.startswith("rename"):
            for path in unflushed:
                if path == call.old_path or path.startswith(f"{call.old_path}/"):
                    lost.append(path)
            unflushed.add(folder)
            last_folder = folder
    assert last_folder is not None, "nothing was renamed"
    if last_folder in unflushed:
        lost.append(last_folder)
    return lost


def check_end(fault_kind, outcome, label, may_print_more=False):
    """Fail unless a process ended well, by the signal, or with one line about the error.

    Args:
        fault_kind: The name of the signal or error.
        outcome: How the process ended.
        label: What the fault was, for messages.
        may_print_more: Whether the process may print other lines before the error.
    """
    if fault_kind == "SIGKILL":
        assert outcome.status in (0, -9), f"{label}: {outcome}"
        return
    if outcome.status == 0:
        return
    assert outcome.status == 1, f"{label}: {outcome}"
    assert "Traceback" not in outcome.output, f"{label}: {outcome.output}"
    other_lines, _, last_line = outcome.output.rstrip("\n").rpartition("\n")
    assert last_line.startswith("bleuprint: error: "), f"{label}: {outcome.output}"
    if not may_print_more:
        assert not other_lines, f"{label}: {outcome.output}"
    # safetensors calls every file that it cannot open missing. Other errors name a path.
    message_part = _MESSAGE_PARTS.get(fault_kind, "/")
    names_the_fault = message_part in last_line or "No such file" in last_line
    assert names_the_fault, f"{label}: {last_line}"


def _names_in(folder):
    """Return the names of all files and folders in a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
