"""`bleuprint release`, its sums, and `bleuprint verify` of it, on one micro project."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from safetensors.numpy import load_file

from bleuprint.config.experiment import load_settings
from bleuprint.config.init_from import InitFrom
from bleuprint.config.paths import Run
from bleuprint.pipeline import verify
from bleuprint.pipeline.release import release
from bleuprint.pipeline.release_check import CARD
from bleuprint.runtime.checksums import CHECKSUM_FILE
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import sha256_of
from bleuprint.training.init_weights import init_files
from shared_folders import left_unchanged

WEIGHTS = "models/tiny/own/1/averaged/model.safetensors"


@pytest.fixture(scope="module")
def released(by_dvc, tmp_path_factory):
    """A project with its release, whose code is at its commit; not to be changed."""
    root = tmp_path_factory.mktemp("release")
    project = by_dvc.copy(root / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        patch.setattr("bleuprint.pipeline.release.code_commit", lambda: "c0ffee" * 6 + "c0ff")
        release(load_settings(), root / "released", system="tiny")
    with left_unchanged(root):
        yield project.root, root / "released"


@pytest.fixture
def copy(released, tmp_path, monkeypatch):
    """A copy of the release, as on another machine; the working folder is the project."""
    monkeypatch.chdir(released[0])
    return Path(shutil.copytree(released[1], tmp_path / "copy"))


def test_the_sums_are_those_of_every_file(copy):
    check = ["sha256sum", "--check", "--strict", "--quiet", CHECKSUM_FILE]
    assert subprocess.run(check, cwd=copy, capture_output=True, text=True).stdout == ""
    listed = {line.split("  ", 1)[1] for line in (copy / CHECKSUM_FILE).read_text().splitlines()}
    files = {p.relative_to(copy).as_posix() for p in copy.rglob("*") if p.is_file()}
    assert listed == files - {CHECKSUM_FILE, CARD} and WEIGHTS in listed
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


def test_code_that_differs_from_its_commit_is_not_released(by_dvc, tmp_path):
    """All stages are up to date: a comment in dvc.yaml runs nothing, and is not committed."""
    project = by_dvc.copy(tmp_path / "project")
    head = project.run("git", "rev-parse", "HEAD").strip()
    project.write("dvc.yaml", f"{project.read('dvc.yaml')}# a comment\n")
    assert project.changed() == set()
    output = tmp_path / "released"
    said = project.run(sys.executable, "-m", "bleuprint", "release", str(output), status=1)
    assert said == (
        f"bleuprint: error: src, stages or dvc.yaml differs from the commit {head[:12]}: "
        "commit the changes first (git status), then run the same command again\n"
    )
    assert not output.exists()


def test_a_release_is_the_same_result(copy):
    verification = verify.compare_reports(verify.open_own_report(), verify.open_report(str(copy)))
    assert verification.is_same and "2 results with the same bytes" in verification.lines[0]
    (copy / WEIGHTS).write_bytes(b"other")
    for of_release in (copy, copy / "reports" / "results.json"):
        with pytest.raises(
            UserError, match=f"copy/{WEIGHTS}: not the file that {CHECKSUM_FILE} names"
        ):
            verify.open_report(str(of_release))
    (copy / WEIGHTS).unlink()
    with pytest.raises(UserError, match=f"copy/{WEIGHTS}: not the file"):
        verify.open_report(str(copy))


def empty(folder):
    (folder / CHECKSUM_FILE).write_bytes(b"")


def cut(folder):
    content = (folder / CHECKSUM_FILE).read_bytes()
    (folder / CHECKSUM_FILE).write_bytes(content[: len(content) // 2])


def without_a_line(folder):
    lines = (folder / CHECKSUM_FILE).read_text().splitlines(keepends=True)
    (folder / CHECKSUM_FILE).write_text("".join(line for line in lines if WEIGHTS not in line))
    (folder / WEIGHTS).write_bytes(b"other")


def not_utf8(folder):
    (folder / CHECKSUM_FILE).write_bytes(b"\xff\n")


def gone(folder):
    (folder / CHECKSUM_FILE).unlink()


def a_folder(folder):
    (folder / CHECKSUM_FILE).unlink()
    (folder / CHECKSUM_FILE).mkdir()


def a_pipe(folder):
    (folder / CHECKSUM_FILE).unlink()
    os.mkfifo(folder / CHECKSUM_FILE)


def one_file_more(folder):
    (folder / "ctranslate2/tiny/own/1/numpy.py").write_text("raise SystemExit(7)")


def a_pipe_more(folder):
    os.mkfifo(folder / "reports/pipe")


def a_link_more(folder):
    (folder / "reports/elsewhere").symlink_to("/etc")


def reports_elsewhere(folder):
    shutil.rmtree(folder / "reports")
    (folder / "reports").symlink_to(Path("reports").resolve())


def a_name_above(folder):
    content = (folder / "params.yaml").read_bytes()
    (folder.parent / "params.yaml").write_bytes(content)
    rewrite(folder, "params.yaml", "../params.yaml")


def an_absolute_name(folder):
    rewrite(folder, "params.yaml", folder / "params.yaml")


def rewrite(folder, name, other):
    """Write another name into the list, and the SHA-256 of that into the card."""
    text = (folder / CHECKSUM_FILE).read_text()
    card = (folder / CARD).read_text()
    before = hashlib.sha256(text.encode()).hexdigest()
    text = text.replace(f"  {name}\n", f"  {other}\n")
    (folder / CHECKSUM_FILE).write_text(text)
    assert before in card
    (folder / CARD).write_text(card.replace(before, hashlib.sha256(text.encode()).hexdigest()))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (empty, f"{CHECKSUM_FILE} is damaged: its SHA-256 is not the one in {CARD}"),
        (cut, f"{CHECKSUM_FILE} is damaged: "),
        (without_a_line, f"{CHECKSUM_FILE} is damaged: its SHA-256 is not the one in {CARD}"),
        (not_utf8, f"{CHECKSUM_FILE} is damaged: line 1 is not a SHA-256 and a name"),
        (gone, f"{CHECKSUM_FILE}: no such file, although"),
        (a_folder, f"{CHECKSUM_FILE}: a folder"),
        (a_pipe, f"{CHECKSUM_FILE}: a pipe or device"),
        (one_file_more, f"numpy.py: {CHECKSUM_FILE} does not list it. Remove it, or get"),
        (a_pipe_more, "reports/pipe: a pipe or device"),
        (a_link_more, "reports/elsewhere: is a link to /etc"),
        (reports_elsewhere, "reports: is a link to "),
        (a_name_above, "names '../params.yaml', which is not inside the folder"),
        (an_absolute_name, "which is not inside the folder"),
    ],
)
def test_a_release_that_its_checksums_do_not_cover_is_refused(copy, damage, message):
    damage(copy)
    with pytest.raises(UserError) as raised:
        verify.open_report(str(copy))
    assert message in str(raised.value) and len(str(raised.value).splitlines()) == 1


def test_an_older_release_lists_its_card(copy):
    text = (copy / CHECKSUM_FILE).read_text()
    card = (copy / CARD).read_text().replace("SHA-256 of `SHA256SUMS`", "older")
    (copy / CARD).write_text(card)
    with pytest.raises(UserError, match=f"it does not list {CARD}"):
        verify.open_report(str(copy))
    digest = hashlib.sha256(card.encode()).hexdigest()
    (copy / CHECKSUM_FILE).write_text(f"{text}{digest.upper()} *{CARD}\n\n")
    verify.open_report(str(copy))
    (copy / CARD).write_text("other")
    with pytest.raises(UserError, match=f"{CARD}: not the file that {CHECKSUM_FILE} names"):
        verify.open_report(str(copy))


def test_a_start_without_its_line_is_refused(copy):
    for damage, message in (
        (without_a_line, f"{CHECKSUM_FILE} is damaged: no line lists"),
        (not_utf8, f"{CHECKSUM_FILE} is damaged: line 1 is not"),
        (empty, f"{CHECKSUM_FILE} is damaged: no line lists"),
    ):
        damage(copy)
        with pytest.raises(UserError, match=message):
            init_files(InitFrom(folder=str(copy)), Run("new", "another", 1))


def test_the_exported_script_writes_nothing_into_the_release(copy):
    """Python would write compiled modules, which no line lists."""
    folder = copy / "ctranslate2/tiny/own/1"
    command = [sys.executable, str(folder / "translate.py")]
    subprocess.run(command, input="ba deo\n", text=True, capture_output=True, check=True)
    verify.open_report(str(copy))


def test_a_link_out_of_the_project_is_not_published(released, tmp_path, monkeypatch):
    project = tmp_path / "project"
    shutil.copytree(released[0], project, symlinks=True)
    monkeypatch.chdir(project)
    monkeypatch.setattr("bleuprint.pipeline.release.code_commit", lambda: "c0ffee")
    secret = tmp_path / "netrc"
    secret.write_text("password")
    constraints = project / "constraints.txt"
    constraints.unlink(missing_ok=True)
    constraints.symlink_to(secret)
    weights = project / WEIGHTS
    inner = weights.rename(weights.with_name("moved"))
    for link, target in ((constraints, secret), (weights, secret)):
        with pytest.raises(UserError) as raised:
            release(load_settings(), tmp_path / "new", system="tiny")
        named = link.relative_to(project)
        assert f"{named}: leads to {target}, outside the project" in str(raised.value)
        assert not (tmp_path / "new").exists()
        constraints.unlink(missing_ok=True)
        weights.unlink(missing_ok=True)
        weights.symlink_to(secret)
    weights.unlink()
    inner.rename(weights)


def test_a_project_is_not_compared_with_itself(released, tmp_path, monkeypatch):
    monkeypatch.chdir(released[0])
    (tmp_path / "link").symlink_to(released[0])
    for name in (".", "reports", "reports/results.json", str(released[0]), tmp_path / "link"):
        with pytest.raises(UserError, match="leads to the results of this project"):
            verify.open_report(str(name))


def test_a_release_is_a_start(copy):
    """Of any corpus: the vocabularies are beside the weights."""
    files = init_files(InitFrom(folder=str(copy)), Run("new", "another", 1))
    assert files.weights == copy / WEIGHTS
    vocabularies = set(files.weights.parent.glob("vocabulary.*"))
    assert {path.suffix for path in vocabularies} == {".de", ".en"}
    assert {files.vocabulary(side) for side in ("source", "target")} <= vocabularies


def test_what_is_refused(released, tmp_path, monkeypatch):
    monkeypatch.chdir(released[0])
    settings = load_settings()
    with pytest.raises(UserError, match=r"exists already, and is not an empty folder\. Name"):
        release(settings, released[1])
    for system, corpus, kind in (("none", None, "system"), ("tiny", "none", "corpora")):
        with pytest.raises(UserError, match=f"^params.yaml: no {kind}.* entry 'none'"):
            release(settings, tmp_path / "new", system, corpus)
    with pytest.raises(UserError, match=r"^params.yaml: no corpora entry 'none'"):
        release(settings, tmp_path / "new", corpus="none")
    monkeypatch.setattr("bleuprint.pipeline.release.changed_stages", lambda: {"train@a-b-1": []})
    with pytest.raises(UserError, match=r"^train@a-b-1 is out of date: .* Run: make reproduce$"):
        release(settings, tmp_path / "new")
    assert not (tmp_path / "new").exists()
