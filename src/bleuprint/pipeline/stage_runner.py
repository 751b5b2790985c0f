"""Runs the changed stages of the graph, independent stages at the same time.

`dvc repro` runs one stage after another. `run_changed_stages` runs as many as the machine has cores
and GPUs for. DVC still decides which stages have changed and which outputs its run cache contains,
and DVC writes dvc.lock.
"""

import signal
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.pipeline.dvc_lock import write_lock
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.pipeline.graph import Stage, load_stages
from bleuprint.pipeline.machine_share import (
    MachineShare,
    cores_beside_gpus,
    cores_for,
    gpus_for,
    uses_gpu,
    whole_machine,
)
from bleuprint.pipeline.stage_process import (
    SIGNAL_STATUS_BASE,
    raise_at_signals,
    run_command,
    terminate_stages,
)
from bleuprint.runtime.errors import Interrupted, print_message
from bleuprint.runtime.machine_errors import add_kill_reason, describe_machine_error

# Writing dvc.lock takes half a second. It is written after each stage that took longer than this,
# and at the end of the run. After a kill, DVC's run cache still contains what dvc.lock lacks.
_MIN_SECONDS_TO_RECORD = 10.0


def run_changed_stages(announce: Callable[[str, bool], None], root: Path = Path()) -> int:
    """Run all stages that are out of date, as many at the same time as the machine has room for.

    DVC decides which stages these are, by the settings in reports/resolved.json, which the caller
    has to write first. If a stage fails, the running ones finish, and no other stage starts.

    Args:
        announce: A function that is called when a stage begins, with its name and True if DVC
            restores its outputs from an earlier run instead of running its command.
        root: The project's folder.

    Returns:
        The exit status of a stage that has failed; 0 if all stages have finished.

    Raises:
        Interrupted: SIGINT, SIGTERM or SIGHUP arrived, and the running stages were stopped.
    """
    with open_repo(root) as repo:
        stages = {stage.name: stage for stage in load_stages(root)}
        return _StageRunner(repo, stages, announce).run()


@dataclass(frozen=True)
class _RunningStage:
    """A stage whose command runs.

    Attributes:
        dvc_stage: DVC's object for the stage.
        share: The cores and GPUs that it uses.
        start_seconds: When it began, by the monotonic clock.
    """

    dvc_stage: Any
    share: MachineShare
    start_seconds: float


class _StageRunner:
    """One run of the changed stages. Only the main thread uses DVC's objects, with DVC's lock.

    A stage goes through these states: it waits for other stages (`_pending`), has changed and waits
    for free cores or GPUs (`_changed`), runs (`_running`), is finished but not in dvc.lock
    (`_unrecorded`).

    Attributes:
        _repo: DVC's repository.
        _machine: The cores and GPUs of this machine.
        _stages: Our description of each stage, by name.
        _announce: See `run_changed_stages`.
        _pending: For each waiting stage of DVC, the stages that must finish before it; in the order
            of dvc.yaml.
        _changed: DVC's stages that have changed and whose inputs are complete.
        _running: The running stages, by the future of their command's exit status.
        _unrecorded: Finished stages of DVC that dvc.lock does not contain yet.
        _status: The highest exit status so far; 0 while no stage has failed.
    """

    def __init__(
        self, repo: Any, stages: Mapping[str, Stage], announce: Callable[[str, bool], None]
    ) -> None:
        """Prepare a run of all stages that are out of date; `run` starts it.

        Args:
            repo: DVC's repository object.
            stages: Our description of each stage, by name, in the order of dvc.yaml.
            announce: A function that is called when a stage begins, with its name and True if DVC
                restores its outputs from an earlier run instead of running its command.
        """
        self._repo = repo
        self._stages = stages
        self._announce = announce
        self._machine = whole_machine()
        with self._dvc_lock():
            graph = repo.index.graph
        # For each stage that waits for other stages, the unfinished ones among them.
        self._pending = _predecessors(graph, list(stages))
        _queue_equal_trainings(self._pending, stages)
        # The stages that are out of date and only wait for free cores.
        self._changed: list[Any] = []
        # The running stages, by the future that will return the exit status of their command.
        self._running: dict[Future[int], _RunningStage] = {}
        # The finished stages that are not in dvc.lock yet.
        self._unrecorded: list[Any] = []
        # The highest exit status so far.
        self._status = 0

    def run(self) -> int:
        """Run all stages that are out of date.

        Each stage runs in a process of its own, for which a thread of the pool waits.

        Returns:
            The exit status of a stage that has failed; 0 if all stages have finished.

        Raises:
            Interrupted: A signal arrived. The running stages were stopped.
        """
        with raise_at_signals(), self._thread_pool() as pool:
            try:
                self._start_stages(pool)
                while self._running:
                    # Waits until at least one of the commands has ended.
                    ended = wait(self._running, return_when=FIRST_COMPLETED).done
                    for future in ended:
                        self._handle_end_of(future)
                    # Stages that waited for the ended ones, or for cores, may start now.
                    self._start_stages(pool)
            except KeyboardInterrupt:
                terminate_stages()
                raise Interrupted(
                    "stopped. To continue from here, run the same command again"
                ) from None
            except Exception:
                # An error of this process, for example of `announce` if standard output is closed.
                # The stages that run are not to blame: wait for them and save their results.
                for future in list(self._running):
                    self._handle_end_of(future)
                raise
            finally:
                self._record()
        return self._status

    def _thread_pool(self) -> ThreadPoolExecutor:
        """Return a pool with a thread for each stage that can run at the same time.

        A stage uses at least one core or one GPU.
        """
        return ThreadPoolExecutor(self._machine.cores + self._machine.gpus)

    def _dvc_lock(self) -> AbstractContextManager[None]:
        """Return DVC's lock on the repository, to be held in a `with` block.

        Without the lock, another DVC command could change dvc.lock or the cache at the same time.
        """
        from dvc.repo import lock_repo

        lock: AbstractContextManager[None] = lock_repo(self._repo)
        return lock

    def _start_stages(self, pool: ThreadPoolExecutor) -> None:
        """Start stages that are out of date until the next one needs more cores than are free.

        If DVC's run cache contains the outputs of a stage, from an earlier run with the same
        inputs, they are restored and the stage need not run. After a stage has failed, no other
        stage starts.
        """
        with self._dvc_lock():
            self._collect_ready()
            has_failed = self._status != 0
            while not has_failed:
                dvc_stage, share = self._next_stage()
                if dvc_stage is None:
                    # The end of a running stage calls this method again.
                    break
                self._changed.remove(dvc_stage)
                is_restored = _restore_outputs(dvc_stage)
                self._announce(dvc_stage.name, is_restored)
                if is_restored:
                    # The stage is finished, so the stages after it may have all their inputs now.
                    self._save_outputs(dvc_stage)
                    self._collect_ready()
                else:
                    command = self._stages[dvc_stage.name].command
                    future = pool.submit(run_command, command, share, self._machine)
                    self._running[future] = _RunningStage(dvc_stage, share, time.monotonic())

    def _next_stage(self) -> tuple[Any | None, MachineShare]:
        """Choose the stage that starts next, among those that have changed.

        Stages on GPUs wait for GPUs, all others for cores, and none waits for the other kind: one
        stage without a GPU may always run. Of each kind, the first one of the queue must fit, so
        that a stage that needs all cores is not delayed for ever by smaller ones.

        Returns:
            DVC's object for the stage, and its share of the machine; None and nothing if no stage
            can start now.
        """
        free = self._free_share()
        gpu_stages = []
        cpu_stages = []
        for dvc_stage in self._changed:
            if uses_gpu(self._stages[dvc_stage.name], self._machine):
                gpu_stages.append(dvc_stage)
            else:
                cpu_stages.append(dvc_stage)
        if gpu_stages and free.gpus > 0:
            stages = [self._stages[dvc_stage.name] for dvc_stage in gpu_stages]
            waiting_trainings = sum(stage.kind == "train" for stage in stages)
            gpus = gpus_for(stages[0], free.gpus, waiting_trainings, len(stages))
            cores = cores_beside_gpus(gpus, self._machine)
            return gpu_stages[0], MachineShare(cores=cores, gpus=gpus)
        if cpu_stages:
            stage = self._stages[cpu_stages[0].name]
            free_cores = free.cores
            if free_cores < 1 and not self._runs_stage_without_gpu():
                # The machine has fewer cores than GPUs. Without this, all stages that prepare text
                # would wait until the trainings have ended.
                free_cores = 1
            cores = cores_for(stage, free_cores, len(cpu_stages), self._machine)
            if cores <= free_cores:
                return cpu_stages[0], MachineShare(cores=cores, gpus=0)
        return None, MachineShare(cores=0, gpus=0)

    def _runs_stage_without_gpu(self) -> bool:
        """Return whether a stage that computes on no GPU runs now."""
        return any(running.share.gpus == 0 for running in self._running.values())

    def _free_share(self) -> MachineShare:
        """Return the cores and GPUs that no running stage uses.

        Stages on GPUs start even if all cores are busy, so the number of free cores can be
        negative.
        """
        cores = self._machine.cores
        gpus = self._machine.gpus
        for running in self._running.values():
            cores -= running.share.cores
            gpus -= running.share.gpus
        return MachineShare(cores=cores, gpus=gpus)

    def _collect_ready(self) -> None:
        """Move the stages that no longer wait for other stages from `_pending` to `_changed`.

        `_changed` lists the stages that are out of date and wait for free cores, the most expensive
        training first. A stage that is up to date need not run. It is dropped, so that the stages
        after it may be ready, too. So the search is repeated until it finds none.
        """
        while True:
            # `_pending` maps each waiting stage to the unfinished stages before it.
            ready = [stage for stage, unfinished in self._pending.items() if not unfinished]
            if not ready:
                break
            for dvc_stage in ready:
                del self._pending[dvc_stage]
                if dvc_stage.changed():
                    self._changed.append(dvc_stage)
                else:
                    self._unblock(dvc_stage)
        # Stages other than trainings have the cost 0 and keep the order in which they became ready.
        self._changed.sort(
            key=lambda dvc_stage: _training_cost(self._stages[dvc_stage.name]), reverse=True
        )

    def _handle_end_of(self, future: "Future[int]") -> None:
        """Handle the end of a stage's command: save its outputs, or note that it has failed.

        A stage that fails by itself has printed its error. If a signal has ended it, for example
        for lack of memory, this function prints which signal it was.

        Args:
            future: The future of a command that has ended, with its exit status.
        """
        running = self._running.pop(future)
        name = running.dvc_stage.name
        status = future.result()
        if status == 0:
            try:
                with self._dvc_lock():
                    self._save_outputs(running.dvc_stage)
            except Exception as error:  # DVC's errors have no common class.
                print_message(f"{name}: {describe_machine_error(error) or error}")
                status = 1
        elif status > SIGNAL_STATUS_BASE:
            signal_number = status - SIGNAL_STATUS_BASE
            message = f"{name}: ended by signal {signal_number}"
            if signal_number == signal.SIGKILL:
                message = add_kill_reason(message)
            print_message(message)
        self._status = max(self._status, status)
        # Writing dvc.lock takes half a second, so short stages wait for the end of the run.
        if time.monotonic() - running.start_seconds > _MIN_SECONDS_TO_RECORD:
            self._record()

    def _save_outputs(self, dvc_stage: Any) -> None:
        """Store the outputs of a finished stage in DVC's cache, as `dvc repro` does.

        DVC also adds the stage to its run cache, so that a later run with the same inputs is
        restored instead of repeated.

        Args:
            dvc_stage: DVC's object for the stage.
        """
        # To restore a run, DVC needs all its outputs in its cache. So, as in `dvc repro`, a run
        # with an output outside the cache is not added. Metrics and plots do not count: Git tracks
        # them.
        can_be_restored = all(
            output.use_cache or output.is_metric or output.is_plot for output in dvc_stage.outs
        )
        dvc_stage.save(run_cache=can_be_restored)
        dvc_stage.commit()
        self._unrecorded.append(dvc_stage)
        self._unblock(dvc_stage)

    def _unblock(self, dvc_stage: Any) -> None:
        """Let no stage wait for this one any longer."""
        for predecessors in self._pending.values():
            predecessors.discard(dvc_stage)

    def _record(self) -> None:
        """Write the finished stages that dvc.lock does not contain yet to dvc.lock."""
        if not self._unrecorded:
            return
        with self._dvc_lock():
            write_lock(self._unrecorded)
        self._unrecorded.clear()


def _predecessors(graph: Any, names_in_order: Sequence[str]) -> dict[Any, set[Any]]:
    """Return, for each stage of the pipeline, the stages that have to run before it.

    Args:
        graph: DVC's graph. An edge leads from a stage to a stage whose outputs it depends on, so
            the successors in the graph run before the stage.
        names_in_order: The names of all stages in the order of dvc.yaml.

    Returns:
        DVC's stage objects, in the order of dvc.yaml, each with the stages that must finish first.
    """
    from dvc.stage import PipelineStage

    # DVC's graph also contains files that were added with `dvc add`. No command writes them.
    dvc_stages = [stage for stage in graph if isinstance(stage, PipelineStage)]
    dvc_stages.sort(key=lambda stage: names_in_order.index(stage.name))
    predecessors = {}
    for dvc_stage in dvc_stages:
        needed_stages = graph.successors(dvc_stage)
        predecessors[dvc_stage] = {
            stage for stage in needed_stages if isinstance(stage, PipelineStage)
        }
    return predecessors


def _queue_equal_trainings(predecessors: dict[Any, set[Any]], stages: Mapping[str, Stage]) -> None:
    """Let equal trainings run one after the other: same settings, same data and same seed.

    Two systems that differ only in their settings for decoding have the same training. It runs
    once, in one folder, and the second stage only copies the results of the first. If both stages
    started at once, the second would occupy cores while it waits for the first.

    Args:
        predecessors: For each stage, as DVC's object, the stages that have to run before it; this
            function adds the equal trainings that come earlier.
        stages: Our description of each stage, by name.
    """
    # The trainings so far, grouped by a text that contains all that decides their results.
    equal_trainings = defaultdict[str, set[Any]](set)
    for dvc_stage in predecessors:
        stage = stages[dvc_stage.name]
        if stage.kind != "train":
            continue
        # The name of the stage is train@SYSTEM-CORPUS-SEED.
        _, _, seed = stage.name.rpartition("-")
        settings = list(stage.parameters.values())
        description = str((seed, stage.dependencies, settings))
        earlier_trainings = equal_trainings[description]
        predecessors[dvc_stage] |= earlier_trainings
        earlier_trainings.add(dvc_stage)


def _restore_outputs(dvc_stage: Any) -> bool:
    """Remove the old outputs of a stage, and restore the new ones if DVC has stored them.

    DVC's run cache contains the outputs of earlier runs of a stage. If one of them had the same
    inputs as now, the stage need not run.

    Args:
        dvc_stage: DVC's object for the stage, which is out of date.

    Returns:
        Whether the outputs were restored.
    """
    from dvc.stage.cache import RunCacheNotFoundError

    dvc_stage.remove_outs(ignore_remove=False, force=False)
    try:
        dvc_stage.repo.stage_cache.restore(dvc_stage)
    except RunCacheNotFoundError:
        # The stage has to run. It will read the present inputs, so their hashes are stored now.
        dvc_stage.save_deps()
        return False
    return True


def _training_cost(stage: Stage) -> float:
    """Estimate how much a stage computes, so that the most expensive training can start first.

    If the longest training started last, it would run alone at the end. The estimate is the number
    of target tokens that a training reads, times the number of weights in its layers. For any other
    stage it is 0.

    Args:
        stage: The stage, with its settings.
    """
    if stage.kind != "train":
        return 0.0
    sections = {}
    for key, value in stage.parameters.items():
        # The settings of a run have keys such as runs.tiny.phrasebook.train.
        if key.startswith("runs."):
            section_name = key.rpartition(".")[2]
            sections[section_name] = value
    model = sections["model"]
    train = sections["train"]
    # The stage of a run that params.yaml excludes has empty settings, and does nothing.
    is_excluded = not train
    if is_excluded:
        return 0.0
    # A training whose length is set in epochs or in sentences has no such number: it counts as 1.
    tokens = train.get("max_updates", 1) * train.get("tokens_per_update", 1)
    layers = model["encoder_layers"] + model["decoder_layers"]
    # Attention has four matrices of d_model x d_model.
    weights_per_layer = model["d_model"] * (4 * model["d_model"] + model["d_ff"])
    return float(tokens * layers * weights_per_layer)
