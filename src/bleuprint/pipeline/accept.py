"""The command `bleuprint accept`: stages whose code has changed without an effect need not run.

An acceptance is about the code of a script: its new fingerprint counts as the one with which the
stages ran (runtime/accepted_code.py). So it holds for all stages of a kind, such as all trainings.
`accept` compares the stages with dvc.lock, and adds the change to stages/accepted.yaml.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import RESOLVED
from bleuprint.pipeline.dvc_lock import LOCK, LockFile, replace_hash
from bleuprint.pipeline.dvc_yaml import load_entries
from bleuprint.pipeline.graph import Stage, load_stages
from bleuprint.pipeline.recording import finished_marks, record_finished
from bleuprint.pipeline.resolve import resolved_content, write_resolved
from bleuprint.runtime.accepted_code import (
    ACCEPTED_CHANGES,
    AcceptedChange,
    changes_in_use,
    equal_codes,
    read_accepted_changes,
)
from bleuprint.runtime.atomic_files import write_text
from bleuprint.runtime.closure import present_fingerprints
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import format_json
from bleuprint.runtime.regular_files import read_bytes
from bleuprint.runtime.schema import list_known_names
from bleuprint.runtime.wording import join_with_and

# The keys of reports/resolved.json with the fingerprints of code: code.train.
_CODE_PREFIX = "code."
# Its notes name the accepted changes, so this stage has to run after each of them.
_REPORT = "report"


@dataclass(frozen=True)
class RecordedStage:
    """A stage that has run, compared with what dvc.lock records of it.

    Attributes:
        name: The name, such as `train@tiny-own-1`.
        kind: The name of its entry in dvc.yaml, such as `train`.
        script: The script in stages/ that it runs, without its suffix.
        code: The fingerprint of the code with which it ran.
        counted_code: The fingerprint as which its present code counts.
        other_changes: What else has changed: settings by their keys in reports/resolved.json, and
            `command`.
    """

    name: str
    kind: str
    script: str
    code: str
    counted_code: str
    other_changes: tuple[str, ...]

    @property
    def has_other_code(self) -> bool:
        """Whether the stage has to run again because of its code."""
        return self.code != self.counted_code

    @property
    def can_be_kept(self) -> bool:
        """Whether only the code has changed, so that an acceptance keeps the stage's outputs."""
        return self.has_other_code and not self.other_changes


def compare_with_lock(stage: Stage, lock: LockFile) -> RecordedStage | None:
    """Compare the settings and the code of a stage with those with which it ran.

    Its data is not compared: if they have changed, the stage runs again whatever its code.

    Args:
        stage: The stage, with its present settings.
        lock: The dvc.lock of the project.

    Returns:
        The comparison; None if the stage has not run, or does not depend on the code of bleuprint.
    """
    recorded = lock.settings(stage.name)
    code_keys = [key for key in stage.parameters if key.startswith(_CODE_PREFIX)]
    if not code_keys or code_keys[0] not in recorded:
        return None
    code_key = code_keys[0]
    other_changes = []
    # As JSON, since the present settings may contain tuples where dvc.lock has lists.
    present: dict[str, Any] = json.loads(format_json(stage.parameters))
    for key, value in present.items():
        is_changed = key not in recorded or recorded[key] != value
        if is_changed and key != code_key:
            other_changes.append(key)
    if lock.command(stage.name) != stage.command:
        other_changes.append("command")
    return RecordedStage(
        name=stage.name,
        kind=stage.kind,
        script=code_key.removeprefix(_CODE_PREFIX),
        code=str(recorded[code_key]),
        counted_code=str(present[code_key]),
        other_changes=tuple(other_changes),
    )


def kinds_to_accept(stages: Iterable[Stage], root: Path = Path()) -> list[str]:
    """Return the kinds of stages that an acceptance would keep: only their code has changed.

    The report is not among them: it runs after each acceptance, to name it.

    Args:
        stages: Stages that are out of date.
        root: The project's folder.
    """
    lock = LockFile.read(root)
    kinds = dict[str, None]()
    for stage in stages:
        compared = compare_with_lock(stage, lock)
        if compared is not None and compared.can_be_kept and stage.kind != _REPORT:
            kinds[stage.kind] = None
    return list(kinds)


@dataclass(frozen=True)
class Acceptance:
    """What an acceptance has changed.

    Attributes:
        kept: The stages that no longer have to run because of their code.
        out_of_date: The stages of the same kinds that have to run all the same, since their
            settings have changed, too.
        files: The files that were written, for Git.
    """

    kept: list[RecordedStage]
    out_of_date: list[RecordedStage]
    files: list[Path]


def accept(names: Sequence[str], because: str, root: Path = Path()) -> Acceptance:
    """Record that changes of code have no effect, so that the stages need not run again.

    The caller must hold the project (`hold_project`).

    Args:
        names: Kinds of stages, such as `train`, and names of stages, such as `train@tiny-own-1`.
        because: Why the changes have no effect on results.
        root: The project's folder.

    Raises:
        UserError: A name is unknown, or a stage has not run, or its code has not changed, or more
            than its code has.
    """
    reason = " ".join(because.split())
    if not reason:
        raise UserError("--because is empty. Say why the new code gives the same results")
    if finished_marks(root):
        # dvc.lock does not contain these stages yet. They have run with the present code.
        record_finished(root)
    settings = load_settings(root / "params.yaml")
    stages = load_stages(root, resolved_content(settings, root))
    chosen = _ChosenStages(stages, list(load_entries(root)), LockFile.read(root))
    kept = chosen.stages_to_keep(names)
    changes = read_accepted_changes(root)
    present_codes = present_fingerprints(root)
    for stage in kept:
        present_code = present_codes[stage.script]
        if stage.code not in equal_codes(changes, stage.script, present_code):
            today = date.today().isoformat()
            changes.append(AcceptedChange(stage.script, stage.code, present_code, reason, today))
    files = [RESOLVED]
    if _append_changes(changes, root):
        files.append(ACCEPTED_CHANGES)
    scripts = {stage.script for stage in kept}
    codes_in_use = {script: present_codes[script] for script in scripts}
    if _unify_codes_in_lock(codes_in_use, stages, changes, root):
        files.append(LOCK)
    write_resolved(root)
    out_of_date = []
    for stage in chosen.recorded.values():
        if stage.script in scripts and stage.other_changes:
            out_of_date.append(stage)
    return Acceptance(kept, out_of_date, sorted(files))


class _ChosenStages:
    """Finds the stages that a user names, and refuses those whose code cannot be accepted.

    Attributes:
        recorded: The stages that have run, by name.
    """

    def __init__(self, stages: Sequence[Stage], kinds: Sequence[str], lock: LockFile) -> None:
        """Compare all stages with dvc.lock.

        Args:
            stages: All stages of dvc.yaml, with their present settings.
            kinds: The names of all entries of dvc.yaml, also of those without a stage.
            lock: The dvc.lock of the project.
        """
        self._stages = stages
        self._kinds = kinds
        self.recorded: dict[str, RecordedStage] = {}
        for stage in stages:
            compared = compare_with_lock(stage, lock)
            if compared is not None:
                self.recorded[stage.name] = compared

    def stages_to_keep(self, names: Sequence[str]) -> list[RecordedStage]:
        """Return the stages whose outputs an acceptance keeps, in the order of the names.

        Args:
            names: Kinds and names of stages.

        Raises:
            UserError: The code of a kind or stage cannot be accepted.
        """
        kept: dict[str, RecordedStage] = {}
        for name in names:
            stages_of_name = self._stages_of(name)
            stages_with_other_code = [stage for stage in stages_of_name if stage.has_other_code]
            if not stages_with_other_code:
                raise UserError(f"{name}: its code has not changed since it ran. Leave it out")
            stages_to_keep = [stage for stage in stages_with_other_code if stage.can_be_kept]
            if not stages_to_keep:
                raise UserError(_describe_other_changes(stages_with_other_code[0]))
            for stage in stages_to_keep:
                kept[stage.name] = stage
        for stage in kept.values():
            self._check_stages_with_same_code(stage, kept.keys())
        return list(kept.values())

    def _stages_of(self, name: str) -> list[RecordedStage]:
        """Return the stages that have run among those that a kind or a stage's name stands for.

        Raises:
            UserError: There is no such kind or stage, or none of the stages has run.
        """
        kind, at_sign, _ = name.partition("@")
        if kind not in self._kinds:
            raise UserError(f"{name}: unknown stage; {list_known_names(kind, self._kinds)}")
        if kind in ("resolve", _REPORT):
            raise UserError(
                f"{kind} runs after each acceptance in any case. Name the stages before the report"
            )
        stages_of_kind = [stage for stage in self._stages if stage.kind == kind]
        if not stages_of_kind:
            raise UserError(f"{name}: this experiment has no stage of this kind. Leave it out")
        if at_sign:
            known_names = [stage.name for stage in stages_of_kind]
            if name not in known_names:
                raise UserError(f"{name}: unknown stage; {list_known_names(name, known_names)}")
            stages_of_kind = [stage for stage in stages_of_kind if stage.name == name]
        recorded = []
        for stage in stages_of_kind:
            if stage.name in self.recorded:
                recorded.append(self.recorded[stage.name])
        if not recorded:
            raise UserError(
                f"{name}: dvc.lock records no run with a fingerprint of its code, so there is "
                "nothing to keep. To run it: make reproduce"
            )
        return recorded

    def _check_stages_with_same_code(self, stage: RecordedStage, kept: Iterable[str]) -> None:
        """Raise UserError if an acceptance would also keep a stage that the user has not named.

        The code belongs to a kind of stages. If two of them ran with the same code, the new code
        counts as the old one for both.

        Args:
            stage: A stage that the user has named.
            kept: The names of all stages that the user has named, by kind or by name.
        """
        kept_names = set(kept)
        for other in self.recorded.values():
            is_same_code = other.script == stage.script and other.code == stage.code
            if is_same_code and other.can_be_kept and other.name not in kept_names:
                raise UserError(
                    f"{stage.name}: {other.name} ran with the same code, which is accepted for "
                    f"both of them or for none. Name {other.name}, too, or all stages: "
                    f"bleuprint accept {stage.kind}"
                )


def _describe_other_changes(stage: RecordedStage) -> str:
    """Return the message that more than the code of a stage has changed."""
    keys = [key.replace("runs.", "systems.", 1) for key in stage.other_changes]
    has_or_have = "has" if len(keys) == 1 else "have"
    return (
        f"{stage.name}: {join_with_and(keys)} {has_or_have} changed, too, so the stage has to run "
        "again. Undo this change, or run: make reproduce"
    )


def _append_changes(changes: Sequence[AcceptedChange], root: Path) -> bool:
    """Add new changes to the end of stages/accepted.yaml; what a user has written there stays.

    Args:
        changes: All accepted changes, those of the file first.
        root: The project's folder.

    Returns:
        Whether there are new ones.

    Raises:
        UserError: The file would not be valid: its entries are written in another form.
    """
    path = root / ACCEPTED_CHANGES
    old_text = read_bytes(path).decode() if path.exists() else ""
    new_changes = changes[len(read_accepted_changes(root)) :]
    if not new_changes:
        return False
    text = old_text
    if text and not text.endswith("\n"):
        text += "\n"
    for change in new_changes:
        # Texts in JSON are texts in YAML, too.
        fields = [f"{key}: {_quote(value)}" for key, value in asdict(change).items()]
        text += "- " + "\n  ".join(fields) + "\n"
    write_text(path, text)
    try:
        is_complete = read_accepted_changes(root) == list(changes)
    except UserError:
        is_complete = False
    if not is_complete:
        write_text(path, old_text)
        raise UserError(
            f"{ACCEPTED_CHANGES}: cannot add an entry. Write each entry of the list on lines of "
            "its own that begin with '- script: ' and, below it, two spaces"
        )
    return True


def _quote(text: str) -> str:
    """Return a text as JSON writes it, in quotation marks."""
    return json.dumps(text, ensure_ascii=False)


def _unify_codes_in_lock(
    present_codes: Mapping[str, str],
    stages: Sequence[Stage],
    changes: Sequence[AcceptedChange],
    root: Path,
) -> bool:
    """Let dvc.lock record the same fingerprint for all stages whose code counts as equal.

    After an update, some stages may have run with the new code already, and others with different
    older versions, all of which the user has accepted as equal. DVC compares one fingerprint, which
    stands for all equal ones, with the one in dvc.lock; so dvc.lock must contain it.

    Args:
        present_codes: The fingerprint of the present code, by script; other scripts are skipped.
        stages: All stages of dvc.yaml.
        changes: All accepted changes.
        root: The project's folder.

    Returns:
        Whether dvc.lock was written.
    """
    lock = LockFile.read(root)
    is_written = False
    for stage in stages:
        recorded = compare_with_lock(stage, lock)
        if recorded is None or recorded.script not in present_codes:
            continue
        codes = equal_codes(changes, recorded.script, present_codes[recorded.script])
        code_for_all = codes[0]
        if recorded.code in codes and recorded.code != code_for_all:
            replace_hash(stage.name, recorded.code, code_for_all, root)
            is_written = True
    return is_written


def notes_on_unused_changes(root: Path = Path()) -> Iterator[str]:
    """Yield a note for each accepted change that no longer counts, since the code changed again.

    Args:
        root: The project's folder.

    Raises:
        UserError: The file of accepted changes is not valid.
    """
    changes = read_accepted_changes(root)
    if not changes:
        return
    used = changes_in_use(present_fingerprints(root), root)
    for number, change in enumerate(changes, start=1):
        if change not in used:
            yield (
                f"{ACCEPTED_CHANGES}: entry {number} ({change.script}, {change.date}) is not in "
                "use: the code has changed since. Remove the entry"
            )
