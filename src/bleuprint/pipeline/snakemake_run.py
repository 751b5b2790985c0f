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
from bleuprint.pipeline.graph import Stage, input_paths, writer_by_output
from bleuprint.pipeline.leftovers import move_leftovers
from bleuprint.pipeline.machine_share import (
    MachineShare,
    cores_beside_gpus,
    share_on_gpus,
    uses_gpu,
    whole_machine,
)
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
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.progress import SHARED_TERMINAL
from bleuprint.runtime.regular_files import read_bytes

# The name of the machine whose Snakemake took the lock in .snakemake/locks.
_HOST_FILE = Path("work", "snakemake", "host")
# Held until this process ends, so that another Snakemake on this machine knows that we run.
_PROCESS_LOCK = FileLock(_HOST_FILE.with_suffix(".lock"))
HTML_REPORT = Path("reports", "index.html")
RESULTS = Path("reports", "results.json")


def record_or_print_error() -> None:
    """At the end of a Snakemake run, let DVC record the finished stages in its file dvc.lock.

    An error of DVC is only printed: it must not hide whether the Snakemake run itself has failed.
    """
    try:
        record_finished()
    except UserError as error:
        print_message(str(error))


def unlock_after_kill() -> None:
    """Remove the lock files that a killed Snakemake has left, if it ran on this machine.

    Snakemake locks a project by files in .snakemake/locks. If it is killed, they remain, and every
    later Snakemake refuses to start. But the files may also belong to a Snakemake that still runs,
    here or on another machine that shares the folder, and then they must stay. So each Snakemake
    takes a second lock, which the kernel releases even after a kill, and writes the name of its
    machine to a file. If this process gets that lock, no other Snakemake runs on this machine.
    """
    lock_folder = Path(".snakemake", "locks")
    _HOST_FILE.parent.mkdir(parents=True, exist_ok=True)
    try:
        # Held until this process ends.
        _PROCESS_LOCK.acquire(timeout=0)
    except Timeout:
        return  # Another Snakemake is running on this machine.
    was_on_this_machine = _HOST_FILE.exists() and read_bytes(_HOST_FILE) == node().encode()
    if was_on_this_machine:
        # The folder itself stays, since this Snakemake has just created it for its own lock.
        for lock_file in lock_folder.glob("*"):
            lock_file.unlink(missing_ok=True)
        return
    # If there are lock files, they belong to another machine, whose name must stay in the file.
    has_lock_files = lock_folder.exists() and any(lock_folder.iterdir())
    if not has_lock_files:
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
        """Prepare to answer Snakemake's questions about its jobs, each of which runs one stage.

        Args:
            workflow: Snakemake's workflow object.
            stages: All stages of dvc.yaml.
            resolved: The settings with their defaults, which this run is going to write to
                reports/resolved.json. None in a process that Snakemake starts for a single job: the
                file exists by then, and is read.
        """
        self._workflow = workflow
        self._stages = stages
        self._resolved = resolved
        self._inputs_by_stage = input_paths(stages)
        self._writer_by_output = writer_by_output(stages)
        self._machine = self._machine_of_run()
        # Releases the lock of the project at the end of the run.
        self._project_lock = ExitStack()

    def _machine_of_run(self) -> MachineShare:
        """Return the GPUs of this machine, and the cores that Snakemake may use: 8 for `-c8`."""
        machine = whole_machine()
        cores = self._workflow.resource_settings.cores
        return MachineShare(cores=cores or machine.cores, gpus=machine.gpus)

    def limit_gpus(self) -> None:
        """Let the jobs that run on this machine use no more GPUs at a time than it has.

        On a cluster, SLURM chooses the GPUs of each job.
        """
        if self._runs_here and self._machine.gpus > 0:
            self._workflow.register_resource("gpu", self._machine.gpus)

    @property
    def _runs_here(self) -> bool:
        """Whether Snakemake runs its jobs on this machine, and not on a cluster."""
        return bool(self._workflow.local_exec)

    def share_of_job(self, rule: Rule, wildcards: Mapping[str, str]) -> MachineShare:
        """Return the cores and GPUs that Snakemake reserves for a job.

        On a machine with GPUs, all trainings of this run divide them. Snakemake asks once for each
        job, before it starts, so a training that is left alone at the end does not get more. A job
        that joins shards needs no GPU. In all other cases the numbers are those of dvc.yaml.

        Args:
            rule: The rule of the job.
            wildcards: The values of the job, such as its system, corpus and seed.
        """
        stage = rule.stage(wildcards)
        if rule.shards > 1:
            return MachineShare(cores=stage.threads, gpus=0)
        if not self._divides_gpus_for(stage):
            return MachineShare(cores=stage.threads, gpus=stage.gpu)
        stages_of_run = [other for other in self._stages if other.name in self.running_stages]
        return share_on_gpus(stage, stages_of_run, self._machine)

    def share_of_shard(self, rule: Rule, wildcards: Mapping[str, str]) -> MachineShare:
        """Return the cores and GPUs that Snakemake reserves for a job that processes one shard.

        It uses one core, or one GPU with its part of the cores. If it needs a GPU that this machine
        does not have, it uses the cores of the whole stage.

        Args:
            rule: The rule of the stage.
            wildcards: The values of the job, such as its corpus.
        """
        stage = rule.stage(wildcards)
        if stage.gpu == 0:
            return MachineShare(cores=1, gpus=0)
        if not self._divides_gpus_for(stage):
            return MachineShare(cores=stage.threads, gpus=stage.gpu)
        return MachineShare(cores=cores_beside_gpus(1, self._machine), gpus=1)

    def _divides_gpus_for(self, stage: Stage) -> bool:
        """Return whether a stage gets some of this machine's GPUs.

        On a cluster, SLURM reserves them. A process of a single job has them already.
        """
        is_divided = self._workflow.is_main_process and self._runs_here
        return is_divided and uses_gpu(stage, self._machine)

    def thread_function(
        self, rule: Rule, is_shard: bool = False
    ) -> Callable[[Mapping[str, str]], int]:
        """Return the function that Snakemake calls for the number of threads of a rule's jobs.

        Args:
            rule: The rule.
            is_shard: Whether the jobs process one shard each.
        """
        share = self.share_of_shard if is_shard else self.share_of_job
        return lambda wildcards: share(rule, wildcards).cores

    def gpu_function(
        self, rule: Rule, is_shard: bool = False
    ) -> Callable[[Mapping[str, str]], int]:
        """Return the same as `thread_function` for the number of GPUs of a rule's jobs."""
        share = self.share_of_shard if is_shard else self.share_of_job
        return lambda wildcards: share(rule, wildcards).gpus

    def input_function(self, rule: Rule) -> Callable[[Mapping[str, str]], list[Any]]:
        """Return the function that Snakemake calls for the input files of each job of a rule.

        Args:
            rule: The rule, such as `train`, whose jobs are the stages for all systems and corpora.
        """
        from snakemake.io import ancient

        def inputs_of_job(wildcards: Mapping[str, str]) -> list[Any]:
            """Return the input files of a job, and tell Snakemake which of them may be newer.

            Snakemake runs a job if an input is newer than the outputs. After a clone or `dvc pull`,
            modification times mean nothing. They count only for inputs that a stage writes in this
            run. All other inputs are marked as `ancient`: Snakemake then ignores their times.

            Args:
                wildcards: The values of the job, such as its system, corpus and seed.
            """
            paths = rule.inputs(wildcards)
            if not self._workflow.is_main_process:
                # This process runs a single job, so nothing is left to decide.
                return list(paths)
            running_stages = self.running_stages
            inputs = []
            for path in paths:
                is_rewritten = self._writer_by_output.get(path) in running_stages
                inputs.append(path if is_rewritten else ancient(path))
            return inputs

        return inputs_of_job

    def all_outputs(self, _wildcards: object) -> list[str]:
        """Return the outputs of all stages, which the Snakefile's rule `all` asks for.

        DVC does not track the HTML report, so the file is missing after `dvc pull`. If it were
        always asked for, Snakemake would then run the stage report again just to write it. So it is
        asked for only if that stage runs anyway, or if the file exists.
        """
        paths: list[str] = []
        for stage in self._stages:
            paths.extend(stage.outputs)
        # Only the main process decides which stages run.
        if not self._workflow.is_main_process:
            return paths
        if "report" in self.running_stages or HTML_REPORT.exists():
            paths.append(str(HTML_REPORT))
        return paths

    @cached_property
    def running_stages(self) -> frozenset[str]:
        """The names of the stages that run: the changed ones and all stages after them.

        They are computed once, when Snakemake first asks for them. Earlier it would not be known
        whether this is a dry run. A real run first takes the lock of the project, so that no other
        program changes files while DVC compares them.
        """
        with exit_on_error():
            if self._is_real_run():
                self._begin()
            changed = self._changed_stages()
        self._force_jobs_of(changed)
        changed_names = {stage.name for stage in changed}
        forced_names = self._forced_by_user(self._workflow.dag_settings)
        return self._with_later_stages(changed_names | forced_names)

    def _force_jobs_of(self, stages: Sequence[Stage]) -> None:
        """Tell Snakemake to run the jobs of the stages that DVC finds changed.

        Snakemake adds the jobs whose outputs are missing, and those that read an output of a job
        that runs.

        Args:
            stages: The stages that DVC finds changed.
        """
        # Without triggers, Snakemake ignores modification times and the settings that it has
        # recorded itself. DVC has compared the contents, which is more reliable.
        self._workflow.dag_settings.rerun_triggers = frozenset()
        # Snakemake runs the job of each file in `forcefiles`, whatever the state of the file.
        first_outputs = [stage.outputs[0] for stage in stages]
        self._workflow.dag.forcefiles = {*self._workflow.dag.forcefiles, *first_outputs}

    def _is_real_run(self) -> bool:
        """Return whether jobs are run, or their outputs touched, and not just shown."""
        return self._workflow.executor_plugin is not None and not self._workflow.dryrun

    def _begin(self) -> None:
        """Lock the project until this process ends, and clean up after a Snakemake that was killed.

        A killed Snakemake leaves its lock files, and finished stages that DVC has not recorded.
        """
        self._project_lock.enter_context(hold_project("snakemake", should_wait=False))
        atexit.register(self._end)
        unlock_after_kill()
        if finished_marks():
            record_finished()

    def _end(self) -> None:
        """Write the HTML report if it is missing, log to MLflow, and unlock the project.

        Python calls this when the process ends, also after an error.
        """
        # With --touch, the user wants Snakemake to renew modification times and to write nothing.
        only_touches_files = self._workflow.touch
        if not only_touches_files:
            write_missing_html_report()
        _update_mlflow()
        self._project_lock.close()

    def _changed_stages(self) -> list[Stage]:
        """Return the stages whose settings, code, inputs or outputs differ from those in dvc.lock.

        A missing output does not count, since Snakemake itself runs the stage if another stage
        needs the output. A stage that an earlier Snakemake run has finished does not count either,
        although dvc.lock does not record it yet.

        Raises:
            UserError: DVC failed. Another process that runs stages may be the cause; then the
                message names it.
        """
        try:
            status = changed_stages(resolved=self._resolved)
        except UserError as error:
            runner = other_runner()
            if runner is None:
                raise
            raise UserError(
                f"{runner.busy_message()}. Run the same command when it has ended"
            ) from error
        if not self._is_real_run():
            _announce_other_runner()
        # This call takes time, and is skipped in most runs: they have no unrecorded stages.
        finished = finished_stages(self._stages) if finished_marks() else set()
        changed = []
        for stage in self._stages:
            if _needs_run(status.get(stage.name, ())) and stage.name not in finished:
                changed.append(stage)
        return changed

    def _forced_by_user(self, settings: Any) -> set[str]:
        """Return the names of the stages that the user forces to run by an option of Snakemake.

        The options are -F (all stages), -R NAME... (these stages) and -f (the requested stages). A
        NAME is a rule, such as `train`, or a file that a stage writes.

        Args:
            settings: Snakemake's options for the graph of jobs.
        """
        if settings.forceall:
            return {stage.name for stage in self._stages}
        forced = set(settings.forcerun)
        if settings.forcetargets:
            forced.update(settings.targets)
        names = set()
        for stage in self._stages:
            # Each kind of stage has one rule, of the same name.
            is_rule_forced = stage.kind in forced
            is_output_forced = not forced.isdisjoint(stage.outputs)
            if is_rule_forced or is_output_forced:
                names.add(stage.name)
        return names

    def _with_later_stages(self, names: set[str]) -> frozenset[str]:
        """Return the given stages and all stages that depend on them, directly or indirectly.

        Each pass of the loop adds the stages that read an output of a stage added by the previous
        pass, until a pass adds none.

        Args:
            names: The names of the stages to start with.
        """
        reached = set(names)
        last_added = set(names)
        while last_added:
            next_stages = set()
            for stage in self._stages:
                if stage.name not in reached and self._depends_on_any(stage, last_added):
                    next_stages.add(stage.name)
            reached |= next_stages
            last_added = next_stages
        return frozenset(reached)

    def _depends_on_any(self, stage: Stage, names: set[str]) -> bool:
        """Return whether a stage reads an output of one of the named stages."""
        inputs = self._inputs_by_stage[stage.name]
        return any(self._writer_by_output.get(path) in names for path in inputs)


def _announce_other_runner() -> None:
    """Print a note in a dry run if another process runs stages of this project now.

    Its outputs may be half written, so the list of jobs that Snakemake shows may be wrong.
    """
    runner = other_runner()
    if runner is not None:
        print_message(
            f"{runner.busy_message()}. What a dry run shows may change until it ends", "note"
        )


def _update_mlflow() -> None:
    """Log all results that MLflow does not show yet; print an error instead of raising it."""
    # Imported here, since MLflow takes seconds to load, and each job of Snakemake imports this
    # module, too.
    from bleuprint.tracking.sync import update_or_note

    try:
        update_or_note(load_settings())
    except UserError as error:
        # The user may have edited params.yaml while the jobs ran, and made a mistake.
        print_message(str(error))


def _needs_run(changes: Iterable[Any]) -> bool:
    """Return whether a change that `dvc status` shows for a stage makes Snakemake run it.

    A file that is only missing does not count. For a missing input, Snakemake runs the stage that
    writes it. For a missing output, Snakemake itself decides whether another stage needs it.

    Args:
        changes: The changes: texts such as "changed command", and mappings such as
            {"changed deps": {"data/raw/own": "modified", "data/raw/news": "deleted"}}.
    """
    for change in changes:
        if not isinstance(change, Mapping):
            return True  # The command has changed.
        dependency_states = change.get("changed deps", {}).values()
        output_states = change.get("changed outs", {}).values()
        has_changed_input = any(state != "deleted" for state in dependency_states)
        has_changed_output = "modified" in output_states
        if has_changed_input or has_changed_output:
            return True
    return False


def write_missing_html_report() -> None:
    """Write the HTML report, reports/index.html, if it is missing although there are results.

    It is missing after `dvc pull`, since DVC does not track it.
    """
    if HTML_REPORT.exists() or not RESULTS.exists():
        return
    from bleuprint.report.records import load_checked
    from bleuprint.report.report import write_html_report_if_outdated

    # An error means that the results were computed with other settings. Then no report is written.
    with suppress(UserError):
        settings = load_resolved_settings()
        write_html_report_if_outdated(settings, load_checked(settings))


def resolve_first(stages: Sequence[Stage]) -> None:
    """Do the work of the stage resolve at the start of a Snakemake run, before the first job.

    The stage writes reports/resolved.json, the settings that all other stages read, and moves away
    outputs of earlier settings. Snakemake would run its job late, or never if the user asks for
    some outputs only. So the work is done here. The stage is then marked as finished, and DVC
    records it at the end of the run.

    Args:
        stages: All stages of dvc.yaml.
    """
    resolve_stage = next(stage for stage in stages if stage.kind == "resolve")
    inputs = input_paths(stages)[resolve_stage.name]
    # Writes the mark as MARK.begun. Under its final name MARK it means `finished`.
    mark_started(resolve_stage.name, resolve_stage.digest, *inputs)
    write_resolved()
    move_leftovers(load_settings())
    Path(f"{resolve_stage.mark}.begun").rename(resolve_stage.mark)


def refuse_config(config: Mapping[str, Any]) -> None:
    """Raise UserError if the user gives Snakemake's option --config, which has no effect here.

    Args:
        config: The keys and values after --config; settings are in params.yaml instead.
    """
    if config:
        raise UserError(
            f"--config {' '.join(config)} has no effect. Edit params.yaml, or use: dvc exp run -S"
        )


def prepare_environment() -> None:
    """Set the environment variables that the commands of all stages inherit.

    They tell a stage that other stages write to the same terminal, and that the results are logged
    to MLflow at the end of the run. PATH begins with the folder of this Python, so that the command
    `python` starts the same one.
    """
    os.environ[SHARED_TERMINAL] = "1"
    os.environ[environment.RUNNER_LOGS] = "1"
    os.environ["PATH"] = environment.stage_path()
