"""`bleuprint release`, its sums, and `bleuprint verify` of it, on one micro project."""

import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from safetensors.numpy import load_file

from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell
from bleuprint.config.system import Start
from bleuprint.pipeline import verify
from bleuprint.pipeline.release import SUMS, release
from bleuprint.report.same_results import Verdict
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.training.start_files import start_files

WEIGHTS = "models/tiny/own/1/averaged/model.safetensors"


@pytest.fixture(scope="module")
def released(by_dvc, tmp_path_factory):
    """A project with its release, whose code is at its commit; not to be changed."""
    root = tmp_path_factory.mktemp("release")
    project = by_dvc.copy(root / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        patch.setattr("bleuprint.pipeline.release.commit", lambda: "c0ffee" * 6 + "c0ff")
        release(load(), root / "released", system="tiny")
    return project.root, root / "released"


@pytest.fixture
def copy(released, tmp_path, monkeypatch):
    """A copy of the release, as on another machine; the working folder is the project."""
    monkeypatch.chdir(released[0])
    return Path(shutil.copytree(released[1], tmp_path / "copy"))


def test_the_sums_are_those_of_every_file(copy):
    check = ["sha256sum", "--check", "--strict", "--quiet", SUMS]
    assert subprocess.run(check, cwd=copy, capture_output=True, text=True).stdout == ""
    listed = {line.split("  ", 1)[1] for line in (copy / SUMS).read_text().splitlines()}
    files = {p.relative_to(copy).as_posix() for p in copy.rglob("*") if p.is_file()}
    assert listed == files - {SUMS} and {WEIGHTS, ".dvc/rows.json"} <= listed
    (copy / WEIGHTS).write_bytes(b"other")
    done = subprocess.run(check, cwd=copy, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == f"{WEIGHTS}: FAILED\n"


def test_card_and_weights(released):
    root, folder = released
    _, metadata, card = (folder / "README.md").read_text().split("---\n", 2)
    assert YAML(typ="safe").load(metadata)["language"] == ["de", "en"]
    assert "# micro\n" in card and "git checkout c0ffee" in card and "- own, own: none" in card
    assert (folder / "references.bib").exists()
    assert sha256_of(folder / WEIGHTS) == sha256_of(root / WEIGHTS) and load_file(folder / WEIGHTS)
    assert (folder / "ctranslate2/tiny/own/1/model/model.bin").exists()
    assert not (folder / "models/wide").exists()
    sentences = (root / "inputs/a.en").read_text().splitlines()
    for path in folder.rglob("*"):  # the page alone quotes the corpus
        if path.is_file() and path.name != "index.html":
            content = path.read_bytes()
            assert not any(s.encode() in content for s in sentences if len(s) > 15), path


def test_a_release_is_the_same_result(copy):
    text, verdict = verify.lines(verify.open_report("."), verify.open_report(str(copy)))
    assert verdict == Verdict.SAME_BYTES and "2 results the same bytes" in text[0]
    (copy / WEIGHTS).write_bytes(b"other")
    for of_release in (copy, copy / "reports" / "results.json"):
        with pytest.raises(UserError, match=f"copy/{WEIGHTS}: not the file that {SUMS} names"):
            verify.open_report(str(of_release))
    (copy / WEIGHTS).unlink()
    with pytest.raises(UserError, match=f"copy/{WEIGHTS}: not the file"):
        verify.open_report(str(copy))
    (copy / SUMS).write_bytes(b"\xff\n")  # not UTF-8
    with pytest.raises(UserError, match=f"not the file that {SUMS} names"):
        verify.open_report(str(copy))


def test_a_release_is_a_start(copy):
    """Of any corpus: the vocabularies are beside the weights."""
    files = start_files(Start(folder=str(copy)), Cell("new", "another", 1))
    assert files.weights == copy / WEIGHTS
    vocabularies = set(files.weights.parent.glob("vocabulary.*"))
    assert {path.suffix for path in vocabularies} == {".de", ".en"}
    assert {files.vocabulary(side) for side in ("source", "target")} <= vocabularies


def test_what_is_refused(released, tmp_path, monkeypatch):
    monkeypatch.chdir(released[0])
    settings = load()
    with pytest.raises(UserError, match=r"exists already, and is not an empty folder$"):
        release(settings, released[1])
    for system, corpus, kind in (("none", None, "system"), ("tiny", "none", "corpora")):
        with pytest.raises(UserError, match=f"^params.yaml: no {kind}.* entry 'none'"):
            release(settings, tmp_path / "new", system, corpus)
    with pytest.raises(UserError, match=r"^params.yaml: no corpora entry 'none'"):
        release(settings, tmp_path / "new", corpus="none")
    monkeypatch.setattr("bleuprint.pipeline.release.changed_stages", lambda: {"train@a-b-1": []})
    with pytest.raises(
        UserError, match=r"^train@a-b-1 is not up to date: run make reproduce first"
    ):
        release(settings, tmp_path / "new")
    assert not (tmp_path / "new").exists()
