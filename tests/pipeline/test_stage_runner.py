"""What has changed runs, independent stages beside each other, and is recorded as DVC does it."""

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
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.yaml_tree import load_yaml
from processes import on_terminal
from root import ROOT

CELLS = ["tiny-other-1", "tiny-own-1", "wide-own-1"]
TRAININGS = [f"train@{run}" for run in CELLS]
AFTER = {f"{kind}@{run}" for kind in ("train", "average", "translate", "score") for run in CELLS}
# Ends once two trainings run at the same time, and fails if the second does not begin within two
# minutes.
MEETING = """\
mkdir -p work/meeting; touch work/meeting/$$
for _ in $(seq 1200); do test $(ls work/meeting | wc -l) -ge 2 && exit 0; sleep 0.1; done; exit 1
"""
# Ends half a second after there is a file work/go, and fails if there is none within two minutes.
WAITING = """\
for _ in $(seq 1200); do test -e work/go && sleep 0.5 && exit 0; sleep 0.1; done; exit 1
"""
# Counts 40 updates, each of a hundredth of a second or more, and writes a line after each but the
# last.
COUNTING = """\
python -c '
import time
from bleuprint.runtime import progress
progress.SECONDS_BETWEEN_LOG_LINES = progress.SECONDS_BETWEEN_TERMINAL_LINES = 0
for _ in progress.track(range(40), "train it", 40, "updates"):
    time.sleep(0.01)
'
"""
# Saves at SIGTERM, in half a second; the stage that has started it ends at once.
SAVING = """\
exec 2> /dev/null  # where it would write that its sleep was terminated
trap 'sleep 0.5; touch work/meeting/$$.saved; exit 75' TERM
mkdir -p work/meeting; touch work/meeting/$$
while :; do sleep 0.05; done
"""
RUN = """\
from bleuprint.pipeline import stage_runner
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.runtime.errors import run_main
stage_runner._machine_cores = lambda: {cores}
def main():
    write_resolved()
    stage_runner.run_changed_stages(lambda name, restored: print(name, flush=True))
run_main(main)
"""


@pytest.fixture
def project(stand_in, tmp_path, monkeypatch):
    """One with portable arithmetic, not yet run with it, as the folder of this process."""
    copy = stand_in.copy(tmp_path / "project")
    copy.edit("params.yaml", "  tiny:\n", "  tiny:\n    arithmetic: portable\n")
    monkeypatch.chdir(copy.root)
    monkeypatch.setenv("PATH", copy.environment["PATH"])
    monkeypatch.setattr(stage_runner, "_machine_cores", lambda: 2)
    return copy


@dataclass(frozen=True)
class Run:
    """A run of what has changed.

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
        return [name for name in self.started if name in TRAININGS]


NOTHING_TO_DO = Run(status=0, started=[], restored=[])


def run():
    """Resolve the settings and run what has changed."""
    started = []
    restored = []

    def note(name, is_restored):
        if is_restored:
            restored.append(name)
        else:
            started.append(name)

    write_resolved()
    status = stage_runner.run_changed_stages(note)
    return Run(status, started, restored)


def entries(project):
    return load_yaml(project.root / "dvc.lock")["stages"]


@pytest.mark.usefixtures("project")
def test_trainings_run_at_the_same_time(monkeypatch):
    """Each training fails unless it meets another one."""
    monkeypatch.setenv("WHILE_TRAINING", MEETING)
    assert run().status == 0


def test_all_that_has_changed_runs_once_and_is_recorded(project):
    first = run()
    assert first.status == 0
    assert first.restored == []
    assert sorted(first.started) == sorted({"resolve", "report"} | AFTER)
    assert project.changed() == set()
    assert run() == NOTHING_TO_DO


@pytest.mark.usefixtures("project")
def test_resolve_is_first_the_report_last_and_the_longest_training_before_others():
    first = run()
    assert first.started[0] == "resolve"
    assert first.started_trainings[0] == "train@wide-own-1"
    assert first.started[-1] == "report"


def test_systems_with_the_same_training_have_it_one_after_the_other(project, monkeypatch):
    """The second would wait for the first, and keep a core; so another one is started before."""
    monkeypatch.setenv("WHILE_TRAINING", MEETING)
    twin = "  twin:\n    like: wide\n    decode: {beam: 2}\n"
    project.write("params.yaml", project.read("params.yaml") + twin)
    first = run()
    assert first.status == 0
    trainings = [name for name in first.started if name.startswith("train@")]
    assert trainings[0] == "train@wide-own-1"
    assert trainings[1] != "train@twin-own-1"
    assert "train@twin-own-1" in trainings


def test_what_is_recorded_is_what_dvc_records(project, tmp_path):
    other = project.copy(tmp_path / "other")
    assert run().status == 0
    other.repro()
    assert entries(project) == entries(other)


def test_what_has_run_before_comes_from_the_run_cache(project):
    portable = "  tiny:\n    arithmetic: portable\n"
    native = "  tiny:\n"
    assert run().status == 0
    project.edit("params.yaml", portable, native)
    assert run().status == 0
    project.edit("params.yaml", native, portable)
    again = run()
    assert again.status == 0
    # The outputs of these two are in git, not in the cache.
    assert set(again.started) == {"resolve", "report"}
    assert set(again.restored) == AFTER
    assert project.changed() == set()


@pytest.mark.usefixtures("project")
def test_after_a_failure_no_training_is_started(monkeypatch):
    """On two cores, two of the three trainings are started at once; both fail."""
    monkeypatch.setenv("WHILE_TRAINING", "exit 1")
    failed = run()
    assert failed.status != 0
    assert len(failed.started_trainings) == 2


def test_after_a_failure_the_finished_stages_are_recorded_and_no_others(project, monkeypatch):
    monkeypatch.setenv("WHILE_TRAINING", "exit 1")
    failed = run()
    assert failed.started[0] == "resolve"
    changed = project.changed()
    assert "resolve" not in changed
    assert changed >= set(TRAININGS)


def test_an_error_of_ours_loses_no_stage_that_runs(project, monkeypatch):
    """Such as standard output that is closed: make reproduce | head."""
    monkeypatch.setenv("WHILE_TRAINING", WAITING)
    started_trainings = []

    def fail_at_the_second_training(name, _is_restored):
        if name in TRAININGS:
            started_trainings.append(name)
        if len(started_trainings) == 2:
            (project.root / "work" / "go").touch()
            raise BrokenPipeError(32, "Broken pipe")

    write_resolved()
    with pytest.raises(UserError, match="Broken pipe"):
        stage_runner.run_changed_stages(fail_at_the_second_training)
    # The command of the first one ran when the error came, that of the second was not started.
    first, second = started_trainings
    changed = project.changed()
    assert first not in changed
    assert second in changed


@pytest.mark.parametrize(("end", "failed"), [("", 1), ("\nsys.exit(3)", 3)])
def test_a_command_without_its_outputs_or_with_a_status_has_failed(project, capsys, end, failed):
    script = project.root / "stages" / "score.py"
    script.write_text(end and script.read_text() + end)
    ended = run()
    assert ended.status == failed
    assert "report" not in ended.started
    assert any(name.startswith("score@") for name in project.changed())
    assert ("does not exist" in capsys.readouterr().err) == (not end)


def test_every_training_of_every_recipe_has_its_work(stand_in):
    """The longest comes first, whatever ends it; a run that is left out computes nothing."""
    (stage,) = (it for it in load_stages(stand_in.root) if it.name == "train@tiny-own-1")
    for path in sorted((ROOT / "recipes").glob("*.yaml")):
        for system, row in load_settings(path, ROOT).resolved()["runs"].items():
            for corpus, run in row.items():
                values = {f"runs.{system}.{corpus}.{part}": run[part] for part in SECTIONS}
                work = stage_runner._training_cost(replace(stage, parameters=values))
                assert (work > 0) == any(run.values()), f"{path.stem} {system} {corpus}"


def test_the_work_of_a_training_is_tokens_times_the_weights_of_its_layers(stand_in):
    """Worked out by hand: each layer has four d_model x d_model matrices and one of d_ff."""
    stage = next(each for each in load_stages(stand_in.root) if each.kind == "train")
    model = {"encoder_layers": 3, "decoder_layers": 4, "d_model": 8, "d_ff": 40}
    train = {"max_updates": 100, "tokens_per_update": 2000}
    values = {"runs.tiny.own.model": model, "runs.tiny.own.train": train}
    weights = (3 + 4) * (4 * 8 * 8 + 8 * 40)
    assert stage_runner._training_cost(replace(stage, parameters=values)) == 200_000 * weights


def test_python_of_a_stage_is_the_commands_own(monkeypatch, tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\nexit 3")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert (
        stage_runner._run_command(f'test "$(command -v python)" -ef "{sys.executable}"', cores=1)
        == 0
    )


def test_a_command_that_a_signal_ends_has_failed():
    # the shell itself, as where bash replaces itself by the command
    assert stage_runner._run_command("kill -KILL $$", cores=1) == 137


def test_a_stage_that_a_signal_ends_is_named(project, capsys):
    script = project.root / "stages" / "score.py"
    script.write_text("import os\nos.kill(os.getpid(), 9)")
    assert run().status == 137
    assert re.search(r"error: score@\S+: ended by signal 9\n", capsys.readouterr().err)


def test_a_stage_of_several_threads_has_all_cores_and_others_share_them(stand_in, monkeypatch):
    monkeypatch.setattr(stage_runner, "_machine_cores", lambda: 8)
    clean = next(each for each in load_stages(stand_in.root) if each.kind == "clean")
    assert stage_runner._cores_for(clean, free_cores=8, waiting_stages=1) == 8
    assert stage_runner._cores_for(clean, free_cores=5, waiting_stages=2) == 2
    assert (
        stage_runner._cores_for(clean, free_cores=0, waiting_stages=1) == 1
    )  # more than there are: it waits
    assert stage_runner._cores_for(replace(clean, threads=1), free_cores=8, waiting_stages=1) == 1
    assert stage_runner._cores_for(replace(clean, gpu=1), free_cores=3, waiting_stages=1) == 8


@pytest.mark.parametrize("cores", [1, 2])
def test_a_terminal_shows_our_progress_and_none_of_dvc(project, cores):
    """Lines where stages may run beside each other, whose bars would overwrite each other."""
    shutil.rmtree(project.root / "data/clean")  # which DVC finds in its cache
    environment = {**project.environment, "WHILE_TRAINING": COUNTING}
    command = [sys.executable, "-c", RUN.format(cores=cores)]
    said = on_terminal(command, project.root, environment)
    assert not re.search(r"\\x|Collecting|lock|file/s", said), said
    line = r"(?m)^train it: \d+ of 40 updates, .* a second, \d+:\d\d:\d\d left\r$"
    lines = re.findall(line, said)
    assert len(lines) == (39 * len(TRAININGS) if cores == 2 else 0)
    assert ("train it: 100%|" in said) == (cores == 1)
    assert "\nreport\r\n" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_stages_and_waits_until_they_have_saved(project, number):
    process = subprocess.Popen(
        [sys.executable, "-c", RUN.format(cores=2)],
        env={**project.environment, "WHILE_TRAINING": SAVING},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # below nohup, too
    )
    try:
        while len(trainings := [*project.root.glob("work/meeting/*")]) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        said = "bleuprint: note: stopped: the same command continues from here\n"
        assert (process.communicate(timeout=60)[1], process.returncode) == (said, 75)
    finally:
        process.kill()
    assert all(path.with_name(f"{path.name}.saved").exists() for path in trainings)
