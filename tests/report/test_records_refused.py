"""Results that do not belong together are refused, with the file that differs."""

import copy as copies
import re
import shutil
import warnings
from dataclasses import replace

import pytest
from pandas.testing import assert_frame_equal

import bleuprint
import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.config.system import Average
from bleuprint.report.frame import load
from bleuprint.report.records import _check_signatures, collect
from bleuprint.report.training_costs import costs_csv
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from result_rows import frame, measured, record
from systems import with_systems


def test_translations_of_another_training(copy):
    root, settings = copy
    folder = root / Run("small", "news-en-de", 3).results_folder
    path = folder / "translation.json"
    write_json(path, {**read_json(path), "model": "ab" * 32})
    own = read_json(folder / "training.json")["fingerprint"][:12]
    with pytest.raises(UserError) as caught:
        collect(settings, root)
    assert str(caught.value) == (
        f"{path}: the model of another training (abababababab...) than that of "
        f"{folder / 'training.json'} ({own}...) translated; run: dvc repro, or if it runs nothing: "
        "dvc repro --force --single-item translate@small-news-en-de-3, then dvc repro"
    )


@pytest.mark.parametrize("name", ["decode.beam", "average"])
def test_settings_edited_since_translating(copy, name):
    """The training is the same: its fingerprint has neither."""
    root, settings = copy
    edited = copies.copy(settings.system_settings("small"))
    if name == "average":
        object.__setattr__(edited, "average", Average(last=3, ensemble=True))
    else:
        object.__setattr__(edited, "decode", replace(edited.decode, beam=7))
    changed = with_systems(settings, {"small": edited})
    message = rf"small/news-en-de/3/translation\.json: translated with {re.escape(name)} .*; run: "
    with pytest.raises(UserError, match=message):
        collect(changed, root)


def test_translations_and_their_scores_put_in_place_of_others(copy):
    """They belong together, and to another system than the name of their folder."""
    root, settings = copy
    good, bad = (root / Run(name, "news-en-de", 1).results_folder for name in ("small", "tiny"))
    shutil.copytree(good / "hypotheses", bad / "hypotheses", dirs_exist_ok=True)
    shutil.copy(good / "scores.json", bad)
    with pytest.raises(UserError, match=r"tiny/.*first\.de has changed since it was translated"):
        collect(settings, root)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("scores.json", "{", " is damaged: line 1 is not JSON: Expecting"),
        ("scores.json", "[]", " is damaged: the whole file: "),
        ("scores.json", "{}", ": no test set 'only' for system tiny"),
        ("training.json", "{}", " is damaged: field parameters is missing"),
        ("translation.json", "{}", " is damaged: field model is missing"),
    ],
)
def test_a_damaged_result_names_the_file(copy, name, content, message):
    root, settings = copy
    (root / Run("tiny", "talks-en-fr", 1).results_folder / name).write_text(content)
    with pytest.raises(UserError, match=rf"tiny/talks-en-fr/1/{re.escape(name)}{message}"):
        collect(settings, root)


def test_one_test_set_scored_by_two_versions():
    """On two corpora with the same references, which are compared."""
    metrics = {("bleu", ""): measured("bleu", 30.0, signature="nrefs:1|tok:13a|version:2.5.0")}
    one, two = (record("a", f"{name}-en-de", "x", 30.0) for name in ("one", "two"))
    older = record("a", "two-en-de", "x", 30.0, metrics=metrics)
    _check_signatures(frame(one, two))
    with pytest.raises(
        UserError, match=r"BLEU was computed by different versions: .*2\.[56]\.0.* score of"
    ):
        _check_signatures(frame(one, older))


@pytest.mark.parametrize("name", ["scores.json", "training.json"])
def test_a_missing_result_names_the_run_and_the_file(copy, name):
    root, settings = copy
    path = (root / Run("small", "talks-en-fr", 1).results_folder) / name
    path.unlink()
    with pytest.raises(UserError) as caught:
        collect(settings, root)
    run = "system small, corpus talks-en-fr, seed 1"
    assert (
        str(caught.value) == f"{path}: no such file: no result yet for {run}; run: make reproduce"
    )


def test_a_missing_translation_names_the_file(copy):
    root, settings = copy
    path = root / Run("small", "talks-en-fr", 1).results_folder / "hypotheses" / "test.only.fr"
    path.unlink()
    with pytest.raises(UserError) as caught:
        collect(settings, root)
    assert str(caught.value) == f"{path}: no such file; run: make reproduce, or dvc pull"


@pytest.mark.parametrize(
    "file",
    [
        "data/split/talks-en-fr/test.only.en",
        "data/split/talks-en-fr/test.only.fr",
        "results/tiny/talks-en-fr/3/hypotheses/test.only.fr",
    ],
)
def test_texts_changed_since_scoring(copy, file):
    root, settings = copy
    path = root / file
    path.write_bytes(path.read_bytes().replace(trees.WORD.encode(), b"other", 1))
    with pytest.raises(
        UserError,
        match=r"has changed since (system tiny, corpus talks-en-fr, seed 3|it was translated)",
    ):
        collect(settings, root)


def test_an_ensemble_is_recorded_with_its_models(copy):
    root, settings = copy
    small = settings.system_settings("small")
    several = copies.copy(small)  # whose training kept one
    object.__setattr__(several, "average", Average(last=3, ensemble=True))
    edited = with_systems(settings, {"small": several})
    for path in (root / "results" / "small").rglob("translation.json"):
        averaged = {"settings": several.average.chosen, "updates": [10, 20, 30]}
        write_json(path, {**read_json(path), "averaged": averaged})
    records = collect(edited, root)
    models = records.runs.groupby("system").models.unique()
    assert {system: list(each) for system, each in models.items()} == {"small": [3], "tiny": [1]}


def test_a_notebook_is_warned_of_changes_since_the_report(saved):
    root, _ = saved
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bleuprint.results(root)
    params = root / "params.yaml"
    params.write_text(params.read_text().replace("beam: ", "beam: 1"))
    with pytest.warns(UserWarning, match="was made with another params.yaml"):
        bleuprint.results(root)


@pytest.mark.parametrize(
    "content", [b"", b'system,"corpus', b"system\xff,corpus\n", b"a,b\n1,2,3\n"]
)
def test_measured_figures_that_are_damaged(saved, content):
    root, _ = saved
    records = load(root).runs
    (root / "reports/costs.csv").write_bytes(content)
    with pytest.raises(UserError, match=r"^\S+costs\.csv is damaged: [^\n]+$"):
        load(root)
    text = costs_csv(records)
    (root / "reports/costs.csv").write_text(text + text.partition("\n")[2])  # as after a git merge
    assert_frame_equal(load(root).runs, records)


def test_results_of_other_settings_are_refused(copy):
    root, settings = copy
    run = Run("tiny", "news-en-de", 1)
    assert Results.open(settings, run, root).check().training.updates == 500
    tiny = settings.system_settings("tiny")
    smoothed = replace(tiny, train=replace(tiny.train, label_smoothing=0.3))
    changed = with_systems(settings, {"tiny": smoothed})
    with pytest.raises(UserError, match=r"1/training\.json: out of date: params\.yaml has changed"):
        Results.open(changed, run, root)
