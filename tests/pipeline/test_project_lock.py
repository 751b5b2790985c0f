"""Two runners of one project: the second one says who holds it, and waits or ends."""

import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

import micro
from bleuprint.pipeline import project_lock
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json

# A training that waits until it may end.
WAITING = "touch work/began; until test -e work/go; do sleep 0.05; done"
TRAIN = "    model: {d_ff: 64}\n", "    model: {d_ff: 32}\n"
RUNNERS = {
    "reproduce": ("bleuprint", "reproduce"),
    "snakemake": ("snakemake", "-c2"),
    "dvc": ("dvc", "repro"),
}
NAMES = {
    "reproduce": "bleuprint reproduce",
    "snakemake": "snakemake",
    "dvc": "dvc repro",
}


@pytest.fixture
def project(stand_in, tmp_path):
    copy = stand_in.copy(tmp_path / "project")
    copy.edit("params.yaml", *TRAIN)
    (copy.root / "work").mkdir(exist_ok=True)
    return copy


@pytest.fixture
def started(project):
    """A function that starts a runner; those that still run at the end are killed."""
    processes = []

    def start(name, waits=False):
        project.environment["WHILE_TRAINING"] = WAITING
        process = project.start(*RUNNERS[name])
        processes.append(process)
        while waits and not (project.root / "work/began").exists():
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        return process

    yield start
    for process in processes:
        micro.kill(process)
        process.wait()


def go(project):
    (project.root / "work/go").touch()


def has_line(process, pattern):
    """Read what a process prints until a line has the pattern."""
    return any(re.search(pattern, line) for line in process.stdout)


def holder(name, process):
    return rf"{NAMES[name]}[^(]* \(process {process.pid}, since \d\d:\d\d\) is running"


@pytest.mark.parametrize("first", ["reproduce", "snakemake"])
def test_a_second_snakemake_and_dvc_end_and_name_the_first(project, started, first):
    runs = started(first, waits=True)
    output, _ = (second := started("snakemake")).communicate()
    assert second.returncode == 1
    errors = [line for line in output.splitlines() if "error: " in line]
    assert len(errors) == 1 and re.search(holder(first, runs), errors[0]), output
    assert re.search(holder(first, runs), project.run("snakemake", "--dry-run", status=1))
    output, _ = (second := started("dvc")).communicate()
    assert second.returncode and "Running stage" not in output
    assert f"(PID {runs.pid}): " in output and NAMES[first] in output
    go(project)
    output, _ = runs.communicate()
    # of the stand-in's results no table is printed
    assert "does not exist" not in output
    assert project.changed() == set(), output


@pytest.mark.parametrize("first", ["reproduce", "snakemake", "dvc"])
def test_reproduce_waits_for_another_runner_and_names_it(project, started, first):
    runs = started(first, waits=True)
    second = started("reproduce")
    assert has_line(second, f"note: {holder(first, runs)}.*waiting until it ends")
    go(project)
    output, _ = runs.communicate()
    assert "does not exist" not in output
    output, _ = second.communicate()
    assert "train@" not in output and "ended by signal" not in output
    assert project.changed() == set()


def test_snakemake_ends_beside_dvc(project, started):
    runs = started("dvc", waits=True)
    output, _ = (second := started("snakemake")).communicate()
    assert second.returncode == 1
    assert re.search(f"error: {holder('dvc', runs)}", output), output
    go(project)
    runs.communicate()
    assert runs.returncode == 0


@pytest.mark.parametrize("first", ["plan", "dvc"])
def test_a_dry_run_of_snakemake_names_another_runner_once(project, started, first):
    """Also where DVC can say what has changed, as beside a process that only reads."""
    with ExitStack() as held:
        if first == "dvc":
            pattern = holder("dvc", started("dvc", waits=True))
        else:
            program = (
                "import signal\n"
                "from bleuprint.config.experiment import load_settings\n"
                "from bleuprint.pipeline.project_lock import hold_project\n"
                "load_settings()\n"
                "with hold_project('bleuprint plan', writes=False):\n"
                "    print('holds', flush=True)\n"
                "    signal.pause()\n"
            )
            reader = project.start(sys.executable, "-c", program)
            held.callback(reader.wait)
            held.callback(micro.kill, reader)
            assert has_line(reader, "^holds$")
            pattern = rf"bleuprint plan \(process {reader.pid}, since \d\d:\d\d\) is running"
        said = project.run("snakemake", "--dry-run", status=None)
    assert len(re.findall(pattern, said)) == 1, said


def test_a_killed_runner_holds_nothing(project, started):
    runs = started("reproduce", waits=True)
    micro.kill(runs, signal.SIGKILL)
    runs.communicate()
    go(project)
    output, _ = started("reproduce").communicate()
    assert "is running in this project" not in output
    assert project.changed() == set()
    assert project.run("dvc", "repro").endswith("up to date.\n")


def test_plan_waits_for_a_run(project, started):
    runs = started("reproduce", waits=True)
    second = project.start("bleuprint", "plan")
    assert has_line(second, f"note: {holder('reproduce', runs)}.*waiting until it ends")
    go(project)
    runs.communicate()
    output, _ = second.communicate()
    assert output == "all stages are up to date: make reproduce would run none\n"


def test_an_entry_of_a_dead_process_whose_number_is_used_again_is_not_waited_for(
    project, monkeypatch
):
    """As after a restart of the machine. DVC's own message says which file to remove."""
    monkeypatch.chdir(project.root)
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            for command, runs in (("/x/bin/dvc repro", False), ("/x/bin/sleep 600", True)):
                entry = {"pid": other.pid, "cmd": command}
                content = {"write": {str(project.root / "data"): entry}, "read": {}}
                write_json(project.root / ".dvc/tmp/rwlock", content)
                found = [runner.process for runner in project_lock._dvc_runners(project.root)]
                assert found == [other.pid] * runs
                said = r"^sleep 600 \(" if runs else "rwlock"
                hold = project_lock.hold_project("bleuprint reproduce", wait=False)
                with pytest.raises(UserError, match=said), hold:
                    pass
        finally:
            other.kill()
    with project_lock.hold_project("bleuprint reproduce", wait=False):
        pass
