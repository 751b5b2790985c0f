"""COMET that cannot run, or whose answer is of no use, is named in one line."""

import json
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

import result_trees as trees
from bleuprint.config.comet import Comet
from bleuprint.config.paths import Run
from bleuprint.runtime.errors import UserError
from bleuprint.scoring import comet_predict
from bleuprint.scoring.comet import folder_sha256, score_run_by_comet
from comet_folder import write_empty
from process_groups import wait_for_file

RUN = Run("tiny", "news-en-de", 1)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Write translations of 3 lines, and a folder that looks like a COMET model's.

    COMET runs in a Python of its own, here the file `python`, which tests write.

    Returns:
        The settings, which name the model and the Python.
    """
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    corpora = {"news-en-de": ("first",)}
    settings = trees.settings_in(tmp_path, systems=("tiny",), corpora=corpora)
    trees.write_texts(tmp_path, settings, lines=3)
    trees.write_run(tmp_path, settings, RUN, errors=0.5)
    model = write_empty(tmp_path / "model")
    comet = Comet(python="python", folder="model", sha256=folder_sha256(model))
    return replace(settings, comet={"own-model": comet})


def write_python(root, answer, status=0):
    """Write a program in the place of COMET's Python.

    Args:
        root: The folder of the project.
        answer: What the program writes to the file that its fourth argument names.
        status: Its exit status.
    """
    path = root / "python"
    path.write_text(f"#!/bin/sh\nprintf '%s' '{answer}' > \"$4\"\nexit {status}\n")
    path.chmod(0o755)


def error_of_scoring(settings):
    """Return the message with which scoring by COMET fails; check that it writes no scores."""
    with pytest.raises(UserError) as raised:
        score_run_by_comet(settings, *RUN)
    assert not (RUN.results_folder / "comet.json").exists()
    return str(raised.value)


def test_the_error_about_a_changed_model_names_both_hashes(settings, tmp_path):
    """Params.yaml names the COMET model's folder and its SHA-256; then a file of it changes.

    Another model gives other scores, so the stage stops before it scores anything.
    """
    sha256_in_settings = settings.comet["own-model"].sha256
    model = tmp_path / "model"
    (model / "hparams.yaml").write_text("other weights")

    error = error_of_scoring(settings)

    assert error == (
        f"{model}: SHA-256 is {folder_sha256(model)}, not {sha256_in_settings} as in params.yaml "
        "(comet)"
    )


def test_a_system_that_the_settings_lack_is_named_before_the_model_is_checked(settings, tmp_path):
    """The hash of a model of gigabytes takes a while, and a typo should be reported at once.

    Here, the system `small` is missing and the model has changed; the first error is about `small`.
    """
    (tmp_path / "model" / "hparams.yaml").write_text("other weights")

    with pytest.raises(UserError, match=r"no systems entry 'small'; there are: tiny"):
        score_run_by_comet(settings, "small", RUN.corpus, RUN.seed)


def test_the_error_about_a_missing_python_names_its_setting(settings, tmp_path):
    assert error_of_scoring(settings) == (
        f"{tmp_path / 'python'}: No such file or directory (comet.python in params.yaml)"
    )


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        pytest.param(
            '{"error": "comet is not installed"}',
            0,
            "python: comet is not installed",
            id="an error",
        ),
        pytest.param(
            "{}", 0, "python: COMET ended with status 0. Its messages are above", id="nothing"
        ),
        pytest.param(
            '{"scores": [[1, 2, 3]]}',
            3,
            "python: COMET ended with status 3. Its messages are above",
            id="scores, then a failure",
        ),
        pytest.param(
            '{"scores": [[]]}',
            0,
            "test.first.de: the file is empty, or COMET's score of a line is not a number",
            id="no scores of lines",
        ),
        pytest.param(
            '{"scores": [[1, NaN, 3]]}',
            0,
            "test.first.de: the file is empty, or COMET's score of a line is not a number",
            id="NaN",
        ),
    ],
)
def test_an_answer_of_comet_without_valid_scores_is_an_error(
    settings, tmp_path, answer, status, message
):
    """COMET runs in a Python of its own, here a shell script that writes `answer` to a file.

    The script ends with `status`; 0 is success. No scores must be stored in any of these cases.
    """
    write_python(tmp_path, answer, status)

    assert error_of_scoring(settings).endswith(message)


# A package `comet` whose loading of a model takes long, as with a large model.
SLOW_COMET = """\
import pathlib, time

def load_from_checkpoint(*arguments, **options):
    pathlib.Path("is_loading").touch()
    time.sleep(60)
"""
# What an environment of COMET's does: it runs a file with its own packages.
RUN_WITH_COMET = (
    "import runpy, sys; sys.path.insert(0, 'packages'); sys.argv = sys.argv[1:]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


def test_comet_ends_when_the_stage_that_started_it_is_killed(tmp_path):
    """The lock of the GPU ends with the stage, so nothing may compute on the GPU afterwards."""
    write_empty(tmp_path / "model")
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/comet.py").write_text(SLOW_COMET)
    command = [sys.executable, "-c", RUN_WITH_COMET, comet_predict.__file__, "model", "scores.json"]
    start_comet = f"import subprocess; subprocess.run({command})"
    stage = subprocess.Popen([sys.executable, "-c", start_comet], cwd=tmp_path)
    try:
        wait_for_file(tmp_path / "is_loading")
        (comet,) = psutil.Process(stage.pid).children()
    finally:
        stage.kill()
        stage.wait()

    comet.wait(timeout=30)

    assert not comet.is_running()


@pytest.fixture
def comet_entry(settings, tmp_path):
    """Score three lines by a COMET that answers 0.5, 0.25 and 0.75, and return the result."""
    answer = {
        "scores": [[0.5, 0.25, 0.75]],
        "python": "3.11",
        "comet": "2.2",
        "references": 1,
    }
    write_python(tmp_path, json.dumps(answer))
    (entry,) = score_run_by_comet(settings, *RUN)["first"]["metrics"]
    return entry


def test_the_comet_score_of_a_test_set_is_the_mean_of_its_lines_in_percent(comet_entry):
    assert comet_entry["metric"] == "comet"
    assert comet_entry["value"] == pytest.approx(100 * (0.5 + 0.25 + 0.75) / 3)


def test_the_signature_of_a_comet_score_contains_the_versions_of_python_and_comet(comet_entry):
    assert "Python3.11" in comet_entry["signature"]
    assert "Comet2.2" in comet_entry["signature"]
