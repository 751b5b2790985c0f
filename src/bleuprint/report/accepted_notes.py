"""Notes on accepted changes of code: results that were kept although their code has changed.

`bleuprint accept` records such changes (runtime/accepted_code.py), and reports/resolved.json lists
those that count.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from bleuprint.config.paths import RESOLVED
from bleuprint.runtime.accepted_code import AcceptedChange, read_reported_changes
from bleuprint.runtime.wording import join_with_and


def accepted_notes(root: Path = Path()) -> Iterator[str]:
    """Yield a note for each reason for which results of older code were kept.

    Args:
        root: The project's folder.

    Raises:
        UserError: reports/resolved.json is damaged.
    """
    changes = read_reported_changes(root / RESOLVED)
    for (date, reason), scripts in _scripts_by_reason(changes).items():
        yield (
            f"Accepted on {date}: the code of {join_with_and(scripts)} has changed since its "
            f"results were computed, and they were not computed again. Reason: {reason}."
        )


def describe_accepted(changes: Sequence[AcceptedChange]) -> str:
    """Describe accepted changes in a line: `train (2026-11-30: only refactored); score (...)`.

    Args:
        changes: The changes, at least one.
    """
    texts = []
    for (date, reason), scripts in _scripts_by_reason(changes).items():
        texts.append(f"{join_with_and(scripts)} ({date}: {reason})")
    return "; ".join(texts)


def _scripts_by_reason(changes: Sequence[AcceptedChange]) -> dict[tuple[str, str], list[str]]:
    """Return the scripts of accepted changes, grouped by date and reason, without a full stop."""
    scripts_by_reason: dict[tuple[str, str], list[str]] = {}
    for change in changes:
        # A user may have written the reason on several lines.
        reason = " ".join(change.because.split()).removesuffix(".")
        scripts = scripts_by_reason.setdefault((change.date, reason), [])
        if change.script not in scripts:
            scripts.append(change.script)
    return scripts_by_reason
