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
from bleuprint.runtime.files import format_json
from bleuprint.runtime.machine_errors import describe_machine_error
from bleuprint.runtime.special_files import check_no_special_files


@contextmanager
def open_repo(root: Path, resolved: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Open DVC's repository, which waits for DVC's lock.

    Within the `with` block, DVC logs nothing, and shows none of its progress bars, which depend on
    its log level.

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
        text = describe_machine_error(error) or str(error)
        raise UserError(f"{text}{_advice_for(text, root)}") from error


def _advice_for(text: str, root: Path) -> str:
    """Return what to do about an error of DVC, to be appended to its message.

    Args:
        text: DVC's message.
        root: The project's folder.
    """
    advice = ""
    # A kill or a full disk can leave half of dvc.lock.
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
    """Return what to do about a damaged dvc.lock."""
    if git_output(root, "ls-files", "dvc.lock"):
        return "run: git checkout dvc.lock, then make reproduce, which uses DVC's run cache"
    return (
        "git has no copy of it. Run: rm dvc.lock, then make reproduce, which takes what DVC's run "
        "cache has and repeats other stages"
    )


@contextmanager
def _repaired_rwlock(root: Path) -> Iterator[None]:
    """Restore .dvc/tmp/rwlock if a `with` block is interrupted while DVC writes the file.

    The file lists the processes that read or write outputs. DVC writes it twice for each stage that
    it compares, and empties it first: with half a list, every DVC command would end with an error.
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
    """Whether bytes are valid JSON."""
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def changed_stages(
    root: Path = Path(), resolved: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the changes of each changed stage, as `dvc status` reports them.

    Waits for DVC's lock.

    Args:
        root: The project's folder.
        resolved: The content that reports/resolved.json would have. DVC's status is then the one
            that it would find with this content.

    Returns:
        By the stage's name a list of texts such as "changed command", and mappings such as
        {"changed deps": {"data/raw/own": "modified"}}.

    Raises:
        UserError: DVC failed; the message is one line.
    """
    from dvc.repo import lock_repo

    replaced_changes = {}
    status = {}
    with open_repo(root, resolved) as repo, lock_repo(repo):
        if resolved is not None:
            replaced_changes = _compare_resolved(repo.index.stages, format_json(resolved))
        for name, changes in repo.status().items():
            # Outside the project's folder, DVC puts the path of dvc.yaml and a colon before a name.
            status[name.rpartition(":")[2]] = changes
    for name, change in replaced_changes.items():
        other_changes = status.get(name, [])
        # As in `dvc status`, changed dependencies come first.
        if "changed deps" in change:
            status[name] = [change, *other_changes]
        else:
            status[name] = [*other_changes, change]
    return status


def _compare_resolved(dvc_stages: Sequence[Any], text: str) -> dict[str, dict[str, Any]]:
    """Compare a text with the reports/resolved.json that dvc.lock records.

    DVC would compare the file on disk, so the file is removed from the dependencies and outputs of
    DVC's stages. They change only in memory and must not be saved.

    Args:
        dvc_stages: DVC's objects for all stages.
        text: The content that the file would have.

    Returns:
        For each stage that reads or writes the file, and with another content: the change as in
        `dvc status`.
    """
    md5 = hashlib.md5(text.encode()).hexdigest()
    changes = dict[str, dict[str, Any]]()
    for dvc_stage in dvc_stages:
        for section, entries in (("deps", dvc_stage.deps), ("outs", dvc_stage.outs)):
            for entry in list(entries):
                # An entry with `params` stands for some keys of the file. DVC compares their
                # values, which it reads through `UnwrittenFile`.
                is_the_file = entry.def_path == RESOLVED.as_posix()
                if not is_the_file or hasattr(entry, "params"):
                    continue
                entries.remove(entry)
                if entry.hash_info.value != md5:
                    changes[dvc_stage.name] = {f"changed {section}": {entry.def_path: "modified"}}
    return changes


def cache_folder(root: Path) -> Path:
    """Return the folder of DVC's cache."""
    with open_repo(root) as repo:
        return Path(repo.cache.local.path)
