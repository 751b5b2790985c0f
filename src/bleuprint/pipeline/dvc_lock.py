"""Reads and writes dvc.lock, in which DVC records the stages that have run.

No other module of bleuprint reads or writes the file. Parsing a large file takes seconds, so a
stage is parsed only when it is needed: DVC writes one block of lines for each.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NotRequired

from typing_extensions import TypedDict

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.files import read_bytes
from bleuprint.runtime.schema import check_record
from bleuprint.runtime.yaml_tree import parse_yaml

LOCK = Path("dvc.lock")
_RESTORE = "restore it (git checkout)"
# The line with a stage's name, and the following lines, which are indented further.
_BLOCK = re.compile(r"^  (\S+):\n(?: {3,}.*\n?)*", re.MULTILINE)


class LockedFile(TypedDict):
    """A dependency or output of a stage, with the MD5 of its content."""

    path: str
    md5: NotRequired[str]


class LockedStage(TypedDict, total=False):
    """What DVC has recorded of a stage: settings by file and key, inputs, and outputs."""

    params: dict[str, dict[str, Any]]
    deps: list[LockedFile]
    outs: list[LockedFile]


class _Content(TypedDict, total=False):
    """The content of dvc.lock."""

    stages: dict[str, LockedStage]


class LockFile:
    """The content of a dvc.lock, which is parsed as far as it is needed."""

    def __init__(self, text: str, name: str = str(LOCK)) -> None:
        """Keep the text of the file.

        Args:
            text: The text; empty if no stage is recorded.
            name: What messages call the file.
        """
        self._text = text
        self._name = name

    @classmethod
    def read(cls, root: Path = Path(), name: str = "") -> "LockFile":
        """Read the dvc.lock of a project; without one, no stage is recorded.

        Args:
            root: The project's folder.
            name: What messages call the file, by default its path.

        Raises:
            UserError: The file contains merge conflicts.
        """
        path = root / LOCK
        if not path.exists():
            return cls("")
        text = read_bytes(path).decode(errors="replace")
        if re.search("(?m)^(<<<<<<<|>>>>>>>) ", text):
            raise UserError(
                f"{path}: contains merge conflicts; keep one side: git checkout --ours dvc.lock, "
                "or --theirs; make reproduce then runs the missing stages"
            )
        return cls(text, name or str(path))

    @cached_property
    def blocks(self) -> Mapping[str, str]:
        """The text of each stage, by the stage's name."""
        return {match[1]: match[0] for match in _BLOCK.finditer(self._text)}

    @cached_property
    def stages(self) -> Mapping[str, LockedStage]:
        """All stages by name, parsed.

        Raises:
            UserError: The file is damaged.
        """
        if not self._text:
            return {}
        content = parse_yaml(self._text, self._name)
        checked = check_record(_Content, content, Path(self._name), _RESTORE)
        return checked.get("stages", {})

    def stage(self, name: str) -> LockedStage:
        """Return one stage, parsed alone; empty if it is not recorded.

        Raises:
            UserError: Its lines are damaged.
        """
        if name not in self.blocks:
            return {}
        content = parse_yaml(f"stages:\n{self.blocks[name]}", self._name)
        return check_record(_Content, content, Path(self._name), _RESTORE)["stages"][name]

    def settings(self, name: str) -> Mapping[str, Any]:
        """Return the keys of reports/resolved.json that a stage ran with, and their values."""
        return self.stage(name).get("params", {}).get(RESOLVED.as_posix(), {})

    def output_md5(self, name: str, path: Path) -> str | None:
        """Return the MD5 of an output of a stage; None if it is not recorded."""
        for output in self.stage(name).get("outs", []):
            if output["path"] == path.as_posix():
                return output.get("md5")
        return None


def note_unrecorded(path: Path, root: Path = Path(), name: str = "here") -> None:
    """Print a note if a file of reports/ is not the one that the project's dvc.lock records.

    Args:
        path: The file, an output of the stage report.
        root: The folder of its project.
        name: What messages call the project.
    """
    recorded_md5 = None
    # A damaged dvc.lock is an error only for the commands that need it.
    with suppress(UserError):
        recorded_md5 = LockFile.read(root).output_md5("report", path)
    if recorded_md5 and recorded_md5 != hashlib.md5(read_bytes(root / path)).hexdigest():
        why = "edited, or not recorded yet (bleuprint sync)"
        print_message(f"{name}: {path} is not the file that dvc.lock names: {why}", "note")


def write_lock(stages: Sequence[Any]) -> None:
    """Write stages into dvc.lock; if that is interrupted, put the old content back.

    DVC empties the file before it writes. Without the old content, an interruption would lose all
    other stages.

    Args:
        stages: DVC's objects for the stages, at least one.
    """
    before = read_bytes(LOCK) if LOCK.exists() else None
    try:
        stages[0].dvcfile.dump_stages(stages, update_pipeline=False)
    except BaseException:
        if before is not None:
            LOCK.write_bytes(before)
        raise
