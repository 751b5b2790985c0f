"""What `bleuprint plan` lists and why, compared with what `make reproduce` and `dvc repro` run."""

import re
import shutil
import subprocess
from threading import Event, Thread
from types import SimpleNamespace

import pytest

import micro
from bleuprint.cli import pipeline
from bleuprint.config.experiment import load_settings
from bleuprint.pipeline import plan, project_lock
from bleuprint.pipeline.graph import load_stages
from bleuprint.pipeline.plan import planned_stages
from bleuprint.pipeline.project_lock import hold_project
from bleuprint.pipeline.resolve import resolved_content
from bleuprint.pipeline.rules import make_rules
from bleuprint.runtime.errors import UserError


@pytest.fixture
def project(stand_in, tmp_path):
    """Return a project that a test may change; all stages have run and are up to date.

    It trains system `tiny` on the corpora `own` and `other`, and system `wide` on `own`, each with
    seed 1. Its stages compute nothing (see stand_ins).
    """
    return stand_in.copy(tmp_path / "project")


def plan_reasons(project):
    """Return the planned stages of a project: for each name, the reason why the stage would run."""
    reasons = {}
    for planned in planned_stages(project.root):
        reasons[planned.stage.name] = planned.why
    return reasons


def test_the_plan_is_empty_if_all_outputs_are_up_to_date(project):
    """Every stage of this project has run."""
    assert plan_reasons(project) == {}


def test_outputs_that_dvc_can_restore_from_its_cache_are_not_planned(project):
    """DVC copies a deleted output back from its cache; no stage has to compute it again."""
    shutil.rmtree(project.root / "models")
    (project.root / "results/tiny/own/1/scores.json").unlink()

    assert plan_reasons(project) == {}


def test_a_clone_plans_all_stages_since_git_lacks_their_outputs(stand_in, tmp_path):
    """The outputs are in DVC's cache, which `git clone` does not copy."""
    clone = micro.Project(tmp_path / "clone")
    subprocess.run(["git", "clone", "-q", stand_in.root, clone.root], check=True)

    reasons = plan_reasons(clone)

    stage_count = 40  # all stages of dvc.yaml, for two corpora and three training runs
    assert len(reasons) == stage_count
    # Git ignores the user's texts, so the clone has another content of inputs/.
    assert reasons["resolve"] == "inputs has changed"
    missing_output = "data/.*own.* is neither here nor in DVC's cache"
    assert re.fullmatch(missing_output, reasons["clean@own"])


def test_without_dvc_lock_every_stage_is_planned_as_not_finished(stand_in, tmp_path):
    """dvc.lock is DVC's list of the stages that have run."""
    clone = micro.Project(tmp_path / "clone")
    subprocess.run(["git", "clone", "-q", stand_in.root, clone.root], check=True)
    (clone.root / "dvc.lock").unlink()

    reasons = plan_reasons(clone)

    assert set(reasons.values()) == {"it has not finished here yet"}


def test_the_score_stage_is_planned_once_dvc_records_changed_translations(project):
    """A run that was stopped after `translate` leaves new translations with the old scores."""
    translations = "results/tiny/own/1/hypotheses"
    path = next((project.root / translations).iterdir())
    path.write_text(path.read_text() + "another line\n")
    # Until the edit is recorded, DVC would restore the original file from its cache.
    assert plan_reasons(project) == {}

    project.run("dvc", "commit", "--force", "translate@tiny-own-1")

    assert plan_reasons(project)["score@tiny-own-1"] == f"{translations} has changed"


def test_a_report_that_the_user_edited_is_written_again(project):
    """Reports are in Git instead of DVC's cache, so the stage `report` has to restore them."""
    results = project.read("reports/results.json")
    project.write("reports/results.json", results + " ")

    assert plan_reasons(project) == {"report": "reports/results.json has changed"}


def test_planning_keeps_the_results_of_a_system_that_was_renamed(project):
    """`make reproduce` moves results of removed systems away; the plan only reads."""
    project.edit("params.yaml", "  wide:\n", "  wider:\n")

    reasons = plan_reasons(project)

    assert reasons["train@wider-own-1"] == "it has not finished here yet"
    assert (project.root / "results/wide/own/1/scores.json").exists()


def test_renaming_the_experiment_only_reruns_resolve_and_report(project):
    """The name of the experiment is a heading of the report; no training depends on it."""
    project.edit("params.yaml", "experiment: micro", "experiment: renamed")

    assert plan_reasons(project) == {
        "resolve": "params.yaml has changed",
        "report": "reports/resolved.json has changed",
    }


def test_a_file_in_inputs_that_no_corpus_names_only_reruns_resolve(project):
    """`resolve` computes the checksums of the files in inputs/ that the corpora name."""
    project.write("inputs/unnamed.txt", "x\n")

    assert plan_reasons(project) == {"resolve": "inputs has changed"}


def test_a_changed_input_file_reruns_only_the_corpus_that_names_it(project):
    """Corpus `other` trains on inputs/b.en; corpus `own` trains on inputs/a.en."""
    project.write("inputs/b.en", "b\n")

    reasons = plan_reasons(project)

    assert reasons["download@other"] == "files of other in inputs/ have changed"
    assert "download@own" not in reasons


# A stage that a user adds to dvc.yaml: two commands, a setting, a whole file of settings.
USER_STAGE = r"""
stages:
  paper:
    cmd: [make paper, echo don\'t]
    params: [experiment, reports/resolved.json: ]
    outs: [p.pdf]
    meta: {threads: 1, memory_gb: 1, hours: 1}
"""


def test_a_stage_that_the_user_added_to_dvc_yaml_is_planned(project):
    r"""USER_STAGE defines the stage `paper` with cmd: [make paper, echo don\'t]."""
    project.edit("dvc.yaml", "\nstages:\n", USER_STAGE)

    paper = None
    for planned in planned_stages(project.root):
        if planned.stage.name == "paper":
            paper = planned

    assert paper.why == "it has not finished here yet"
    assert paper.last_seconds is None
    assert paper.stage.command == r"make paper && echo don\'t"
    # `experiment` is a key of params.yaml; the stage names reports/resolved.json as a whole.
    assert {"params.yaml", "reports/resolved.json"} <= set(paper.stage.dependencies)


def test_snakemake_gets_a_rule_for_a_stage_that_the_user_added(project):
    """USER_STAGE defines the stage `paper` with outs: [p.pdf], a file."""
    project.edit("dvc.yaml", "\nstages:\n", USER_STAGE)

    rules = {}
    for rule in make_rules(load_stages(project.root), root=project.root):
        rules[rule.name] = rule

    assert rules["paper"].files == ["p.pdf"]
    assert rules["paper"].folders == []


def test_a_stage_without_meta_is_an_error_that_names_the_missing_values(project):
    """SLURM needs the threads, memory and hours in `meta` to run the stage as a job."""
    meta = "    meta: {threads: 1, memory_gb: 1, hours: 1}\n"
    project.edit("dvc.yaml", "\nstages:\n", USER_STAGE.replace(meta, ""))

    with pytest.raises(UserError, match=r"^dvc\.yaml: stage paper: meta lacks threads, "):
        planned_stages(project.root)


def test_the_plan_is_read_after_a_run_in_progress_has_ended(project, monkeypatch):
    """During a run, half of the outputs are written, so the plan would be wrong.

    The command `bleuprint plan` runs in a thread. Two functions that it calls are replaced: one
    tells the test when the command waits, the other one when it reads the plan.
    """
    monkeypatch.chdir(project.root)
    events = []
    plan_is_waiting = Event()
    wait_or_refuse = project_lock._announce_wait_or_raise

    def signal_and_wait(holder, wait):
        plan_is_waiting.set()
        wait_or_refuse(holder, wait)

    def read_plan():
        events.append("plan read")
        return []

    monkeypatch.setattr(project_lock, "_announce_wait_or_raise", signal_and_wait)
    monkeypatch.setattr(plan, "planned_stages", read_plan)
    plan_command = Thread(target=pipeline._plan, args=(None,))

    with hold_project("bleuprint reproduce"):  # the run in progress
        plan_command.start()
        assert plan_is_waiting.wait(timeout=60)
        events.append("run ended")
    plan_command.join()

    assert events == ["run ended", "plan read"]


def test_edited_code_reruns_the_stages_that_import_it(project):
    """lr_schedule.py is imported by the training, and by no stage that prepares text."""
    project.edit("src/bleuprint/training/lr_schedule.py", "import math", "import math, sys")

    reasons = plan_reasons(project)

    assert reasons["train@tiny-own-1"] == "its code has changed"
    assert "tokenize@own" not in reasons


def test_an_edited_command_reruns_its_stage_and_the_stages_after_it(project):
    """The text is tokenized before `learn_vocabulary` and converted to numbers after it."""
    old_command = "python stages/learn_vocabulary.py"
    project.edit("dvc.yaml", old_command, "python -X dev stages/learn_vocabulary.py")

    reasons = plan_reasons(project)

    assert "tokenize@own" not in reasons
    assert reasons["learn_vocabulary@own"] == "its command has changed"
    assert reasons["binarize@own"] == "after learn_vocabulary@own"


def test_the_command_plan_prints_reasons_and_earlier_durations(reproduced):
    """Training with another d_ff is planned with the time that the last training took.

    `reproduced` has run the real stages, whose durations are measured.
    """
    reproduced.edit("params.yaml", "    model: {d_ff: 64}\n", "    model: {d_ff: 32}\n")

    output = reproduced.run("bleuprint", "plan")

    duration = r"\d+:\d\d:\d\d"
    *stage_lines, total_line = output.splitlines()
    train_line = rf"train@wide-own-1 +systems\.wide\.own\.model.* has changed; took {duration}"
    assert any(re.fullmatch(train_line, line) for line in stage_lines), output
    average_line = r"average@wide-own-1 +after train@wide-own-1; .*"
    assert any(re.fullmatch(average_line, line) for line in stage_lines), output
    assert re.fullmatch(rf"\d of these took {duration} when they last ran here", total_line)
    # The settings of the other system, tiny, are as before.
    assert "tiny" not in output


def test_dvc_runs_the_planned_stages_and_the_next_plan_is_empty(reproduced):
    """A stage that DVC runs unannounced would surprise the user with hours of training."""
    reproduced.edit("params.yaml", "    model: {d_ff: 64}\n", "    model: {d_ff: 32}\n")
    planned_names = set(plan_reasons(reproduced))

    stages_run_by_dvc = reproduced.repro()

    assert set(stages_run_by_dvc) == planned_names
    next_plan = reproduced.run("bleuprint", "plan")
    assert next_plan.endswith("all stages are up to date: make reproduce would run none\n")


@pytest.fixture
def print_plan(project, monkeypatch, capsys):
    """Return a function that prints a plan of trainings and returns the lines.

    Its arguments are the trainings, each as a pair: the reason to run, and the seconds that the
    training took before or None.
    """
    monkeypatch.chdir(project.root)

    def print_plan(*trainings):
        planned = []
        for number, (reason, seconds) in enumerate(trainings):
            stage = SimpleNamespace(kind="train", name=f"train@{number}")
            planned.append(
                SimpleNamespace(
                    stage=stage,
                    why=reason,
                    last_seconds=seconds,
                    last_seconds_with_another_seed=None,
                )
            )
        monkeypatch.setattr(plan, "planned_stages", lambda: planned)
        pipeline._plan(None)
        return capsys.readouterr().out.splitlines()

    return print_plan


@pytest.mark.parametrize(
    ("unknown_count", "note"),
    [
        pytest.param(0, "", id="all known"),
        pytest.param(1, "; the time of 1 other (train) is unknown", id="one unknown"),
        pytest.param(2, "; the time of 2 others (train) is unknown", id="two unknown"),
    ],
)
def test_the_total_time_counts_the_stages_whose_time_is_unknown(print_plan, unknown_count, note):
    """A training that never ran has no earlier time, here None instead of 2.0 seconds."""
    timed_training = ("systems.tiny.own.train has changed", 2.0)
    new_training = ("it has not finished here yet", None)

    lines = print_plan(timed_training, *[new_training] * unknown_count)

    assert lines[-1] == f"1 of these took 0:00:02 when they last ran here{note}"


def test_the_plan_says_that_a_renamed_system_is_trained_already(reproduced):
    """The trained weights are found by the settings, so a rename needs no new training."""
    reproduced.edit("params.yaml", "  wide:\n", "  wider:\n")

    reasons = plan_reasons(reproduced)

    # The folder still has the old name of the system.
    folder = r"work/trainings/wide\.own\.1\.\w+"
    known_training = rf"it has a new name; its training is in {folder} already"
    assert re.fullmatch(known_training, reasons["train@wider-own-1"])
    assert reasons["average@wider-own-1"] == "it has not finished here yet"


def test_a_new_system_with_other_settings_has_to_be_trained(reproduced):
    """No finished training has these settings: d_ff is 48 in `tiny` and 64 in `wide`."""
    new_system = "  other:\n    like: tiny\n    model: {d_ff: 56}\n"
    reproduced.write("params.yaml", reproduced.read("params.yaml") + new_system)

    reasons = plan_reasons(reproduced)

    assert reasons["train@other-own-1"] == "it has not finished here yet"


def test_the_time_of_a_new_seed_is_estimated_from_the_first_seed(reproduced):
    """Seed 2 is added for both systems, tiny and wide, which have run with seed 1."""
    reproduced.edit("params.yaml", "seeds: [1]", "seeds: [1, 2]")

    output = reproduced.run("bleuprint", "plan")

    for kind in ("train", "average", "translate", "score"):
        line = rf"(?m)^{kind}, 2 stages +it has not .*; took \d+:\d\d:\d\d with another seed$"
        assert re.search(line, output), output


def test_a_split_share_is_ignored_for_a_set_that_the_corpus_has_as_a_file(stand_in, tmp_path):
    """Corpus `own` names a validation file, so only its test set is split off the training text.

    If the unused share counted as a setting, editing it would repeat all trainings.
    """
    project = stand_in.copy(tmp_path / "project")
    params = project.root / "params.yaml"
    for side in ("en", "de"):
        shutil.copy(project.root / f"inputs/a.{side}", project.root / f"inputs/valid.{side}")
    valid_files = (
        "      valid:\n        v: {license_and_citation: own, source: {path: inputs/valid.en}, "
        "target: {path: inputs/valid.de}}\n"
    )
    project.edit("params.yaml", "    filter: {length", f"{valid_files}    filter: {{length")
    before = resolved_content(load_settings(params), project.root)["corpora"]["own"]["split"]

    new_shares = "    split: {valid: 0.2, test: 0.1}\n"
    project.edit("params.yaml", "    filter: {length", f"{new_shares}    filter: {{length")
    after = resolved_content(load_settings(params), project.root)["corpora"]["own"]["split"]

    # 0.05 is the default of both shares.
    assert (before["valid"], before["test"]) == (0.05, 0.05)
    assert (after["valid"], after["test"]) == (0.05, 0.1)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        pytest.param("part.own/a.filter", "part own/a.filter has changed", id="rule"),
        pytest.param("part_order.own", "part order own has changed", id="order"),
        pytest.param("files_together.own.train", "files together own.train has changed", id="text"),
    ],
)
def test_the_plan_names_settings_that_only_dvc_gets_without_their_section(key, sentence):
    """DVC compares these values below the key `dvc` of reports/resolved.json."""
    assert plan._describe_change(f"dvc.{key}", ["before"], ["after"]) == sentence


def test_one_line_of_the_plan_keeps_each_different_reason_once(print_plan):
    """Reasons that differ only in the name of a system count as equal; the first one is printed."""
    first_reason = "systems.a.one.train has changed"
    same_reason_of_another_corpus = "systems.a.two.train has changed"
    third_reason = "it has not finished here yet"

    (line,) = print_plan(
        (first_reason, None), (same_reason_of_another_corpus, None), (third_reason, None)
    )

    assert line.endswith(f"  {first_reason}; {third_reason}")


def test_a_merge_conflict_in_dvc_lock_is_an_error_that_tells_how_to_solve_it(project):
    """Two branches that both ran stages conflict in dvc.lock; DVC itself fails on the markers."""
    lock = project.read("dvc.lock")
    project.write("dvc.lock", f"<<<<<<< HEAD\n{lock}=======\n{lock}>>>>>>> theirs\n")

    advice = r"dvc\.lock contains merge conflicts\. Keep one side: git checkout --ours dvc\.lock"
    with pytest.raises(UserError, match=advice):
        planned_stages(project.root)
