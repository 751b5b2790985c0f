"""Which stages DVC and Snakemake run after the user has added systems or changed seeds and weights.

The project of these tests is the one of stand_ins: its stages compute nothing, but write what
decides their results. It has the systems tiny and wide and the corpora own and other; wide is
excluded from corpus other.
"""

import re
import shutil
import subprocess

import pytest

from bleuprint.pipeline import recording
from bleuprint.pipeline.resolve import write_resolved
from micro import Project

# The section of the system fine, and what makes it start from the weights of tiny.
FINE = "  fine: {like: tiny, corpora: {other: null}}\n"
INIT_FROM = "init_from: {fine: {system: tiny, corpus: own}}\n"


def insert_fine_tuned_system(project):
    """Add a system that starts from the weights of tiny, above tiny in params.yaml."""
    params = project.read("params.yaml")
    with_system = params.replace("systems:\n", f"systems:\n{FINE}")
    project.write("params.yaml", with_system + INIT_FROM)


def test_one_run_of_dvc_trains_a_fine_tuned_system_that_params_yaml_adds(own_project):
    """System fine starts from the weights of tiny, which params.yaml defines after fine.

    The stages of the other systems are up to date. On the corpus other, params.yaml excludes fine:
    the stages of this run write empty outputs.
    """
    insert_fine_tuned_system(own_project)

    stages_run = set(own_project.repro())

    expected_stages = {"resolve", "fresh@fine-1", "parents@fine", "init_weights@fine-1", "report"}
    for kind in ("train", "average", "translate", "score"):
        expected_stages |= {f"{kind}@fine-own-1", f"{kind}@fine-other-1"}
    assert stages_run == expected_stages


@pytest.mark.parametrize("engine", ["dvc", "snakemake"])
def test_a_fine_tuned_system_is_trained_from_the_weights_of_its_parent(own_project, engine):
    """System fine starts from the averaged weights of tiny, its parent.

    Each stage of this project writes the names of the files that it has read, so they lead from the
    training of fine back to the weights of tiny.
    """
    insert_fine_tuned_system(own_project)

    if engine == "dvc":
        own_project.repro()
    else:
        own_project.snakemake()

    stages_out_of_date = own_project.changed_stages()
    assert stages_out_of_date == set()
    files_read_by_train = own_project.read("models/fine/own/1/checkpoints/file")
    assert "data/starts/fine/1/weights/file" in files_read_by_train
    files_read_by_init_weights = own_project.read("data/starts/fine/1/weights/file")
    assert "data/parents/fine/1/file" in files_read_by_init_weights
    files_read_by_parents = own_project.read("data/parents/fine/1/file")
    assert "models/tiny/own/1/averaged/file" in files_read_by_parents


@pytest.fixture(scope="module")
def fine_tuned(stand_in, tmp_path_factory):
    """Return a project that has run with a system that starts from tiny. Not to be changed."""
    project = stand_in.copy(tmp_path_factory.mktemp("fine") / "project")
    project.write("params.yaml", f"{project.read('params.yaml')}{FINE}{INIT_FROM}")
    assert "train@fine-own-1" in project.repro()
    return project


def test_a_system_is_trained_again_from_random_weights_when_init_from_is_deleted(
    fine_tuned, tmp_path
):
    """System fine was trained from the weights of tiny: `init_from: {fine: {system: tiny, ...}}`.

    Each stage of this project writes the names of the files that it has read.
    """
    project = fine_tuned.copy(tmp_path / "project")
    params = project.read("params.yaml")
    project.write("params.yaml", params.replace(INIT_FROM, ""))

    stages_run = project.repro()

    assert "train@fine-own-1" in stages_run
    files_read_by_train = project.read("models/fine/own/1/checkpoints/file")
    assert "data/starts/fine/1/weights" not in files_read_by_train


def test_a_system_is_trained_again_when_it_starts_from_a_model_of_another_corpus(
    fine_tuned, tmp_path
):
    """System fine was trained from the model of tiny on the corpus own; now it is corpus other.

    Each stage of this project writes the names of the files that it has read.
    """
    project = fine_tuned.copy(tmp_path / "project")
    new_init_from = "init_from: {fine: {system: tiny, corpus: other}}\n"
    project.edit("params.yaml", INIT_FROM, new_init_from)

    stages_run = project.repro()

    assert {"parents@fine", "init_weights@fine-1", "train@fine-own-1"} <= set(stages_run)
    files_read_by_parents = project.read("data/parents/fine/1/file")
    assert "models/tiny/other/1/averaged/file" in files_read_by_parents
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()


def trainings_with_seeds(project, seeds):
    """Change the seeds in params.yaml, run DVC, and return the names of the trainings that ran."""
    params = project.read("params.yaml")
    project.write("params.yaml", re.sub(r"(?m)^seeds: .*$", f"seeds: {seeds}", params))
    trainings = {name for name in project.repro() if name.startswith("train@")}
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()
    return trainings


def test_a_new_seed_trains_only_the_runs_with_this_seed(fine_tuned, tmp_path):
    """All systems have run with seed 1. System fine starts from the weights of tiny."""
    project = fine_tuned.copy(tmp_path / "project")

    trainings = trainings_with_seeds(project, "[1, 2]")

    assert "train@fine-own-2" in trainings
    for name in trainings:
        assert name.endswith("-2")


def test_reordering_or_removing_seeds_trains_nothing(fine_tuned, tmp_path):
    """All systems have run with the seeds 1 and 2. System fine starts from the weights of tiny."""
    project = fine_tuned.copy(tmp_path / "project")
    trainings_with_seeds(project, "[1, 2]")

    assert trainings_with_seeds(project, "[2, 1]") == set()
    assert trainings_with_seeds(project, "[1]") == set()


def entry_of_lock(project, stage):
    """Return the text of a stage's entry in dvc.lock."""
    stages_text = project.read("dvc.lock").partition("\nstages:")[2]
    for entry in re.split(r"\n  (?=\S)", stages_text):
        if entry.partition(":")[0] == stage:
            return entry
    raise AssertionError(f"dvc.lock has no {stage}")


@pytest.mark.parametrize("engine", ["dvc", "snakemake"])
def test_an_edit_during_a_training_counts_for_the_next_run_only(own_project, engine):
    """While the training runs, the user edits clip_norm in params.yaml from 2.0 to 3.0.

    The training and dvc.lock must agree on 2.0. If dvc.lock recorded 3.0, DVC would never train
    with 3.0.
    """
    project = own_project
    project.edit("params.yaml", "clip_norm: 1.0", "clip_norm: 2.0")
    # The stages of this project run the command in this variable while a training runs.
    edit_command = "sed -i 's/clip_norm: 2.0/clip_norm: 3.0/' params.yaml"
    project.environment["WHILE_TRAINING"] = edit_command

    checkpoints = "models/tiny/own/1/checkpoints"
    if engine == "dvc":
        project.run("dvc", "repro", "train@tiny-own-1")
    else:
        shutil.rmtree(project.root / checkpoints)
        project.snakemake(checkpoints)

    assert "clip_norm: 3.0" in project.read("params.yaml")
    # The training has written its settings to its output.
    assert '"clip_norm": 2.0' in project.read(f"{checkpoints}/file")
    assert "clip_norm: 2.0" in entry_of_lock(project, "train@tiny-own-1")
    # The next run trains with the edit.
    assert "resolve" in project.changed_stages()
    write_resolved(project.root)
    edited_trainings = {"train@tiny-own-1", "train@tiny-other-1", "train@wide-own-1"}
    assert edited_trainings <= project.changed_stages()


@pytest.fixture(scope="module")
def pushed(stand_in, tmp_path_factory):
    """Return a project whose outputs are pushed to a DVC remote, a folder beside it."""
    from dvc.repo import Repo

    folder = tmp_path_factory.mktemp("pushed")
    project = stand_in.copy(folder / "project")
    with Repo(str(project.root)) as repo:
        repo.add([f"{project.root}/inputs/a.en", f"{project.root}/inputs/a.de"])
    # The stage resolve depends on the folder inputs/, to which `dvc add` has added files.
    recording._record_in_dvc({"resolve"}, project.root)
    project.edit(".dvc/config", "[core]\n", "[core]\n    remote = here\n")
    remote_section = f"['remote \"here\"']\n    url = {folder / 'remote'}\n"
    project.write(".dvc/config", f"{project.read('.dvc/config')}\n{remote_section}")
    project.commit()
    with Repo(str(project.root)) as repo:
        number_of_files = repo.push()
    assert number_of_files > 50
    return project


def test_after_dvc_pull_all_stages_of_a_clone_are_up_to_date(pushed, tmp_path):
    """A colleague clones the repository and pulls the outputs from the DVC remote."""
    from dvc.repo import Repo

    subprocess.run(["git", "clone", "-q", pushed.root, tmp_path / "clone"], check=True)
    clone = Project(tmp_path / "clone")
    stages_out_of_date_before = clone.changed_stages()

    with Repo(str(clone.root)) as repo:
        repo.pull()

    assert stages_out_of_date_before != set()
    assert clone.changed_stages() == set()
    averaged_model = "models/tiny/own/1/averaged/file"
    assert clone.read(averaged_model) == pushed.read(averaged_model)
    # Resolving the settings in the clone writes the same file that was committed.
    write_resolved(clone.root)
    assert clone.run("git", "status", "--porcelain") == ""
