"""Stages of the small project at faults of their file operations, and with too little memory.

BLEUPRINT_FAULTS sets at how many calls each fault is tried in each stage (default: 8), spread over
all its calls on files.
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
CALLS_PER_FAULT = int(os.environ.get("BLEUPRINT_FAULTS", "8"))
FAULT_KINDS = ("SIGKILL", "ENOSPC", "EIO", "EMFILE")
# A fault at a call that no stage reaches, so that it counts the calls and changes nothing.
UNREACHED_CALL = 10**9
# By the name of the stage, in the order of the graph.
STAGES = (
    "resolve",
    "download@own",
    "clean@own",
    "dedup@own",
    "filter@own",
    "split@own",
    "tokenize@own",
    "learn_vocabulary@own",
    "binarize@own",
    "corpus_stats@own",
    "test_stats@own",
    "fresh@tiny-1",
    "train@tiny-own-1",
    "average@tiny-own-1",
    "translate@tiny-own-1",
    "score@tiny-own-1",
    "report",
)


@pytest.fixture(scope="module")
def project(by_dvc, tmp_path_factory):
    """Copy a project in which all stages have run; each test leaves it so."""
    return by_dvc.copy(tmp_path_factory.mktemp("faults") / "project")


@pytest.fixture(scope="module")
def stages_by_name(project):
    """Return the stages of the project by name."""
    return {stage.name: stage for stage in graph.load_stages(project.root)}


@pytest.mark.parametrize("stage_name", STAGES)
@pytest.mark.parametrize("fault_kind", FAULT_KINDS)
def test_each_output_of_a_stage_is_whole_or_missing_after_a_fault(
    project, stages_by_name, stage_name, fault_kind
):
    """The stage runs once without a fault, to count its system calls on files.

    Then it runs several times with a fault at one of these calls, such as a kill (SIGKILL) or a
    full disk (ENOSPC). After each fault, a run without one must give the same outputs.
    """
    stage = stages_by_name[stage_name]
    whole_outputs = _read_outputs(project, stage)
    assert all(whole_outputs.values())
    _remove_outputs(project, stage)
    undisturbed = _run_stage(project, stage, Fault(fault_kind, UNREACHED_CALL))
    assert undisturbed.status == 0, undisturbed.output
    assert _read_outputs(project, stage) == whole_outputs

    calls = undisturbed.struck
    calls_between_faults = max(1, calls // CALLS_PER_FAULT)
    for call in range(1, calls + 1, calls_between_faults):
        label = f"{stage_name}: {fault_kind} at {call}"
        _remove_outputs(project, stage)
        fault = Fault(fault_kind, call, lasting=fault_kind == "ENOSPC")
        outcome = _run_stage(project, stage, fault)
        fault_sweep.check_end(fault_kind, outcome, label, may_print_more=True)
        for output, files in _read_outputs(project, stage).items():
            is_missing_or_whole = files in ({}, whole_outputs[output])
            assert is_missing_or_whole, f"{label}: {output}: {sorted(files)}"

        second_outcome = _run_stage(project, stage, Fault("none"))
        assert second_outcome.status == 0, f"{label}, then: {second_outcome.output}"
        assert _read_outputs(project, stage) == whole_outputs, label
        assert not list(project.root.rglob(".*.partial-*")), label


def _run_stage(project, stage, fault):
    """Run a stage with a fault, in a forked process and without MLflow; faults spare the code."""
    script, *arguments = stage.command.partition("python ")[2].split()
    source = (project.root / script).read_bytes()
    # It is compiled before the fork: a fault while Python reads the script is not the stage's.
    code = compile(source, script, "exec")

    def operation():
        os.chdir(project.root)
        os.environ.clear()
        os.environ.update(project.environment)
        os.environ.update(reexec.VARIABLES)
        os.environ.update({"BLEUPRINT_WORKERS": "1", "OMP_NUM_THREADS": "1"})
        # None makes `import mlflow` fail, as if it were not installed.
        sys.modules["mlflow"] = None
        sys.argv[:] = [script, *arguments]
        # As Python runs a script.
        exec(code, {"__name__": "__main__"})

    return syscalls.run_with(fault, project.root, operation, but=project.root / "src")


def _remove_outputs(project, stage):
    """Remove what DVC removes before it runs a stage, and a training in progress."""
    if stage.kind == "train":
        shutil.rmtree(project.root / "work" / "trainings", ignore_errors=True)
    for output in stage.outputs:
        if output in stage.git_outputs:
            continue
        path = project.root / output
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _read_outputs(project, stage):
    """Return the bytes of each output's files, by output; {} for an output that is missing."""
    files_by_output = {}
    for output in stage.outputs:
        path = project.root / output
        files = [path] if path.is_file() else path.rglob("*")
        files_by_output[output] = {
            str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()
        }
    return files_by_output


@pytest.mark.parametrize(
    "stage_name", ["dedup@own", "learn_vocabulary@own", "train@tiny-own-1", "translate@tiny-own-1"]
)
def test_too_little_memory_ends_a_stage_with_one_line(project, stages_by_name, stage_name):
    """The stage runs with 100 MB of memory, then with 1.3 times as much, until it succeeds.

    A run that fails must say "memory" in its last line instead of a traceback, and leave each
    output whole or missing. Native libraries may abort with a message of their own.
    """
    stage = stages_by_name[stage_name]
    whole_outputs = _read_outputs(project, stage)
    environment = {
        **project.environment,
        **reexec.VARIABLES,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "BLEUPRINT_WORKERS": "1",
    }
    limit_bytes = 100 * 2**20

    while True:
        _remove_outputs(project, stage)
        done = subprocess.run(
            ["sh", "-c", f"ulimit -v {limit_bytes // 1024}; exec {stage.command}"],
            cwd=project.root,
            env=environment,
            capture_output=True,
            text=True,
        )
        # A training skips an update that does not fit, and records that it did.
        has_skipped_an_update = "skipped" in done.stderr
        if done.returncode == 0 and not has_skipped_an_update:
            break
        label = f"{stage_name} with {limit_bytes / 1e6:.0f} MB: {done.stderr}"
        assert "Traceback" not in done.stderr, label
        # Native libraries may abort, with or without a line of their own.
        has_aborted = done.returncode < 0 or "OpenBLAS" in done.stderr
        if not has_aborted and not has_skipped_an_update:
            assert "memory" in done.stderr.splitlines()[-1], label
        if not has_skipped_an_update:
            for output, files in _read_outputs(project, stage).items():
                assert files in ({}, whole_outputs[output]), label
        limit_bytes = int(limit_bytes * 1.3)
        assert limit_bytes < 64e9

    assert _read_outputs(project, stage) == whole_outputs
