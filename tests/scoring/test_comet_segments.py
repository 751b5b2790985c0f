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
from bleuprint.runtime.files import read_json, sha256_of
from bleuprint.scoring import comet_predict as predict
from bleuprint.scoring.comet import folder_sha256, notes_on_missing_comet, score_run_by_comet
from bleuprint.scoring.metric import parse_statistics
from bleuprint.text.parallel import read_lines
from corpora import TORTURE
from requirements import COMET, needs

RUN = Run("tiny", "news-en-de", 1)
# Scores that show which line they are of: the bytes of the three sides of a line.
LENGTHS = """\
import json, sys
output, texts = sys.argv[4], [open(path, "rb").read().split(b"\\n") for path in sys.argv[5:]]
sides = [texts[first : first + 3] for first in range(0, len(texts), 3)]
scores = [[len(b"".join(line)) / 1000 for line in zip(*of)][:-1] for of in sides]
content = {"python": "3.11.2", "comet": "2.2.7", "references": 1, "scores": scores}
open(output, "w").write(json.dumps(content))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A run with two test sets, which hold all characters that end a line elsewhere."""
    root = tmp_path_factory.mktemp("comet")
    settings = trees.settings_in(root, ("tiny",), {"news-en-de": ("first", "second")})
    trees.write_texts(root, settings)
    odd = ["", *(f"w{n}{c}w2 {c}" for n, c in enumerate(TORTURE)), "last"]
    split = root / "data" / "split" / "news-en-de"
    for name in ("test.first.en", "test.first.de"):
        trees.write_lines(split / name, [line + name[-2:] for line in odd])
    for name in ("test.first.de", "test.second.de"):
        lines = [line.replace("w", "v") for line in read_lines(split / name)]
        trees.write_lines(root / RUN.results_folder / "hypotheses" / name, lines)
    trees.write_translation(root, settings, RUN)
    comet_folder.write_empty(root / "model")
    return root, settings


def with_model(settings, python, folder, sha256=""):
    model = Comet(str(python), str(folder), sha256 or folder_sha256(folder))
    return replace(settings, comet={"wmt22-comet-da": model})


def stand_in(path, code):
    """An executable that runs Python code with the arguments of COMET's Python."""
    path.with_suffix(".py").write_text(code)
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {path.with_suffix(".py")} "$@"\n')
    path.chmod(0o755)
    return path


def refusal(settings, root):
    with pytest.raises(UserError) as caught:
        score_run_by_comet(settings, *RUN, root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_hash_of_a_folder_is_that_of_coreutils(tmp_path):
    folder = comet_folder.write_empty(tmp_path / "model")
    for name in ("a b", "a-b", "ä", "a/b", ".cache/huggingface/at", "encoder/.lock"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "link").symlink_to(folder / "hparams.yaml")
    command = (
        "find -L . -type f -not -path '*/.*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum"
        " | sha256sum"
    )
    printed = subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=True)
    assert folder_sha256(folder) == printed.stdout.decode().split()[0]


def test_bleuprint_check_notes_what_the_stage_would_refuse(tree, tmp_path):
    _, settings = tree
    assert list(notes_on_missing_comet(settings)) == []
    folder = comet_folder.write_empty(tmp_path / "model")
    python = stand_in(tmp_path / "python", LENGTHS)
    settings = with_model(settings, python, folder)
    assert list(notes_on_missing_comet(settings)) == []
    python.unlink()
    (folder / "encoder" / "config.json").unlink()
    assert list(notes_on_missing_comet(settings)) == [
        f"comet.wmt22-comet-da.python: {python}: no such program",
        f"comet.wmt22-comet-da.folder: {folder}: no encoder/config.json: not a whole COMET model "
        "(docs/scoring.md)",
    ]


@pytest.mark.parametrize("name", ["checkpoints/model.ckpt", "hparams.yaml", "encoder/config.json"])
def test_a_folder_without_a_part_of_the_model_is_refused(tree, tmp_path, name):
    root, settings = tree
    folder = comet_folder.write_empty(tmp_path / "model")
    (folder / name).unlink()
    model = with_model(settings, stand_in(tmp_path / "python", LENGTHS), folder)
    said = f"{folder}: no {name}: not a whole COMET model (docs/scoring.md)"
    (root / RUN.results_folder / "comet.json").unlink(missing_ok=True)
    assert refusal(model, root) == said
    assert not (root / RUN.results_folder / "comet.json").exists()


def test_a_model_of_another_hash_or_without_comet(tree):
    root, settings = tree
    folder = root / "model"
    found = folder_sha256(folder)
    other = with_model(settings, sys.executable, folder, "ab" * 32)
    assert refusal(other, root) == (
        f"{folder}: SHA-256 is {found}, not {'ab' * 32} as in params.yaml (comet)"
    )
    # that of this environment, which is not COMET's
    without = with_model(settings, sys.executable, folder)
    assert refusal(without, root) == (
        f"{sys.executable}: No module named 'comet': install unbabel-comet there"
    )
    missing = with_model(settings, root / "none", folder)
    assert refusal(missing, root).startswith(f"{root / 'none'}: No such file or directory")
    assert refusal(settings, root) == "params.yaml: names no COMET model (comet)"
    assert not (root / RUN.results_folder / "comet.json").exists()


def test_scores_belong_to_their_lines(tree, tmp_path):
    """Every file reaches COMET as its bytes, whatever characters are in it."""
    root, settings = tree
    model = with_model(settings, stand_in(tmp_path / "python", LENGTHS), root / "model")
    written = score_run_by_comet(model, *RUN, root)
    assert read_json(root / RUN.results_folder / "comet.json") == written
    assert list(written) == ["first", "second"]
    for test, scores in written.items():
        paths = [p for p in root.rglob(f"test.{test}.*") if "tokens" not in p.parts]
        lines = zip(*(read_lines(path) for path in paths), strict=True)
        expected = [len("".join(line).encode()) / 1000 for line in lines]
        (measured,) = scores["metrics"]
        assert measured["statistics"] == [f"{round(10**6 * score)} 1" for score in expected]
        assert measured["value"] == pytest.approx(100 * fmean(expected), abs=1e-6)
        assert measured["signature"] == "Python3.11.2|Comet2.2.7|fp32|wmt22-comet-da|r1"
        assert {sha256_of(path) for path in paths} == {
            scores[side] for side in ("sources", "references", "hypotheses")
        }


def test_an_external_system_has_the_scores_of_equal_translations(tree, tmp_path):
    root, settings = tree
    texts = root / RUN.results_folder / "hypotheses"
    files = {
        test: TranslationFile("inputs/external/a", sha256_of(texts / f"test.{test}.de"))
        for test in ("second", "first")
    }
    external = {"online-a": {"news-en-de": ExternalSystem({"second": files["second"]}, "A")}}
    external["online-b"] = {"news-en-de": ExternalSystem(files, "B")}
    runs = [Run(name, "news-en-de", 1) for name in external]
    for run in runs:
        shutil.copytree(texts, root / run.results_folder / "hypotheses")
    with_rows = replace(settings, external=external)
    model = with_model(with_rows, stand_in(tmp_path / "python", LENGTHS), root / "model")
    of_system = score_run_by_comet(model, *RUN, root)
    of_one, of_both = (score_run_by_comet(model, *run, root) for run in runs)
    assert of_one == {"second": of_system["second"]}
    assert of_both == of_system
    assert read_json(root / runs[1].results_folder / "comet.json") == of_system


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (LENGTHS.replace("len(b", "float('nan') + len(b"), "COMET of a line is not a number"),
        ("raise SystemExit(3)", "COMET ended with status 3; its messages are above"),
    ],
)
def test_scores_that_are_none(tree, tmp_path, code, message):
    root, settings = tree
    model = with_model(settings, stand_in(tmp_path / "python", code), root / "model")
    assert message in refusal(model, root)


def test_lines_end_at_newlines_alone(tmp_path):
    for text in ("", "\n", "a", "a\n\n", *(f"{c}a{c}b\n{c}" for c in TORTURE)):
        (path := tmp_path / "text").write_bytes(text.encode())
        assert predict.lines(path) == list(read_lines(path))


@needs(COMET, "BLEUPRINT_COMET_PYTHON" in os.environ)
def test_a_tiny_model_by_the_real_package(tree, tmp_path, monkeypatch):
    """Without internet, with a model that asks for XLM-R large: against each line by itself."""
    python, script = os.environ["BLEUPRINT_COMET_PYTHON"], comet_folder.__file__
    root, settings = tree
    subprocess.run([python, script, str(folder := tmp_path / "model")], check=True)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    for name in ("http_proxy", "https_proxy"):  # where nothing answers
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    written = score_run_by_comet(with_model(settings, python, folder), *RUN, root)
    for test, scores in written.items():
        texts = root / "data/split/news-en-de", root / RUN.results_folder / "hypotheses"
        paths = [texts[0] / f"test.{test}.en", texts[1] / f"test.{test}.de"]
        command = [python, script, "scores", folder, *paths, texts[0] / f"test.{test}.de"]
        alone = subprocess.run(command, check=True, capture_output=True).stdout
        (measured,) = scores["metrics"]
        segments = parse_statistics(measured)[:, 0] / 10**6
        assert list(segments) == pytest.approx(json.loads(alone), abs=2e-6)
        assert len(set(segments)) > 10
        assert re.fullmatch(
            r"Python3[\d.]+\|Comet[\d.]+\|fp32\|wmt22-comet-da\|r1", measured["signature"]
        )
