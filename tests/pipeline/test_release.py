"""`bleuprint release` and `bleuprint verify` of a release, on one micro project."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from safetensors.numpy import load_file

from bleuprint.config.experiment import load
from bleuprint.pipeline import verify
from bleuprint.pipeline.release import release
from bleuprint.pipeline.ro_crate import METADATA, changed_files
from bleuprint.report.same_results import Verdict
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of

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


def test_the_crate_lists_every_file_and_step(released):
    root, folder = released
    entities = {e["@id"]: e for e in json.loads((folder / METADATA).read_text())["@graph"]}
    assert entities[METADATA]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    # against coreutils
    files = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    files.remove(METADATA)
    output = subprocess.run(["sha256sum", *files], cwd=folder, capture_output=True, text=True)
    for line in output.stdout.splitlines():
        digest, name = line.split("  ")
        assert entities[name]["sha256"] == digest
        assert entities[name]["contentSize"] == str((folder / name).stat().st_size)
    assert {part["@id"] for part in entities["./"]["hasPart"]} == set(files)
    # each reference within the crate leads to an entity, as RO-Crate 1.1 demands
    text = json.dumps(list(entities.values()))
    for part in text.split('{"@id": "')[1:]:
        key, _, rest = part.partition('"')
        assert key in entities or key.startswith("https://") or not rest.startswith("}"), key
    steps = [entities[step["@id"]] for step in entities["dvc.yaml"]["step"]]
    stages = YAML(typ="safe").load(root / "dvc.lock")["stages"]
    assert {step["name"] for step in steps} == set(stages)
    place = {step["@id"]: int(step["position"]) for step in steps}
    for step in steps:
        assert all(place[before["@id"]] < place[step["@id"]] for before in step["isBasedOn"])


def test_card_citation_and_weights(released):
    root, folder = released
    _, metadata, card = (folder / "README.md").read_text().split("---\n", 2)
    (model,) = YAML(typ="safe").load(metadata)["model-index"]
    assert model["name"] == "tiny on own"
    rows = json.loads((root / "reports/results.json").read_text())
    assert model["results"][0]["metrics"][0]["value"] == round(rows[0]["bleu"], 4)
    assert "git checkout c0ffee" in card and "- own, own: none" in card
    citation = YAML(typ="safe").load(folder / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0" and citation["authors"]
    assert sha256_of(folder / WEIGHTS) == sha256_of(root / WEIGHTS) and load_file(folder / WEIGHTS)
    assert (folder / "ctranslate2/tiny/own/1/model/model.bin").exists()
    assert not (folder / "models/wide").exists()
    sentences = (root / "inputs/a.en").read_text().splitlines()
    for path in folder.rglob("*"):  # the page alone quotes the corpus
        if path.is_file() and path.name != "index.html":
            content = path.read_bytes()
            assert not any(s.encode() in content for s in sentences if len(s) > 15), path


def test_a_release_is_the_same_result(copy):
    text, verdict = verify.lines_of_other(str(copy))
    assert verdict == Verdict.SAME_BYTES and "2 results the same bytes" in text[0]
    assert text[-1] == f"all files of {copy} have the sums of its {METADATA} and dvc.lock"


def test_a_changed_release_is_named(copy):
    (copy / WEIGHTS).write_bytes(b"other")
    (copy / "CITATION.cff").unlink()
    (copy / "more\x85\u2028.txt").write_text("x")
    text, verdict = verify.lines_of_other(str(copy))
    assert verdict == Verdict.DIFFERENT and len(text) <= 10
    assert text[0] == f"{copy}/CITATION.cff: missing" and text[2] == "files that changed besides: 1"
    assert list(changed_files(copy))[1:] == [
        f"{copy}/{WEIGHTS}: changed since the release: its SHA-256 is not that of {METADATA}",
        f"{copy}/more\x85\u2028.txt: not listed in {METADATA}",
    ]


def renew_sums(folder):
    """Write the sums of the files as they are into the metadata."""
    content = json.loads((folder / METADATA).read_text())
    for entity in content["@graph"]:
        if "sha256" in entity:
            entity["sha256"] = sha256_of(folder / entity["@id"])
    (folder / METADATA).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("reports/table.md", "reports/table.md: not as report made it, by dvc.lock"),
        (WEIGHTS, "models/tiny/own/1/averaged: not as average@tiny-own-1 made it, by dvc.lock"),
        ("params.yaml", "params.yaml: systems.tiny.train is not as train@tiny-own-1 ran with it"),
    ],
)
def test_an_edit_with_its_sum_is_named_by_dvc_lock(copy, name, line):
    content = (copy / name).read_bytes()
    edited = content.replace(b"label_smoothing: 0.1", b"label_smoothing: 0.3")
    (copy / name).write_bytes(edited if edited != content else content + b"\n")
    renew_sums(copy)
    assert not list(changed_files(copy))
    text, verdict = verify.lines_of_other(str(copy))
    assert verdict == Verdict.DIFFERENT and text[0].startswith(f"{copy}/{line}")


def test_a_release_without_its_metadata_is_named(copy):
    (copy / METADATA).unlink()
    text, verdict = verify.lines_of_other(str(copy))
    assert verdict == Verdict.DIFFERENT
    assert text[0] == f"{copy}/{METADATA}: missing: whether files were changed is not known"


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
    told = ["scores.json: has changed"], Verdict.DIFFERENT
    monkeypatch.setattr("bleuprint.pipeline.verify_tree.lines", lambda: told)
    with pytest.raises(UserError, match=r"does not belong together: scores.json: has changed$"):
        release(settings, tmp_path / "new")
    assert not (tmp_path / "new").exists()
