"""The data sets that a run in MLflow names: those of its corpus, while they are unchanged."""

import shutil

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.runs.results import Results
from bleuprint.tracking.datasets import describe_datasets


@pytest.fixture
def trained_project(toy, tmp_path, monkeypatch):
    """Return a copy of the toy project, whose system has been trained, as the working folder."""
    project = tmp_path / "project"
    shutil.copytree(toy, project)
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def data_sha256(trained_project):  # noqa: ARG001 - it makes the project the working folder
    """Return the fingerprint of the training data, as the results of the training have it."""
    return Results.open(load_settings(), Run("micro", "toy", 1)).training.data


def test_a_run_names_each_set_of_its_corpus_with_its_use_and_pairs(trained_project, data_sha256):
    datasets = describe_datasets("toy", data_sha256)

    uses_and_sizes = {(dataset.name, dataset.context): dataset.size.pairs for dataset in datasets}
    text_folder = trained_project / "data" / "tokens" / "toy"
    expected = {}
    for set_name, use in (("train", "training"), ("valid", "validation"), ("test.x", "testing")):
        pair_count = len((text_folder / f"{set_name}.de").read_text("utf-8").splitlines())
        expected[f"toy {set_name}", use] = pair_count
    assert uses_and_sizes == expected


def test_a_run_names_no_set_of_a_corpus_that_changed_after_its_training(
    trained_project, data_sha256
):
    """The validation set has one more line than at the training."""
    (valid_file,) = (trained_project / corpus_folder("toy", "split")).glob("valid.en")
    with valid_file.open("a", encoding="utf-8") as text:
        text.write("one more line\n")

    assert describe_datasets("toy", data_sha256) == ()
