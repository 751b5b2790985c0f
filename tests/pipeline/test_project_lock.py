"""Two programs that run stages of one project: the second one names the first, and waits or ends.

`bleuprint reproduce` and `bleuprint plan` wait. Snakemake and `dvc repro` end with an error.
"""

import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import micro
from bleuprint.pipeline import project_lock
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json

# A training in these tests is this shell command: it ends once the file work/go exists.
TRAIN_UNTIL_GO = "touch work/began; until test -e work/go; do sleep 0.05; done"
RUN_COMMANDS = {
    "bleuprint reproduce": ("bleuprint", "reproduce"),
    "snakemake": ("snakemake", "-c2"),
    "dvc repro": ("dvc", "repro"),
}


@pytest.fixture
def project(stand_in, tmp_path):
    """Return a project in which the stages of one system, wide, are out of date."""
    copy = stand_in.copy(tmp_path / "project")
    copy.edit("params.yaml", "    model: {d_ff: 64}\n", "    model: {d_ff: 32}\n")
    copy.environment["WHILE_TRAINING"] = TRAIN_UNTIL_GO
    (copy.root / "work").mkdir(exist_ok=True)
    return copy


@pytest.fixture
def start(project):
    """Return a function that starts one of RUN_COMMANDS by its name and returns the process.

    A process that still runs at the end of the test is killed.
    """
    processes = []

    def start(name):
        process = project.start(*RUN_COMMANDS[name])
        processes.append(process)
        return process

    yield start
    for process in processes:
        micro.kill(process)
        process.wait()


@pytest.fixture
def start_and_wait_in_training(project, start):
    """Return a function that starts one of RUN_COMMANDS and returns when its training has begun.

    The training ends when the test calls `let_training_end`.
    """

    def start_and_wait(name):
        process = start(name)
        while not (project.root / "work/began").exists():
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        return process

    return start_and_wait


def let_training_end(project):
    """Create the file that a started training waits for."""
    (project.root / "work/go").touch()


def output_of(process):
    """Wait until a process has ended, and return what it printed."""
    output, _ = process.communicate()
    return output


def wait_for_line(process, pattern):
    """Read what a process prints until a line contains the pattern; fail if it ends before."""
    for line in process.stdout:
        if re.search(pattern, line):
            return
    pytest.fail(f"the process ended without printing {pattern}")


def busy_message(program, process):
    """Return a pattern of the message that a process uses the project.

    An example: `dvc repro (process 123, since 10:30) is running`.
    """
    return rf"{program}[^(]* \(process {process.pid}, since \d\d:\d\d\) is running"


@pytest.mark.parametrize("first_program", ["bleuprint reproduce", "snakemake"])
def test_a_second_snakemake_ends_with_an_error_that_names_the_first_program(
    project, start_and_wait_in_training, start, first_program
):
    """Two programs in one project would overwrite each other's outputs."""
    first = start_and_wait_in_training(first_program)

    second = start("snakemake")
    output = output_of(second)

    assert second.returncode == 1
    errors = [line for line in output.splitlines() if "error: " in line]
    assert len(errors) == 1, output
    assert re.search(busy_message(first_program, first), errors[0])
    dry_run_output = project.run("snakemake", "--dry-run", status=1)
    assert re.search(busy_message(first_program, first), dry_run_output)


@pytest.mark.parametrize("first_program", ["bleuprint reproduce", "snakemake"])
def test_dvc_repro_ends_with_an_error_before_its_first_stage(
    start_and_wait_in_training, start, first_program
):
    """DVC finds the first program in its own list of processes, as writer of all outputs."""
    first = start_and_wait_in_training(first_program)

    second = start("dvc repro")
    output = output_of(second)

    assert second.returncode != 0
    assert f"(PID {first.pid}): " in output
    assert first_program in output
    assert "Running stage" not in output


@pytest.mark.parametrize("first_program", ["bleuprint reproduce", "snakemake"])
def test_the_first_program_finishes_although_others_were_refused(
    project, start_and_wait_in_training, start, first_program
):
    """The refused programs must leave its outputs and its entries in dvc.lock alone."""
    first = start_and_wait_in_training(first_program)
    output_of(start("snakemake"))
    output_of(start("dvc repro"))

    let_training_end(project)
    first_output = output_of(first)

    # The stages of this project write no scores; the overview of scores is left out silently.
    assert "does not exist" not in first_output
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set(), first_output


@pytest.mark.parametrize("first_program", ["bleuprint reproduce", "snakemake", "dvc repro"])
def test_reproduce_waits_for_the_first_program_and_keeps_its_results(
    project, start_and_wait_in_training, start, first_program
):
    """When the first program has ended, all stages are up to date: nothing is left to train."""
    first = start_and_wait_in_training(first_program)

    second = start("bleuprint reproduce")
    wait_for_line(second, f"note: {busy_message(first_program, first)}.*Waiting until it ends")
    let_training_end(project)
    first_output = output_of(first)
    second_output = output_of(second)

    assert "does not exist" not in first_output
    assert "train@" not in second_output
    assert "ended by signal" not in second_output
    assert project.changed_stages() == set()


def test_snakemake_ends_with_an_error_while_dvc_repro_runs(
    project, start_and_wait_in_training, start
):
    """Two programs in one project would overwrite each other's outputs. DVC itself succeeds."""
    dvc = start_and_wait_in_training("dvc repro")

    snakemake = start("snakemake")
    output = output_of(snakemake)

    assert snakemake.returncode == 1
    assert re.search(f"error: {busy_message('dvc repro', dvc)}", output), output
    let_training_end(project)
    output_of(dvc)
    assert dvc.returncode == 0


@contextmanager
def plan_in_progress(project):
    """Start a process that holds the project as `bleuprint plan` does, for a `with` block."""
    program = (
        "import signal\n"
        "from bleuprint.config.experiment import load_settings\n"
        "from bleuprint.pipeline.project_lock import hold_project\n"
        "load_settings()\n"
        "with hold_project('bleuprint plan', writes_outputs=False):\n"
        "    print('holds', flush=True)\n"
        "    signal.pause()\n"
    )
    process = project.start(sys.executable, "-c", program)
    try:
        wait_for_line(process, "^holds$")
        yield process
    finally:
        micro.kill(process)
        process.wait()


def test_a_dry_run_of_snakemake_names_a_plan_in_progress_once(project):
    """Snakemake asks DVC what has changed, so both could report the process that holds the project.

    `bleuprint plan` only reads outputs: DVC may answer meanwhile.
    """
    with plan_in_progress(project) as plan_process:
        output = project.run("snakemake", "--dry-run", status=None)

    messages = re.findall(busy_message("bleuprint plan", plan_process), output)
    assert len(messages) == 1, output


def test_a_dry_run_of_snakemake_names_a_running_dvc_repro_once(project, start_and_wait_in_training):
    """Snakemake asks DVC what has changed, so both could report the process that is running."""
    dvc = start_and_wait_in_training("dvc repro")

    output = project.run("snakemake", "--dry-run", status=None)

    messages = re.findall(busy_message("dvc repro", dvc), output)
    assert len(messages) == 1, output


def test_the_next_run_starts_at_once_after_the_first_was_killed(
    project, start_and_wait_in_training, start
):
    """A killed process cannot release its locks; the next one must not wait for it forever."""
    first = start_and_wait_in_training("bleuprint reproduce")
    micro.kill(first, signal.SIGKILL)
    output_of(first)
    let_training_end(project)

    output = output_of(start("bleuprint reproduce"))

    assert "is running in this project" not in output
    assert project.changed_stages() == set()
    assert project.run("dvc", "repro").endswith("up to date.\n")


def test_plan_waits_until_a_run_in_progress_has_ended(project, start_and_wait_in_training):
    """A plan that is made during the run would list stages that the run is about to finish."""
    run = start_and_wait_in_training("bleuprint reproduce")

    plan = project.start("bleuprint", "plan")
    wait_for_line(plan, f"note: {busy_message('bleuprint reproduce', run)}.*Waiting until it ends")
    let_training_end(project)
    output_of(run)

    assert output_of(plan) == "all stages are up to date: make reproduce would run none\n"


@pytest.fixture
def sleep_process():
    """Return a process that runs `sleep 600`; it is killed at the end."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def list_writer(project, process, command):
    """Write DVC's list of the processes that write outputs, with one process and its command."""
    writer = {"pid": process.pid, "cmd": command}
    content = {"write": {str(project.root / "data"): writer}, "read": {}}
    write_json(project.root / ".dvc/tmp/rwlock", content)


def test_a_process_in_dvcs_list_of_writers_keeps_others_out(project, sleep_process, monkeypatch):
    """DVC lists which processes write outputs, here `sleep 600`, which is running.

    `hold_project` locks the project for a command; the error names the process in DVC's list.
    """
    monkeypatch.chdir(project.root)
    list_writer(project, sleep_process, command="/x/bin/sleep 600")

    (runner,) = project_lock._dvc_runners(project.root)

    assert runner.process == sleep_process.pid
    with (
        pytest.raises(UserError, match=r"^sleep 600 \("),
        project_lock.hold_project("bleuprint reproduce", should_wait=False),
    ):
        pass


def test_a_dead_dvc_is_recognized_when_its_process_id_is_used_again(
    project, sleep_process, monkeypatch
):
    """After a restart of the machine, another program may have the process id in DVC's list.

    Waiting for that program would never end. DVC's own error says which file to remove.
    """
    monkeypatch.chdir(project.root)
    list_writer(project, sleep_process, command="/x/bin/dvc repro")

    runners = project_lock._dvc_runners(project.root)

    assert runners == []
    with (
        pytest.raises(UserError, match="rwlock"),
        project_lock.hold_project("bleuprint reproduce", should_wait=False),
    ):
        pass


def test_the_entry_of_a_process_that_has_ended_is_ignored(project, sleep_process, monkeypatch):
    """A killed `dvc repro` stays in DVC's list; the next run must start nevertheless."""
    monkeypatch.chdir(project.root)
    list_writer(project, sleep_process, command="/x/bin/sleep 600")
    sleep_process.kill()
    sleep_process.wait()

    with project_lock.hold_project("bleuprint reproduce", should_wait=False):
        runners = project_lock._dvc_runners(project.root)

    assert runners == []
