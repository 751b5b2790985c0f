"""What the Snakefile calls before, between and after its jobs.

`Jobs` decides which stages Snakemake runs, `prepare_environment` sets variables for their commands,
`resolve_first` and `record_or_print_error` frame a run.
"""

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

# The name of the machine whose Snakemake took the lock in .snakemake/locks.
_HOST_FILE = Path("work", "snakemake", "host")
# Held until this process ends, so that another Snakemake on this machine knows that we run.
_PROCESS_LOCK = FileLock(_HOST_FILE.with_suffix(".lock"))
PAGE = Path("reports", "index.html")
RESULTS = Path("reports", "results.json")


def record_or_print_error() -> None:
    """Record the finished stages in DVC at the end of a Snakemake run.

    An error is only printed, since it must not hide the result of the run itself.
    """
    try:
        record_finished()
    except UserError as error:
        print_message(str(error))


def unlock_after_kill() -> None:
    """Remove Snakemake's lock if the Snakemake that took it was killed on this machine.

    A killed Snakemake leaves files in .snakemake/locks, and the next one would refuse to start.
    This takes a kernel lock until the process ends: if another Snakemake of this machine holds it,
    or if the lock files are from another machine of a cluster, nothing is removed.
    """
    lock_folder = Path(".snakemake", "locks")
    _HOST_FILE.parent.mkdir(parents=True, exist_ok=True)
    try:
        _PROCESS_LOCK.acquire(timeout=0)
    except Timeout:
        return
    is_from_here = _HOST_FILE.exists() and read_bytes(_HOST_FILE) == node().encode()
    if is_from_here:
        # The folder itself stays, since this Snakemake has just created it for its own lock.
        for lock_file in lock_folder.glob("*"):
            lock_file.unlink(missing_ok=True)
        return
    has_locks = lock_folder.exists() and any(lock_folder.iterdir())
    if not has_locks:
        _HOST_FILE.write_text(node())


class Jobs:
    """Decides which stages this Snakemake runs: those that DVC finds changed, and all after them.

    Snakemake itself compares modification times, and settings with those of its own last run. Both
    are useless after a clone, `dvc pull`, `dvc checkout`, `make reproduce`, or a trial with other
    settings. DVC compares contents, so DVC decides. Snakemake adds the stages whose outputs are
    missing and those that its user forces.

    In a dry run, this changes no file.
    """

    def __init__(
        self, workflow: Any, stages: Sequence[Stage], resolved: Mapping[str, Any] | None
    ) -> None:
        """Read the graph of the stages.

        Args:
            workflow: Snakemake's workflow.
            stages: All stages of dvc.yaml.
            resolved: The content of reports/resolved.json for the present settings; None in a
                process of Snakemake that runs a single job.
        """
        self._workflow = workflow
        self._stages = stages
        self._resolved = resolved
        self._dependencies = input_paths(stages)
        self._writers: dict[str, str] = {}
        for stage in stages:
            for path in stage.outputs:
                self._writers[path] = stage.name
        self._held = ExitStack()

    def input_function(self, rule: Rule) -> Callable[[Mapping[str, str]], list[Any]]:
        """Return the function by which Snakemake asks for the input files of a rule's jobs."""
        from snakemake.io import ancient

        def inputs_of_job(wildcards: Mapping[str, str]) -> list[Any]:
            """Return the input files of a job.

            If no running stage writes an input, it is marked as `ancient`, so that Snakemake
            ignores its modification time.
            """
            paths = rule.inputs(wildcards)
            if not self._workflow.is_main_process:
                # This process runs one job, which the main process has chosen already.
                return list(paths)
            running_stages = self.running_stages
            inputs = []
            for path in paths:
                is_rewritten = self._writers.get(path) in running_stages
                inputs.append(path if is_rewritten else ancient(path))
            return inputs

        return inputs_of_job

    def all_outputs(self, _wildcards: object) -> list[str]:
        """Return the outputs of all stages, the inputs of the Snakefile's rule `all`.

        DVC does not track the HTML report. It is asked for only if the stage report runs, or if it
        exists: otherwise Snakemake would run that stage just to write it.
        """
        paths: list[str] = []
        for stage in self._stages:
            paths.extend(stage.outputs)
        if self._workflow.is_main_process and ("report" in self.running_stages or PAGE.exists()):
            paths.append(str(PAGE))
        return paths

    @cached_property
    def running_stages(self) -> frozenset[str]:
        """The names of the stages that run: the changed ones and all after them.

        Computed when Snakemake asks for the first input. Before, it is unknown whether this is a
        dry run.
        """
        settings = self._workflow.dag_settings
        with exit_on_error():
            if self._is_real_run():
                self._begin()
            changed = self._changed_stages()
        # Neither modification times nor the settings that Snakemake has recorded may trigger a job.
        settings.rerun_triggers = frozenset()
        first_outputs = [stage.outputs[0] for stage in changed]
        self._workflow.dag.forcefiles = {*self._workflow.dag.forcefiles, *first_outputs}
        changed_names = {stage.name for stage in changed}
        return self._with_following(changed_names | self._forced_by_user(settings))

    def _is_real_run(self) -> bool:
        """Whether jobs are run, or their outputs touched, and not just shown."""
        return self._workflow.executor_plugin is not None and not self._workflow.dryrun

    def _begin(self) -> None:
        """Keep other runners from the project until this process ends, and tidy up after a kill."""
        self._held.enter_context(hold_project("snakemake", wait=False))
        atexit.register(self._end)
        unlock_after_kill()
        if finished_marks():
            record_finished()

    def _end(self) -> None:
        """Write the HTML report if no job has, log to MLflow, and let other runners start."""
        if not self._workflow.touch:
            write_missing_page()
        _update_mlflow()
        self._held.close()

    def _changed_stages(self) -> list[Stage]:
        """Return the stages whose settings, code, inputs or outputs differ from dvc.lock.

        A missing output does not count, since Snakemake runs its stage if something needs it. A
        stage that a killed run has finished does not count either: it is recorded at the end.
        """
        try:
            status = changed_stages(resolved=self._resolved)
        except UserError as error:
            runner = other_runner()
            if runner is None:
                raise
            raise UserError(f"{runner.busy_message()}. Ask again when it has ended.") from error
        if not self._is_real_run():
            _note_other_runner()
        finished = finished_stages(self._stages) if finished_marks() else set()
        changed = []
        for stage in self._stages:
            if _has_changed(status.get(stage.name, ())) and stage.name not in finished:
                changed.append(stage)
        return changed

    def _forced_by_user(self, settings: Any) -> set[str]:
        """Return the names of the stages that the user forces by -F, -R or -f.

        Args:
            settings: Snakemake's settings of the graph.
        """
        if settings.forceall:
            return {stage.name for stage in self._stages}
        forced = set(settings.forcerun)
        if settings.forcetargets:
            forced.update(settings.targets)
        # The user may name a rule, which has the kind of its stages as its name, or an output.
        names = set()
        for stage in self._stages:
            if stage.kind in forced or not forced.isdisjoint(stage.outputs):
                names.add(stage.name)
        return names

    def _with_following(self, names: set[str]) -> frozenset[str]:
        """Return the names of stages and of all stages that depend on them, directly or not."""
        following = set(names)
        added = set(names)
        while added:
            next_added = set()
            for stage in self._stages:
                if stage.name not in following and self._depends_on_any(stage, added):
                    next_added.add(stage.name)
            following |= next_added
            added = next_added
        return frozenset(following)

    def _depends_on_any(self, stage: Stage, names: set[str]) -> bool:
        """Whether a stage reads an output of one of the named stages."""
        return any(self._writers.get(path) in names for path in self._dependencies[stage.name])


def _note_other_runner() -> None:
    """Name a process that holds the project, since a dry run may see its outputs half written."""
    runner = other_runner()
    if runner is not None:
        print_message(
            f"{runner.busy_message()}. What a dry run shows may change until it ends.", "note"
        )


def _update_mlflow() -> None:
    """Log to MLflow what has run now or before; print an error instead of raising it."""
    # Imported here, since each job of Snakemake loads this module, too.
    from bleuprint.tracking.sync import update_or_note

    try:
        update_or_note(load_settings())
    except UserError as error:
        # Somebody may have edited params.yaml while the jobs ran.
        print_message(str(error))


def _has_changed(changes: Iterable[Any]) -> bool:
    """Whether a stage must run, by its changes in `dvc status`.

    A missing file is no reason: the stage that writes it runs first, or Snakemake finds it missing.

    Args:
        changes: Texts such as "changed command", and mappings such as
            {"changed deps": {"data/raw/own": "modified"}}.
    """
    for change in changes:
        if not isinstance(change, Mapping):
            return True
        dependency_states = change.get("changed deps", {}).values()
        if any(state != "deleted" for state in dependency_states):
            return True
        if "modified" in change.get("changed outs", {}).values():
            return True
    return False


def write_missing_page() -> None:
    """Write reports/index.html if it is missing and the results exist, as after `dvc pull`."""
    if PAGE.exists() or not RESULTS.exists():
        return
    from bleuprint.report.records import load_checked
    from bleuprint.report.report import write_html_report_if_outdated

    # The results may belong to other settings. Then nobody wants a report of them.
    with suppress(UserError):
        settings = load_resolved_settings()
        write_html_report_if_outdated(settings, load_checked(settings))


def resolve_first(stages: Sequence[Stage]) -> None:
    """Write reports/resolved.json, which all jobs read, and mark the stage resolve as finished.

    Snakemake runs the job of this stage later, or never, if the user wants only some outputs or
    kills the run. Without the mark, the next run would find the file newer than params.yaml.

    Args:
        stages: All stages of dvc.yaml.
    """
    stage = next(stage for stage in stages if stage.kind == "resolve")
    mark_started(stage.name, stage.digest, *input_paths(stages)[stage.name])
    write_resolved()
    move_leftovers(load_settings())
    Path(f"{stage.mark}.begun").rename(stage.mark)


def refuse_config(config: Mapping[str, Any]) -> None:
    """Raise UserError if the user gives Snakemake's option --config, which nothing reads."""
    if config:
        raise UserError(
            f"--config {' '.join(config)}: has no effect; edit params.yaml, or use dvc exp run -S"
        )


def prepare_environment() -> None:
    """Set the environment variables for the commands of the stages.

    They run with this Python, share the terminal with other stages, and leave MLflow to the end of
    the run.
    """
    os.environ[SHARED_TERMINAL] = "1"
    os.environ[environment.RUNNER_LOGS] = "1"
    os.environ["PATH"] = environment.stage_path()
