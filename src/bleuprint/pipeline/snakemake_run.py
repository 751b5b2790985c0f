"""What the Snakefile does before and after its jobs."""

import atexit
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from platform import node
from typing import Any

from filelock import Timeout

from bleuprint.config.experiment import load_resolved_settings, load_settings
from bleuprint.pipeline.dvc_repo import changed_stages
from bleuprint.pipeline.graph import Stage, input_paths
from bleuprint.pipeline.leftovers import move_leftovers
from bleuprint.pipeline.project_lock import hold_project, other_runner
from bleuprint.pipeline.recording import (
    finished_marks,
    finished_stages,
    mark_started,
    record_finished,
)
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.pipeline.rules import Rule
from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, exit_on_error, print_message
from bleuprint.runtime.files import read_bytes
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.progress import SHARED_TERMINAL

_HOST = Path("work", "snakemake", "host")
_SNAKEMAKE = FileLock(_HOST.with_suffix(".lock"))  # until this process ends
PAGE = Path("reports", "index.html")
RESULTS = Path("reports", "results.json")


def record_or_print_error() -> None:
    """Record at the end of a Snakemake run; a failure must not hide the run's own result."""
    try:
        record_finished()
    except UserError as error:
        print_message(str(error))


def unlock_after_kill() -> None:
    """Remove Snakemake's lock if the Snakemake that took it was killed on this machine.

    Holds a lock of its own until this process ends, which the kernel releases in any case. Does
    nothing if another Snakemake runs, or if the last one ran on another machine of a cluster.
    """
    locks = Path(".snakemake", "locks")
    _HOST.parent.mkdir(parents=True, exist_ok=True)
    try:
        _SNAKEMAKE.acquire(timeout=0)
    except Timeout:
        return
    if _HOST.exists() and read_bytes(_HOST) == node().encode():
        for lock in locks.glob("*"):  # not the folder, which Snakemake has just made
            lock.unlink(missing_ok=True)
    elif not locks.exists() or not any(locks.iterdir()):
        _HOST.write_text(node())


class Jobs:
    """Which stages this Snakemake runs: those that DVC finds changed, and those after them.

    Snakemake compares modification times, and settings with those of its own last run. Both say
    nothing after a clone, `dvc pull`, `dvc checkout`, `make reproduce`, or a trial with other
    settings. DVC compares contents, so it decides here, too. Snakemake adds the stages whose
    outputs are missing and those that its user forces. A dry run changes no file.
    """

    def __init__(
        self, workflow: Any, stages: Sequence[Stage], resolved: Mapping[str, Any] | None
    ) -> None:
        self._workflow = workflow
        self._stages = stages
        self._resolved = resolved
        self._dependencies = input_paths(stages)
        self._makers = {path: stage.name for stage in stages for path in stage.outputs}
        self._held = ExitStack()

    def inputs(self, rule: Rule) -> Callable[[Mapping[str, str]], list[Any]]:
        """Return Snakemake's function of the input files of a rule's jobs."""
        from snakemake.io import ancient

        def inputs_of_job(wildcards: Mapping[str, str]) -> list[Any]:
            paths = rule.inputs(wildcards)
            if not self._workflow.is_main_process:  # runs one job, which is decided already
                return list(paths)
            following = self.following
            return [
                path if self._makers.get(path) in following else ancient(path) for path in paths
            ]

        return inputs_of_job

    def wanted(self, _wildcards: object) -> list[str]:
        """Return the outputs of all stages, for the rule `all`.

        The page is no output for DVC: where nothing has changed, it is written without the stage.
        """
        paths = [path for stage in self._stages for path in stage.outputs]
        if self._workflow.is_main_process and ("report" in self.following or PAGE.exists()):
            paths.append(str(PAGE))
        return paths

    @cached_property
    def following(self) -> frozenset[str]:
        """The names of the changed stages and of those after them.

        Computed when Snakemake asks for the first input: only then is it known whether it runs.
        """
        settings = self._workflow.dag_settings
        with exit_on_error():
            if self._is_run():
                self._begin()
            changed = self._changed()
        # the modification times and settings that Snakemake has recorded decide nothing
        settings.rerun_triggers = frozenset()
        outputs = [stage.outputs[0] for stage in changed]
        self._workflow.dag.forcefiles = {*self._workflow.dag.forcefiles, *outputs}
        return self._with_following({stage.name for stage in changed} | self._forced(settings))

    def _is_run(self) -> bool:
        """Whether jobs are run or touched, and not just shown."""
        return self._workflow.executor_plugin is not None and not self._workflow.dryrun

    def _begin(self) -> None:
        """Keep other runners from the project until this process ends, and tidy up after a kill."""
        self._held.enter_context(hold_project("snakemake", wait=False))
        atexit.register(self._end)
        unlock_after_kill()
        if finished_marks():
            record_finished()

    def _end(self) -> None:
        """Write the page if no job has written it, log to MLflow, and let other runners start."""
        if not self._workflow.touch:
            write_missing_page()
        _update_mlflow()
        self._held.close()

    def _changed(self) -> list[Stage]:
        """The stages that have other settings, code, inputs or outputs than dvc.lock records.

        Missing outputs are not counted: Snakemake runs their stages if something needs them. What a
        killed run has finished is counted as recorded.
        """
        try:
            status = changed_stages(resolved=self._resolved)
        except UserError as error:
            runner = other_runner()
            if runner is None:
                raise
            raise UserError(f"{runner.busy_message()}. Ask again when it has ended.") from error
        if not self._is_run():
            _note_other_runner()
        finished = finished_stages(self._stages) if finished_marks() else set()
        changed = [stage for stage in self._stages if _has_changed(status.get(stage.name, ()))]
        return [stage for stage in changed if stage.name not in finished]

    def _forced(self, settings: Any) -> set[str]:
        """The stages that the user forces by -F, -R or -f: what follows them runs as well."""
        if settings.forceall:
            return {stage.name for stage in self._stages}
        named = {*settings.forcerun, *(settings.targets if settings.forcetargets else ())}
        return {
            stage.name
            for stage in self._stages
            if stage.kind in named or not named.isdisjoint(stage.outputs)
        }

    def _with_following(self, names: set[str]) -> frozenset[str]:
        """Stages and all that depend on them."""
        found = set(names)
        added = found
        while added:
            added = {
                stage.name
                for stage in self._stages
                if stage.name not in found and self._depends_on(stage, added)
            }
            found |= added
        return frozenset(found)

    def _depends_on(self, stage: Stage, names: set[str]) -> bool:
        return any(self._makers.get(path) in names for path in self._dependencies[stage.name])


def _note_other_runner() -> None:
    """Name the process that holds the project, whose outputs a dry run sees half written."""
    runner = other_runner()
    if runner is not None:
        print_message(
            f"{runner.busy_message()}. What a dry run shows may change until it ends.", "note"
        )


def _update_mlflow() -> None:
    """Bring MLflow up to date with what has run now or before; a failure is printed."""
    from bleuprint.tracking.sync import update_or_note  # each job loads this module, too

    try:
        update_or_note(load_settings())
    except UserError as error:  # in a params.yaml that was edited meanwhile
        print_message(str(error))


def _has_changed(changes: Iterable[Any]) -> bool:
    """Whether one of a stage's changes, as `dvc status` has them, is more than a missing file."""
    for change in changes:
        if not isinstance(change, Mapping):  # such as "changed command"
            return True
        dependencies = change.get("changed deps", {}).values()
        if any(state != "deleted" for state in dependencies):
            return True
        if "modified" in change.get("changed outs", {}).values():
            return True
    return False


def write_missing_page() -> None:
    """Write reports/index.html if it is missing and what it shows is here, as after `dvc pull`."""
    if PAGE.exists() or not RESULTS.exists():
        return
    from bleuprint.report.records import load_checked
    from bleuprint.report.report import write_html_report_if_outdated

    with suppress(UserError):  # results of other settings, of which no page is wanted
        settings = load_resolved_settings()
        write_html_report_if_outdated(settings, load_checked(settings))


def resolve_first(stages: Sequence[Stage]) -> None:
    """Write reports/resolved.json, which all jobs read, and mark the stage resolve as finished.

    Its own job comes later, or never: where only some outputs are wanted, or the run is killed,
    the file is newer than params.yaml at the next run.
    """
    (stage,) = (stage for stage in stages if stage.kind == "resolve")
    mark_started(stage.name, stage.digest, *input_paths(stages)[stage.name])
    write_resolved()
    move_leftovers(load_settings())
    Path(f"{stage.mark}.begun").rename(stage.mark)


def refuse_config(config: Mapping[str, Any]) -> None:
    """Raise UserError at --config, of which nothing would be read."""
    if config:
        raise UserError(
            f"--config {' '.join(config)}: has no effect; edit params.yaml, or use dvc exp run -S"
        )


def use_this_python() -> None:
    """Put this Python first on PATH, for the stages' commands, which run beside each other."""
    os.environ |= {
        SHARED_TERMINAL: "1",
        environment.RUNNER_LOGS: "1",
        "PATH": environment.stage_path(),
    }
