"""Results that do not belong together are refused, with the name of the file that differs."""

import copy
import re
import shutil
import warnings
from dataclasses import replace

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import bleuprint
import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.config.system import Average
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.records import _check_signatures, check_settings, collect
from bleuprint.report.training_costs import costs_csv
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json, write_json
from result_rows import measured, record, records_from_rows
from systems import with_systems


def with_ensemble(settings):
    """Return settings in which small translates with an ensemble of its last three checkpoints."""
    small = copy.copy(settings.system_settings("small"))
    # `replace` would check the settings, and refuse an ensemble since the training kept one.
    object.__setattr__(small, "average", Average(last=3, ensemble=True))
    return with_systems(settings, {"small": small})


def test_translations_by_the_model_of_another_training_are_refused(experiment_copy):
    """Translation.json names the training whose model translated; here, another fingerprint.

    This happens if a model was trained again and the translations are those of the old model.
    """
    root, settings = experiment_copy
    folder = root / Run("small", "news-en-de", 3).results_folder
    path = folder / "translation.json"
    write_json(path, {**read_json(path), "model": "ab" * 32})
    fingerprint = read_json(folder / "training.json")["fingerprint"]

    with pytest.raises(UserError) as error:
        collect(settings, root)

    assert str(error.value) == (
        f"{path}: the translations come from another training (abababababab...) than "
        f"{folder / 'training.json'} names ({fingerprint[:12]}...). Run: dvc repro. If that runs "
        "nothing, run: dvc repro --force --single-item translate@small-news-en-de-3, then: dvc "
        "repro"
    )


def test_translations_with_other_decoding_settings_are_refused(experiment_copy):
    """The beam is changed in the settings after translating.

    The training does not depend on the beam, so its fingerprint stays the same.
    """
    root, settings = experiment_copy
    small = settings.system_settings("small")
    edited = replace(small, decode=replace(small.decode, beam=7))
    settings = with_systems(settings, {"small": edited})

    message = r"small/news-en-de/3/translation\.json: translated with decode\.beam .*\. Run: "
    with pytest.raises(UserError, match=message):
        collect(settings, root)


def test_translations_with_another_average_of_checkpoints_are_refused(experiment_copy):
    """Now, params.yaml asks for an ensemble of three checkpoints; one checkpoint translated."""
    root, settings = experiment_copy
    changed_settings = with_ensemble(settings)

    message = r"small/news-en-de/3/translation\.json: translated with average .*\. Run: "
    with pytest.raises(UserError, match=message):
        collect(changed_settings, root)


def test_translations_of_another_system_are_refused(experiment_copy):
    """Someone copies the translations and scores of small into the folder of tiny.

    Scores and translations belong together, so only the record of tiny's translation can tell.
    """
    root, settings = experiment_copy
    small = root / Run("small", "news-en-de", 1).results_folder
    tiny = root / Run("tiny", "news-en-de", 1).results_folder
    shutil.copytree(small / "hypotheses", tiny / "hypotheses", dirs_exist_ok=True)
    shutil.copy(small / "scores.json", tiny)

    with pytest.raises(UserError, match=r"tiny/.*first\.de has changed since the stage"):
        collect(settings, root)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param(
            "scores.json", "{", " is damaged: line 1 is not JSON: Expecting", id="scores cut off"
        ),
        pytest.param("scores.json", "[]", " is damaged: the whole file: ", id="list of scores"),
        pytest.param("scores.json", "{}", ": no test set 'only' for system tiny", id="no test set"),
        pytest.param(
            "training.json", "{}", " is damaged: field parameters is missing", id="no training"
        ),
        pytest.param(
            "translation.json", "{}", " is damaged: field model is missing", id="no translation"
        ),
    ],
)
def test_a_damaged_result_is_refused_with_its_path(experiment_copy, name, content, message):
    """Users must find the damaged file among the results of all runs."""
    root, settings = experiment_copy
    path = root / Run("tiny", "talks-en-fr", 1).results_folder / name
    path.write_text(content)

    with pytest.raises(UserError, match=rf"tiny/talks-en-fr/1/{re.escape(name)}{message}"):
        collect(settings, root)


def test_corpora_with_the_same_references_may_be_scored_by_one_version():
    _check_signatures(
        records_from_rows(
            record("a", "one-en-de", "x", bleu=30.0), record("a", "two-en-de", "x", bleu=30.0)
        )
    )


def test_scores_of_two_versions_on_the_same_references_are_refused():
    """SacreBLEU 2.5 and 2.6 may compute BLEU in different ways, and the report compares both.

    The signature of BLEU names the version. Both records have the same references.
    """
    by_version_2_6 = record("a", "one-en-de", "x", bleu=30.0)
    bleu = measured("bleu", 30.0, signature="nrefs:1|tok:13a|version:2.5.0")
    by_version_2_5 = record("a", "two-en-de", "x", bleu=30.0, metrics={("bleu", ""): bleu})

    message = r"BLEU was computed by different versions: .*2\.[56]\.0.* score of"
    with pytest.raises(UserError, match=message):
        _check_signatures(records_from_rows(by_version_2_6, by_version_2_5))


NO_RESULT_YET = (
    ", so there is no result yet for system small, corpus talks-en-fr, seed 1. Run: make reproduce"
)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        pytest.param("scores.json", NO_RESULT_YET, id="scores"),
        pytest.param("training.json", NO_RESULT_YET, id="training"),
        # Translations are not in Git, so a clone has to get them with `dvc pull` or make them.
        pytest.param(
            "hypotheses/test.only.fr",
            ". Run: make reproduce. Or download it: dvc pull",
            id="translations",
        ),
    ],
)
def test_a_missing_result_is_refused_with_advice(experiment_copy, name, advice):
    """The message says which run is missing, or how to get its translations."""
    root, settings = experiment_copy
    path = root / Run("small", "talks-en-fr", 1).results_folder / name
    path.unlink()

    with pytest.raises(UserError) as error:
        collect(settings, root)

    assert str(error.value) == f"{path}: no such file{advice}"


@pytest.mark.parametrize(
    "file",
    [
        pytest.param("data/split/talks-en-fr/test.only.en", id="sources"),
        pytest.param("data/split/talks-en-fr/test.only.fr", id="references"),
        pytest.param("results/tiny/talks-en-fr/3/hypotheses/test.only.fr", id="translations"),
    ],
)
def test_texts_that_changed_after_scoring_are_refused(experiment_copy, file):
    """One word is changed; the scores in scores.json are those of the text before."""
    root, settings = experiment_copy
    path = root / file
    path.write_bytes(path.read_bytes().replace(trees.WORD.encode(), b"other", 1))

    message = r"has changed since (system tiny, corpus talks-en-fr, seed 3|the stage translate)"
    with pytest.raises(UserError, match=message):
        collect(settings, root)


def test_an_ensemble_is_recorded_with_the_number_of_its_models(experiment_copy):
    """Small translated with the checkpoints of the updates 10, 20 and 30, tiny with one."""
    root, settings = experiment_copy
    settings = with_ensemble(settings)
    average = settings.system_settings("small").average
    for path in (root / "results" / "small").rglob("translation.json"):
        averaged = {"settings": average.chosen, "updates": [10, 20, 30]}
        write_json(path, {**read_json(path), "averaged": averaged})

    runs = collect(settings, root).runs

    assert set(runs[runs.system == "small"].models) == {3}
    assert set(runs[runs.system == "tiny"].models) == {1}


def test_a_notebook_gets_results_without_a_warning(saved_experiment):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bleuprint.results(saved_experiment.root)


def test_a_notebook_is_warned_if_settings_changed_after_the_report(saved_experiment):
    """`bleuprint.results(FOLDER)` is for notebooks: old results are better than an error there."""
    params = saved_experiment.root / "params.yaml"
    params.write_text(params.read_text().replace("beam: ", "beam: 1"))  # 2 becomes 12.

    with pytest.warns(UserWarning, match="was computed with another params.yaml"):
        bleuprint.results(saved_experiment.root)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'system,"corpus', id="open quote"),
        pytest.param(b"system\xff,corpus\n", id="not UTF-8"),
        pytest.param(b"a,b\n1,2,3\n", id="too many cells"),
    ],
)
def test_damaged_costs_are_refused(saved_experiment, content):
    """The message is one line that names the file, and no traceback of pandas."""
    root = saved_experiment.root
    (root / "reports/costs.csv").write_bytes(content)

    one_line = r"^\S+costs\.csv is damaged: [^\n]+$"
    with pytest.raises(UserError, match=one_line):
        load(root)


def test_costs_with_each_row_twice_are_read(saved_experiment):
    """A Git merge may leave the rows of both sides."""
    root = saved_experiment.root
    runs = load(root).runs
    head, rows = costs_csv(runs).split("\n", maxsplit=1)
    (root / "reports/costs.csv").write_text(f"{head}\n{rows}{rows}")

    assert_frame_equal(load(root).runs, runs)


def test_results_are_opened_with_the_settings_of_their_training(experiment_copy):
    """Nothing has changed since the training, which recorded 500 updates."""
    root, settings = experiment_copy

    results = Results.open(settings, Run("tiny", "news-en-de", 1), root)

    assert results.check().training.updates == 500


def test_results_of_a_training_with_other_settings_are_refused(experiment_copy):
    """The label smoothing is changed in the settings after the training."""
    root, settings = experiment_copy
    tiny = settings.system_settings("tiny")
    smoothed = replace(tiny, train=replace(tiny.train, label_smoothing=0.3))
    changed_settings = with_systems(settings, {"tiny": smoothed})

    message = r"1/training\.json is out of date: params\.yaml has changed"
    with pytest.raises(UserError, match=message):
        Results.open(changed_settings, Run("tiny", "news-en-de", 1), root)


def test_results_with_an_own_metric_whose_module_was_removed_belong_to_their_settings(
    experiment, collected
):
    """So the results of an earlier revision can be compared: reports/resolved.json names both."""
    pinned = "own.removed@0123456789abcdef"
    scores = collected.metrics.iloc[:1].assign(metric="own.removed", signature=pinned)
    records = replace(collected, metrics=pd.concat([collected.metrics, scores]))

    check_settings(records, replace(experiment.settings, metrics=(pinned,)), RESULTS)
    with pytest.raises(UserError, match=r"was computed with another params\.yaml"):
        check_settings(records, experiment.settings, RESULTS)
