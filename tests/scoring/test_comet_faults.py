"""COMET that cannot run, or whose answer is of no use, is named in one line."""

import json
from dataclasses import replace

import pytest

import result_trees as trees
from bleuprint.config.comet import Comet
from bleuprint.config.paths import Run
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.comet import folder_sha256, score_run_by_comet
from comet_folder import write_empty

RUN = Run("tiny", "news-en-de", 1)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Translations of 3 lines, a folder that looks like a model's, and the settings."""
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    corpora = {"news-en-de": ("first",)}
    settings = trees.settings_in(tmp_path, systems=("tiny",), corpora=corpora)
    trees.write_texts(tmp_path, settings, lines=3)
    trees.write_run(tmp_path, settings, RUN, errors=0.5)
    model = write_empty(tmp_path / "model")
    chosen = Comet(python="python", folder="model", sha256=folder_sha256(model))
    return replace(settings, comet={"own-model": chosen})


def write_python(root, answer, status=0):
    """A program in the place of COMET's Python, which writes `answer` to its fourth argument."""
    path = root / "python"
    path.write_text(f"#!/bin/sh\nprintf '%s' '{answer}' > \"$4\"\nexit {status}\n")
    path.chmod(0o755)


def refused(settings):
    with pytest.raises(UserError) as raised:
        score_run_by_comet(settings, *RUN)
    assert not (RUN.results_folder / "comet.json").exists()
    return str(raised.value)


def test_another_model_than_that_of_the_settings_is_named_by_both_sums(project, tmp_path):
    expected = project.comet["own-model"].sha256
    (tmp_path / "model" / "hparams.yaml").write_text("other weights")
    sha256 = folder_sha256(tmp_path / "model")
    assert refused(project) == (
        f"{tmp_path / 'model'}: SHA-256 is {sha256}, not {expected} as in params.yaml (comet)"
    )


def test_a_system_that_the_settings_lack_is_named_before_the_model_is_read(project, tmp_path):
    (tmp_path / "model" / "hparams.yaml").write_text("other weights")
    with pytest.raises(UserError, match=r"no systems entry 'small'; there are: tiny"):
        score_run_by_comet(project, "small", RUN.corpus, RUN.seed)


def test_a_python_that_is_not_there_is_named_with_its_setting(project, tmp_path):
    assert refused(project) == (
        f"{tmp_path / 'python'}: No such file or directory (comet.python in params.yaml)"
    )


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        ('{"error": "comet is not installed"}', 0, "python: comet is not installed"),
        ("{}", 0, "python: COMET ended with status 0; its messages are above"),
        ('{"scores": [[1, 2, 3]]}', 3, "python: COMET ended with status 3; its messages are above"),
        (
            '{"scores": [[]]}',
            0,
            "test.first.de: the file is empty, or COMET's score of a line is not a number",
        ),
        (
            '{"scores": [[1, NaN, 3]]}',
            0,
            "test.first.de: the file is empty, or COMET's score of a line is not a number",
        ),
    ],
)
def test_an_answer_without_scores_is_refused(project, tmp_path, answer, status, message):
    write_python(tmp_path, answer, status)
    assert refused(project).endswith(message)


def test_the_scores_of_a_model_are_the_mean_of_its_lines(project, tmp_path):
    answer = {"scores": [[0.5, 0.25, 0.75]], "python": "3.11", "comet": "2.2", "references": 1}
    write_python(tmp_path, json.dumps(answer))
    scores = score_run_by_comet(project, *RUN)
    (measured,) = scores["first"]["metrics"]
    assert measured["metric"] == "comet"
    assert measured["value"] == pytest.approx(50.0)
    assert "Python3.11" in measured["signature"] and "Comet2.2" in measured["signature"]
