"""The stage comet, with stand-ins for COMET's Python, and with the real package where there is one.

BLEUPRINT_COMET_PYTHON names the Python of an environment with unbabel-comet (docs/scoring.md).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from statistics import fmean

import pytest

import comet_folder
import result_trees as trees
from bleuprint.config.comet import Comet
from bleuprint.config.external import ExternalSystem, TranslationFile
from bleuprint.config.paths import Run
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring import comet_predict as predict
from bleuprint.scoring.comet import folder_sha256, notes_on_missing_comet, score_run_by_comet
from bleuprint.scoring.metric import parse_statistics
from bleuprint.text.parallel import read_lines
from corpora import TORTURE
from requirements import COMET, needs

RUN = Run("tiny", "news-en-de", 1)
# Python code that stands in for COMET. The score of a line is the number of bytes of its source,
# translation and reference, over 1000, so that it shows which line was scored.
SCORE_BY_LENGTH = """\
import json, sys
output, texts = sys.argv[4], [open(path, "rb").read().split(b"\\n") for path in sys.argv[5:]]
sides = [texts[first : first + 3] for first in range(0, len(texts), 3)]
scores = [[len(b"".join(line)) / 1000 for line in zip(*lines)][:-1] for lines in sides]
content = {"python": "3.11.2", "comet": "2.2.7", "references": 1, "scores": scores}
open(output, "w").write(json.dumps(content))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Write a run with two test sets, and return the folder and the settings.

    The lines contain all characters that end a line in Unicode or Python but not here.
    """
    root = tmp_path_factory.mktemp("comet")
    settings = trees.settings_in(root, ("tiny",), {"news-en-de": ("first", "second")})
    trees.write_texts(root, settings)
    lines_with_separators = [""]
    for number, character in enumerate(TORTURE):
        lines_with_separators.append(f"w{number}{character}w2 {character}")
    lines_with_separators.append("last")
    split = root / "data" / "split" / "news-en-de"
    for name in ("test.first.en", "test.first.de"):
        trees.write_lines(split / name, [line + name[-2:] for line in lines_with_separators])
    for name in ("test.first.de", "test.second.de"):
        lines = [line.replace("w", "v") for line in read_lines(split / name)]
        trees.write_lines(root / RUN.results_folder / "hypotheses" / name, lines)
    trees.write_translation(root, settings, RUN)
    comet_folder.write_empty(root / "model")
    return root, settings


def with_model(settings, python, folder, sha256=""):
    """Return settings with a COMET model, whose sum is that of the folder if omitted."""
    model = Comet(str(python), str(folder), sha256 or folder_sha256(folder))
    return replace(settings, comet={"wmt22-comet-da": model})


def stand_in(path, code):
    """Write an executable that runs Python code with the arguments of COMET's Python."""
    path.with_suffix(".py").write_text(code)
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {path.with_suffix(".py")} "$@"\n')
    path.chmod(0o755)
    return path


def refusal(settings, root):
    """Return the message with which scoring the run is refused, after checking it is one line."""
    with pytest.raises(UserError) as caught:
        score_run_by_comet(settings, *RUN, root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_sum_of_a_model_is_that_of_the_documented_command(tmp_path):
    """The documentation tells users a shell command that computes the SHA-256 of a model's folder.

    The command leaves out hidden files and follows links; names contain spaces and letters whose
    order differs between languages.
    """
    folder = comet_folder.write_empty(tmp_path / "model")
    for name in ("a b", "a-b", "ä", "a/b", ".cache/huggingface/at", "encoder/.lock"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "link").symlink_to(folder / "hparams.yaml")

    command = (
        "find -L . -type f -not -path '*/.*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum"
        " | sha256sum"
    )
    finished = subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=True)

    sum_of_the_command = finished.stdout.decode().split()[0]
    assert folder_sha256(folder) == sum_of_the_command


def test_check_has_no_note_on_settings_without_comet(tree):
    _, settings = tree
    assert list(notes_on_missing_comet(settings)) == []


def test_check_has_no_note_on_a_complete_model(tree, tmp_path):
    """`bleuprint check` finds the Python that runs COMET, and all files of the model."""
    _, settings = tree
    folder = comet_folder.write_empty(tmp_path / "model")
    python = stand_in(tmp_path / "python", SCORE_BY_LENGTH)

    notes = list(notes_on_missing_comet(with_model(settings, python, folder)))

    assert notes == []


def test_check_notes_a_missing_python_and_a_missing_file_of_the_model(tree, tmp_path):
    """`bleuprint check` notes before a run what the stage would refuse after hours of training."""
    _, settings = tree
    folder = comet_folder.write_empty(tmp_path / "model")
    missing_python = tmp_path / "python"
    settings = with_model(settings, missing_python, folder)
    (folder / "encoder" / "config.json").unlink()

    notes = list(notes_on_missing_comet(settings))

    assert notes == [
        f"comet.wmt22-comet-da.python: {missing_python} is not a program. Name a Python with "
        "unbabel-comet",
        f"comet.wmt22-comet-da.folder: {folder}: encoder/config.json is missing, so "
        "this is not a complete COMET model (docs/scoring.md)",
    ]


@pytest.mark.parametrize("name", ["checkpoints/model.ckpt", "hparams.yaml", "encoder/config.json"])
def test_a_folder_without_a_file_of_the_model_is_refused(tree, tmp_path, name):
    """Each of these files belongs to a COMET model. If one is missing, nothing is scored."""
    root, settings = tree
    folder = comet_folder.write_empty(tmp_path / "model")
    (folder / name).unlink()
    settings = with_model(settings, stand_in(tmp_path / "python", SCORE_BY_LENGTH), folder)
    scores = root / RUN.results_folder / "comet.json"
    scores.unlink(missing_ok=True)

    message = refusal(settings, root)

    assert message == (
        f"{folder}: {name} is missing, so this is not a complete COMET model (docs/scoring.md)"
    )
    assert not scores.exists()


@pytest.fixture
def unscored_tree(tree):
    """Return the folder and the settings of the run, whose scores must still be missing at the end.

    The tests check that scoring is refused.
    """
    root, settings = tree
    scores = root / RUN.results_folder / "comet.json"
    scores.unlink(missing_ok=True)
    yield root, settings
    assert not scores.exists()


def test_a_model_with_another_sha256_than_in_the_settings_is_refused(unscored_tree):
    """Another model gives other scores under the same name."""
    root, settings = unscored_tree
    folder = root / "model"
    sha256_in_settings = "ab" * 32
    settings = with_model(settings, sys.executable, folder, sha256_in_settings)

    message = refusal(settings, root)

    assert message == (
        f"{folder}: SHA-256 is {folder_sha256(folder)}, not {sha256_in_settings} as in params.yaml "
        "(comet)"
    )


def test_a_python_without_the_package_comet_is_refused(unscored_tree):
    """COMET runs in a Python of its own. The Python of the tests lacks the package."""
    root, settings = unscored_tree
    settings = with_model(settings, sys.executable, root / "model")

    message = refusal(settings, root)

    assert message == f"{sys.executable}: No module named 'comet'. Install unbabel-comet there"


def test_a_missing_python_is_refused(unscored_tree):
    """COMET runs in a Python of its own, which params.yaml names by its path."""
    root, settings = unscored_tree
    missing_python = root / "none"
    settings = with_model(settings, missing_python, root / "model")

    message = refusal(settings, root)

    assert message.startswith(f"{missing_python}: No such file or directory")


def test_settings_without_a_model_are_refused(unscored_tree):
    root, settings = unscored_tree
    assert refusal(settings, root) == (
        "params.yaml names no COMET model. Add it under comet (docs/scoring.md)"
    )


@pytest.fixture
def scored_tree(tree, tmp_path):
    """Score the run by length; return its folder, the settings with the model, and the scores."""
    root, settings = tree
    python = stand_in(tmp_path / "python", SCORE_BY_LENGTH)
    settings = with_model(settings, python, root / "model")
    return root, settings, score_run_by_comet(settings, *RUN, root)


def test_the_scores_of_all_test_sets_are_written(scored_tree):
    root, _, scores = scored_tree
    assert list(scores) == ["first", "second"]
    assert read_json(root / RUN.results_folder / "comet.json") == scores


@pytest.mark.parametrize("test", ["first", "second"])
def test_each_score_belongs_to_its_line(scored_tree, test):
    """In place of COMET, a script scores each line by the bytes of its three texts, by 1,000.

    So each score shows which source, reference and translation belong together, whatever characters
    are in them. The statistics of a line are its score in millionths, and 1.
    """
    root, _, scores = scored_tree
    split = root / "data" / "split" / "news-en-de"
    sources = read_lines(split / f"test.{test}.en")
    references = read_lines(split / f"test.{test}.de")
    translations = read_lines(root / RUN.results_folder / "hypotheses" / f"test.{test}.de")
    expected = []
    for source, reference, translation in zip(sources, references, translations, strict=True):
        length = len(f"{source}{reference}{translation}".encode())
        expected.append(length / 1000)

    (entry,) = scores[test]["metrics"]

    assert entry["statistics"] == [f"{round(10**6 * score)} 1" for score in expected]
    assert entry["value"] == pytest.approx(100 * fmean(expected), abs=1e-6)
    assert entry["signature"] == "Python3.11.2|Comet2.2.7|fp32|wmt22-comet-da|r1"


@pytest.mark.parametrize("test", ["first", "second"])
def test_scores_name_their_files_by_sha256(scored_tree, test):
    """So that later stages notice if a text has changed since it was scored."""
    root, _, scores = scored_tree
    split = root / "data" / "split" / "news-en-de"
    translations = root / RUN.results_folder / "hypotheses"

    assert scores[test]["sources"] == sha256_of(split / f"test.{test}.en")
    assert scores[test]["references"] == sha256_of(split / f"test.{test}.de")
    assert scores[test]["hypotheses"] == sha256_of(translations / f"test.{test}.de")


@pytest.mark.parametrize("tests", [["second"], ["second", "first"]], ids=["one set", "both sets"])
def test_an_external_system_gets_the_scores_of_a_system_with_the_same_translations(
    scored_tree, tests
):
    """The translations of an external system are files that params.yaml names.

    Here they are copies of a trained system's translations, of one or both test sets.
    """
    root, settings, scores_of_system = scored_tree
    translations = root / RUN.results_folder / "hypotheses"
    files = {}
    for test in tests:
        sha256 = sha256_of(translations / f"test.{test}.de")
        files[test] = TranslationFile("inputs/external/a", sha256)
    external = {"online": {"news-en-de": ExternalSystem(files, "A service.")}}
    run = Run("online", "news-en-de", 1)
    shutil.copytree(translations, root / run.results_folder / "hypotheses", dirs_exist_ok=True)

    scores = score_run_by_comet(replace(settings, external=external), *run, root)

    assert scores == {test: scores_of_system[test] for test in tests}
    assert read_json(root / run.results_folder / "comet.json") == scores


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(
            SCORE_BY_LENGTH.replace("len(b", "float('nan') + len(b"),
            "COMET's score of a line is not a number",
            id="not a number",
        ),
        pytest.param(
            "raise SystemExit(3)",
            "COMET ended with status 3. Its messages are above",
            id="exit status",
        ),
    ],
)
def test_a_run_of_comet_that_fails_is_refused(tree, tmp_path, code, message):
    root, settings = tree
    settings = with_model(settings, stand_in(tmp_path / "python", code), root / "model")

    assert message in refusal(settings, root)


TEXTS_WITH_SEPARATORS = [f"{character}a{character}b\n{character}" for character in TORTURE]


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n\n", *TEXTS_WITH_SEPARATORS])
def test_the_script_for_comets_python_reads_the_same_lines_as_bleuprint(tmp_path, text):
    """COMET's Python, in which the script runs, lacks bleuprint, so the script reads lines itself.

    Lines end at newlines only. Python's `splitlines` would also end them at Unicode separators.
    """
    path = tmp_path / "text"
    path.write_bytes(text.encode())

    assert predict.lines(path) == list(read_lines(path))


@needs(COMET, "BLEUPRINT_COMET_PYTHON" in os.environ)
def test_the_real_package_scores_each_line_as_if_it_were_alone(tree, tmp_path, monkeypatch):
    """Lines are scored in batches; the expected scores are computed line by line.

    The model is tiny, and names XLM-R large as its encoder; COMET must not try to download that. An
    empty cache and proxies where nothing answers take the place of a machine without internet.
    """
    python = os.environ["BLEUPRINT_COMET_PYTHON"]
    script = comet_folder.__file__
    root, settings = tree
    folder = tmp_path / "model"
    subprocess.run([python, script, str(folder)], check=True)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    written = score_run_by_comet(with_model(settings, python, folder), *RUN, root)

    split = root / "data/split/news-en-de"
    translations = root / RUN.results_folder / "hypotheses"
    for test, scores in written.items():
        paths = [split / f"test.{test}.en", translations / f"test.{test}.de"]
        command = [python, script, "scores", folder, *paths, split / f"test.{test}.de"]
        scores_alone = subprocess.run(command, check=True, capture_output=True).stdout
        (entry,) = scores["metrics"]
        line_scores = parse_statistics(entry)[:, 0] / 10**6
        assert list(line_scores) == pytest.approx(json.loads(scores_alone), abs=2e-6)
        assert len(set(line_scores)) > 10
        assert re.fullmatch(
            r"Python3[\d.]+\|Comet[\d.]+\|fp32\|wmt22-comet-da\|r1", entry["signature"]
        )
