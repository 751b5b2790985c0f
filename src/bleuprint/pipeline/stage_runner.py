"""Runs the changed stages of the graph, independent stages at the same time.

`dvc repro` runs one stage after another. `run_changed_stages` runs as many as the machine has cores
for. DVC still decides which stages have changed and which outputs its run cache contains, and DVC
writes dvc.lock.
"""

import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bleuprint.pipeline.dvc_lock import write_lock
from bleuprint.pipeline.dvc_repo import open_repo
from bleuprint.pipeline.graph import Stage, load_stages
from bleuprint.runtime import processor
from bleuprint.runtime.environment import RUNNER_LOGS, stage_path
from bleuprint.runtime.errors import Interrupted, print_message
from bleuprint.runtime.machine_errors import describe_machine_error, explain_kill
from bleuprint.runtime.progress import SHARED_TERMINAL

# Writing dvc.lock takes half a second. It is written after each stage that took longer than this,
# and at the end of the run. After a kill, DVC's run cache still contains what dvc.lock lacks.
_MIN_SECONDS_TO_RECORD = 10.0
# As in a shell, the exit status of a command that signal N has ended is this number plus N.
_SIGNAL_STATUS_BASE = 128


def run_changed_stages(announce: Callable[[str, bool], None], root: Path = Path()) -> int:
    """Run the stages that have changed, by the settings in reports/resolved.json.

    The caller writes reports/resolved.json first. After a stage has failed, no other stage starts.

    Args:
        announce: Called when a stage begins, with its name and whether DVC's run cache restores its
            outputs, so that its command does not run.
        root: The project's folder.

    Returns:
        The exit status of a stage that has failed; 0 if all stages have finished.

    Raises:
        Interrupted: SIGINT, SIGTERM or SIGHUP arrived. The running stages have ended by SIGTERM.
    """
    with open_repo(root) as repo:
        stages = {stage.name: stage for stage in load_stages(root)}
        return _StageRunner(repo, stages, announce).run()


@dataclass(frozen=True)
class _RunningStage:
    """A stage whose command runs.

    Attributes:
        dvc_stage: DVC's object for the stage.
        cores: The number of cores that it uses.
        start_seconds: When it began, by the monotonic clock.
    """

    dvc_stage: Any
    cores: int
    start_seconds: float


class _StageRunner:
    """One run of the changed stages. Only the main thread uses DVC's objects, with DVC's lock.

    A stage goes through these states: it waits for other stages (`_pending`), has changed and waits
    for free cores (`_changed`), runs (`_running`), is finished but not in dvc.lock (`_unrecorded`).

    Attributes:
        _repo: DVC's repository.
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
        """Read the dependencies between the stages of dvc.yaml from DVC's graph."""
        self._repo = repo
        self._stages = stages
        self._announce = announce
        with self._dvc_lock():
            graph = repo.index.graph
        self._pending = _predecessors(graph, list(stages))
        _queue_equal_trainings(self._pending, stages)
        self._changed: list[Any] = []
        self._running: dict[Future[int], _RunningStage] = {}
        self._unrecorded: list[Any] = []
        self._status = 0

    def run(self) -> int:
        """Run all changed stages; return the exit status of a failed stage, or 0."""
        with _raise_at_signals(), ThreadPoolExecutor(_machine_cores()) as pool:
            try:
                self._start_stages(pool)
                while self._running:
                    for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                        self._finish(future)
                    self._start_stages(pool)
            except KeyboardInterrupt:
                _terminate_stages()
                raise Interrupted("stopped: the same command continues from here") from None
            except Exception:
                # `announce` fails where standard output was closed, for example. The results of the
                # running stages are saved nevertheless.
                for future in list(self._running):
                    self._finish(future)
                raise
            finally:
                self._record()
        return self._status

    def _dvc_lock(self) -> AbstractContextManager[None]:
        """Return DVC's lock of the repository, as a context manager."""
        from dvc.repo import lock_repo

        lock: AbstractContextManager[None] = lock_repo(self._repo)
        return lock

    def _start_stages(self, pool: ThreadPoolExecutor) -> None:
        """Start changed stages, in their order, until the next one needs more than the free cores.

        If DVC's run cache contains the outputs of a stage, they are restored instead.
        """
        with self._dvc_lock():
            self._collect_ready()
            has_failed = self._status != 0
            while self._changed and not has_failed:
                dvc_stage = self._changed[0]
                stage = self._stages[dvc_stage.name]
                used_cores = sum(running.cores for running in self._running.values())
                free_cores = _machine_cores() - used_cores
                cores = _cores_for(stage, free_cores, waiting_stages=len(self._changed))
                if cores > free_cores:
                    break
                self._changed.pop(0)
                is_restored = _restore_outputs(dvc_stage)
                self._announce(stage.name, is_restored)
                if is_restored:
                    self._save_outputs(dvc_stage)
                    self._collect_ready()
                else:
                    future = pool.submit(_run_command, stage.command, cores)
                    self._running[future] = _RunningStage(dvc_stage, cores, time.monotonic())

    def _collect_ready(self) -> None:
        """Move the stages whose inputs are complete to the changed ones, the longest first.

        A ready stage that has not changed is done, which may make further stages ready.
        """
        while True:
            ready = [stage for stage, before in self._pending.items() if not before]
            if not ready:
                break
            for dvc_stage in ready:
                del self._pending[dvc_stage]
                if dvc_stage.changed():
                    self._changed.append(dvc_stage)
                else:
                    self._unblock(dvc_stage)
        # Stages other than trainings have no cost and keep the order in which they became ready.
        self._changed.sort(
            key=lambda dvc_stage: _training_cost(self._stages[dvc_stage.name]), reverse=True
        )

    def _finish(self, future: "Future[int]") -> None:
        """Save the outputs of a stage whose command has ended, or say by which signal it ended."""
        running = self._running.pop(future)
        name = running.dvc_stage.name
        status = future.result()
        if status == 0:
            try:
                with self._dvc_lock():
                    self._save_outputs(running.dvc_stage)
            except Exception as error:  # DVC's errors have no common class
                print_message(f"{name}: {describe_machine_error(error) or error}")
                status = 1
        elif status > _SIGNAL_STATUS_BASE:
            # A stage that ends by itself has printed its error. One that a signal ends has not.
            signal_number = status - _SIGNAL_STATUS_BASE
            reason = explain_kill() if signal_number == signal.SIGKILL else ""
            print_message(f"{name}: ended by signal {signal_number}{reason}")
        self._status = max(self._status, status)
        if time.monotonic() - running.start_seconds > _MIN_SECONDS_TO_RECORD:
            self._record()

    def _save_outputs(self, dvc_stage: Any) -> None:
        """Store the outputs in DVC's cache, and the run in its run cache, as `dvc repro` does."""
        # The run cache refers to files in DVC's cache, so all outputs must be there.
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
        """Write the finished stages to dvc.lock."""
        if self._unrecorded:
            with self._dvc_lock():
                write_lock(self._unrecorded)
            self._unrecorded.clear()


def _predecessors(graph: Any, names_in_order: Sequence[str]) -> dict[Any, set[Any]]:
    """Return, for each stage of DVC, the stages whose outputs it depends on.

    Args:
        graph: DVC's graph, in which an edge leads from a stage to a stage that it depends on.
        names_in_order: The names of the stages in the order of dvc.yaml, which the result keeps.
    """
    from dvc.stage import PipelineStage

    # DVC's graph also contains each file of `dvc add`, for which no command runs.
    dvc_stages = [stage for stage in graph if isinstance(stage, PipelineStage)]
    dvc_stages.sort(key=lambda stage: names_in_order.index(stage.name))
    predecessors = {}
    for dvc_stage in dvc_stages:
        successors = graph.successors(dvc_stage)
        predecessors[dvc_stage] = {
            stage for stage in successors if isinstance(stage, PipelineStage)
        }
    return predecessors


def _queue_equal_trainings(predecessors: dict[Any, set[Any]], stages: Mapping[str, Stage]) -> None:
    """Let a training wait for earlier ones with the same settings, data and seed.

    Two systems may differ only in how they decode. Their trainings share one work folder: if both
    started, the second one would wait for the first while it occupies a core.

    Args:
        predecessors: The stages that each stage of DVC waits for; this function adds to them.
        stages: Our description of each stage, by name.
    """
    equal_trainings = defaultdict[str, set[Any]](set)
    for dvc_stage in predecessors:
        stage = stages[dvc_stage.name]
        if stage.kind != "train":
            continue
        seed = stage.name.rpartition("-")[2]
        settings = list(stage.parameters.values())
        earlier_trainings = equal_trainings[str((seed, stage.dependencies, settings))]
        predecessors[dvc_stage] |= earlier_trainings
        earlier_trainings.add(dvc_stage)


def _restore_outputs(dvc_stage: Any) -> bool:
    """Restore the outputs of a changed stage from DVC's run cache.

    Returns:
        False if the run cache does not contain them. Then the old outputs are removed, and the
        stage is ready to run.
    """
    from dvc.stage.cache import RunCacheNotFoundError

    dvc_stage.remove_outs(ignore_remove=False, force=False)
    try:
        dvc_stage.repo.stage_cache.restore(dvc_stage)
    except RunCacheNotFoundError:
        dvc_stage.save_deps()
        return False
    return True


def _training_cost(stage: Stage) -> float:
    """Estimate the work of a training: its target tokens times the weights of the layers.

    Trainings with the highest cost start first. The cost of all other stages is 0, as is the cost
    of an excluded run, whose settings are empty.
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
    is_excluded = not train
    if is_excluded:
        return 0.0
    tokens = train.get("max_updates", 1) * train.get("tokens_per_update", 1)
    layers = model["encoder_layers"] + model["decoder_layers"]
    # Attention has four matrices of d_model x d_model.
    weights_per_layer = model["d_model"] * (4 * model["d_model"] + model["d_ff"])
    return float(tokens * layers * weights_per_layer)


def _cores_for(stage: Stage, free_cores: int, waiting_stages: int) -> int:
    """Return the number of cores for a stage.

    A stage that needs a GPU gets all cores, also on a machine without a GPU, since the training
    then computes on all of them. A stage with one thread gets one core. Any other stage gets an
    equal share of the free cores, at least one.

    Args:
        stage: The stage that starts next.
        free_cores: The number of cores that no running stage uses.
        waiting_stages: The number of changed stages that could start now, this one included.
    """
    if stage.gpu:
        return _machine_cores()
    if stage.threads == 1:
        return 1
    return max(1, free_cores // waiting_stages)


def _run_command(command: str, cores: int) -> int:
    """Run a stage's command in a shell, and return its exit status.

    The status of a command that signal N has ended is 128 + N.
    """
    # A number of workers that the user has set takes precedence over ours.
    variables = {"BLEUPRINT_WORKERS": str(cores)}
    variables.update(os.environ)
    variables["PATH"] = stage_path()
    variables[RUNNER_LOGS] = "1"
    if cores < _machine_cores():
        variables[SHARED_TERMINAL] = "1"
    status = subprocess.call(command, shell=True, env=variables)
    # Python returns -N for a shell that signal N has ended.
    return status if status >= 0 else _SIGNAL_STATUS_BASE - status


@contextmanager
def _raise_at_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT, SIGTERM and SIGHUP within a `with` block.

    A signal that is ignored stays ignored: `nohup` ignores SIGHUP.
    """
    old_handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        old_handlers[number] = signal.getsignal(number)
        if old_handlers[number] != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def _terminate_stages() -> None:
    """Send SIGTERM to all stages, and wait until they have ended: trainings save first."""
    import psutil

    # The children are shells, the stages that they run, and the processes of these stages.
    processes = psutil.Process().children(recursive=True)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    psutil.wait_procs(processes)


def _machine_cores() -> int:
    """Return the number of cores that this process may use."""
    return processor.THIS.cores
