"""DVC experiments, and systems that are added to params.yaml: what DVC runs and shows.

The project has the corpus own and the systems tiny and wide (tests/support/micro.py).
"""

import json
import re
import shutil
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

import micro
from bleuprint.runtime.regular_files import sha256_of
from micro import read_results


def run_stages(system):
    """Return the names of the stages of a system's run, from its training to its scores."""
    return {f"{stage}@{system}-own-1" for stage in ("train", "average", "translate", "score")}


# A DVC experiment: a run with another setting, which Git's branch does not contain.


@pytest.fixture(scope="module")
def experiment(by_dvc, tmp_path_factory):
    """Return a project with the DVC experiment "other": the system wide without label smoothing.

    Attributes of the result: `project`, and `stages`, which DVC ran for the experiment.
    """
    project = by_dvc.copy(tmp_path_factory.mktemp("experiment") / "project")
    setting = "++systems.wide.train.label_smoothing=0"
    output = project.run("dvc", "exp", "run", "--temp", "-n", "other", "-S", setting)
    return SimpleNamespace(project=project, stages=micro.stages_in_output(output))


@pytest.mark.slow
def test_an_experiment_runs_the_stages_that_its_setting_changes(experiment):
    assert set(experiment.stages) == run_stages("wide") | {"resolve", "report"}


@pytest.mark.slow
def test_an_experiment_in_a_temporary_folder_changes_no_file_of_the_project(experiment):
    assert experiment.project.run("git", "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["show"], ["diff", "--all", "HEAD", "other"]], ids=["show", "diff"]
)
def test_dvc_metrics_has_the_bleu_of_each_system(experiment, arguments):
    """The systems tiny and wide are scored on the corpus own.

    The DVC experiment "other" has another setting of wide.
    """
    output = experiment.project.run("dvc", "metrics", *arguments)

    assert re.findall(r"BLEU\S+", output) == ["BLEU.tiny.own", "BLEU.wide.own"]


@pytest.mark.slow
def test_dvc_exp_show_has_a_column_of_the_setting_that_an_experiment_changes(experiment):
    """The DVC experiment changes the label smoothing of the system wide.

    The command is the one in the manual: --only-changed hides columns of equal values, and --drop
    hides the hashes of files.
    """
    show = ("dvc", "exp", "show", "--only-changed", "--csv")
    drop = ("--drop", "^(data|models|results|src|reports)")

    table = experiment.project.run(*show, *drop)

    columns = table.splitlines()[0].split(",")
    assert "runs.wide.own.train.label_smoothing" in columns
    assert len(columns) < 12, "the table has columns that did not change"


@pytest.fixture(scope="module")
def plots(experiment, tmp_path_factory):
    """Return what Vega draws on the page on which `dvc plots diff` compares an experiment."""
    folder = tmp_path_factory.mktemp("plots")
    experiment.project.run("dvc", "plots", "diff", "HEAD", "other", "--out", str(folder))
    page = (folder / "index.html").read_text("utf-8")
    return [json.loads(text) for text in re.findall(r"var spec = (\{.*\});\n", page)]


@pytest.mark.slow
def test_dvc_plots_has_the_curves_of_trainings_and_the_test_scores(plots):
    titles = [plot["title"] for plot in plots]

    assert titles == ["Validation BLEU", "Validation loss", "Training loss", "Test BLEU"]


@pytest.mark.slow
def test_each_plot_shows_all_systems_of_both_revisions(plots):
    """`dvc plots diff HEAD other` compares the commit with the DVC experiment "other"."""
    for plot in plots:
        points = plot["data"]["values"]
        assert {point["rev"] for point in points} == {"HEAD", "other"}
        assert {point["system"] for point in points} == {"tiny", "wide"}


@pytest.mark.slow
def test_dvc_fills_all_placeholders_of_the_plots(plots):
    for plot in plots:
        assert "DVC_METRIC" not in json.dumps(plot)


# A system that is added to params.yaml, and removed.


def stages_without_deep(project):
    """Return the stages in dvc.lock but those of the system deep, which DVC keeps there."""
    from dvc.utils.serialize import loads_yaml

    stages = loads_yaml(project.read("dvc.lock"))["stages"]
    for name in list(stages):
        if "@deep" in name:
            del stages[name]
    return stages


@dataclass(frozen=True)
class StateAfterRepro:
    """What a project is like after `dvc repro`.

    Attributes:
        stages: The stages that DVC has run.
        systems: The systems in the results, in order.
        results: The text of reports/results.json.
        stages_without_deep: The entries of dvc.lock that `stages_without_deep` returns.
    """

    stages: list[str]
    systems: list[str]
    results: str
    stages_without_deep: dict


def run_repro(project):
    """Run `dvc repro`, and return the state after it."""
    stages = project.repro()
    results = project.read("reports/results.json")
    return StateAfterRepro(stages, project.rows(), results, stages_without_deep(project))


@pytest.fixture(scope="module")
def history_of_deep(by_dvc, tmp_path_factory):
    """Add the system deep to params.yaml, remove it, add it again, and undo this with Git.

    Return the states after `dvc repro`, which follows each step: `added`, `removed`, `added_again`
    and `undone`.
    """
    project = by_dvc.copy(tmp_path_factory.mktemp("deep") / "project")
    params = project.read("params.yaml")
    params_with_deep = params + micro.THIRD_SYSTEM

    project.write("params.yaml", params_with_deep)
    added = run_repro(project)
    project.write("params.yaml", params)
    removed = run_repro(project)
    project.write("params.yaml", params_with_deep)
    added_again = run_repro(project)
    project.run("git", "checkout", "--quiet", "params.yaml", "dvc.lock", "reports")
    project.run("dvc", "checkout")
    undone = run_repro(project)
    return SimpleNamespace(added=added, removed=removed, added_again=added_again, undone=undone)


@pytest.mark.slow
def test_a_new_system_runs_its_own_stages_and_the_report(history_of_deep):
    expected_stages = run_stages("deep") | {"fresh@deep-1", "resolve", "report"}

    assert set(history_of_deep.added.stages) == expected_stages


@pytest.mark.slow
def test_a_new_system_is_the_last_row_of_the_results(history_of_deep):
    assert history_of_deep.added.systems == ["tiny", "wide", "deep"]


@pytest.mark.slow
def test_removing_a_system_restores_the_results_from_before_it_was_added(history_of_deep, by_dvc):
    """The system deep was added to params.yaml, run, and removed again.

    `by_dvc` is the project before this. DVC keeps the entries of deep in dvc.lock.
    """
    removed = history_of_deep.removed

    assert set(removed.stages) == {"resolve", "report"}
    assert removed.results == by_dvc.read("reports/results.json")
    assert removed.stages_without_deep == stages_without_deep(by_dvc)


@pytest.mark.slow
def test_a_removed_system_that_is_added_again_is_not_trained_again(history_of_deep):
    assert set(history_of_deep.added_again.stages) == {"resolve", "report"}


@pytest.mark.slow
def test_a_project_is_up_to_date_after_a_new_system_is_undone_with_git(history_of_deep):
    assert history_of_deep.undone.stages == []


# An external system: its translations are a file, here those of the system wide.


@pytest.fixture(scope="module")
def project_with_external_system(by_dvc, tmp_path_factory):
    """Return a project with the external system online-a, and the stages that DVC ran for it.

    Attributes of the result: `project`, `stages` and `file`, the path of the translations.
    """
    project = by_dvc.copy(tmp_path_factory.mktemp("external") / "project")
    file = project.root / "inputs/external/a.de"
    file.parent.mkdir()
    shutil.copy(project.root / "results/wide/own/1/hypotheses/test.held-out.de", file)
    placeholder = 64 * "a"
    entry = micro.EXTERNAL.replace(placeholder, sha256_of(file))
    project.write("params.yaml", project.read("params.yaml") + entry)
    return SimpleNamespace(project=project, stages=project.repro(), file=file)


@pytest.mark.slow
def test_an_external_system_runs_its_own_stages_and_the_report(project_with_external_system):
    expected_stages = run_stages("online-a") | {"fresh@online-a-1", "resolve", "report"}

    assert set(project_with_external_system.stages) == expected_stages


@pytest.mark.slow
def test_a_project_with_an_external_system_is_up_to_date_once_it_was_run(
    project_with_external_system,
):
    assert project_with_external_system.project.repro() == []


@pytest.mark.slow
def test_an_external_system_gets_the_bleu_of_a_system_with_the_same_translations(
    project_with_external_system,
):
    """The translations of online-a are a copy of the translations of the trained system wide."""
    bleu_by_system = {}
    for row in read_results(project_with_external_system.project)["metrics"]:
        if row["metric"] == "bleu":
            bleu_by_system[row["system"]] = row["value"]

    assert bleu_by_system["online-a"] == bleu_by_system["wide"]


@pytest.mark.slow
def test_the_results_of_an_external_system_lack_the_loss(project_with_external_system):
    """The loss is computed with the model, but online-a, an external system, has only translations.

    It has other metrics, such as BLEU.
    """
    metrics_of_online_a = set()
    for row in read_results(project_with_external_system.project)["metrics"]:
        if row["system"] == "online-a":
            metrics_of_online_a.add(row["metric"])

    assert metrics_of_online_a != set()
    assert "loss" not in metrics_of_online_a


@pytest.mark.slow
def test_the_table_describes_an_external_system(project_with_external_system):
    table = project_with_external_system.project.read("reports/table.md")

    assert "system A, with its default settings" in table


@pytest.mark.slow
def test_a_project_stays_up_to_date_without_the_file_of_a_scored_external_system(
    project_with_external_system, tmp_path
):
    """Git ignores the user's file inputs/external/a.de, so a colleague's clone lacks it.

    DVC must not try to score the system again there.
    """
    project = project_with_external_system.project.copy(tmp_path / "project")
    (project.root / "inputs/external/a.de").unlink()

    stages_run = project.repro()

    assert stages_run == []
