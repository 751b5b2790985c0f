"""Edits of comments, docstrings and formatting run no stage: `bleuprint settle`.

dvc.lock holds the hash that each code dependency had when the stage ran. If the code has changed
since, the version with that hash is looked up in git's history, and the two are compared by their
syntax trees (params.yaml: by its values). If all are equal, dvc.lock is given the
present hash. Every other change is left for `dvc repro` to run.
"""

import hashlib
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from bleuprint.pipeline.dvc_lock import check_no_conflict, md5_of_folder, open_repo
from bleuprint.runtime import fingerprint
from bleuprint.runtime.code import check_git_reads, git

_PARAMS = "params.yaml"
# Commits that are searched for the version that dvc.lock describes, newest first.
_COMMITS = 200

# The files of a dependency: their contents by path below it; a single file has the path "".
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class ChangedCode:
    """A code dependency whose hash is not the `recorded` one of dvc.lock, and its stages.

    `reasons` say what keeps it from being settled: files with other syntax trees, or that the
    version of dvc.lock is in no commit. Without any it was settled.
    """

    path: str
    recorded: str
    stages: tuple[str, ...]
    reasons: tuple[str, ...]


def settle(root: Path = Path()) -> list[ChangedCode]:
    """Update dvc.lock where code changed without changing its results; returns all changed code.

    Raises UserError if dvc.lock or the git repository cannot be read, or DVC is running.
    """
    from dvc.repo import lock_repo
    from dvc.utils.serialize import load_yaml, modify_yaml

    lock = root / "dvc.lock"
    if not lock.exists():
        return []
    check_no_conflict(lock)
    check_git_reads(root)
    with open_repo(root) as repo, lock_repo(repo):
        changed = list(_changed(load_yaml(str(lock)), root))
        settled = {(code.path, code.recorded) for code in changed if not code.reasons}
        if settled:
            with modify_yaml(str(lock)) as content:
                for _, entry in _code(content):
                    if (entry["path"], entry["md5"]) in settled:
                        files = _on_disk(entry["path"], root)
                        entry["md5"] = _md5(files)
                        entry["size"] = sum(map(len, files.values()))
    return changed


def lines(changed: list[ChangedCode]) -> Iterator[str]:
    """What `settle` did, a line for each code dependency."""
    if any(code.path == _PARAMS and code.reasons for code in changed):
        yield f"{_PARAMS}: settings have changed: bleuprint plan lists the stages that will run"
    for code in changed:
        if code.path == _PARAMS and code.reasons:
            continue
        count = f"{len(code.stages)} stage{'s' if len(code.stages) > 1 else ''}"
        if code.reasons:
            reasons, stages = _shown(code.reasons, "; "), _shown(code.stages, ", ")
            yield f"{code.path}: {reasons}: {count} will run: {stages}"
        else:
            yield f"{code.path}: comments, docstrings or formatting: {count} up to date"


def _shown(items: Sequence[str], separator: str) -> str:
    return separator.join([*items[:3], "..."] if len(items) > 3 else items)


def _code(content: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of code in dvc.lock, each with the name of its stage."""
    for name, stage in (content.get("stages") or {}).items():
        for entry in stage.get("deps", ()):
            if entry["path"].startswith(("src/", "stages/", _PARAMS)) and "md5" in entry:
                yield name, entry


def _changed(content: Mapping[str, Any], root: Path) -> Iterator[ChangedCode]:
    stages: dict[tuple[str, str], list[str]] = {}
    for name, entry in _code(content):
        stages.setdefault((entry["path"], entry["md5"]), []).append(name)
    for (path, digest), names in stages.items():
        now = _on_disk(path, root)
        if now and _md5(now) != digest:
            before = _version(path, digest, root)
            if before is None:
                reasons = ["has changed since a version that git does not have"]
            else:
                reasons = list(_differences(path, before, now))
            yield ChangedCode(path, digest, tuple(names), tuple(reasons))


def _differences(path: str, before: Files, now: Files) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        if name not in before or name not in now:
            yield f"{name} is {'gone' if name in before else 'new'}"
        elif len({fingerprint.of_file(name or path, files[name]) for files in (before, now)}) > 1:
            yield f"{name or 'it'} has changed"


def _on_disk(path: str, root: Path) -> Files:
    place = root / path
    return {
        "" if file == place else file.relative_to(place).as_posix(): file.read_bytes()
        for file in fingerprint.files_of([path], root)
    }


def _md5(files: Files) -> str:
    """The hash that DVC gives a file, or a folder of these files."""
    sums = {name: hashlib.md5(content).hexdigest() for name, content in files.items()}
    return sums[""] if "" in sums else md5_of_folder(sums)


def _version(path: str, digest: str, root: Path) -> Files | None:
    """The newest version of `path` with DVC's hash `digest`; None if no commit has it."""
    log = git(root, "log", f"-{_COMMITS}", "--format=%H", "--", path)
    for commit in log.decode().split():
        archive = git(root, "archive", commit, path)  # nothing if the commit removes it
        files = _unpacked(archive, path) if archive else {}
        if _md5(files) == digest:
            return files
    return None


def _unpacked(archive: bytes, path: str) -> Files:
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        return {
            member.name.removeprefix(path).lstrip("/"): file.read()
            for member in tar
            if (file := tar.extractfile(member))
        }
