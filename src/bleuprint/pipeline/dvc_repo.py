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

    If another DVC command holds DVC's lock, the methods of the object wait. Within the block, DVC
    prints no log lines and no progress bars. An error of DVC is raised as a message of one line.

    Args:
        root: The project's folder.
        resolved: Settings that DVC should use in place of the file reports/resolved.json, which
            contains params.yaml with all defaults. So DVC can say which stages would be out of
            date before these settings are written. None to use the file.

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
            # This level also hides the progress bars.
            set_loggers_level(logging.CRITICAL),
            _repaired_rwlock(root),
            Repo(str(root), _wait_for_lock=True) as repo,
        ):
            if resolved is not None:
                from bleuprint.pipeline.unwritten_file import UnwrittenFile

                # DVC now reads this text where it would open the file.
                repo.fs = UnwrittenFile(root / RESOLVED, format_json(resolved))
            yield repo
    except RecursionError as error:
        raise UserError(
            f"dvc.yaml or dvc.lock is nested too deeply. {_lock_advice(root)}"
        ) from error
    except (DvcException, OSError) as error:
        # A full disk, for example, gets a message of its own; other errors keep DVC's message.
        text = describe_machine_error(error) or str(error)
        sentences = [text.removesuffix("."), *_advice_for(text, root)]
        raise UserError(". ".join(sentences)) from error


def _advice_for(text: str, root: Path) -> Iterator[str]:
    """Yield sentences that tell the user what to do about an error of DVC.

    Args:
        text: DVC's message.
        root: The project's folder.

    Yields:
        Sentences such as `Remove it, if no other DVC runs here`, without their full stops.
    """
    # dvc.lock is damaged: a killed process or a full disk can leave half of the file.
    if re.search(r"dvc\.lock'.*(invalid|corrupted|failed|not valid)", text):
        yield _lock_advice(root)
    # DVC's list of running processes, .dvc/tmp/rwlock, is damaged.
    if "RWLock-file" in text:
        yield "Remove it, if no other DVC runs here"
    if re.search(r"unable to read.*resolved\.json", text, re.IGNORECASE):
        yield "To restore it: git checkout reports/resolved.json"
    if "not a git repository" in text:
        yield "Clone the project, or run: git init"


def _lock_advice(root: Path) -> str:
    """Return what the user can do about a damaged dvc.lock: restore it from Git, or delete it."""
    is_tracked_by_git = bool(git_output(root, "ls-files", "dvc.lock"))
    if is_tracked_by_git:
        return "Run: git checkout dvc.lock; make reproduce, which uses DVC's run cache"
    return (
        "Git has no copy of dvc.lock. Run: rm dvc.lock; make reproduce, which takes outputs from "
        "DVC's run cache where it can and repeats the remaining stages"
    )


@contextmanager
def _repaired_rwlock(root: Path) -> Iterator[None]:
    """Restore DVC's file .dvc/tmp/rwlock if the `with` block ends while DVC is writing it.

    In this JSON file, DVC lists which processes read or write which outputs. DVC rewrites it twice
    for each stage that it compares. If Ctrl-C interrupts that, half a list remains, and every later
    DVC command would fail.
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
    """Return whether bytes are valid JSON."""
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
        resolved: Settings that DVC should compare in place of the file reports/resolved.json, which
            contains params.yaml with all defaults. So the answer is known before these settings are
            written. None to use the file.

    Returns:
        The changes of each stage by the stage's name: a list of texts such as "changed command",
        and of mappings such as {"changed deps": {"data/raw/own": "modified"}}.

    Raises:
        UserError: DVC failed.
    """
    from dvc.repo import lock_repo

    resolved_file_changes = {}
    status = {}
    with open_repo(root, resolved) as repo, lock_repo(repo):
        if resolved is not None:
            # DVC would hash the old file on disk, so bleuprint compares the file's new hash itself.
            new_text = format_json(resolved)
            resolved_file_changes = _take_out_resolved_file(repo.index.stages, new_text)
        for name, changes in repo.status().items():
            # If the working folder is not the project's folder, DVC puts the path of dvc.yaml and a
            # colon before the name of a stage.
            status[name.rpartition(":")[2]] = changes
    for name, change in resolved_file_changes.items():
        other_changes = status.get(name, [])
        # `dvc status` lists changed dependencies first, and changed outputs after them.
        if "changed deps" in change:
            status[name] = [change, *other_changes]
        else:
            status[name] = [*other_changes, change]
    return status


def _take_out_resolved_file(dvc_stages: Sequence[Any], new_text: str) -> dict[str, dict[str, Any]]:
    """Compare a new text of reports/resolved.json, not yet written, with its MD5 in dvc.lock.

    DVC can only hash the file on disk, which still has the old text. So this function removes the
    file from the dependencies and outputs of DVC's stage objects, and compares the MD5 itself. The
    caller must not save the objects afterwards.

    Args:
        dvc_stages: DVC's objects for all stages; changed in memory.
        new_text: The new content of the file.

    Returns:
        The stages that read or write the file and for which dvc.lock records another MD5, each with
        its change in the form of `dvc status`: {"changed deps": {"reports/resolved.json":
        "modified"}}.
    """
    new_md5 = hashlib.md5(new_text.encode()).hexdigest()
    changes = dict[str, dict[str, Any]]()
    for dvc_stage in dvc_stages:
        for section, entries in (("deps", dvc_stage.deps), ("outs", dvc_stage.outs)):
            # A copy, since the loop removes entries.
            for entry in list(entries):
                is_resolved_file = entry.def_path == RESOLVED.as_posix()
                # Most stages depend on a few keys of the file instead. DVC compares the values of
                # these keys without hashing the file, so their entries stay.
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
