"""Syncing makes MLflow match the stages' outputs; a second sync changes nothing."""

import dataclasses
import re
import shutil
import sqlite3

import pytest

from bleuprint.config.comet import Comet
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run
from bleuprint.runs.results import Results
from bleuprint.runtime.files import read_json, write_json
from bleuprint.scoring.metric import untested_value
from bleuprint.tracking import runs as module
from bleuprint.tracking.run_content import describe_results
from bleuprint.tracking.sync import sync
from bleuprint.tracking.tracker import Tracker
from measuring import value_of
from mlservers import history, runs_in
from root import ROOT
from systems import with_systems

COMET = "comet/news-en-de/first"
SECONDS, LOSSES = 3725.0, [(100 * n, 8.0 - n) for n in range(1, 6)]  # as result_trees has them


def store(root):
    return f"sqlite:///{root / 'mlflow.db'}"


def dump(root):
    with sqlite3.connect(root / "mlflow.db") as database:
        return list(database.iterdump())


def named(root, experiment="trial_run"):
    """All runs by name."""
    client, runs = runs_in(store(root), experiment)
    assert len(runs) == len({run.info.run_name for run in runs})
    return client, {run.info.run_name: run for run in runs}


def decoded_otherwise(run, beam, score):
    """Give the results of a run the translations and scores of another beam; its settings."""
    path = run.results_folder / "scores.json"
    content = read_json(path)
    all_lines = (each for each in content["first"]["metrics"] if not each["group"])
    (measured,) = (each for each in all_lines if each["metric"] == "bleu")
    measured["value"] = score
    write_json(path, content)
    path = run.results_folder / "translation.json"
    record = read_json(path)
    record["decode"]["beam"] = beam
    write_json(path, record)
    settings = load_settings()
    system = settings.system_settings(run.system)
    other = dataclasses.replace(system, decode=dataclasses.replace(system.decode, beam=beam))
    return with_systems(settings, {run.system: other})


def bleu(run):
    return float(value_of(read_json(run.results_folder / "scores.json")["first"], "bleu") or 0)


def changed(settings):
    """The lines of runs."""
    return [line for line in sync(settings) if line.startswith("run ")]


def test_a_sync_makes_all_and_a_second_one_changes_nothing(root):
    settings = load_settings()
    assert len(list(sync(settings))) == 4
    before = dump(root)
    assert list(sync(settings)) == []
    assert dump(root) == before

    client, runs = named(root)
    assert set(runs) == {f"{s} news-en-de {n}" for s in ("tiny", "small") for n in (1, 2)}
    one = runs["tiny news-en-de 2"]
    points = client.get_metric_history(one.info.run_id, "train/loss")
    times = sorted(point.timestamp - one.info.start_time for point in points)
    assert times == [SECONDS * 200 * n for n in range(1, 6)]  # evenly over the duration
    assert history(client, one, "train/loss") == LOSSES
    assert history(client, one, "valid/bleu") == [(250, 20.0), (500, 30.0)]
    assert one.data.metrics["bleu/news-en-de/first"] == bleu(Run("tiny", "news-en-de", 2))
    assert {
        "chrf2/news-en-de/first",
        "ter/news-en-de/first",
        "total/seconds",
    } <= one.data.metrics.keys()
    assert one.data.metrics["loss/news-en-de/first"] == 1.25
    params, tiny = one.data.params, settings.system_settings("tiny")
    assert {key: params[key] for key in ("system", "corpus", "seed")} == {
        **{"system": "tiny", "corpus": "news-en-de", "seed": "2"}
    }
    assert params["model.d_model"] == str(tiny.model.d_model)
    assert (params["train.max_updates"], params["average.last"]) == ("10", str(tiny.average.last))
    assert params["decode.beam"] == str(tiny.decode.beam)
    assert params["corpus.vocabulary.bpe.num_merges"] == "100"
    assert params["corpus.filter.length_ratio.max"] == "3.0"
    assert not [key for key in params if "license" in key or "path" in key or "sha256" in key]
    tags = one.data.tags
    assert tags["device"] == "Test CPU"
    assert tags["mlflow.source.git.commit"] == "0123456789abcdef"


def test_a_run_that_was_logged_in_part_is_completed(root):
    settings, run = load_settings(), Run("tiny", "news-en-de", 1)
    tracker = Tracker(describe_results(Results.open(settings, run)))
    tracker.log(100, {"train/loss": 7.0})
    tracker.close("KILLED")  # the server went away
    _, runs = named(root)
    (part,) = runs.values()
    said = list(sync(settings))
    assert "run tiny news-en-de 1: completed" in said
    assert "run tiny news-en-de 2: made" in said
    client, runs = named(root)
    run = runs["tiny news-en-de 1"]
    assert (run.info.run_id, run.info.status) == (part.info.run_id, "FINISHED")
    assert run.info.end_time - run.info.start_time == SECONDS * 1000
    assert history(client, run, "train/loss") == LOSSES
    assert history(client, run, "valid/loss") == [(250, 3.0), (500, 1.25)]
    before = dump(root)
    assert list(sync(settings)) == []
    assert dump(root) == before


def test_comet_is_logged_if_it_is_of_the_translations(root):
    model = Comet("comet/env/bin/python", "comet/model", "0" * 64)
    settings = dataclasses.replace(load_settings(), comet={"model": model})
    run = Run("tiny", "news-en-de", 1)
    scores = read_json(run.results_folder / "scores.json")["first"]
    comet = {**scores, "scored_with": "0" * 64, "metrics": [untested_value("comet", 81.25, 1)]}
    for hypotheses, logged in (("of others", {}), (scores["hypotheses"], {COMET: 81.25})):
        write_json(
            run.results_folder / "comet.json", {"first": {**comet, "hypotheses": hypotheses}}
        )
        list(sync(settings))
        metrics = named(root)[1]["tiny news-en-de 1"].data.metrics
        assert {name: value for name, value in metrics.items() if "comet" in name} == logged


def test_another_search_has_a_run_of_its_own_also_in_a_copy(root, tmp_path_factory, monkeypatch):
    """MLflow changes no parameter; its curves are those of the training."""
    list(sync(load_settings()))
    _, before = named(root)
    copy = tmp_path_factory.mktemp("exps") / "copy"  # as `dvc exp run --temp` makes it
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("mlflow.db"))
    monkeypatch.chdir(copy)
    monkeypatch.setenv("DVC_ROOT", str(root))
    settings = decoded_otherwise(Run("tiny", "news-en-de", 1), beam=6, score=71.0)
    assert changed(settings) == ["run tiny news-en-de 1: made"]
    _, after = runs_in(store(root), "trial_run")
    kept = {run.info.run_id: run.data.to_dictionary() for run in after}
    for run in before.values():
        assert kept.pop(run.info.run_id) == run.data.to_dictionary()
    (added,) = kept.values()
    assert (
        added["metrics"]["bleu/news-en-de/first"] == 71.0 and added["params"]["decode.beam"] == "6"
    )
    assert "train/loss" in added["metrics"]
    assert changed(settings) == []  # seed 2 has no translations of this search
    monkeypatch.chdir(root)
    assert list(sync(load_settings())) == []


def test_a_run_that_lacks_parameters_gets_them(root, monkeypatch):
    """As one whose server went away after it was created."""
    settings = load_settings()
    with monkeypatch.context() as patch:
        patch.setattr(module, "describe_run", lambda *_: False)
        list(sync(settings))
    client, runs = named(root)
    assert {len(run.data.params) for run in runs.values()} == {0}
    for run in runs.values():
        client.delete_tag(run.info.run_id, module.OUTPUTS)  # which is set when all is logged
    assert len(changed(settings)) == 4
    assert min(len(run.data.params) for run in named(root)[1].values()) > 60
    assert changed(settings) == []


@pytest.mark.usefixtures("root")
def test_names_of_parameters_have_the_characters_that_mlflow_takes():
    results = Results.open(load_settings(), Run("tiny", "news-en-de", 1))
    corpus = results.settings.corpus("news-en-de")
    texts = {"a": dataclasses.replace(next(iter(corpus.files.train.values())), pairs=7)}
    files = dataclasses.replace(corpus.files, train=texts)
    corpora = {"news-en-de": dataclasses.replace(corpus, files=files)}
    settings = dataclasses.replace(results.settings, corpora=corpora)
    params = module.RunDescription.for_run(settings, results.run, "f", 1_234_567).params
    assert params["corpus.files.train.a.pairs"] == "7"
    assert (params["corpus"], params["parameters"], params["system"]) == (
        "news-en-de",
        "1234567",
        "tiny",
    )
    assert {key for key in params if not _VALID.fullmatch(key)} == set()


def test_directions_and_what_made_a_text_are_parameters():
    def params(recipe, system, corpus):
        run, settings = Run(system, corpus, 1), load_settings(ROOT / "recipes" / f"{recipe}.yaml")
        return module.RunDescription.for_run(settings, run, "f", 1).params

    of_many = params("multilingual-multi30k", "small", "multilingual")
    assert of_many["corpus.directions.de-en"] == "trained"
    assert of_many["corpus.directions.fr-de"] == "zero-shot"
    made = {
        key.rpartition(".")[2]: value
        for key, value in params("back-translation-phrasebook", "tiny", "top-10").items()
        if ".top-10-back-translation.made_by." in key
    }
    how = "drawn from the 10 most probable tokens"
    assert made == {"system": "tiny", "corpus": "tenth-reversed", "how": how}


_VALID = re.compile(r"[\w.\- /]{1,250}")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("scores.json", "test.first.de: has changed since .* was scored"),
        ("translation.json", "translation.json: the model of another training"),
    ],
)
def test_scores_of_other_files_are_left_out_and_named(root, changed, said):
    mine, other = Run("tiny", "news-en-de", 1), Run("small", "news-en-de", 1)
    shutil.copy(other.results_folder / changed, mine.results_folder / changed)
    lines = [line for line in sync(load_settings()) if "left out" in line]
    assert len(lines) == 1
    assert re.match(f"{mine}: its scores are left out: .*{said}", lines[0])
    _, runs = named(root)
    assert "bleu/news-en-de/first" not in runs["tiny news-en-de 1"].data.metrics
    assert "valid/bleu" in runs["tiny news-en-de 1"].data.metrics


def test_runs_without_results_of_these_settings_are_named(root):
    shutil.rmtree(root / "results" / "small" / "news-en-de" / "2")
    path = Run("tiny", "news-en-de", 1).results_folder / "training.json"
    write_json(path, {**read_json(path), "settings": "0" * 64})
    said = list(sync(load_settings()))
    lines = [line for line in said if "Or download it: dvc pull" in line]
    assert [line.split(":")[0] for line in lines] == [
        "system tiny, corpus news-en-de, seed 1",
        "system small, corpus news-en-de, seed 2",
    ]
    _, runs = named(root)
    assert set(runs) == {"tiny news-en-de 2", "small news-en-de 1"}
    assert list(sync(load_settings())) == lines


def test_a_training_that_patience_ended_has_a_tag_that_says_why(root):
    path = Run("small", "news-en-de", 1).results_folder / "training.json"
    early_end = {"update": 30, "most_updates": 700, "metric": "bleu", "validations": 3}
    early_end |= {"best": 0.003, "best_update": 15}
    write_json(path, {**read_json(path), "early_end": early_end})
    list(sync(load_settings()))
    _, runs = named(root)
    assert runs["small news-en-de 1"].data.tags["early_end"] == (
        "ended at update 30 of 700: bleu has not improved in 3 validations "
        "(best 0.003 at update 15)"
    )
    assert "early_end" not in runs["tiny news-en-de 1"].data.tags


def test_new_scores_take_the_place_of_old_ones(root):
    """Also lower ones: MLflow's search would keep the newest, not the best."""
    settings, run = load_settings(), Run("tiny", "news-en-de", 1)
    list(sync(settings))
    path = run.results_folder / "scores.json"
    content = read_json(path)
    for score in (90.0, 10.0):
        for measured in content["first"]["metrics"]:
            if measured["metric"] == "bleu" and not measured["group"]:
                measured["value"] = score
        write_json(path, content)
        assert changed(settings) == ["run tiny news-en-de 1: completed"]
        _, runs = named(root)
        assert runs["tiny news-en-de 1"].data.metrics["bleu/news-en-de/first"] == score


@pytest.mark.usefixtures("root")
def test_translations_of_another_search_are_not_those_of_the_settings():
    settings, run = load_settings(), Run("tiny", "news-en-de", 1)
    assert Results(settings, run).checked_scores()[1] == ""
    tiny = settings.system_settings("tiny")
    wider = dataclasses.replace(tiny, decode=dataclasses.replace(tiny.decode, beam=7))
    scores, why = Results(with_systems(settings, {"tiny": wider}), run).checked_scores()
    assert scores == {}
    used = tiny.decode.beam
    expected = f"translated with decode.beam {used}, but params.yaml has 7; run: dvc repro"
    assert expected in why


@pytest.mark.usefixtures("root")
def test_translations_by_another_average_are_not_those_of_the_settings():
    settings, run = load_settings(), Run("tiny", "news-en-de", 1)
    path = run.results_folder / "translation.json"
    record = read_json(path)
    record["averaged"]["settings"] = {"last": 9}
    write_json(path, record)
    scores, why = Results(settings, run).checked_scores()
    assert scores == {}
    given = settings.system_settings("tiny").average.chosen
    assert f"translated with average {{'last': 9}}, but params.yaml has {given}; run: " in why


def test_scores_are_shown_where_results_alone_were_pulled(root):
    """Without the texts of the corpus, which would be compared."""
    shutil.rmtree(root / "data" / "split")
    list(sync(load_settings()))
    _, runs = named(root)
    assert "bleu/news-en-de/first" in runs["tiny news-en-de 1"].data.metrics
