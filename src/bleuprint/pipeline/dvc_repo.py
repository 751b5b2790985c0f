"""Opens DVC's repository as DVC's own commands do, and turns its errors into one line.

This uses DVC's classes, an undocumented interface: DVC's version is therefore pinned.
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
from bleuprint.runtime.json_files import format_json
from bleuprint.runtime.machine_errors import describe_machine_error
from bleuprint.runtime.special_files import check_no_special_files


@contextmanager
def open_repo(root: Path, resolved: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Open DVC's repository object for a `with` block, as DVC's own commands do.

    If another DVC command holds DVC's lock, methods of the object wait for it. Within the block,
    DVC prints no log lines and no progress bars. Errors of DVC become errors of one line.

    Args:
        root: The project's folder.
        resolved: If given, DVC reads these settings instead of the file reports/resolved.json, that
            is, params.yaml with all defaults filled in. So DVC can be asked what it would do with
            settings that are not written yet.

    Yields:
        DVC's repository, a `dvc.repo.Repo`.

    Raises:
        UserError: DVC failed.
    """
    from dvc.exceptions import DvcException
    from dvc.logger import set_loggers_level
    from dvc.repo import Repo

    check_no_special_files(root)
    try:
        with (
            # DVC shows its progress bars only if it also logs.
            set_loggers_level(logging.CRITICAL),
            _repaired_rwlock(root),
            Repo(str(root), _wait_for_lock=True) as repo,
        ):
            if resolved is not None:
                from bleuprint.pipeline.unwritten_file import UnwrittenFile

                repo.fs = UnwrittenFile(root / RESOLVED, format_json(resolved))
            yield repo
    except RecursionError as error:
        raise UserError(
            f"dvc.yaml or dvc.lock is nested too deeply; {_lock_advice(root)}"
        ) from error
    except (DvcException, OSError) as error:
        # A full disk, for example, gets a message of its own; other errors keep DVC's message.
        text = describe_machine_error(error) or str(error)
        raise UserError(f"{text}{_advice_for(text, root)}") from error


def _advice_for(text: str, root: Path) -> str:
    """Return what the user can do about an error of DVC, as text to append to DVC's message.

    Args:
        text: DVC's message.
        root: The project's folder.

    Returns:
        The advice with the punctuation before it; an empty string for an error without advice.
    """
    advice = ""
    # dvc.lock is damaged: a killed process or a full disk can leave half of the file.
    if re.search(r"dvc\.lock'.*(invalid|corrupted|failed|not valid)", text):
        advice += f"; {_lock_advice(root)}"
    if "RWLock-file" in text:
        advice += "; remove it, if no other DVC runs here"
    if re.search(r"unable to read.*resolved\.json", text, re.IGNORECASE):
        advice += "; run: git checkout reports/resolved.json"
    if "not a git repository" in text:
        advice += ": clone the project, or run git init"
    return advice


def _lock_advice(root: Path) -> str:
    """Return what the user can do about a damaged dvc.lock: restore it from Git, or delete it."""
    is_tracked_by_git = bool(git_output(root, "ls-files", "dvc.lock"))
    if is_tracked_by_git:
        return "run: git checkout dvc.lock, then make reproduce, which uses DVC's run cache"
    return (
        "git has no copy of it. Run: rm dvc.lock, then make reproduce, which takes what DVC's run "
        "cache has and repeats other stages"
    )


@contextmanager
def _repaired_rwlock(root: Path) -> Iterator[None]:
    """Repair DVC's file .dvc/tmp/rwlock if the `with` block ends while DVC is writing it.

    In this file DVC lists, as JSON, which processes read or write which outputs. DVC writes it
    twice for each stage that it compares, and empties it first. If Ctrl-C interrupts DVC in
    between, half a list remains, and every later DVC command would fail.
    """
    path = root / ".dvc" / "tmp" / "rwlock"
    old_content = path.read_bytes() if path.exists() else None
    try:
        yield
    # BaseException includes KeyboardInterrupt, which Ctrl-C raises.
    except BaseException:
        is_damaged = path.exists() and not _is_json(path.read_bytes())
        if is_damaged:
            if old_content is None:
                path.unlink()
            else:
                path.write_bytes(old_content)
        raise


def _is_json(content: bytes) -> bool:
    """Whether bytes are valid JSON."""
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def changed_stages(
    root: Path = Path(), resolved: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the stages that are out of date, with the changes that `dvc status` reports.

    If another DVC command holds DVC's lock, this waits.

    Args:
        root: The project's folder.
        resolved: If given, DVC compares these settings instead of the file reports/resolved.json,
            that is, params.yaml with all defaults filled in. So the answer is known before the file
            is written.

    Returns:
        The changes of each stage by the stage's name: a list of texts such as "changed command",
        and of mappings such as {"changed deps": {"data/raw/own": "modified"}}.

    Raises:
        UserError: DVC failed.
    """
    from dvc.repo import lock_repo

    resolved_changes = {}
    status = {}
    with open_repo(root, resolved) as repo, lock_repo(repo):
        if resolved is not None:
            new_text = format_json(resolved)
            resolved_changes = _take_out_resolved_file(repo.index.stages, new_text)
        for name, changes in repo.status().items():
            # If the working folder is not the project's folder, DVC puts the path of dvc.yaml and a
            # colon before the name of a stage.
            status[name.rpartition(":")[2]] = changes
    for name, change in resolved_changes.items():
        other_changes = status.get(name, [])
        # `dvc status` lists changed dependencies first, and changed outputs after them.
        if "changed deps" in change:
            status[name] = [change, *other_changes]
        else:
            status[name] = [*other_changes, change]
    return status


def _take_out_resolved_file(dvc_stages: Sequence[Any], new_text: str) -> dict[str, dict[str, Any]]:
    """Find the stages for which a new version of reports/resolved.json is a change.

    The file contains all settings. The new version is not written yet, and DVC would hash the one
    on disk. So the file is taken out of the dependencies and outputs of DVC's stage objects, and
    the MD5 of the new version is compared here with the one in dvc.lock. The objects must not be
    saved afterwards.

    Args:
        dvc_stages: DVC's objects for all stages; changed in memory.
        new_text: The new content of the file.

    Returns:
        The change as `dvc status` would show it, for each stage that reads or writes the file, if
        dvc.lock records another MD5.
    """
    new_md5 = hashlib.md5(new_text.encode()).hexdigest()
    changes = dict[str, dict[str, Any]]()
    for dvc_stage in dvc_stages:
        for section, entries in (("deps", dvc_stage.deps), ("outs", dvc_stage.outs)):
            # A copy, since the loop removes entries.
            for entry in list(entries):
                is_resolved_file = entry.def_path == RESOLVED.as_posix()
                # Most stages depend on a few keys of the file. DVC compares the values of these
                # keys, which it already reads from the new text; see `open_repo`.
                is_for_some_keys = hasattr(entry, "params")
                if not is_resolved_file or is_for_some_keys:
                    continue
                entries.remove(entry)
                recorded_md5 = entry.hash_info.value
                if recorded_md5 != new_md5:
                    changes[dvc_stage.name] = {f"changed {section}": {entry.def_path: "modified"}}
    return changes


def cache_folder(root: Path) -> Path:
    """Return the folder of DVC's cache."""
    with open_repo(root) as repo:
        return Path(repo.cache.local.path)
