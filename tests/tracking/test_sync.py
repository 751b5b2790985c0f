"""A sync makes MLflow contain the outputs of the stages; a second sync changes nothing.

The project of most tests, `root`, has the systems tiny and small on the corpus news-en-de, with the
seeds 1 and 2 (see conftest.py).
"""

import dataclasses
import re
import shutil
import sqlite3

import pytest

from bleuprint.config.comet import Comet
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.runs.results import Results
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.scoring.metric import untested_value
from bleuprint.tracking import runs as runs_module
from bleuprint.tracking.run_content import describe_results
from bleuprint.tracking.runs import OUTPUTS, RunDescription
from bleuprint.tracking.sync import sync
from bleuprint.tracking.tracker import Tracker
from measuring import value_of
from mlservers import history, runs_in
from root import ROOT
from systems import with_systems

RUN = Run("tiny", "news-en-de", 1)


def store_uri(root):
    """Return the address of a project's database."""
    return f"sqlite:///{root / 'mlflow.db'}"


def dump_database(root):
    """Return the content of a project's database as SQL statements."""
    with sqlite3.connect(root / "mlflow.db") as database:
        return list(database.iterdump())


def runs_by_name(root):
    """Return a client of a project's database, and its runs by name."""
    client, runs = runs_in(store_uri(root), "trial_run")
    named_runs = {run.info.run_name: run for run in runs}
    assert len(named_runs) == len(runs)
    return client, named_runs


def logged_runs(root):
    """Return the runs in a project's database by name, such as "tiny news-en-de 1"."""
    _, runs = runs_by_name(root)
    return runs


def run_outcomes(settings):
    """Sync, and return the lines of the output that are about runs."""
    return [line for line in sync(settings) if line.startswith("run ")]


def bleu_of_results(run):
    """Return the BLEU score in the results of a run."""
    scores = read_json(run.results_folder / "scores.json")["first"]
    return float(value_of(scores, "bleu"))


def set_bleu_of_results(run, bleu):
    """Replace the BLEU score of all sentences in the results of a run."""
    path = run.results_folder / "scores.json"
    scores = read_json(path)
    for score in scores["first"]["metrics"]:
        if score["metric"] == "bleu" and not score["group"]:
            score["value"] = bleu
    write_json(path, scores)


def change_search(run, beam, bleu):
    """Give the results of a run the translations and scores of another beam size.

    Returns:
        The settings with this beam size for its system.
    """
    set_bleu_of_results(run, bleu)
    path = run.results_folder / "translation.json"
    record = read_json(path)
    record["decode"]["beam"] = beam
    write_json(path, record)
    settings = load_settings()
    system = settings.system_settings(run.system)
    decode = dataclasses.replace(system.decode, beam=beam)
    return with_systems(settings, {run.system: dataclasses.replace(system, decode=decode)})


def test_the_first_sync_logs_all_runs(root):
    """The project has results of two systems, tiny and small, with the seeds 1 and 2."""
    outcomes = list(sync(load_settings()))

    assert len(outcomes) == 4
    assert set(logged_runs(root)) == {
        "tiny news-en-de 1",
        "tiny news-en-de 2",
        "small news-en-de 1",
        "small news-en-de 2",
    }


def test_the_second_sync_changes_nothing(root):
    """Everything has been logged by the first; the database is compared as SQL statements."""
    settings = load_settings()
    list(sync(settings))
    database = dump_database(root)

    outcomes = list(sync(settings))

    assert outcomes == []
    assert dump_database(root) == database


def test_a_logged_run_contains_the_curves_of_its_training(root):
    """The results contain the training loss of updates 100 to 500, and two validations."""
    list(sync(load_settings()))

    client, runs = runs_by_name(root)
    run = runs["tiny news-en-de 2"]
    assert history(client, run, "train/loss") == [
        (100, 7.0),
        (200, 6.0),
        (300, 5.0),
        (400, 4.0),
        (500, 3.0),
    ]
    assert history(client, run, "valid/bleu") == [(250, 20.0), (500, 30.0)]


def test_the_points_of_a_logged_curve_are_spread_over_the_duration_of_the_training(root):
    """The training took 3,725 seconds and has five points of the curve."""
    list(sync(load_settings()))

    client, runs = runs_by_name(root)
    run = runs["tiny news-en-de 2"]
    points = client.get_metric_history(run.info.run_id, "train/loss")
    milliseconds = sorted(point.timestamp - run.info.start_time for point in points)
    assert milliseconds == [3_725_000 * number / 5 for number in (1, 2, 3, 4, 5)]


def test_a_logged_run_contains_the_scores_of_its_test_set(root):
    """The test set is called `first`; the expected BLEU score is that in scores.json."""
    list(sync(load_settings()))

    metrics = logged_runs(root)["tiny news-en-de 2"].data.metrics
    assert metrics["bleu/news-en-de/first"] == bleu_of_results(Run("tiny", "news-en-de", 2))
    assert metrics["loss/news-en-de/first"] == 1.25
    for metric in ("chrf2/news-en-de/first", "ter/news-en-de/first", "total/seconds"):
        assert metric in metrics


def test_a_logged_run_contains_the_settings_of_its_training(root):
    """Licenses, paths and hashes, which users do not compare, are left out."""
    settings = load_settings()
    tiny = settings.system_settings("tiny")

    list(sync(settings))

    params = logged_runs(root)["tiny news-en-de 2"].data.params
    assert params["system"] == "tiny"
    assert params["corpus"] == "news-en-de"
    assert params["seed"] == "2"
    assert params["model.d_model"] == str(tiny.model.d_model)
    assert params["train.max_updates"] == "10"
    assert params["average.last"] == str(tiny.average.last)
    assert params["decode.beam"] == str(tiny.decode.beam)
    assert params["corpus.vocabulary.bpe.num_merges"] == "100"
    assert params["corpus.filter.length_ratio.max"] == "3.0"
    for name in params:
        assert not re.search("license|path|sha256", name)


def test_a_logged_run_contains_its_machine_and_commit(root):
    list(sync(load_settings()))

    tags = logged_runs(root)["tiny news-en-de 2"].data.tags
    assert tags["device"] == "Test CPU"
    assert tags["mlflow.source.git.commit"] == "0123456789abcdef"


def test_a_run_that_was_logged_in_part_is_completed(root):
    """The server went away during the training, when one of five losses was logged.

    The sync completes this run instead of making a second one.
    """
    settings = load_settings()
    tracker = Tracker(describe_results(Results.open(settings, RUN)))
    tracker.log(100, {"train/loss": 7.0})
    tracker.close("KILLED")
    (partial_run,) = logged_runs(root).values()

    outcomes = list(sync(settings))

    assert "run tiny news-en-de 1: completed" in outcomes
    assert "run tiny news-en-de 2: made" in outcomes
    client, runs = runs_by_name(root)
    run = runs["tiny news-en-de 1"]
    assert run.info.run_id == partial_run.info.run_id
    assert run.info.status == "FINISHED"
    # The results say that training took 3,725 seconds, and list five losses.
    assert run.info.end_time - run.info.start_time == 3_725_000
    assert history(client, run, "train/loss") == [
        (100, 7.0),
        (200, 6.0),
        (300, 5.0),
        (400, 4.0),
        (500, 3.0),
    ]
    assert history(client, run, "valid/loss") == [(250, 3.0), (500, 1.25)]
    # Another sync changes nothing.
    database = dump_database(root)
    assert list(sync(settings)) == []
    assert dump_database(root) == database


def write_comet_score(hypotheses_sha256):
    """Write the COMET score 81.25 of RUN.

    Args:
        hypotheses_sha256: The hash of the translations that were scored.
    """
    scores = read_json(RUN.results_folder / "scores.json")["first"]
    comet_scores = scores | {
        "scored_with": "0" * 64,
        "metrics": [untested_value("comet", 81.25, 1)],
        "hypotheses": hypotheses_sha256,
    }
    write_json(RUN.results_folder / "comet.json", {"first": comet_scores})


def sync_comet_metrics(root):
    """Sync with a COMET model in the settings, and return the metrics of RUN that are COMET's."""
    model = Comet("comet/env/bin/python", "comet/model", "0" * 64)
    settings = dataclasses.replace(load_settings(), comet={"model": model})
    list(sync(settings))
    metrics = logged_runs(root)["tiny news-en-de 1"].data.metrics
    return {name: value for name, value in metrics.items() if "comet" in name}


def test_the_comet_score_of_other_translations_is_not_logged(root):
    write_comet_score(hypotheses_sha256="of others")

    assert sync_comet_metrics(root) == {}


def test_the_comet_score_of_a_run_is_logged(root):
    scores = read_json(RUN.results_folder / "scores.json")["first"]
    write_comet_score(hypotheses_sha256=scores["hypotheses"])

    assert sync_comet_metrics(root) == {"comet/news-en-de/first": 81.25}


def test_another_beam_size_in_a_copy_gets_its_own_run(root, tmp_path_factory, monkeypatch):
    """MLflow cannot change a parameter, so translating with another beam size needs another run.

    The copy is one that `dvc exp run --temp` makes. It uses the database of the project.
    """
    list(sync(load_settings()))
    runs_before = logged_runs(root)
    copy = tmp_path_factory.mktemp("exps") / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("mlflow.db"))
    monkeypatch.chdir(copy)
    monkeypatch.setenv("DVC_ROOT", str(root))

    settings = change_search(RUN, beam=6, bleu=71.0)
    outcomes = run_outcomes(settings)

    assert outcomes == ["run tiny news-en-de 1: made"]
    _, runs_after = runs_in(store_uri(root), "trial_run")
    data_by_id = {run.info.run_id: run.data.to_dictionary() for run in runs_after}
    for run in runs_before.values():
        assert data_by_id.pop(run.info.run_id) == run.data.to_dictionary()
    (new_data,) = data_by_id.values()
    assert new_data["metrics"]["bleu/news-en-de/first"] == 71.0
    assert new_data["params"]["decode.beam"] == "6"
    assert "train/loss" in new_data["metrics"]
    # Seed 2 has no translations with this beam size.
    assert run_outcomes(settings) == []
    monkeypatch.chdir(root)
    assert list(sync(load_settings())) == []


def test_a_run_without_parameters_gets_them(root, monkeypatch):
    """The server went away just after it had created the four runs, before their parameters came.

    The tag OUTPUTS, which says that all was logged, is missing then.
    """
    settings = load_settings()
    with monkeypatch.context() as patch:
        patch.setattr(runs_module, "describe_run", lambda *_: False)
        list(sync(settings))
    client, runs = runs_by_name(root)
    for run in runs.values():
        assert run.data.params == {}
        client.delete_tag(run.info.run_id, OUTPUTS)

    outcomes = run_outcomes(settings)

    assert len(outcomes) == 4
    for run in logged_runs(root).values():
        assert len(run.data.params) > 60
    assert run_outcomes(settings) == []


@pytest.mark.usefixtures("root")
def test_parameters_of_a_run_have_names_that_mlflow_accepts():
    """MLflow accepts letters, digits and _.-/ in a name, and at most 250 characters.

    The training text is named `a` and has 7 pairs; the model has 1,234,567 parameters.
    """
    results = Results.open(load_settings(), RUN)
    corpus = results.settings.corpus("news-en-de")
    training_text = next(iter(corpus.files.train.values()))
    texts = {"a": dataclasses.replace(training_text, pairs=7)}
    files = dataclasses.replace(corpus.files, train=texts)
    corpora = {"news-en-de": dataclasses.replace(corpus, files=files)}
    settings = dataclasses.replace(results.settings, corpora=corpora)

    description = RunDescription.for_run(settings, results.run, "f", 1_234_567)
    params = description.params

    assert params["corpus.files.train.a.pairs"] == "7"
    assert params["corpus"] == "news-en-de"
    assert params["parameters"] == "1234567"
    assert params["system"] == "tiny"
    for name in params:
        assert re.fullmatch(r"[\w.\- /]{1,250}", name)


def params_of_recipe(recipe, system, corpus):
    """Return the parameters that MLflow shows for a run of a recipe."""
    settings = load_settings(ROOT / "recipes" / f"{recipe}.yaml")
    return RunDescription.for_run(settings, Run(system, corpus, 1), "f", 1).params


def test_parameters_say_which_directions_are_trained():
    params = params_of_recipe("multilingual-multi30k", "small", "multilingual")

    assert params["corpus.directions.de-en"] == "trained"
    assert params["corpus.directions.fr-de"] == "zero-shot"


def test_parameters_say_how_a_synthetic_text_was_translated():
    """In this recipe, system tiny translates a text from target to source by sampling."""
    params = params_of_recipe("back-translation-phrasebook", "tiny", "top-10")

    translation_params = {}
    for name, value in params.items():
        if ".top-10-back-translation.made_by." in name:
            translation_params[name.rpartition(".")[2]] = value
    assert translation_params == {
        "system": "tiny",
        "corpus": "tenth-reversed",
        "how": "drawn from the 10 most probable tokens",
    }


@pytest.mark.parametrize(
    ("file_name", "reason"),
    [
        ("scores.json", "test.first.de has changed since .* was scored"),
        ("translation.json", "translation.json: the translations come from another training"),
    ],
)
def test_sync_leaves_out_scores_of_another_run_and_says_why(root, file_name, reason):
    """A run's scores.json names the translations that were scored, by their hash.

    Here scores.json, or the record of the translations, is replaced by the file of another run. So
    the scores do not belong to the translations, or the translations not to the training.
    """
    other_run = Run("small", "news-en-de", 1)
    shutil.copy(other_run.results_folder / file_name, RUN.results_folder / file_name)

    (report,) = [line for line in sync(load_settings()) if "not logged" in line]

    assert re.match(f"{RUN}: its scores were not logged: .*{reason}", report)
    metrics = logged_runs(root)["tiny news-en-de 1"].data.metrics
    assert "bleu/news-en-de/first" not in metrics
    assert "valid/bleu" in metrics


def test_runs_without_results_of_these_settings_are_reported(root):
    """Of four runs, one has no results, and one those of a training with other settings."""
    shutil.rmtree(root / "results" / "small" / "news-en-de" / "2")
    path = RUN.results_folder / "training.json"
    training = read_json(path)
    training["settings"] = "0" * 64  # the hash of other settings
    write_json(path, training)

    reports = [line for line in sync(load_settings()) if "Or download it: dvc pull" in line]

    reported_runs = [report.split(":")[0] for report in reports]
    assert reported_runs == [
        "system tiny, corpus news-en-de, seed 1",
        "system small, corpus news-en-de, seed 2",
    ]
    assert set(logged_runs(root)) == {"tiny news-en-de 2", "small news-en-de 1"}
    assert list(sync(load_settings())) == reports


def test_a_tag_says_why_patience_ended_a_training(root):
    """The results of one run say that it ended early; the run of `tiny` ended as planned."""
    path = Run("small", "news-en-de", 1).results_folder / "training.json"
    early_end = {
        "update": 30,
        "most_updates": 700,
        "metric": "bleu",
        "validations": 3,
        "best": 0.003,
        "best_update": 15,
    }
    training = read_json(path)
    training["early_end"] = early_end
    write_json(path, training)

    list(sync(load_settings()))

    runs = logged_runs(root)
    assert runs["small news-en-de 1"].data.tags["early_end"] == (
        "ended at update 30 of 700: bleu has not improved in 3 validations "
        "(best 0.003 at update 15)"
    )
    assert "early_end" not in runs["tiny news-en-de 1"].data.tags


@pytest.mark.parametrize("new_bleu", [90.0, 10.0], ids=["higher", "lower"])
def test_a_new_score_replaces_the_old_one_whether_higher_or_lower(root, new_bleu):
    """Of values with one step and time, MLflow shows the largest, so a lower one must be later."""
    settings = load_settings()
    list(sync(settings))
    old_bleu = logged_runs(root)["tiny news-en-de 1"].data.metrics["bleu/news-en-de/first"]
    assert 10.0 < old_bleu < 90.0

    set_bleu_of_results(RUN, new_bleu)
    outcomes = run_outcomes(settings)

    assert outcomes == ["run tiny news-en-de 1: completed"]
    run = logged_runs(root)["tiny news-en-de 1"]
    assert run.data.metrics["bleu/news-en-de/first"] == new_bleu


@pytest.mark.usefixtures("root")
def test_scores_of_translations_by_these_settings_are_used():
    """`checked_scores` returns scores of the test set `first`, or the reason why it has none."""
    scores, reason = Results(load_settings(), RUN).checked_scores()

    assert "first" in scores
    assert reason == ""


@pytest.mark.usefixtures("root")
def test_scores_of_translations_with_another_beam_size_are_not_used():
    """The settings have been changed to beam size 7, but not yet translated with it."""
    settings = load_settings()
    tiny = settings.system_settings("tiny")
    decode = dataclasses.replace(tiny.decode, beam=7)
    changed_settings = with_systems(settings, {"tiny": dataclasses.replace(tiny, decode=decode)})

    scores, reason = Results(changed_settings, RUN).checked_scores()

    assert scores == {}
    used_beam = tiny.decode.beam
    message = f"translated with decode.beam {used_beam}, but params.yaml has 7. Run: dvc repro"
    assert message in reason


@pytest.mark.usefixtures("root")
def test_scores_of_translations_by_another_average_are_not_used():
    """The record of the translations says that the model averages the last 9 checkpoints."""
    settings = load_settings()
    path = RUN.results_folder / "translation.json"
    record = read_json(path)
    record["averaged"]["settings"] = {"last": 9}
    write_json(path, record)

    scores, reason = Results(settings, RUN).checked_scores()

    assert scores == {}
    average = settings.system_settings("tiny").average.chosen
    assert f"translated with average {{'last': 9}}, but params.yaml has {average}. Run: " in reason


def test_scores_are_logged_without_the_texts_of_the_corpus(root):
    """A user may have downloaded only the results, without the texts of the test sets."""
    shutil.rmtree(root / "data" / "split")

    list(sync(load_settings()))

    metrics = logged_runs(root)["tiny news-en-de 1"].data.metrics
    assert "bleu/news-en-de/first" in metrics
