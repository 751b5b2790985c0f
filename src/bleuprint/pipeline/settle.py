"""Edits of comments, docstrings and formatting run no stage: `bleuprint settle`.

dvc.lock holds the hash that each code dependency had when the stage ran. If the code has changed
since, the version with that hash is looked up in git's history, and the two are compared by their
syntax trees (params.yaml: by its values). If all are equal, dvc.lock is given the
present hash. Every other change is left for `dvc repro` to run.
"""

import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.runtime import fingerprint
from bleuprint.runtime.errors import UserError

# Commits that are searched for the version that dvc.lock describes, newest first.
_COMMITS = 200

# The files of a dependency: their contents by path below it; a single file has the path "".
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class ChangedCode:
    """A code dependency whose hash is not the one in dvc.lock, and the stages that have it.

    `reasons` say what keeps it from being settled: files with other syntax trees, or that the
    version of dvc.lock is in no commit. Without any it was settled.
    """

    path: str
    stages: tuple[str, ...]
    reasons: tuple[str, ...]


def settle(root: Path = Path()) -> list[ChangedCode]:
    """Update dvc.lock for code that computes what it did; returns all code that has changed.

    Raises UserError if dvc.lock cannot be read, or DVC is at work.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo, lock_repo
    from dvc.utils.serialize import modify_yaml

    lock = root / "dvc.lock"
    if not lock.exists():
        return []
    try:
        with Repo(str(root)) as repo, lock_repo(repo):
            changed = _compare(_recorded(lock), root)
            settled = {(code.path, digest) for digest, code in changed if not code.reasons}
            if settled:
                with modify_yaml(str(lock)) as content:
                    _update(content, settled, root)
    except DvcException as error:
        raise UserError(" ".join(str(error).split())) from error
    return [code for _, code in changed]


def lines(changed: list[ChangedCode]) -> Iterator[str]:
    """What `settle` did, a line for each code dependency."""
    for code in changed:
        count = f"{len(code.stages)} stage{'s' if len(code.stages) > 1 else ''}"
        if code.reasons:
            shown = ", ".join(code.stages[:3]) + (", ..." if len(code.stages) > 3 else "")
            yield f"{code.path}: {'; '.join(code.reasons)}: {count} will run: {shown}"
        else:
            yield f"{code.path}: comments, docstrings or formatting: {count} up to date"


def _recorded(lock: Path) -> dict[tuple[str, str], list[str]]:
    """The stages of dvc.lock by the path and the hash of their code dependencies."""
    from dvc.utils.serialize import load_yaml

    found: dict[tuple[str, str], list[str]] = {}
    for name, stage in (load_yaml(str(lock)).get("stages") or {}).items():
        for entry in _code(stage):
            found.setdefault((entry["path"], entry["md5"]), []).append(name)
    return found


def _code(stage: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The entries of a stage of dvc.lock that are code."""
    for entry in stage.get("deps", ()):
        if entry["path"].startswith(("src/", "stages/", "params.yaml")) and "md5" in entry:
            yield entry


def _compare(
    recorded: Mapping[tuple[str, str], list[str]], root: Path
) -> list[tuple[str, ChangedCode]]:
    """The dependencies that have changed, each with the hash that dvc.lock has."""
    changed = []
    now = {path: _on_disk(path, root) for path, _ in recorded}
    with _History(root) as history:
        for (path, digest), stages in recorded.items():
            if now[path] and _md5(now[path]) != digest:
                before = history.version(path, digest)
                if before is None:
                    reasons = ["has changed since a version that is in no commit"]
                else:
                    reasons = list(_differences(path, before, now[path]))
                changed.append((digest, ChangedCode(path, tuple(stages), tuple(reasons))))
    return changed


def _differences(path: str, before: Files, now: Files) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        shown = name or "it"
        if name not in before:
            yield f"{shown} is new"
        elif name not in now:
            yield f"{shown} is gone"
        elif len({fingerprint.of_file(name or path, files[name]) for files in (before, now)}) > 1:
            yield f"{shown} has changed"


def _update(content: dict[str, Any], settled: set[tuple[str, str]], root: Path) -> None:
    """Put the present hashes into the content of dvc.lock."""
    present = {path: _on_disk(path, root) for path, _ in settled}
    for stage in content["stages"].values():
        for entry in _code(stage):
            if (path := entry["path"], entry["md5"]) in settled:
                entry["md5"] = _md5(present[path])
                entry["size"] = sum(map(len, present[path].values()))


def _on_disk(path: str, root: Path) -> Files:
    place = root / path
    return {
        "" if file == place else file.relative_to(place).as_posix(): file.read_bytes()
        for file in fingerprint.files_of([path], root)
    }


def _md5(files: Files) -> str:
    """The hash that DVC gives a file, or a folder of these files."""
    sums = {name: hashlib.md5(content).hexdigest() for name, content in files.items()}
    if "" in sums:
        return sums[""]
    listed = [{"md5": digest, "relpath": name} for name, digest in sorted(sums.items())]
    return hashlib.md5(json.dumps(listed, sort_keys=True).encode()).hexdigest() + ".dir"


class _History:
    """Earlier versions of files and folders, from git; a context manager. Outside git: none."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._blobs: dict[str, bytes] = {}
        self._reader: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "_History":
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.communicate()

    def version(self, path: str, digest: str) -> Files | None:
        """The newest version of `path` with DVC's hash `digest`; None if no commit has it."""
        for commit in self._git("log", f"-{_COMMITS}", "--format=%H", "--", path).split():
            files = self._files(commit, path)
            if _md5(files) == digest:
                return files
        return None

    def _files(self, commit: str, path: str) -> Files:
        files = {}
        for line in self._git("ls-tree", "-r", "-z", commit, "--", path).split("\0"):
            about, _, name = line.partition("\t")
            if name:
                files[name.removeprefix(path).lstrip("/")] = self._blob(about.split()[2])
        return files

    def _blob(self, name: str) -> bytes:
        if name not in self._blobs:
            if self._reader is None:
                self._reader = subprocess.Popen(
                    ["git", "-C", str(self._root), "cat-file", "--batch"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            assert self._reader.stdin is not None and self._reader.stdout is not None
            self._reader.stdin.write(f"{name}\n".encode())
            self._reader.stdin.flush()
            size = int(self._reader.stdout.readline().split()[2])
            self._blobs[name] = self._reader.stdout.read(size + 1)[:-1]
        return self._blobs[name]

    def _git(self, *arguments: str) -> str:
        try:
            command = ["git", "-C", str(self._root), *arguments]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return ""
