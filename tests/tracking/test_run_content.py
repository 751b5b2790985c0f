"""What a run in MLflow contains, and what happens if a part of it is missing or damaged."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import result_trees
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.runs.results import Results
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.tracking import store
from bleuprint.tracking.datasets import may_be_copied
from bleuprint.tracking.run_content import _curve_points, collect_content, score_metrics
from bleuprint.tracking.runs import NOTE, OUTPUTS
from bleuprint.tracking.sync import sync
from measuring import value_of
from mlservers import runs_in
from root import ROOT

# The project of most tests, `root`, has two systems (tiny and small) with seeds 1 and 2.
RUN = Run("tiny", "news-en-de", 1)


def runs_by_name(root):
    """Return a client of the project's database, and its runs by name."""
    client, runs = runs_in(f"sqlite:///{root / 'mlflow.db'}", "trial_run")
    named_runs = {run.info.run_name: run for run in runs}
    assert len(named_runs) == len(runs)
    return client, named_runs


def logged_runs(root):
    """Return the runs in the project's database by name, such as "tiny news-en-de 1"."""
    _, runs = runs_by_name(root)
    return runs


def test_the_scores_of_each_test_set_are_metrics_with_its_name(tmp_path, monkeypatch):
    """Two corpora have a test set `first`, so metrics are named METRIC/CORPUS/TEST_SET.

    The expected values are those in the results of each run, scores.json.
    """
    monkeypatch.chdir(tmp_path)
    corpora = {"news-en-de": ("first", "second"), "talks-en-fr": ("first",)}
    settings = result_trees.settings_in(tmp_path, corpora=corpora)
    result_trees.write_all(tmp_path, settings)

    bleu_values = []
    for corpus, test_sets in corpora.items():
        run = Run("tiny", corpus, 1)
        metrics = score_metrics(corpus, Results.open(settings, run).scores)
        scores = read_json(run.results_folder / "scores.json")
        for test_set in test_sets:
            bleu = metrics[f"bleu/{corpus}/{test_set}"]
            assert bleu == value_of(scores[test_set], "bleu")
            assert metrics[f"chrf2/{corpus}/{test_set}"] == value_of(scores[test_set], "chrf2")
            bleu_values.append(bleu)
    # The three scores differ, so a score under the wrong name would have been noticed.
    assert len(set(bleu_values)) == 3


@pytest.mark.parametrize(
    ("recipe", "system", "corpus"),
    [
        ("phrasebook", "tiny", "phrasebook-en-de"),
        ("phrasebook", "small", "phrasebook-en-fr"),
        ("back-translation-phrasebook", "tiny", "back-translated"),
    ],
)
def test_translations_of_the_embedded_phrasebook_may_be_copied_to_mlflow(recipe, system, corpus):
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")

    assert may_be_copied(settings, system, corpus)


@pytest.mark.parametrize(
    ("recipe", "system", "corpus"),
    [
        ("multi30k", "transformer-tiny", "multi30k-en-de"),
        ("copy", "edition-2018", "copy"),
        ("toy-sentence", "toy", "toy-sentence"),
        ("multilingual-multi30k", "small", "multilingual"),
        ("fine-tune-multi30k", "tuned", "captions-en-de"),
    ],
)
def test_translations_of_other_texts_may_not_be_copied_to_mlflow(recipe, system, corpus):
    """The licenses of other texts may forbid it."""
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")

    assert not may_be_copied(settings, system, corpus)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("phrasebook:test.en", "copy:test.src", id="another test set"),
        pytest.param('url: "phrasebook:noisy.de"', "path: inputs/a", id="the user's own file"),
    ],
)
def test_translations_of_a_corpus_with_a_file_from_elsewhere_may_not_be_copied_to_mlflow(
    tmp_path, monkeypatch, old, new
):
    """Only translations of text with this project's own license may be copied.

    The text of the phrasebook has it. Here one file of the corpus is replaced by a file with
    another license: `copy:test.src` is the test set of another embedded corpus.
    """
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    shutil.copy(ROOT / "recipes/phrasebook.yaml", tmp_path / "params.yaml")
    assert may_be_copied(load_settings(), "tiny", "phrasebook-en-de")

    path = Path("corpora/phrasebook.yaml")
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")

    assert not may_be_copied(load_settings(), "tiny", "phrasebook-en-de")


@pytest.fixture
def copying_allowed(monkeypatch):
    """Allow that translations are copied to MLflow."""
    monkeypatch.setattr("bleuprint.tracking.run_content.may_be_copied", lambda *_: True)


@pytest.mark.usefixtures("copying_allowed")
def test_a_sync_copies_translations_to_mlflow(root):
    """The license of a corpus must allow it, which this test assumes."""
    hypotheses = RUN.results_folder / "hypotheses/test.first.de"

    list(sync(load_settings()))

    client, runs = runs_by_name(root)
    run_id = runs["tiny news-en-de 1"].info.run_id
    artifacts = [artifact.path for artifact in client.list_artifacts(run_id, "hypotheses")]
    assert artifacts == ["hypotheses/test.first.de"]
    copy = root / f"mlruns/trial_run/{run_id}/artifacts/hypotheses/test.first.de"
    assert copy.read_bytes() == hypotheses.read_bytes()


@pytest.mark.usefixtures("copying_allowed")
def test_new_translations_replace_the_old_ones_in_mlflow(root):
    """The first sync logs the old translations. The new ones are the old in reverse order."""
    settings = load_settings()
    list(sync(settings))
    run_id = logged_runs(root)["tiny news-en-de 1"].info.run_id
    copy = root / f"mlruns/trial_run/{run_id}/artifacts/hypotheses/test.first.de"
    old_lines = copy.read_text("utf-8").split("\n")[:-1]
    new_lines = old_lines[::-1]
    assert new_lines != old_lines

    result_trees.translate(root, settings, RUN, "first", new_lines)
    outcomes = list(sync(settings))

    assert outcomes == ["run tiny news-en-de 1: completed"]
    assert copy.read_text("utf-8").split("\n")[:-1] == new_lines


@pytest.mark.usefixtures("copying_allowed")
def test_a_sync_after_the_project_was_moved_does_not_write_to_its_old_folder(
    root, tmp_path_factory, monkeypatch
):
    """MLflow's database contains the old path, where it would store the translations.

    The first sync runs in the old folder. New translations in the new folder then need another one.
    """
    settings = load_settings()
    list(sync(settings))
    moved_root = tmp_path_factory.mktemp("elsewhere") / "moved"
    monkeypatch.chdir(root.parent)
    root.rename(moved_root)
    monkeypatch.chdir(moved_root)

    result_trees.translate(moved_root, settings, RUN, "first", ["something else"] * 100)
    outcomes = list(sync(settings))

    assert outcomes == ["run tiny news-en-de 1: completed"]
    assert not root.exists()
    assert list(sync(settings)) == []  # Nothing is left to log.


def write_committed_costs(costs):
    """Write reports/costs.csv, which is committed, with a training of another one before it.

    Args:
        costs: The columns of a training in this table.
    """
    other_costs = costs | {"training_sha256": "0" * 64, "device": "of another training"}
    with Path("reports/costs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(costs))
        writer.writeheader()
        writer.writerow(other_costs)
        writer.writerow(costs)


@pytest.fixture
def committed_costs(root):
    """Remove all measured durations; commit the costs of RUN, and return them.

    That is what a clone has: timings/ is not committed.
    """
    shutil.rmtree(root / "timings")
    costs = {
        "system": "tiny",
        "training_sha256": read_json(RUN.results_folder / "training.json")["fingerprint"],
        "train_seconds": "61.5",
        "device": "Committed CPU",
        "commit": "c0ffee",
        "versions": "Python 3.12.1, torch 2.1.0",
    }
    write_committed_costs(costs)
    return costs


MACHINE_TAGS = ("device", "versions", "commit")


def test_costs_that_were_not_measured_here_are_those_in_the_committed_table(root, committed_costs):
    """A clone has reports/costs.csv, but no measured durations.

    In this table, the training took 61.5 seconds.
    """
    list(sync(load_settings()))

    run = logged_runs(root)["tiny news-en-de 1"]
    for tag in MACHINE_TAGS:
        assert run.data.tags[tag] == committed_costs[tag]
    assert run.data.metrics["total/seconds"] == 61.5
    assert run.info.end_time - run.info.start_time == 61_500  # milliseconds


@pytest.mark.usefixtures("committed_costs")
def test_costs_that_are_not_committed_either_are_unknown(root):
    """A clone has no measured durations, and its reports/costs.csv contains only seed 1."""
    list(sync(load_settings()))

    run = logged_runs(root)["tiny news-en-de 2"]
    for tag in MACHINE_TAGS:
        assert run.data.tags[tag] == "unknown"
    assert "total/seconds" not in run.data.metrics


def test_a_sync_without_costs_keeps_the_costs_that_are_in_mlflow(root, committed_costs):
    """Another clone may have logged them to the same server.

    The second sync runs in a clone without measured durations and without reports/costs.csv.
    """
    list(sync(load_settings()))
    client, runs = runs_by_name(root)
    run = runs["tiny news-en-de 1"]

    Path("reports/costs.csv").unlink()
    list(sync(load_settings()))

    tags = client.get_run(run.info.run_id).data.tags
    for tag in MACHINE_TAGS:
        assert tags[tag] == committed_costs[tag]
    # The run was updated: the tag OUTPUTS is a hash of all that was logged.
    assert tags[OUTPUTS] != run.data.tags[OUTPUTS]


@pytest.fixture
def run_of_version_1(root):
    """Return a client, and a run as version 1 logged it, with changes by a user.

    It has the same tags as today, but other names of metrics, and no description. The user has
    renamed it, and has added a note and a tag.
    """
    content = collect_content(Results.open(load_settings(), RUN), {})
    client = store.open_client()
    experiment_id = client.create_experiment("trial_run")
    tags = {**content.description.tags, NOTE: "mine: the best one", "mine": "too"}
    run = client.create_run(experiment_id, 1, tags, "my name of it")
    client.log_metric(run.info.run_id, "bleu/first", 12.5)
    client.log_param(run.info.run_id, "model.d_model", "of then")
    client.set_terminated(run.info.run_id)
    assert root == Path.cwd()
    return client, client.get_run(run.info.run_id)


def test_a_run_of_version_1_gets_what_it_lacks(root, run_of_version_1):
    """Version 1 of bleuprint logged fewer parameters and tags, and metrics with other names.

    The project has four runs, of which version 1 has logged one.
    """
    client, old_run = run_of_version_1
    settings = load_settings()

    outcomes = list(sync(settings))

    assert "run tiny news-en-de 1: completed" in outcomes
    run = client.get_run(old_run.info.run_id)
    scores = read_json(RUN.results_folder / "scores.json")["first"]
    assert run.data.metrics["bleu/news-en-de/first"] == value_of(scores, "bleu")
    assert len(run.data.params) > 60
    assert run.data.tags["device"] == "Test CPU"
    assert len(logged_runs(root)) == 4
    assert list(sync(settings)) == []  # Nothing is left to log.


def test_a_run_of_version_1_keeps_what_it_has(run_of_version_1):
    """A sync adds to a run what it lacks, and overwrites nothing that a user may have changed.

    Version 1 logged the metric `bleu/first` and the parameter `model.d_model` with these values;
    the user then renamed the run and added the note and the tag `mine`.
    """
    client, old_run = run_of_version_1

    list(sync(load_settings()))

    run = client.get_run(old_run.info.run_id)
    assert run.data.metrics["bleu/first"] == 12.5
    assert run.data.params["model.d_model"] == "of then"
    assert run.data.tags[NOTE] == "mine: the best one"
    assert run.data.tags["mine"] == "too"
    assert run.info.run_name == "my name of it"
    assert run.info.end_time == old_run.info.end_time


def test_a_run_that_was_deleted_in_mlflow_is_logged_again(root):
    """The results are still in the project, from which a sync makes a new run."""
    settings = load_settings()
    list(sync(settings))
    client, runs = runs_by_name(root)

    client.delete_run(runs["small news-en-de 2"].info.run_id)
    outcomes = list(sync(settings))

    assert outcomes == ["run small news-en-de 2: made"]
    assert list(sync(settings)) == []  # Nothing is left to log.


def test_a_run_that_was_marked_as_failed_is_completed(root):
    """All its results exist, so a sync marks it as finished again."""
    settings = load_settings()
    list(sync(settings))
    client, runs = runs_by_name(root)

    client.set_terminated(runs["tiny news-en-de 1"].info.run_id, "FAILED")
    outcomes = list(sync(settings))

    assert outcomes == ["run tiny news-en-de 1: completed"]
    assert logged_runs(root)["tiny news-en-de 1"].info.status == "FINISHED"


def run_python(program):
    """Run a program in a process of its own, and return its output."""
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return process.stdout


def test_all_runs_are_logged_again_if_the_database_was_removed(root):
    """The project has four runs: two systems with two seeds."""
    list(sync(load_settings()))

    (root / "mlflow.db").unlink()
    # In another process, since MLflow keeps the connection to the old database in this one.
    output = run_python("""
from bleuprint.tracking.sync import sync
from bleuprint.config.experiment import load_settings
print(*sync(load_settings()), sep="\\n")
""")

    assert output.count(": made\n") == 4


# Prints the number of runs, and whether MLflow and its largest dependency were imported.
_LOG_RESULTS = """
import sys
from bleuprint.config.experiment import load_settings
from bleuprint.tracking.sync import log_results
outcomes = log_results(load_settings())
print(len(outcomes), "mlflow" in sys.modules, "sqlalchemy" in sys.modules)
"""


@pytest.mark.usefixtures("root")
def test_mlflow_is_not_imported_if_it_contains_all_results():
    """Importing MLflow takes seconds."""
    list(sync(load_settings()))

    assert run_python(_LOG_RESULTS) == "4 False False\n"


@pytest.mark.usefixtures("root")
def test_mlflow_is_imported_if_a_result_is_new():
    """The script prints the number of runs, and whether MLflow and SQLAlchemy were imported."""
    list(sync(load_settings()))
    path = RUN.results_folder / "curves.json"
    curves = read_json(path)
    curves["validation"][0]["bleu"] += 1
    write_json(path, curves)

    output = run_python(_LOG_RESULTS)

    assert output == "4 True True\n"


def test_a_damaged_file_of_a_run_is_reported_and_the_other_runs_are_logged(root):
    """The project has four runs. The curves of the first, tiny with seed 1, lack a field."""
    path = RUN.results_folder / "curves.json"
    path.write_text(json.dumps({"training": 1}))

    outcomes = list(sync(load_settings()))

    logged = [outcome for outcome in outcomes if outcome.endswith(": made")]
    assert len(logged) == 3
    (report,) = [outcome for outcome in outcomes if "not logged" in outcome]
    assert report.startswith(f"{RUN}: its results were not logged: {path} is damaged: ")
    assert set(logged_runs(root)) == {
        "tiny news-en-de 2",
        "small news-en-de 1",
        "small news-en-de 2",
    }


@pytest.mark.parametrize(
    ("updates", "expected_milliseconds"),
    [
        ([100], [60_000]),
        ([100, 200], [30_000, 60_000]),
        ([100, 200, 300], [20_000, 40_000, 60_000]),
    ],
    ids=["one validation", "two validations", "three validations"],
)
def test_the_points_of_a_curve_are_spread_evenly_over_the_training_time(
    updates, expected_milliseconds
):
    """The last validation is at the end of the training, which took 60 seconds."""
    validations = [SimpleNamespace(update=update, loss=2.5) for update in updates]
    curves = SimpleNamespace(training=[], validation=validations)

    points = _curve_points(curves, seconds=60.0)

    assert [point.update for point in points] == updates
    assert [point.time for point in points] == expected_milliseconds
