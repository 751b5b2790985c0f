"""Which stages an edit in own/ makes stale: those of the systems that use the edited module."""

import subprocess

import pytest

import stand_ins
from bleuprint.config.experiment import load_settings
from bleuprint.pipeline import graph
from bleuprint.pipeline.plan import planned_stages
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.runtime import code
from own_code import PLAIN_PARTS, own_code_example, write_module
from own_metrics import exact_match_example

ROW = "  relative: {like: tiny, model: {positions: own.relative}}\n"


@pytest.fixture
def project(own_project):
    """Return a project whose stages have run, then with two more systems with own code."""
    write_module(own_project.root, "relative", own_code_example())
    own_project.write("params.yaml", own_project.read("params.yaml") + ROW)
    return own_project


def systems_planned(project):
    """Return the systems of the planned trainings."""
    systems = set()
    for planned in planned_stages(project.root):
        kind, _, run = planned.stage.name.partition("@")
        if kind == "train":
            systems.add(run.split("-")[0])
    return systems


def trainings(project):
    """Return for each training the settings and code on which it depends."""
    write_resolved(project.root)
    stages = graph.load_stages(project.root)
    return {stage.name: stage.digest for stage in stages if stage.kind == "train"}


def test_a_new_row_with_own_code_trains_nothing_else(project):
    assert systems_planned(project) == {"relative"}


def test_an_edit_of_own_code_changes_the_training_of_its_row_only(project):
    """DVC and Snakemake both compare these settings."""
    before = trainings(project)
    module = own_code_example().replace("MAX_DISTANCE = 8", "MAX_DISTANCE = 16")

    write_module(project.root, "relative", module)

    after = trainings(project)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"train@relative-own-1", "train@relative-other-1"}


def test_the_plan_names_the_module_whose_code_has_changed(project):
    """In params.yaml, the setting `model` is as it was."""
    project.repro()
    write_module(project.root, "relative", PLAIN_PARTS)

    reasons = {planned.stage.name: planned.why for planned in planned_stages(project.root)}

    assert reasons["train@relative-own-1"] == "the code of own.relative has changed"
    assert "train@tiny-own-1" not in reasons


@pytest.mark.parametrize(
    ("name", "module"),
    [
        pytest.param("relative", "# A comment\n" + own_code_example(), id="comment"),
        pytest.param("unused", PLAIN_PARTS, id="module that no system names"),
    ],
)
def test_an_edit_without_effect_changes_no_training(project, name, module):
    before = trainings(project)

    write_module(project.root, name, module)

    assert trainings(project) == before


def test_the_stage_resolve_depends_on_own_code(project):
    """So DVC and Snakemake look for new fingerprints after an edit."""
    write_resolved(project.root)
    stages = {stage.name: stage for stage in graph.load_stages(project.root)}

    inputs = graph.input_paths(stages.values(), project.root)

    assert "own/relative.py" in inputs["resolve"]
    others = [name for name, paths in inputs.items() if "own/relative.py" in paths]
    assert others == ["resolve"]


def test_code_with_own_modules_that_are_not_committed_is_marked_as_edited(project, monkeypatch):
    """`bleuprint release` refuses such code, since a clone would lack the module."""
    package = project.root / "src" / "bleuprint" / "runtime" / "code.py"
    monkeypatch.setattr(code, "__file__", str(package))
    assert code.code_commit().endswith("+")

    subprocess.run(["git", "add", "own"], cwd=project.root, check=True)
    subprocess.run(
        ["git", "commit", "-qm", "own"], cwd=project.root, check=True, env=project.environment
    )
    assert not code.code_commit().endswith("+")

    write_module(project.root, "relative", PLAIN_PARTS)
    assert code.code_commit().endswith("+")


def test_the_settings_of_a_resolved_project_name_the_code(project):
    pinned = load_settings(project.root / "params.yaml").system_settings("relative").model.positions

    write_resolved(project.root)

    assert f'"positions": "{pinned}"' in project.read("reports/resolved.json")


@pytest.fixture
def project_with_metric(own_project):
    """Return a project whose stages have run with an own metric."""
    write_module(own_project.root, "exact_match", exact_match_example())
    params = own_project.read("params.yaml") + "metrics: [own.exact_match]\n"
    own_project.write("params.yaml", params)
    stand_ins.run(own_project)
    return own_project


def kinds_planned(project):
    """Return the kinds of the planned stages, such as `score`."""
    return {planned.stage.name.partition("@")[0] for planned in planned_stages(project.root)}


def test_an_edit_of_a_metric_makes_only_scores_and_the_report_stale(project_with_metric):
    assert kinds_planned(project_with_metric) == set()
    module = exact_match_example().replace("translation == reference", "translation in reference")

    write_module(project_with_metric.root, "exact_match", module)

    assert kinds_planned(project_with_metric) == {"resolve", "score", "report"}


def test_a_comment_in_a_metric_makes_nothing_stale(project_with_metric):
    module = "# A comment\n" + exact_match_example()

    write_module(project_with_metric.root, "exact_match", module)

    assert not kinds_planned(project_with_metric) & {"score", "report"}


def test_an_own_metric_belongs_to_no_training(own_project):
    """Neither a new metric nor its edit changes what DVC compares of a training."""
    before = trainings(own_project)
    write_module(own_project.root, "exact_match", exact_match_example())
    params = own_project.read("params.yaml") + "metrics: [own.exact_match]\n"
    own_project.write("params.yaml", params)

    assert trainings(own_project) == before
