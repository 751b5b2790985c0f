"""`bleuprint accept` keeps the outputs of stages of which nothing but the code has changed.

The project (see stand_ins) has four trainings, which have run; params.yaml excludes wide-other-1,
whose stage does nothing. A test edits stages/train.py, on which only trainings depend.
"""

import json
import re

import pytest

from bleuprint.config.experiment import load_resolved_settings
from bleuprint.pipeline.accept import accept, kinds_to_accept, notes_on_unused_changes
from bleuprint.pipeline.dvc_lock import LockFile
from bleuprint.pipeline.plan import planned_stages
from bleuprint.report.accepted_notes import accepted_notes
from bleuprint.runtime.closure import present_fingerprints
from bleuprint.runtime.errors import UserError

TRAININGS = ["train@tiny-own-1", "train@tiny-other-1", "train@wide-own-1", "train@wide-other-1"]
REASON = "only renamed variables"
# After an acceptance, resolve writes the settings again, and the report names it.
AFTER_ACCEPTANCE = ["resolve", "report"]


def edit_code(project, text="UNUSED = 1"):
    """Add a line to the script of the stage train, which changes its fingerprint."""
    project.write("stages/train.py", project.read("stages/train.py") + f"{text}\n")


def planned_names(project):
    """Return the names of the stages that `make reproduce` would run."""
    return [planned.stage.name for planned in planned_stages(project.root)]


def recorded_codes(project):
    """Return the fingerprint of the code that dvc.lock records for each training."""
    lock = LockFile.read(project.root)
    return {name: lock.settings(name)["code.train"] for name in TRAININGS}


@pytest.fixture
def edited(own_project):
    """Return a project in which the code of the trainings has changed since they ran."""
    edit_code(own_project)
    return own_project


def test_an_acceptance_keeps_the_outputs_of_all_stages_of_a_kind(edited):
    assert set(TRAININGS) <= set(planned_names(edited))

    acceptance = accept(["train"], REASON, edited.root)

    assert [stage.name for stage in acceptance.kept] == TRAININGS
    assert planned_names(edited) == AFTER_ACCEPTANCE


def test_dvc_and_snakemake_run_nothing_but_the_report_after_an_acceptance(edited):
    accept(["train"], REASON, edited.root)

    dry_run = edited.snakemake("--dry-run")
    # Its table of jobs: resolve, the report, and the rule that asks for all outputs.
    assert re.search("^total +3$", dry_run, re.MULTILINE), dry_run
    assert edited.repro() == AFTER_ACCEPTANCE
    assert edited.changed_stages() == set()
    assert planned_names(edited) == []


def test_an_experiment_in_a_copy_of_the_project_keeps_the_outputs_too(edited):
    """Nothing is committed after the acceptance; the copy has the edited files that Git tracks."""
    accept(["train"], REASON, edited.root)

    output = edited.run("dvc", "exp", "run", "--temp", "-S", "experiment=other")

    assert "Running stage 'report'" in output
    assert "Running stage 'train" not in output


def test_both_fingerprints_the_reason_and_the_date_are_recorded(own_project):
    old_code = present_fingerprints(own_project.root)["train"]
    edit_code(own_project)
    new_code = present_fingerprints(own_project.root)["train"]
    comment_lines = own_project.read("stages/accepted.yaml")

    accept(["train"], ' a "quoted"\n reason: — ', own_project.root)

    text = own_project.read("stages/accepted.yaml")
    assert text.startswith(comment_lines)
    entry = text.removeprefix(comment_lines).splitlines()
    assert entry[:4] == [
        '- script: "train"',
        f'  old: "{old_code}"',
        f'  new: "{new_code}"',
        '  because: "a \\"quoted\\" reason: —"',
    ]
    assert entry[4].startswith('  date: "20')
    resolved = json.loads(own_project.read("reports/resolved.json"))
    assert resolved["code"]["train"] == old_code
    assert [change["because"] for change in resolved["accepted"]] == ['a "quoted" reason: —']


def test_stages_read_the_same_settings_after_an_acceptance(edited):
    """reports/resolved.json then contains the accepted changes, beside the settings."""
    settings = load_resolved_settings(edited.root)

    accept(["train"], REASON, edited.root)

    assert load_resolved_settings(edited.root) == settings


def test_the_stages_run_again_after_the_next_edit(edited):
    accept(["train"], REASON, edited.root)

    edit_code(edited, "OTHER = 2")

    assert set(TRAININGS) <= set(planned_names(edited))


def test_undoing_an_accepted_edit_runs_nothing(edited):
    """Both versions of the code count as the same one."""
    code_of_edit = edited.read("stages/train.py")
    accept(["train"], REASON, edited.root)

    edited.write("stages/train.py", code_of_edit.replace("UNUSED = 1\n", ""))

    assert not set(TRAININGS) & set(planned_names(edited))


def test_a_second_acceptance_continues_the_first_one(edited):
    """The trainings ran with the first of three versions of the code."""
    accept(["train"], REASON, edited.root)
    edit_code(edited, "OTHER = 2")

    accept(["train"], "again", edited.root)

    assert planned_names(edited) == AFTER_ACCEPTANCE
    notes = list(accepted_notes(edited.root))
    assert [note.rpartition("Reason: ")[2] for note in notes] == [f"{REASON}.", "again."]


def test_removing_the_entry_runs_the_stages_again(edited):
    comment_lines = edited.read("stages/accepted.yaml")
    accept(["train"], REASON, edited.root)

    edited.write("stages/accepted.yaml", comment_lines)

    assert set(TRAININGS) <= set(planned_names(edited))


def test_a_row_that_ran_with_the_new_code_already_is_kept_as_well(edited):
    """After an update, one training ran with the new code, before the user accepted it."""
    edited.run("dvc", "repro", "resolve")
    edited.run("dvc", "repro", "--single-item", "train@wide-own-1")
    assert len(set(recorded_codes(edited).values())) == 2

    accept(["train"], REASON, edited.root)

    assert len(set(recorded_codes(edited).values())) == 1
    assert planned_names(edited) == AFTER_ACCEPTANCE
    assert edited.repro() == AFTER_ACCEPTANCE


def test_rows_of_different_older_versions_are_kept_together(edited):
    """One training ran with the second version of the code, the others with the first one.

    The present version is the third one.
    """
    edited.run("dvc", "repro", "resolve")
    edited.run("dvc", "repro", "--single-item", "train@wide-own-1")
    edit_code(edited, "OTHER = 2")

    accept(["train"], REASON, edited.root)

    assert planned_names(edited) == AFTER_ACCEPTANCE


def test_a_stage_whose_settings_have_changed_too_runs_all_the_same(edited):
    """Only wide has another setting, on corpus own; the other three are kept."""
    edited.edit("params.yaml", "lr: 0.015", "lr: 0.01")

    acceptance = accept(["train"], REASON, edited.root)

    assert [stage.name for stage in acceptance.kept] == [*TRAININGS[:2], "train@wide-other-1"]
    assert [stage.name for stage in acceptance.out_of_date] == ["train@wide-own-1"]
    trainings = [name for name in planned_names(edited) if name.startswith("train@")]
    assert trainings == ["train@wide-own-1"]


def test_all_stages_with_the_same_code_can_be_accepted_by_their_names(edited):
    accept(TRAININGS, REASON, edited.root)

    assert planned_names(edited) == AFTER_ACCEPTANCE


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param(
            ["trian"], r"^trian: unknown stage; .* Did you mean 'train'\?", id="unknown kind"
        ),
        pytest.param(
            ["train@tiny-owm-1"],
            r"^train@tiny-owm-1: unknown stage; .* Did you mean 'train@tiny-own-1'\?",
            id="unknown stage",
        ),
        pytest.param(["resolve"], "^resolve runs after each acceptance", id="first stage"),
        pytest.param(["report"], "^report runs after each acceptance", id="last stage"),
        pytest.param(["score"], "^score: its code has not changed", id="unchanged code"),
        pytest.param(
            ["train", "score"], "^score: its code has not changed", id="one of two is unchanged"
        ),
        pytest.param(
            ["train@tiny-own-1"],
            "^train@tiny-own-1: train@tiny-other-1 ran with the same code",
            id="one of several stages with the same code",
        ),
        pytest.param(
            ["comet"], "^comet: this experiment has no stage of this kind", id="no such stage here"
        ),
    ],
)
def test_an_acceptance_without_an_effect_is_refused(edited, names, message):
    before = edited.read("stages/accepted.yaml")

    with pytest.raises(UserError, match=message):
        accept(names, REASON, edited.root)

    assert edited.read("stages/accepted.yaml") == before


def test_a_stage_with_other_settings_is_refused_by_name(edited):
    edited.edit("params.yaml", "lr: 0.015", "lr: 0.01")

    with pytest.raises(
        UserError, match=r"^train@wide-own-1: systems\.wide\.own\.train has changed, too"
    ):
        accept(["train@wide-own-1"], REASON, edited.root)


def test_a_stage_that_has_not_run_is_refused(edited):
    lock = LockFile.read(edited.root)
    edited.edit("dvc.lock", lock.blocks["train@tiny-own-1"], "")

    with pytest.raises(UserError, match=r"^train@tiny-own-1: dvc\.lock records no run with"):
        accept(["train@tiny-own-1"], REASON, edited.root)


def test_a_reason_without_words_is_refused(edited):
    with pytest.raises(UserError, match="--because is empty"):
        accept(["train"], " \n", edited.root)


def test_a_file_to_which_no_entry_can_be_added_stays_as_it_is(edited):
    """The user has written the list in square brackets."""
    edited.write("stages/accepted.yaml", "[]\n")

    with pytest.raises(UserError, match=r"stages/accepted\.yaml: cannot add an entry"):
        accept(["train"], REASON, edited.root)

    assert edited.read("stages/accepted.yaml") == "[]\n"


def test_the_plan_offers_the_kinds_of_which_only_the_code_has_changed(edited):
    """The code of the report has changed as well, but it would run in any case."""
    edited.write("stages/report.py", edited.read("stages/report.py") + "UNUSED = 1\n")

    stages = [planned.stage for planned in planned_stages(edited.root)]

    assert kinds_to_accept(stages, edited.root) == ["train"]


def test_the_plan_offers_nothing_where_settings_have_changed(own_project):
    own_project.edit("params.yaml", "lr: 0.015", "lr: 0.01")

    stages = [planned.stage for planned in planned_stages(own_project.root)]

    assert kinds_to_accept(stages, own_project.root) == []


def test_the_command_can_be_copied_from_the_plan(edited):
    offer = edited.run("bleuprint", "plan").splitlines()[-1]
    assert offer.startswith("If these changes of code change no result, keep the outputs: ")

    command = offer.partition(": ")[2].replace('"..."', "x y").partition(" --because ")
    output = edited.run(*command[0].split(), "--because", command[2])

    assert output.splitlines() == [
        "train: 4 stages kept",
        "To keep it: git add reports/resolved.json stages/accepted.yaml && git commit",
        "To see what would run now: bleuprint plan",
    ]
    plan = edited.run("bleuprint", "plan")
    assert "train" not in plan
    assert "accept" not in plan


def test_check_names_an_entry_that_is_no_longer_in_use(edited):
    accept(["train"], REASON, edited.root)
    assert list(notes_on_unused_changes(edited.root)) == []

    edit_code(edited, "OTHER = 2")

    (note,) = notes_on_unused_changes(edited.root)
    assert note.startswith("stages/accepted.yaml: entry 1 (train, 20")
