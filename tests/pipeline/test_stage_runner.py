"""`make reproduce` runs what has changed, several stages at once, and records it as DVC does."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.resolved_runs import SECTIONS
from bleuprint.pipeline import stage_runner
from bleuprint.pipeline.graph import load_stages
from bleuprint.pipeline.machine_share import MachineShare
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.pipeline.stage_process import run_command
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.yaml_tree import load_yaml
from processes import on_terminal
from root import ROOT

# Shell commands that the stages `train` of these tests run.
#
# Succeeds if another training runs at the same time; fails after two minutes alone.
WAIT_FOR_ANOTHER_TRAINING = """\
mkdir -p work/meeting; touch work/meeting/$$
for _ in $(seq 1200); do test $(ls work/meeting | wc -l) -ge 2 && exit 0; sleep 0.1; done; exit 1
"""
# Succeeds half a second after the file work/go was created; fails after two minutes without it.
WAIT_FOR_THE_FILE_GO = """\
for _ in $(seq 1200); do test -e work/go && sleep 0.5 && exit 0; sleep 0.1; done; exit 1
"""
# Shows the progress of 40 updates of 0.01 seconds; in lines, one after each update but the last.
SHOW_PROGRESS_OF_40_UPDATES = """\
python -c '
import time
from bleuprint.runtime import progress
progress.SECONDS_BETWEEN_LOG_LINES = progress.SECONDS_BETWEEN_TERMINAL_LINES = 0
for _ in progress.track(range(40), "train it", 40, "updates"):
    time.sleep(0.01)
'
"""
# Runs until SIGTERM arrives, then takes half a second to create the file work/begun/ID.saved.
SAVE_AT_SIGTERM = """\
exec 2> /dev/null  # where it would write that its sleep was terminated
trap 'sleep 0.5; touch work/begun/$$.saved; exit 75' TERM
mkdir -p work/begun; touch work/begun/$$
while :; do sleep 0.05; done
"""
# A program that runs the changed stages on a machine with {cores} cores, and prints their names.
RUN_CHANGED_STAGES = """\
from bleuprint.pipeline import stage_runner
from bleuprint.pipeline.machine_share import MachineShare
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.runtime.errors import run_main
stage_runner.whole_machine = lambda: MachineShare(cores={cores}, gpus=0)
def main():
    write_resolved()
    stage_runner.run_changed_stages(lambda name, restored: print(name, flush=True))
run_main(main)
"""

TWO_CORES = MachineShare(cores=2, gpus=0)
ONE_OF_TWO_CORES = MachineShare(cores=1, gpus=0)


@pytest.fixture
def project(stand_in, tmp_path, monkeypatch):
    """Return a project whose trainings are all out of date, and make it the working folder.

    They are train@tiny-own-1, train@tiny-other-1 and train@wide-own-1. The stages before them,
    which prepare the text, are up to date. The machine seems to have two cores.
    """
    copy = stand_in.copy(tmp_path / "project")
    copy.edit("params.yaml", "  tiny:\n", "  tiny:\n    arithmetic: portable\n")
    monkeypatch.chdir(copy.root)
    monkeypatch.setenv("PATH", copy.environment["PATH"])
    monkeypatch.setattr(stage_runner, "whole_machine", lambda: TWO_CORES)
    return copy


@dataclass(frozen=True)
class RunResult:
    """The result of `run_changed_stages`.

    Attributes:
        status: Its exit status.
        started: The stages whose commands were started, in this order.
        restored: The stages whose outputs came from DVC's run cache.
    """

    status: int
    started: list[str]
    restored: list[str]

    @property
    def started_trainings(self):
        """The started stages of the kind `train`, in this order."""
        return [name for name in self.started if name.startswith("train@")]


def run_changed_stages():
    """Resolve the settings, run all stages that are out of date, and return a RunResult."""
    started = []
    restored = []

    def note(name, is_restored):
        if is_restored:
            restored.append(name)
        else:
            started.append(name)

    write_resolved()
    status = stage_runner.run_changed_stages(note)
    return RunResult(status, started, restored)


def stages_of_all_runs():
    """Return the names of the stages train, average, translate and score of the three runs."""
    names = set()
    for run in ("tiny-own-1", "tiny-other-1", "wide-own-1"):
        for kind in ("train", "average", "translate", "score"):
            names.add(f"{kind}@{run}")
    return names


def dvc_lock_entries(project):
    """Return what dvc.lock records about each stage: its command, and hashes of its files."""
    return load_yaml(project.root / "dvc.lock")["stages"]


@pytest.mark.usefixtures("project")
def test_two_trainings_run_at_the_same_time_on_two_cores(monkeypatch):
    """Each training waits for another one to begin, and fails if it stays alone."""
    monkeypatch.setenv("WHILE_TRAINING", WAIT_FOR_ANOTHER_TRAINING)

    result = run_changed_stages()

    assert result.status == 0


def test_each_changed_stage_runs_once_and_is_recorded_in_dvc_lock(project):
    """The arithmetic of the system tiny, which wide inherits, was edited after all stages had run.

    So the stages train, average, translate and score of three runs have to run again.
    """
    result = run_changed_stages()

    assert result.status == 0
    assert result.restored == []
    assert sorted(result.started) == sorted({"resolve", "report"} | stages_of_all_runs())
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()


@pytest.mark.usefixtures("project")
def test_a_second_run_has_nothing_to_do():
    """After a run, all stages are up to date."""
    run_changed_stages()

    second_result = run_changed_stages()

    assert second_result == RunResult(status=0, started=[], restored=[])


@pytest.mark.usefixtures("project")
def test_resolve_runs_first_and_the_report_runs_last():
    """`resolve` writes the settings that all stages read; `report` reads all results."""
    result = run_changed_stages()

    assert result.started[0] == "resolve"
    assert result.started[-1] == "report"


@pytest.mark.usefixtures("project")
def test_the_longest_training_starts_first():
    """System `wide` has larger layers than `tiny`: d_ff is 64 instead of 48.

    If the longest training started last, the other cores would idle until it ends.
    """
    result = run_changed_stages()

    assert result.started_trainings[0] == "train@wide-own-1"


def test_a_system_with_equal_training_settings_starts_after_another_system(project, monkeypatch):
    """System `twin` differs from `wide` only in decoding, so it copies the trained model of `wide`.

    If both started at once on two cores, `twin` would occupy the second core while it waits.
    Each training waits until another one begins, so a wrong order fails.
    """
    monkeypatch.setenv("WHILE_TRAINING", WAIT_FOR_ANOTHER_TRAINING)
    twin = "  twin:\n    like: wide\n    decode: {beam: 2}\n"
    project.write("params.yaml", project.read("params.yaml") + twin)

    result = run_changed_stages()

    assert result.status == 0
    assert result.started_trainings[0] == "train@wide-own-1"
    assert result.started_trainings[1] != "train@twin-own-1"
    assert "train@twin-own-1" in result.started_trainings


def test_dvc_lock_is_the_same_as_after_dvc_repro(project, tmp_path):
    """`dvc repro` in a copy of the project is the reference."""
    copy_for_dvc = project.copy(tmp_path / "for-dvc")

    result = run_changed_stages()
    copy_for_dvc.repro()

    assert result.status == 0
    assert dvc_lock_entries(project) == dvc_lock_entries(copy_for_dvc)


def test_stages_that_ran_before_with_the_same_inputs_are_restored_from_dvcs_cache(project):
    """A user changes a setting, runs, and changes it back: nothing has to be trained again."""
    portable = "  tiny:\n    arithmetic: portable\n"
    native = "  tiny:\n"
    assert run_changed_stages().status == 0  # with portable arithmetic
    project.edit("params.yaml", portable, native)
    assert run_changed_stages().status == 0

    project.edit("params.yaml", native, portable)
    result = run_changed_stages()

    assert result.status == 0
    assert set(result.restored) == stages_of_all_runs()
    # The outputs of these two stages are in Git instead of the cache.
    assert set(result.started) == {"resolve", "report"}
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()


@pytest.mark.usefixtures("project")
def test_after_a_training_has_failed_the_waiting_training_does_not_start(monkeypatch):
    """Three trainings are out of date. Two start at once on two cores, and both fail.

    A user who has made a mistake should not wait until the third training has failed as well.
    """
    monkeypatch.setenv("WHILE_TRAINING", "exit 1")

    result = run_changed_stages()

    assert result.status != 0
    assert len(result.started_trainings) == 2


def test_a_stage_that_finished_before_a_failure_is_recorded(project, monkeypatch):
    """`resolve` finishes, then the trainings fail; only the trainings have to run again."""
    monkeypatch.setenv("WHILE_TRAINING", "exit 1")

    result = run_changed_stages()

    assert result.started[0] == "resolve"
    stages_out_of_date = project.changed_stages()
    assert "resolve" not in stages_out_of_date
    assert stages_out_of_date >= {"train@tiny-own-1", "train@tiny-other-1", "train@wide-own-1"}


def test_a_running_training_is_recorded_when_our_own_program_fails(project, monkeypatch):
    """`make reproduce | head` closes standard output, so printing a stage's name fails.

    The error comes when the second training is announced. The first one is running: it waits for
    the file work/go, and must finish and be recorded.
    """
    monkeypatch.setenv("WHILE_TRAINING", WAIT_FOR_THE_FILE_GO)
    announced_trainings = []

    def fail_at_the_second_training(name, _is_restored):
        if name.startswith("train@"):
            announced_trainings.append(name)
        if len(announced_trainings) == 2:
            (project.root / "work" / "go").touch()
            raise BrokenPipeError(32, "Broken pipe")

    write_resolved()
    with pytest.raises(UserError, match="Broken pipe"):
        stage_runner.run_changed_stages(fail_at_the_second_training)

    first_training, second_training = announced_trainings
    stages_out_of_date = project.changed_stages()
    assert first_training not in stages_out_of_date
    assert second_training in stages_out_of_date


def assert_that_scoring_failed(project, result):
    """Check that no report was started, and that dvc.lock does not record the scores as new."""
    assert "report" not in result.started
    stages_out_of_date = project.changed_stages()
    assert any(name.startswith("score@") for name in stages_out_of_date)


def test_a_stage_that_writes_no_output_has_failed(project, capsys):
    """An empty score.py ends with exit status 0, but without its scores."""
    (project.root / "stages" / "score.py").write_text("")

    result = run_changed_stages()

    assert result.status == 1
    assert "does not exist" in capsys.readouterr().err
    assert_that_scoring_failed(project, result)


def test_a_stage_that_ends_with_a_nonzero_status_has_failed(project, capsys):
    """score.py writes its scores and then ends with status 3, which is the status of the run."""
    script = project.root / "stages" / "score.py"
    script.write_text(script.read_text() + "\nsys.exit(3)")

    result = run_changed_stages()

    assert result.status == 3
    assert "does not exist" not in capsys.readouterr().err
    assert_that_scoring_failed(project, result)


def test_every_training_of_every_recipe_has_a_positive_cost(stand_in):
    """The training with the highest cost starts first, so each recipe must give a cost.

    A run with empty settings is excluded by params.yaml, and costs 0.
    """
    (train_stage,) = (
        stage for stage in load_stages(stand_in.root) if stage.name == "train@tiny-own-1"
    )

    for path in sorted((ROOT / "recipes").glob("*.yaml")):
        runs = load_settings(path, ROOT).resolved()["runs"]
        for system, runs_of_system in runs.items():
            for corpus, run in runs_of_system.items():
                parameters = {}
                for section in SECTIONS:
                    parameters[f"runs.{system}.{corpus}.{section}"] = run[section]
                cost = stage_runner._training_cost(replace(train_stage, parameters=parameters))
                is_excluded = not any(run.values())
                if is_excluded:
                    assert cost == 0, f"{path.stem} {system} {corpus}"
                else:
                    assert cost > 0, f"{path.stem} {system} {corpus}"


def test_the_cost_of_a_training_is_its_target_tokens_times_the_weights_in_its_layers(stand_in):
    """Each layer counts four d_model x d_model matrices and one d_model x d_ff matrix."""
    (train_stage,) = (
        stage for stage in load_stages(stand_in.root) if stage.name == "train@tiny-own-1"
    )
    model = {"encoder_layers": 3, "decoder_layers": 4, "d_model": 8, "d_ff": 40}
    train = {"max_updates": 100, "tokens_per_update": 2000}
    parameters = {"runs.tiny.own.model": model, "runs.tiny.own.train": train}

    cost = stage_runner._training_cost(replace(train_stage, parameters=parameters))

    weights = (3 + 4) * (4 * 8 * 8 + 8 * 40)
    tokens = 100 * 2000
    assert cost == tokens * weights


def test_the_python_of_a_stage_is_the_one_that_runs_bleuprint(monkeypatch, tmp_path):
    """Another `python` that comes first in PATH lacks the packages of the project."""
    other_python = tmp_path / "python"
    other_python.write_text("#!/bin/sh\nexit 3")
    other_python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    # The shell's test -ef succeeds if both paths are the same file.
    command = f'test "$(command -v python)" -ef "{sys.executable}"'
    status = run_command(command, ONE_OF_TWO_CORES, TWO_CORES)

    assert status == 0


def test_a_command_that_signal_9_ends_has_status_137():
    """As in a shell, the status is 128 plus the number of the signal.

    The command kills its own shell, since bash may replace itself by the command that it runs.
    """
    status = run_command("kill -KILL $$", ONE_OF_TWO_CORES, TWO_CORES)

    assert status == 128 + 9


def test_the_error_message_names_the_stage_that_a_signal_has_ended(project, capsys):
    """The kernel kills a process with signal 9 if memory runs out; the process prints nothing."""
    script = project.root / "stages" / "score.py"
    script.write_text("import os\nos.kill(os.getpid(), 9)")

    result = run_changed_stages()

    assert result.status == 128 + 9
    assert re.search(r"error: score@\S+: ended by signal 9\n", capsys.readouterr().err)


def terminal_of_a_run(project, cores):
    """Run the changed stages on a terminal, and return what it shows.

    Three trainings run, each of 40 updates. DVC has to restore data/clean from its cache.
    """
    shutil.rmtree(project.root / "data/clean")
    environment = {**project.environment, "WHILE_TRAINING": SHOW_PROGRESS_OF_40_UPDATES}
    command = [sys.executable, "-c", RUN_CHANGED_STAGES.format(cores=cores)]
    return on_terminal(command, project.root, environment)


# A line of progress. A bar instead looks like `train it: 100%|####| 40/40`.
PROGRESS_LINE = r"(?m)^train it: \d+ of 40 updates, .* a second, \d+:\d\d:\d\d left\r$"


def test_a_training_that_runs_alone_shows_a_progress_bar(project):
    """On one core, one stage runs after the other, so a bar stays in its place."""
    terminal = terminal_of_a_run(project, cores=1)

    assert "train it: 100%|" in terminal
    assert re.findall(PROGRESS_LINE, terminal) == []


def test_trainings_that_run_at_the_same_time_show_lines_of_progress(project):
    """Two bars on one terminal would overwrite each other.

    Three trainings of 40 updates print a line after each update except the last.
    """
    terminal = terminal_of_a_run(project, cores=2)

    assert len(re.findall(PROGRESS_LINE, terminal)) == 3 * (40 - 1)
    assert "train it: 100%|" not in terminal


@pytest.mark.parametrize("cores", [1, 2])
def test_the_terminal_shows_the_stages_without_dvcs_own_progress(project, cores):
    """DVC prints messages such as `Collecting files` and bars with `file/s`, which hide ours."""
    terminal = terminal_of_a_run(project, cores)

    assert "\nreport\r\n" in terminal
    assert not re.search(r"\\x|Collecting|lock|file/s", terminal), terminal


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_the_run_after_each_training_has_saved(project, signal_number):
    """A training that receives SIGTERM saves, here the file work/begun/ID.saved after 0.5 seconds.

    The runner must wait for this: `kill` or Ctrl-C must not lose hours of training.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_CHANGED_STAGES.format(cores=2)],
        env={**project.environment, "WHILE_TRAINING": SAVE_AT_SIGTERM},
        stderr=subprocess.PIPE,
        text=True,
        # If the tests run under nohup, the process would inherit that SIGHUP is ignored.
        preexec_fn=lambda: signal.signal(signal_number, signal.SIG_DFL),
    )
    try:
        while len(list(project.root.glob("work/begun/*"))) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        running_trainings = list(project.root.glob("work/begun/*"))

        process.send_signal(signal_number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()

    assert process.returncode == 75  # EX_TEMPFAIL: a later call may succeed
    assert errors == "bleuprint: note: stopped. To continue from here, run the same command again\n"
    assert len(running_trainings) == 2
    for path in running_trainings:
        assert path.with_name(f"{path.name}.saved").exists()
