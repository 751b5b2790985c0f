"""Runs what has changed in the graph, independent stages beside each other.

`dvc repro` takes one stage after the other. What has changed, what the run cache has, and what is
recorded in dvc.lock is decided by DVC here as there.
"""

import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
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

# Seconds: dvc.lock, which takes half a second to write, is written after stages that took longer,
# and at the end. What a kill leaves unrecorded is in DVC's run cache.
_LONG = 10.0
# The status of a command that signal N has ended is this plus N, in a shell.
_SIGNALS = 128


def run_changed_stages(started: Callable[[str, bool], None], root: Path = Path()) -> int:
    """Run what has changed by reports/resolved.json, which must be of the present settings.

    `started` gets the name of each stage, and whether its outputs come from DVC's run cache.
    Returns the status of a stage that has failed, else 0. After a failure none is started.
    Raises Interrupted at SIGINT, SIGTERM and SIGHUP, once the stages have ended by SIGTERM.
    """
    with open_repo(root) as repo:
        return _Run(repo, {stage.name: stage for stage in load_stages(root)}, started).run()


class _Run:
    """A run's state. DVC's objects are used by the main thread alone, with DVC's lock.

    `_before`: by DVC's stage those that it has to follow and that are not done, in the order of
    dvc.yaml; `_changed`: stages to run, which wait for cores; `_running`: by the future of its
    command a stage, its cores, and when it began; `_unrecorded`: those that dvc.lock lacks.
    """

    def __init__(
        self, repo: Any, described: Mapping[str, Stage], started: Callable[[str, bool], None]
    ) -> None:
        from dvc.repo import lock_repo
        from dvc.stage import PipelineStage

        self._locked: Callable[[], AbstractContextManager[None]] = partial(lock_repo, repo)
        self._described, self._started = described, started
        with self._locked():
            graph = repo.index.graph
        # a file of `dvc add` is in DVC's graph, too; nothing runs for it
        in_order = [stage for stage in graph if isinstance(stage, PipelineStage)]
        order = [*described]
        in_order.sort(key=lambda stage: order.index(stage.name))
        self._before = {
            stage: {each for each in graph.successors(stage) if isinstance(each, PipelineStage)}
            for stage in in_order
        }
        same = defaultdict[str, set[Any]](set)
        for stage in (stage for stage in in_order if described[stage.name].kind == "train"):
            # of systems with the same training, the second would wait for it, and keep a core
            each = described[stage.name]
            seed = each.name.rpartition("-")[2]
            others = same[str((seed, each.dependencies, [*each.parameters.values()]))]
            self._before[stage] |= others
            others.add(stage)
        self._changed: list[Any] = []
        self._running: dict[Future[int], tuple[Any, int, float]] = {}
        self._unrecorded: list[Any] = []
        self._status = 0

    def run(self) -> int:
        with _interruptible(), ThreadPoolExecutor(_cores()) as pool:
            try:
                self._start(pool)
                while self._running:
                    for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                        self._end(future)
                    self._start(pool)
            except KeyboardInterrupt:
                _end_stages()
                raise Interrupted("stopped: the same command continues from here") from None
            except Exception:  # such as a closed standard output: what runs is not lost
                for future in [*self._running]:
                    self._end(future)
                raise
            finally:
                self._record()
        return self._status

    def _start(self, pool: ThreadPoolExecutor) -> None:
        """Start changed stages, whose inputs are there, while there are free cores for the next.

        A stage whose outputs are in DVC's cache is not run. After a stage has failed, none starts.
        """
        with self._locked():
            self._check()
            has_failed = self._status != 0
            while self._changed and not has_failed:
                stage = self._changed[0]
                described = self._described[stage.name]
                used_cores = sum(cores for _, cores, _ in self._running.values())
                free_cores = _cores() - used_cores
                cores = _share(described, free_cores, len(self._changed))
                if cores > free_cores:
                    break
                self._changed.pop(0)
                is_restored = _restore(stage)
                self._started(stage.name, is_restored)
                if is_restored:
                    self._save(stage)
                    self._check()
                else:
                    future = pool.submit(_call, described.command, cores)
                    self._running[future] = stage, cores, time.monotonic()

    def _check(self) -> None:
        """Find the stages whose inputs are there: those that have changed, the longest first.

        Others are done.
        """
        while ready := [stage for stage, before in self._before.items() if not before]:
            for stage in ready:
                del self._before[stage]
                if stage.changed():
                    self._changed.append(stage)
                else:
                    self._done(stage)
        self._changed.sort(key=lambda stage: -_work(self._described[stage.name]))

    def _end(self, future: "Future[int]") -> None:
        """Save the outputs of a command that has ended."""
        stage, _, began = self._running.pop(future)
        if not (status := future.result()):
            try:
                with self._locked():
                    self._save(stage)
            except Exception as error:  # DVC's errors have no common class
                print_message(f"{stage.name}: {describe_machine_error(error) or error}")
                status = 1
        elif status > _SIGNALS:  # else the stage has said what is wrong
            killed = status - _SIGNALS == signal.SIGKILL
            why = explain_kill() if killed else ""
            print_message(f"{stage.name}: ended by signal {status - _SIGNALS}{why}")
        self._status = max(self._status, status)
        if time.monotonic() - began > _LONG:
            self._record()

    def _save(self, stage: Any) -> None:
        """Put outputs into DVC's cache and the run cache, as `dvc repro` does."""
        cached = (out.use_cache or out.is_metric or out.is_plot for out in stage.outs)
        stage.save(run_cache=all(cached))
        stage.commit()
        self._unrecorded.append(stage)
        self._done(stage)

    def _done(self, stage: Any) -> None:
        for before in self._before.values():
            before.discard(stage)

    def _record(self) -> None:
        """Write dvc.lock."""
        if self._unrecorded:
            with self._locked():
                write_lock(self._unrecorded)
            self._unrecorded.clear()


def _restore(stage: Any) -> bool:
    """Whether a changed stage's outputs come from the run cache; otherwise they are removed."""
    from dvc.stage.cache import RunCacheNotFoundError

    stage.remove_outs(ignore_remove=False, force=False)
    try:
        stage.repo.stage_cache.restore(stage)
    except RunCacheNotFoundError:
        stage.save_deps()
        return False
    return True


def _work(stage: Stage) -> float:
    """About how much a training computes, in products of numbers; 0 of other stages."""
    if stage.kind != "train":
        return 0
    given = [item for item in stage.parameters.items() if item[0].startswith("runs.")]
    run = {key.rpartition(".")[2]: value for key, value in given}
    model, train = run["model"], run["train"]
    if not train:  # a run that is left out
        return 0
    tokens = train.get("max_updates", 1) * train.get("tokens_per_update", 1)
    layers = model["encoder_layers"] + model["decoder_layers"]
    return float(tokens * layers * model["d_model"] * (4 * model["d_model"] + model["d_ff"]))


def _share(stage: Stage, free: int, others: int) -> int:
    """The cores of a stage: all for one that computes in several threads, else its part."""
    if stage.gpu:  # also where there is no GPU
        return _cores()
    return 1 if stage.threads == 1 else max(1, free // others)


def _call(command: str, cores: int) -> int:
    """The status of a command, as a shell has it."""
    variables = {"BLEUPRINT_WORKERS": str(cores), **os.environ, "PATH": stage_path()}
    variables[RUNNER_LOGS] = "1"
    if cores < _cores():
        variables[SHARED_TERMINAL] = "1"
    status = subprocess.call(command, shell=True, env=variables)
    return status if status >= 0 else _SIGNALS - status


@contextmanager
def _interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at each signal that asks to end and is not ignored, as by nohup."""
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = {each: signal.getsignal(each) for each in numbers}
    for number in (each for each in numbers if before[each] != signal.SIG_IGN):
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_stages() -> None:
    """Send SIGTERM to the stages, and wait until they have ended: trainings save first."""
    import psutil

    processes = psutil.Process().children(recursive=True)  # shells, stages, their processes
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            each.terminate()
    psutil.wait_procs(processes)


def _cores() -> int:
    return processor.THIS.cores
