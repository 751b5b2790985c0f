"""What a run shows: scores of each test set, datasets, and translations only of our own text."""

import csv
import json
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

import result_trees
from bleuprint.cli.main import main
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.runs.results import Results
from bleuprint.runtime.files import read_json, write_json
from bleuprint.tracking import sync as module
from bleuprint.tracking.datasets import may_be_copied
from bleuprint.tracking.run_content import _curve_points, collect_content, score_metrics
from bleuprint.tracking.runs import NOTE, OUTPUTS
from bleuprint.tracking.sync import sync, update_in_stage, update_or_note
from measuring import value_of
from mlservers import runs_in
from root import ROOT

RUN = Run("tiny", "news-en-de", 1)


def shown(root):
    """A client of the project's database, and its runs by name."""
    client, runs = runs_in(f"sqlite:///{root / 'mlflow.db'}", "trial_run")
    assert len(runs) == len({run.info.run_name for run in runs})
    return client, {run.info.run_name: run for run in runs}


def test_each_test_set_has_its_own_scores(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    corpora = {"news-en-de": ("first", "second"), "talks-en-fr": ("first",)}
    settings = result_trees.settings_in(tmp_path, corpora=corpora)
    result_trees.write_all(tmp_path, settings)
    bleu = {}
    for corpus, tests in corpora.items():
        run = Run("tiny", corpus, 1)
        logged = score_metrics(corpus, Results.open(settings, run).scores)
        scores = read_json(run.results_folder / "scores.json")
        for test in tests:
            assert logged[f"bleu/{corpus}/{test}"] == value_of(scores[test], "bleu")
            assert logged[f"chrf2/{corpus}/{test}"] == value_of(scores[test], "chrf2")
        bleu |= {name: value for name, value in logged.items() if name.startswith("bleu/")}
    # or a name with the value of another would have passed
    assert len(bleu) == len(set(bleu.values())) == 3


@pytest.mark.parametrize(
    ("recipe", "system", "corpus", "allowed"),
    [
        ("phrasebook", "tiny", "phrasebook-en-de", True),
        ("phrasebook", "small", "phrasebook-en-fr", True),
        ("back-translation-phrasebook", "tiny", "back-translated", True),
        ("multi30k", "transformer-tiny", "multi30k-en-de", False),
        ("copy", "edition-2018", "copy", False),
        ("toy-sentence", "toy", "toy-sentence", False),
        ("multilingual-multi30k", "small", "multilingual", False),
        ("fine-tune-multi30k", "tuned", "captions-en-de", False),
    ],
)
def test_only_translations_of_the_embedded_phrasebook_may_be_copied(
    recipe, system, corpus, allowed
):
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")
    assert may_be_copied(settings, system, corpus) == allowed


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("another test set", lambda text: text.replace("phrasebook:test.en", "copy:test.src")),
        (
            "a file of the user's",
            lambda text: text.replace('url: "phrasebook:noisy.de"', "path: inputs/a"),
        ),
    ],
)
def test_one_text_of_others_is_enough_to_copy_nothing(tmp_path, monkeypatch, name, change):
    """The license of the entry stays `the project's own`, which says nothing of these files."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    shutil.copy(ROOT / "recipes/phrasebook.yaml", tmp_path / "params.yaml")
    assert may_be_copied(load_settings(), "tiny", "phrasebook-en-de")
    path = Path("corpora/phrasebook.yaml")
    text = path.read_text("utf-8")
    assert change(text) != text, name
    path.write_text(change(text), "utf-8")
    assert not may_be_copied(load_settings(), "tiny", "phrasebook-en-de")


@pytest.fixture
def allowed(monkeypatch):
    """Whether the translations of these tests may be copied."""
    monkeypatch.setattr("bleuprint.tracking.run_content.may_be_copied", lambda *_: True)


@pytest.mark.usefixtures("allowed")
def test_translations_are_artifacts_and_new_ones_replace_them(root):
    list(sync(load_settings()))
    client, runs = shown(root)
    run = runs["tiny news-en-de 1"]
    kept = root / "mlruns/trial_run" / run.info.run_id / "artifacts/hypotheses/test.first.de"
    assert [each.path for each in client.list_artifacts(run.info.run_id, "hypotheses")] == [
        "hypotheses/test.first.de"
    ]
    source = RUN.results_folder / "hypotheses/test.first.de"
    assert kept.read_bytes() == source.read_bytes()
    settings = load_settings()
    lines = source.read_text("utf-8").split("\n")[:-1]
    result_trees.translate(root, settings, RUN, "first", lines[::-1])
    assert list(sync(settings)) == ["run tiny news-en-de 1: completed"]
    assert kept.read_text("utf-8").split("\n")[:-1] == lines[::-1] != lines


@pytest.mark.usefixtures("allowed")
def test_the_old_folder_of_a_project_that_was_moved_is_not_made_again(
    root, tmp_path_factory, monkeypatch
):
    settings = load_settings()
    list(sync(settings))
    moved = tmp_path_factory.mktemp("elsewhere") / "moved"
    monkeypatch.chdir(root.parent)
    root.rename(moved)
    monkeypatch.chdir(moved)
    result_trees.translate(moved, settings, RUN, "first", ["something else"] * 100)
    assert list(sync(settings)) == ["run tiny news-en-de 1: completed"]
    assert not root.exists()
    assert list(sync(settings)) == []


def test_what_is_not_known_here_comes_from_the_committed_costs_or_is_unknown(root):
    settings = load_settings()
    facts = read_json(RUN.results_folder / "training.json")
    row = {
        "system": "tiny",
        "training_sha256": facts["fingerprint"],
        "train_seconds": "61.5",
        "device": "Committed CPU",
        "commit": "c0ffee",
        "versions": "Python 3.12.1, torch 2.1.0",
    }
    shutil.rmtree("timings")
    with Path("reports/costs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow({**row, "training_sha256": "0" * 64, "device": "of another training"})
        writer.writerow(row)
    list(sync(settings))
    client, runs = shown(root)
    run, other = runs["tiny news-en-de 1"], runs["tiny news-en-de 2"]
    keys = ("device", "versions", "commit")
    assert [run.data.tags[key] for key in keys] == [row[key] for key in keys]
    assert run.data.metrics["total/seconds"] == 61.5
    assert run.info.end_time - run.info.start_time == 61_500
    assert [other.data.tags[key] for key in keys] == ["unknown"] * 3
    assert "total/seconds" not in other.data.metrics
    # in a clone that knows nothing, nothing is lost that another has logged to the same server
    Path("reports/costs.csv").unlink()
    list(sync(settings))
    assert [shown(root)[1]["tiny news-en-de 1"].data.tags[key] for key in keys] == [
        row[key] for key in keys
    ]
    assert client.get_run(run.info.run_id).data.tags[OUTPUTS] != run.data.tags[OUTPUTS]


def test_a_run_of_version_1_is_completed_and_keeps_what_people_wrote(root):
    """It had the same tags, other names of metrics, and neither datasets nor a description."""
    settings = load_settings()
    content = collect_content(Results.open(settings, RUN), {})
    client = module.store.open_client()
    experiment = client.create_experiment("trial_run")
    tags = {**content.description.tags, NOTE: "mine: the best one", "mine": "too"}
    old = client.create_run(experiment, 1, tags, "my name of it")
    client.log_metric(old.info.run_id, "bleu/first", 12.5)
    client.log_param(old.info.run_id, "model.d_model", "of then")
    client.set_terminated(old.info.run_id)
    ended = client.get_run(old.info.run_id).info.end_time
    assert "run tiny news-en-de 1: completed" in list(sync(settings))
    run = client.get_run(old.info.run_id)
    scores = read_json(RUN.results_folder / "scores.json")["first"]
    assert run.data.metrics["bleu/news-en-de/first"] == value_of(scores, "bleu")
    assert run.data.metrics["bleu/first"] == 12.5
    assert run.data.tags[NOTE] == "mine: the best one" and run.data.tags["mine"] == "too"
    assert (run.info.run_name, run.info.end_time) == ("my name of it", ended)
    assert run.data.params["model.d_model"] == "of then" and len(run.data.params) > 60
    assert run.data.tags["device"] == "Test CPU"
    assert len(shown(root)[1]) == 4
    assert list(sync(settings)) == []


def test_runs_that_are_deleted_in_mlflow_and_a_database_that_is_removed_come_back(root):
    settings = load_settings()
    list(sync(settings))
    client, runs = shown(root)
    client.delete_run(runs["small news-en-de 2"].info.run_id)
    assert list(sync(settings)) == ["run small news-en-de 2: made"]
    assert list(sync(settings)) == []
    client.set_terminated(runs["tiny news-en-de 1"].info.run_id, "FAILED")
    assert list(sync(settings)) == ["run tiny news-en-de 1: completed"]
    (root / "mlflow.db").unlink()
    program = "from bleuprint.tracking.sync import sync\n"
    program += "from bleuprint.config.experiment import load_settings\n"
    program += 'print(*sync(load_settings()), sep="\\n")'
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert made.stdout.count(": made\n") == 4


@pytest.mark.usefixtures("root")
def test_mlflow_is_not_loaded_where_it_shows_everything():
    list(sync(load_settings()))
    program = (
        "import sys\n"
        "from bleuprint.config.experiment import load_settings\n"
        "from bleuprint.tracking.sync import log_results\n"
        "outcomes = log_results(load_settings())\n"
        "print(len(outcomes), 'mlflow' in sys.modules, 'sqlalchemy' in sys.modules)\n"
    )
    for content, said in (("", "4 False False\n"), ("{}", "4 True True\n")):
        if content:  # results that are new
            path = RUN.results_folder / "curves.json"
            curves = read_json(path)
            curves["validation"][0]["bleu"] += 1
            write_json(path, curves)
        found = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert found.stdout == said


def test_a_damaged_file_of_a_run_is_named_and_the_others_are_logged(root):
    path = RUN.results_folder / "curves.json"
    path.write_text(json.dumps({"training": 1}))
    said = list(sync(load_settings()))
    assert len([line for line in said if line.endswith(": made")]) == 3
    (line,) = (line for line in said if "left out" in line)
    assert line.startswith(f"{RUN}: its results are left out: {path} is damaged: ")
    assert set(shown(root)[1]) == {"tiny news-en-de 2", "small news-en-de 1", "small news-en-de 2"}


def test_whatever_fails_is_a_note_of_one_line(root, monkeypatch, capsys):
    monkeypatch.setattr(module.store, "open_client", lambda: 1 / 0)
    update_or_note(load_settings())
    assert capsys.readouterr().err == (
        "bleuprint: note: MLflow does not show these results yet (division by zero). Run: "
        "bleuprint sync\n"
    )
    assert root.exists()


@pytest.mark.usefixtures("root")
def test_a_stage_leaves_the_note_to_a_runner_that_logs_at_its_end(monkeypatch, capsys):
    monkeypatch.setattr(module.store, "open_client", lambda: 1 / 0)
    monkeypatch.setenv("BLEUPRINT_RUNNER_LOGS", "1")
    update_in_stage(load_settings())
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("BLEUPRINT_RUNNER_LOGS")  # as in `dvc repro`
    update_in_stage(load_settings())
    assert "MLflow does not show these results yet (division by zero)" in capsys.readouterr().err


def record(monkeypatch):
    """Run the end of `bleuprint sync`, which logs to MLflow; return its exit status."""
    monkeypatch.setattr("bleuprint.pipeline.recording.record_finished", lambda: None)
    monkeypatch.setattr("bleuprint.pipeline.project_lock.hold_project", lambda _: nullcontext())
    monkeypatch.setattr("sys.argv", ["bleuprint", "sync"])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def test_record_ends_with_one_line_whatever_fails(root, monkeypatch, capsys):
    monkeypatch.setattr(module.store, "open_client", lambda: 1 / 0)
    assert record(monkeypatch) == 1
    error = f"bleuprint: error: MLflow at sqlite:///{root / 'mlflow.db'}: division by zero\n"
    assert capsys.readouterr().err == error


def test_record_names_mlflow_if_it_cannot_be_imported(root, monkeypatch, capsys):
    for name in [each for each in sys.modules if each.partition(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    (root / "broken").mkdir()
    (root / "broken" / "mlflow.py").write_text("import a_module_that_is_not_installed\n")
    monkeypatch.syspath_prepend(root / "broken")
    assert record(monkeypatch) == 1
    needs = "needs the Python module a_module_that_is_not_installed: "
    assert capsys.readouterr().err == (
        f"bleuprint: error: MLflow at sqlite:///{root / 'mlflow.db'}: {needs}"
        "pip install a_module_that_is_not_installed\n"
    )


@pytest.mark.parametrize("validations", [1, 2, 3])
def test_a_training_ends_with_its_last_validation(validations):
    """Of 60 seconds; a validation after each 100 updates."""
    updates = [100 * number for number in range(1, validations + 1)]
    entries = [SimpleNamespace(update=update, loss=2.5) for update in updates]
    points = _curve_points(SimpleNamespace(training=[], validation=entries), 60.0)
    assert [point.update for point in points] == updates
    assert [point.time for point in points] == [
        60_000 * number // validations for number in range(1, validations + 1)
    ]
