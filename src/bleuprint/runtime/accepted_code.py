"""Changes of code that were accepted: the new code counts as the old one, and no stage runs again.

`bleuprint accept` writes them to stages/accepted.yaml, which is in Git. A change says that two
fingerprints of a script's code stand for the same results. Fingerprints that accepted changes
connect form a group, and all of them count as one of the group: the old code of its first change.
DVC, Snakemake and the trainings compare this one, so that they see no change of code. After the
next edit, the code has a fingerprint outside the group, and its stages run again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json_object
from bleuprint.runtime.schema import NotBlank, Sha256, check_record, validate_document
from bleuprint.runtime.yaml_tree import LocatedMapping, Location, load_located_yaml

ACCEPTED_CHANGES = Path("stages", "accepted.yaml")
# The section of reports/resolved.json with the changes that count for the present code.
RESOLVED_SECTION = "accepted"
# The name under which messages count the entries of the file, which is one list.
_ENTRY = "entry"


@dataclass(frozen=True)
class AcceptedChange:
    """A change of code that changes no result, as a user has declared it.

    Attributes:
        script: The script in stages/ whose code has changed, without its suffix.
        old: The fingerprint of the code with which the results were computed.
        new: The fingerprint of the code that counts as the old one.
        because: Why the change has no effect on results.
        date: The day on which it was accepted, such as 2026-11-30.
    """

    script: NotBlank
    old: Sha256
    new: Sha256
    because: NotBlank
    date: str

    def __post_init__(self) -> None:
        """Raise ValueError if the date is not a date, or both fingerprints are the same."""
        try:
            date.fromisoformat(self.date)
        except ValueError:
            raise ValueError(
                f"date {self.date!r} is not a date. Write it like '2026-11-30'"
            ) from None
        if self.old == self.new:
            raise ValueError("new and old are the same code. Remove this entry")


@dataclass(frozen=True)
class _Document:
    """The content of stages/accepted.yaml, whose list gets a name for messages."""

    entry: tuple[AcceptedChange, ...]


def read_accepted_changes(root: Path = Path()) -> list[AcceptedChange]:
    """Read the accepted changes of a project, in the order of the file.

    Args:
        root: The project's folder. It may lack the file; then nothing is accepted.

    Raises:
        UserError: The file is not valid; the message names the line.
    """
    path = root / ACCEPTED_CHANGES
    if not path.exists():
        return []
    content: Any = load_located_yaml(path)
    if content is None:  # The file contains only comments.
        return []
    if not isinstance(content, list):
        raise UserError(
            f"{path}: the file is not a list of accepted changes. Restore it: git checkout {path}"
        )
    document = LocatedMapping({_ENTRY: content}, {_ENTRY: Location(path, _ENTRY)})
    return list(validate_document(_Document, document, path).entry)


def equal_codes(changes: Sequence[AcceptedChange], script: str, code: str) -> list[str]:
    """Return all fingerprints that count as the same code, the one that stands for them first.

    Args:
        changes: All accepted changes.
        script: The script in stages/, without its suffix.
        code: A fingerprint of its code.

    Returns:
        The fingerprints; `code` alone if no accepted change is about it.
    """
    changes_of_script = [change for change in changes if change.script == script]
    group = {code}
    # Each round adds the fingerprints that a change connects with the group.
    for _ in changes_of_script:
        for change in changes_of_script:
            if change.old in group or change.new in group:
                group.update((change.old, change.new))
    # The order of the file, in which the old code of the first change comes first.
    ordered = dict[str, None]()
    for change in changes_of_script:
        if change.old in group:
            ordered.update(dict.fromkeys((change.old, change.new)))
    return list(ordered) or [code]


def counted_code(changes: Sequence[AcceptedChange], script: str, code: str) -> str:
    """Return the fingerprint as which the code of a script counts: often an older one.

    Args:
        changes: All accepted changes.
        script: The script in stages/, without its suffix.
        code: The fingerprint of its present code.
    """
    return equal_codes(changes, script, code)[0]


def changes_in_use(code_by_script: Mapping[str, str], root: Path = Path()) -> list[AcceptedChange]:
    """Return the accepted changes that count: they connect present code with older code.

    After another edit of the code a change no longer counts, and can be removed from the file.

    Args:
        code_by_script: For each script, a fingerprint of its present code, or the fingerprint as
            which it counts.
        root: The project's folder.

    Raises:
        UserError: The file of accepted changes is not valid.
    """
    changes = read_accepted_changes(root)
    changes_that_count = []
    for change in changes:
        code = code_by_script.get(change.script)
        if code is not None and change.new in equal_codes(changes, change.script, code):
            changes_that_count.append(change)
    return changes_that_count


def read_reported_changes(resolved: Path) -> list[AcceptedChange]:
    """Read the accepted changes that count in a project, from its reports/resolved.json.

    Results that were computed with the old code were kept.

    Args:
        resolved: The file. It may be missing, or written by an older version; then there are none.

    Raises:
        UserError: The file is damaged.
    """
    if not resolved.exists():
        return []
    content = read_json_object(resolved).get(RESOLVED_SECTION, [])
    return check_record(list[AcceptedChange], content, resolved, keys=[RESOLVED_SECTION])
