"""Stages of the small project at faults of their file operations, and with too little memory.

BLEUPRINT_FAULTS: points of each fault and stage (default: 8, spread over all operations).
"""

import os
import shutil
import subprocess
import sys

import pytest

import fault_sweep
import syscalls
from bleuprint.pipeline import graph
from bleuprint.runtime import reexec
from syscalls import Fault

pytestmark = [pytest.mark.long, fault_sweep.NEEDS_SECCOMP]
POINTS = int(os.environ.get("BLEUPRINT_FAULTS", "8"))
KINDS = ("SIGKILL", "ENOSPC", "EIO", "EMFILE")
# by the name of the stage, in the order of the graph
STAGES = (
    *("resolve", "download@own", "clean@own", "dedup@own", "filter@own", "split@own"),
    *("tokenize@own", "learn_vocabulary@own", "binarize@own", "corpus_stats@own"),
    *("test_stats@own", "fresh@tiny-1", "train@tiny-own-1", "average@tiny-own-1"),
    *("translate@tiny-own-1", "score@tiny-own-1", "report"),
)


@pytest.fixture(scope="module")
def project(by_dvc, tmp_path_factory):
    """A project in which everything has run; each test leaves it so."""
    return by_dvc.copy(tmp_path_factory.mktemp("faults") / "project")


@pytest.fixture(scope="module")
def stages(project):
    return {stage.name: stage for stage in graph.load_stages(project.root)}


@pytest.mark.parametrize("name", STAGES)
def test_each_output_is_whole_or_missing(project, stages, name):
    stage, expected = stages[name], _outputs(project, stages[name])
    assert all(expected.values())
    for kind in KINDS:
        _without_outputs(project, stage)
        clean = _run(project, stage, Fault(kind, 10**9))
        assert clean.status == 0, clean.output
        assert _outputs(project, stage) == expected
        for at in range(1, clean.struck + 1, max(1, clean.struck // POINTS)):
            _without_outputs(project, stage)
            where = f"{name}: {kind} at {at}"
            outcome = _run(project, stage, Fault(kind, at, lasting=kind == "ENOSPC"))
            fault_sweep.check(kind, outcome, where, alone=False)
            for output, found in _outputs(project, stage).items():
                assert found in ({}, expected[output]), f"{where}: {output}: {sorted(found)}"
            again = _run(project, stage, Fault("none"))
            assert again.status == 0, f"{where}, then: {again.output}"
            assert _outputs(project, stage) == expected, where
            assert not [*project.root.rglob(".*.partial-*")], where


def _run(project, stage, fault):
    """Run a stage in a forked process, without MLflow; faults spare the code."""
    script, *arguments = stage.command.partition("python ")[2].split()
    text = (project.root / script).read_bytes()
    code = compile(text, script, "exec")  # here: a fault while Python reads it is not the stage's

    def operation():
        os.chdir(project.root)
        os.environ.clear()
        os.environ.update(project.environment)
        os.environ |= {**reexec.VARIABLES, "BLEUPRINT_WORKERS": "1", "OMP_NUM_THREADS": "1"}
        sys.modules["mlflow"] = None  # not in this test
        sys.argv[:] = [script, *arguments]
        exec(code, {"__name__": "__main__"})  # as Python runs a script

    return syscalls.run_with(fault, project.root, operation, but=project.root / "src")


def _without_outputs(project, stage):
    """Remove what DVC removes before it runs a stage, and a training in progress."""
    if stage.kind == "train":
        shutil.rmtree(project.root / "work" / "trainings", ignore_errors=True)
    for output in stage.outputs:
        if output not in stage.git_outputs:
            path = project.root / output
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _outputs(project, stage):
    """The bytes of each output's files, by output; {} for one that is not there."""
    found = {}
    for output in stage.outputs:
        path = project.root / output
        files = [path] if path.is_file() else path.rglob("*")
        found[output] = {
            str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()
        }
    return found


@pytest.mark.parametrize(
    "name", ["dedup@own", "learn_vocabulary@own", "train@tiny-own-1", "translate@tiny-own-1"]
)
def test_too_little_memory_is_one_line(project, stages, name):
    """RLIMIT_AS from what Python itself needs up to what the stage needs."""
    stage, expected = stages[name], _outputs(project, stages[name])
    limit, environment = 100 * 2**20, project.environment | reexec.VARIABLES  # Python starts
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "BLEUPRINT_WORKERS": "1"}
    while True:
        _without_outputs(project, stage)
        done = subprocess.run(
            ["sh", "-c", f"ulimit -v {limit // 1024}; exec {stage.command}"],
            cwd=project.root,
            env=environment,
            capture_output=True,
            text=True,
        )
        skipped = "skipped" in done.stderr  # one update, by a training, which records it
        if done.returncode == 0 and not skipped:
            break
        where = f"{name} with {limit / 1e6:.0f} MB: {done.stderr}"
        assert "Traceback" not in done.stderr, where
        # native libraries may abort, with or without a line of their own
        aborted = done.returncode < 0 or "OpenBLAS" in done.stderr
        assert aborted or skipped or "memory" in done.stderr.splitlines()[-1], where
        for output, found in _outputs(project, stage).items():
            assert skipped or found in ({}, expected[output]), where
        limit = int(limit * 1.3)
        assert limit < 64e9
    assert _outputs(project, stage) == expected
