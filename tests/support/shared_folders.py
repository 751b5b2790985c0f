"""Folders that the tests of a run share, and a check that no test changes them.

With pytest-xdist, several processes read such a folder at the same time. Even a change that a test
undoes can make a test of another process fail, so files are compared by the time of their last
change, not by their content.
"""

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


class SharedFolders:
    """Folders below a folder, each made once, by the process that asks for it first."""

    def __init__(self, base):
        """Share folders below `base`, which all processes name."""
        self._base = base
        self._states_when_made = {}

    def folder(self, name, make):
        """Return the folder with a name.

        Args:
            name: The name.
            make: A function that makes the folder at a path, called unless a process has done so.
        """
        folder = self._base / f"shared-{name}"
        states_file = self._base / f"shared-{name}.json"
        with FileLock(self._base / f"shared-{name}.lock"):
            if not states_file.exists():
                shutil.rmtree(folder, ignore_errors=True)
                make(folder)
                states_file.write_text(json.dumps(file_states(folder)))
        self._states_when_made[folder] = json.loads(states_file.read_text())
        return folder

    def check(self):
        """Fail if a folder that this process has used is not as it was when it was made."""
        messages = []
        for folder, before in self._states_when_made.items():
            changes = changes_between(before, file_states(folder))
            messages.extend(f"{folder.name}: {change}" for change in changes)
        _fail_if_any(messages)


@contextmanager
def left_unchanged(folder):
    """Fail at the end if a file in this folder was changed, removed or added meanwhile."""
    before = file_states(folder)
    yield
    _fail_if_any(changes_between(before, file_states(folder)))


def file_states(folder):
    """Return the states of all files, links and folders below a folder, by their relative paths.

    Links are not followed. Caches of tools, which reading may write, are left out: compiled Python
    and Git's index. Folders have no state, since these caches change their modification times.
    """
    states = {}
    for parent, folder_names, file_names in os.walk(folder):
        if "__pycache__" in folder_names:
            folder_names.remove("__pycache__")
        for name in folder_names + file_names:
            path = Path(parent, name)
            if path.parts[-2:] == (".git", "index"):
                continue
            status = path.lstat()
            is_folder = path.is_dir() and not path.is_symlink()
            state = None if is_folder else [status.st_mtime_ns, status.st_size, status.st_ino]
            states[path.relative_to(folder).as_posix()] = state
    return states


def changes_between(before, after):
    """Return a line for each path that was changed, removed or added."""
    changes = []
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            changes.append(f"removed: {path}")
        elif path not in before:
            changes.append(f"added: {path}")
        elif before[path] != after[path]:
            changes.append(f"changed: {path}")
    return changes


def _fail_if_any(changes):
    """Fail, with a list of the changes to shared folders, if there are any."""
    listed = "\n".join(changes)
    assert not changes, f"a test changed files that tests share; it must copy them first:\n{listed}"
