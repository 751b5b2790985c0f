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
from bleuprint.runtime.atomic_files import write_text
from bleuprint.runtime.errors import UserError, print_message
from bleuprint.runtime.regular_files import read_bytes
from bleuprint.runtime.schema import check_record
from bleuprint.runtime.yaml_tree import parse_yaml

LOCK = Path("dvc.lock")
_RESTORE = "To restore it: git checkout dvc.lock"
# The line with a stage's name, and the following lines, which are indented further.
_BLOCK = re.compile(r"^  (\S+):\n(?: {3,}.*\n?)*", re.MULTILINE)


class LockedFile(TypedDict):
    """A dependency or output of a stage, with the MD5 of its content."""

    path: str
    md5: NotRequired[str]


class LockedStage(TypedDict, total=False):
    """What DVC has recorded of a stage: its command, settings by file and key, inputs, outputs."""

    cmd: str | list[str]
    params: dict[str, dict[str, Any]]
    deps: list[LockedFile]
    outs: list[LockedFile]


class _Content(TypedDict, total=False):
    """The content of dvc.lock."""

    stages: dict[str, LockedStage]


class LockFile:
    """The content of a dvc.lock, which is parsed as far as it is needed."""

    def __init__(self, text: str, name: str = str(LOCK)) -> None:
        """Keep the text of a dvc.lock, and parse it later: all of it would take seconds.

        Args:
            text: The content of the file, in YAML; empty if no stage is recorded.
            name: The name of the file in error messages.
        """
        self._text = text
        self._name = name

    @classmethod
    def read(cls, root: Path = Path(), name: str = "") -> "LockFile":
        """Read the dvc.lock of a project, the file in which DVC records the stages that have run.

        If the project has no dvc.lock, the result is one without stages.

        Args:
            root: The project's folder.
            name: The name of the file in error messages, by default its path.

        Raises:
            UserError: The file contains both sides of a merge conflict.
        """
        path = root / LOCK
        if not path.exists():
            return cls(text="")
        text = read_bytes(path).decode(errors="replace")
        # Git marks the two sides of a conflict by lines that start with these characters.
        has_conflict = re.search("(?m)^(<<<<<<<|>>>>>>>) ", text) is not None
        if has_conflict:
            raise UserError(
                f"{path} contains merge conflicts. Keep one side: git checkout --ours dvc.lock (or "
                "--theirs). Then run the missing stages: make reproduce"
            )
        return cls(text, name or str(path))

    @cached_property
    def blocks(self) -> Mapping[str, str]:
        """The text of each stage, by the stage's name."""
        return {match[1]: match[0] for match in _BLOCK.finditer(self._text)}

    @cached_property
    def stages(self) -> Mapping[str, LockedStage]:
        """All recorded stages by name, such as `train@small-phrasebook-1`.

        Raises:
            UserError: The file is not valid.
        """
        if not self._text:
            return {}
        return self._parse(self._text)

    def stage(self, name: str) -> LockedStage:
        """Return what DVC has recorded of one stage; an empty dict if it has recorded nothing.

        Parsing a large dvc.lock takes seconds. So `blocks` divides the text into the lines of each
        stage, and only the lines of this stage are parsed.

        Raises:
            UserError: The lines of the stage are not valid.
        """
        if name not in self.blocks:
            return {}
        text_with_one_stage = f"stages:\n{self.blocks[name]}"
        return self._parse(text_with_one_stage)[name]

    def _parse(self, text: str) -> Mapping[str, LockedStage]:
        """Parse text in the format of dvc.lock, and return its stages by name.

        Raises:
            UserError: The text is not YAML, or an entry has a wrong type.
        """
        content = parse_yaml(text, self._name)
        checked = check_record(_Content, content, Path(self._name), _RESTORE)
        return checked.get("stages", {})

    def settings(self, name: str) -> Mapping[str, Any]:
        """Return the keys of reports/resolved.json that a stage ran with, and their values."""
        return self.stage(name).get("params", {}).get(RESOLVED.as_posix(), {})

    def command(self, name: str) -> str:
        """Return the shell command that a stage ran; an empty text if it has not run."""
        command = self.stage(name).get("cmd", "")
        # DVC also accepts a list of commands, and stops at the first one that fails.
        return command if isinstance(command, str) else " && ".join(command)

    def output_md5(self, name: str, path: Path) -> str | None:
        """Return the MD5 that dvc.lock records for an output; None if it records none.

        Args:
            name: The name of the stage that writes the output.
            path: The path of the output, relative to the project's folder.
        """
        for output in self.stage(name).get("outs", []):
            if output["path"] == path.as_posix():
                return output.get("md5")
        return None


def print_note_if_unrecorded(path: Path, root: Path = Path(), name: str = "here") -> None:
    """Print a note if a report file is not the version that DVC has recorded in dvc.lock.

    Then the numbers in the file may not belong to the recorded runs, and the user should know.

    Args:
        path: The path of the file, such as `reports/results.json`, which the stage report writes.
        root: The project's folder.
        name: What the note calls the project.
    """
    recorded_md5 = None
    # A dvc.lock that cannot be read is not worth an error here: there is just no note.
    with suppress(UserError):
        recorded_md5 = LockFile.read(root).output_md5("report", path)
    if not recorded_md5:
        return
    current_md5 = hashlib.md5(read_bytes(root / path)).hexdigest()
    if current_md5 != recorded_md5:
        print_message(
            f"{name}: {path} differs from the file that dvc.lock records. It was edited, or DVC "
            "has not recorded it yet. To record it: bleuprint sync",
            "note",
        )


def replace_hash(name: str, old_hash: str, new_hash: str, root: Path = Path()) -> None:
    """Replace a hash in what dvc.lock records for a stage, such as the fingerprint of its code.

    Args:
        name: The name of the stage, which dvc.lock records.
        old_hash: The hash that dvc.lock records.
        new_hash: The hash to record instead.
        root: The project's folder.
    """
    block = LockFile.read(root).blocks[name]
    text = read_bytes(root / LOCK).decode()
    # The block begins with the name of the stage, so no other block has the same text.
    write_text(root / LOCK, text.replace(block, block.replace(old_hash, new_hash)))


def write_lock(stages: Sequence[Any]) -> None:
    """Record stages in dvc.lock; if writing is interrupted, restore the old content of the file.

    DVC empties the file before it writes. An interruption in between would lose all stages that
    were recorded before.

    Args:
        stages: DVC's objects for the stages, at least one.
    """
    old_content = read_bytes(LOCK) if LOCK.exists() else None
    dvc_file = stages[0].dvcfile
    try:
        # `update_pipeline=False`: DVC writes dvc.lock only, and leaves dvc.yaml unchanged.
        dvc_file.dump_stages(stages, update_pipeline=False)
    # BaseException includes KeyboardInterrupt, which Ctrl-C raises.
    except BaseException:
        if old_content is not None:
            LOCK.write_bytes(old_content)
        raise
