"""DVC's repository, as its own commands open it.

Uses DVC's classes, an undocumented interface: DVC's version is therefore pinned.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.code import git_output
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import format_json
from bleuprint.runtime.machine_errors import describe_machine_error
from bleuprint.runtime.special_files import check_no_special_files


@contextmanager
def open_repo(root: Path, resolved: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Open DVC's repository, which waits for DVC's lock.

    Within, DVC logs nothing and shows no bars of its own, which it does up to the level ERROR.

    Args:
        root: The project's folder.
        resolved: The content that DVC reads in place of reports/resolved.json on disk.

    Raises:
        UserError: DVC failed; the message is one line.
    """
    from dvc.exceptions import DvcException
    from dvc.logger import set_loggers_level
    from dvc.repo import Repo

    check_no_special_files(root)
    try:
        with (
            set_loggers_level(logging.CRITICAL),
            _whole_list_of_locks(root),
            Repo(str(root), _wait_for_lock=True) as repo,
        ):
            if resolved is not None:
                from bleuprint.pipeline.unwritten_file import UnwrittenFile

                repo.fs = UnwrittenFile(root / RESOLVED, format_json(resolved))
            yield repo
    except RecursionError as error:
        raise UserError(f"dvc.yaml or dvc.lock is nested too deeply; {_way_back(root)}") from error
    except (DvcException, OSError) as error:
        text = describe_machine_error(error) or str(error)
        # cut short by a kill or a full disk
        if re.search(r"dvc\.lock'.*(invalid|corrupted|failed|not valid)", text):
            text += f"; {_way_back(root)}"
        if "RWLock-file" in text:
            text += "; remove it, if no other DVC runs here"
        if re.search(r"unable to read.*resolved\.json", text, re.IGNORECASE):
            text += "; run: git checkout reports/resolved.json"
        if "not a git repository" in text:
            text += ": clone the project, or run git init"
        raise UserError(text) from error


@contextmanager
def _whole_list_of_locks(root: Path) -> Iterator[None]:
    """Put DVC's list of locks back if the block is cut short while DVC writes it.

    DVC writes it twice for each stage that it compares, and empties it first: with half a list,
    every command of DVC would end with an error.
    """
    path = root / ".dvc" / "tmp" / "rwlock"
    before = path.read_bytes() if path.exists() else None
    try:
        yield
    except BaseException:
        if path.exists() and not _is_json(path.read_bytes()):
            if before is None:
                path.unlink()
            else:
                path.write_bytes(before)
        raise


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def _way_back(root: Path) -> str:
    """What to do about a damaged dvc.lock."""
    if git_output(root, "ls-files", "dvc.lock"):
        return "run: git checkout dvc.lock, then make reproduce, which uses DVC's run cache"
    return (
        "git has no copy of it. Run: rm dvc.lock, then make reproduce, which takes what DVC's run "
        "cache has and repeats other stages"
    )


def changed_stages(
    root: Path = Path(), resolved: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the stages that `dvc status` finds changed, with their changes.

    Waits for DVC's lock.

    Args:
        root: The project's folder.
        resolved: As for `open_repo`: the status is the one that DVC would find if
            reports/resolved.json had this content.

    Raises:
        UserError: DVC failed; the message is one line.
    """
    from dvc.repo import lock_repo

    with open_repo(root, resolved) as repo, lock_repo(repo):
        replaced = {}
        if resolved is not None:
            replaced = _replace_resolved(repo.index.stages, format_json(resolved))
        # the names of stages have a path in front of them if this is not run from the root
        status = {name.rpartition(":")[2]: changes for name, changes in repo.status().items()}
    for name, change in replaced.items():
        others = status.get(name, [])
        status[name] = [change, *others] if "changed deps" in change else [*others, change]
    return status


def _replace_resolved(stages: Sequence[Any], text: str) -> dict[str, dict[str, Any]]:
    """Compare reports/resolved.json with `text` instead of the file on disk, which DVC would hash.

    It leaves DVC's stages in memory, which are not saved. Returns, by the name of a stage whose
    dependency or output it is, the change as `dvc status` has it.
    """
    md5 = hashlib.md5(text.encode()).hexdigest()
    changed = dict[str, dict[str, Any]]()
    for stage in stages:
        for kind, entries in (("deps", stage.deps), ("outs", stage.outs)):
            # an entry with keys is the settings of the stage, which DVC reads as a text
            whole = [
                entry
                for entry in entries
                if entry.def_path == RESOLVED.as_posix() and not hasattr(entry, "params")
            ]
            for entry in whole:
                entries.remove(entry)
                if entry.hash_info.value != md5:
                    changed[stage.name] = {f"changed {kind}": {entry.def_path: "modified"}}
    return changed


def cache_folder(root: Path) -> Path:
    """The folder of DVC's cache."""
    with open_repo(root) as repo:
        return Path(repo.cache.local.path)
