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
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.training.init_weights import init_files
from shared_folders import left_unchanged

WEIGHTS = "models/tiny/own/1/averaged/model.safetensors"


@pytest.fixture(scope="module")
def released(by_dvc, tmp_path_factory):
    """Return a project that has run, and the release of its system tiny. Not to be changed.

    Returns:
        The project's folder and the folder of the release. The release names the commit c0ffee...
    """
    root = tmp_path_factory.mktemp("release")
    project = by_dvc.copy(root / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        patch.setattr("bleuprint.pipeline.release.code_commit", lambda: "c0ffee" * 6 + "c0ff")
        release(load_settings(), root / "released", system="tiny")
    with left_unchanged(root):
        yield project.root, root / "released"


@pytest.fixture
def release_copy(released, tmp_path, monkeypatch):
    """Return a copy of the release, as on another machine; the working folder is the project."""
    project, release_folder = released
    monkeypatch.chdir(project)
    return Path(shutil.copytree(release_folder, tmp_path / "copy"))


def run_sha256sum(folder):
    """Check the files of a release by the program sha256sum; return the finished process."""
    command = ["sha256sum", "--check", "--strict", "--quiet", CHECKSUM_FILE]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_checksums_of_a_release_are_right(release_copy):
    assert run_sha256sum(release_copy).stdout == ""


def test_the_checksums_of_a_release_cover_all_files_but_the_checksums_and_the_model_card(
    release_copy,
):
    """The model card contains the SHA-256 of the file of checksums."""
    lines = (release_copy / CHECKSUM_FILE).read_text().splitlines()
    listed = {line.split("  ", 1)[1] for line in lines}

    files = set()
    for path in release_copy.rglob("*"):
        if path.is_file():
            files.add(path.relative_to(release_copy).as_posix())
    assert listed == files - {CHECKSUM_FILE, CARD}
    assert WEIGHTS in listed


def test_sha256sum_finds_changed_weights_in_a_release(release_copy):
    (release_copy / WEIGHTS).write_bytes(b"other")

    process = run_sha256sum(release_copy)

    assert process.returncode == 1
    assert process.stdout == f"{WEIGHTS}: FAILED\n"


def test_the_model_card_names_languages_experiment_commit_and_licenses(released):
    _, release_folder = released

    # The metadata stand between two lines of dashes.
    _, metadata, text = (release_folder / "README.md").read_text().split("---\n", 2)

    assert YAML(typ="safe").load(metadata)["language"] == ["de", "en"]
    assert "# micro\n" in text
    assert "git checkout c0ffee" in text
    assert "- own, own: none" in text
    assert (release_folder / "references.bib").exists()


def test_a_release_contains_the_weights_of_its_system_and_of_no_other(released):
    project, release_folder = released

    assert sha256_of(release_folder / WEIGHTS) == sha256_of(project / WEIGHTS)
    assert load_file(release_folder / WEIGHTS)
    assert (release_folder / "ctranslate2/tiny/own/1/model/model.bin").exists()
    assert not (release_folder / "models/wide").exists()


def test_only_the_html_report_of_a_release_quotes_the_corpus(released):
    project, release_folder = released
    sentences = (project / "inputs/a.en").read_text().splitlines()
    # A short sentence could occur anywhere by chance.
    long_sentences = [sentence.encode() for sentence in sentences if len(sentence) > 15]

    for path in release_folder.rglob("*"):
        if path.is_file() and path.name != "index.html":
            content = path.read_bytes()
            assert not any(sentence in content for sentence in long_sentences), path


def test_code_that_differs_from_its_commit_is_not_released(by_dvc, tmp_path):
    """All stages are up to date: a comment in dvc.yaml runs nothing, and is not committed."""
    project = by_dvc.copy(tmp_path / "project")
    commit = project.run("git", "rev-parse", "HEAD").strip()
    project.write("dvc.yaml", f"{project.read('dvc.yaml')}# a comment\n")
    assert project.changed() == set()
    release_folder = tmp_path / "released"

    output = project.run(
        sys.executable, "-m", "bleuprint", "release", str(release_folder), status=1
    )

    assert output == (
        f"bleuprint: error: src, stages or dvc.yaml differs from the commit {commit[:12]}: "
        "commit the changes first (git status), then run the same command again\n"
    )
    assert not release_folder.exists()


def test_a_release_has_the_results_of_its_project(release_copy):
    own_report = verify.open_own_report()

    verification = verify.compare_reports(own_report, verify.open_report(str(release_copy)))

    assert verification.is_same
    assert "2 results with the same bytes" in verification.lines[0]


@pytest.mark.parametrize("path_in_release", ["", "reports/results.json"])
def test_verify_refuses_a_release_with_other_weights(release_copy, path_in_release):
    (release_copy / WEIGHTS).write_bytes(b"other")

    message = f"copy/{WEIGHTS}: not the file that {CHECKSUM_FILE} names"
    with pytest.raises(UserError, match=message):
        verify.open_report(str(release_copy / path_in_release))


def test_verify_refuses_a_release_without_its_weights(release_copy):
    (release_copy / WEIGHTS).unlink()

    with pytest.raises(UserError, match=f"copy/{WEIGHTS}: not the file"):
        verify.open_report(str(release_copy))


def empty_checksums(folder):
    """Empty the file of checksums."""
    (folder / CHECKSUM_FILE).write_bytes(b"")


def cut_checksums(folder):
    """Remove the second half of the file of checksums."""
    content = (folder / CHECKSUM_FILE).read_bytes()
    (folder / CHECKSUM_FILE).write_bytes(content[: len(content) // 2])


def replace_weights_and_remove_their_checksum(folder):
    """Replace the weights, and remove their line from the file of checksums."""
    lines = (folder / CHECKSUM_FILE).read_text().splitlines(keepends=True)
    other_lines = [line for line in lines if WEIGHTS not in line]
    (folder / CHECKSUM_FILE).write_text("".join(other_lines))
    (folder / WEIGHTS).write_bytes(b"other")


def break_encoding_of_checksums(folder):
    """Replace the file of checksums by a line that is not UTF-8."""
    (folder / CHECKSUM_FILE).write_bytes(b"\xff\n")


def remove_checksums(folder):
    """Remove the file of checksums."""
    (folder / CHECKSUM_FILE).unlink()


def replace_checksums_by_folder(folder):
    """Make a folder in place of the file of checksums."""
    (folder / CHECKSUM_FILE).unlink()
    (folder / CHECKSUM_FILE).mkdir()


def replace_checksums_by_pipe(folder):
    """Make a named pipe in place of the file of checksums; reading it would take for ever."""
    (folder / CHECKSUM_FILE).unlink()
    os.mkfifo(folder / CHECKSUM_FILE)


def add_python_module(folder):
    """Add a module that the exported script translate.py would import in place of numpy."""
    (folder / "ctranslate2/tiny/own/1/numpy.py").write_text("raise SystemExit(7)")


def add_pipe(folder):
    """Add a named pipe."""
    os.mkfifo(folder / "reports/pipe")


def add_link(folder):
    """Add a link to a folder outside the release."""
    (folder / "reports/elsewhere").symlink_to("/etc")


def replace_reports_by_link(folder):
    """Replace the folder reports by a link to the one in the working folder."""
    shutil.rmtree(folder / "reports")
    (folder / "reports").symlink_to(Path("reports").resolve())


def list_file_above(folder):
    """List a file outside the release in place of params.yaml, by its relative path."""
    content = (folder / "params.yaml").read_bytes()
    (folder.parent / "params.yaml").write_bytes(content)
    rename_in_checksums(folder, "params.yaml", "../params.yaml")


def list_absolute_path(folder):
    """List params.yaml by its absolute path."""
    rename_in_checksums(folder, "params.yaml", folder / "params.yaml")


def rename_in_checksums(folder, old_name, new_name):
    """Change a name in the file of checksums, and the SHA-256 of this file in the model card."""
    checksums = (folder / CHECKSUM_FILE).read_text()
    new_checksums = checksums.replace(f"  {old_name}\n", f"  {new_name}\n")
    (folder / CHECKSUM_FILE).write_text(new_checksums)
    card = (folder / CARD).read_text()
    old_hash = hashlib.sha256(checksums.encode()).hexdigest()
    new_hash = hashlib.sha256(new_checksums.encode()).hexdigest()
    assert old_hash in card
    (folder / CARD).write_text(card.replace(old_hash, new_hash))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (empty_checksums, f"{CHECKSUM_FILE} is damaged: its SHA-256 is not the one in {CARD}"),
        (cut_checksums, f"{CHECKSUM_FILE} is damaged: "),
        (
            replace_weights_and_remove_their_checksum,
            f"{CHECKSUM_FILE} is damaged: its SHA-256 is not the one in {CARD}",
        ),
        (
            break_encoding_of_checksums,
            f"{CHECKSUM_FILE} is damaged: line 1 is not a SHA-256 and a name",
        ),
        (remove_checksums, f"{CHECKSUM_FILE}: no such file, although"),
        (replace_checksums_by_folder, f"{CHECKSUM_FILE}: a folder"),
        (replace_checksums_by_pipe, f"{CHECKSUM_FILE}: a pipe or device"),
        (add_python_module, f"numpy.py: {CHECKSUM_FILE} does not list it. Remove it, or get"),
        (add_pipe, "reports/pipe: a pipe or device"),
        (add_link, "reports/elsewhere: is a link to /etc"),
        (replace_reports_by_link, "reports: is a link to "),
        (list_file_above, "names '../params.yaml', which is not inside the folder"),
        (list_absolute_path, "which is not inside the folder"),
    ],
)
def test_a_release_that_its_checksums_do_not_cover_is_refused_in_one_line(
    release_copy, damage, message
):
    damage(release_copy)

    with pytest.raises(UserError) as error:
        verify.open_report(str(release_copy))

    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.fixture
def older_release(release_copy):
    """Return a release by an earlier version, and without a checksum of the model card.

    In earlier versions, the model card did not contain the SHA-256 of the file of checksums.
    Instead, the file of checksums listed the model card.
    """
    card = (release_copy / CARD).read_text()
    (release_copy / CARD).write_text(card.replace("SHA-256 of `SHA256SUMS`", "older"))
    return release_copy


def list_model_card(folder):
    """Add the model card to the file of checksums, in capitals, with the mark of a binary file."""
    card_hash = sha256_of(folder / CARD).upper()
    checksums = (folder / CHECKSUM_FILE).read_text()
    (folder / CHECKSUM_FILE).write_text(f"{checksums}{card_hash} *{CARD}\n\n")


def test_an_older_release_that_does_not_list_its_model_card_is_refused(older_release):
    with pytest.raises(UserError, match=f"it does not list {CARD}"):
        verify.open_report(str(older_release))


def test_an_older_release_that_lists_its_model_card_is_accepted(older_release):
    list_model_card(older_release)

    verify.open_report(str(older_release))


def test_an_older_release_with_another_model_card_than_it_lists_is_refused(older_release):
    list_model_card(older_release)
    (older_release / CARD).write_text("other")

    with pytest.raises(UserError, match=f"{CARD}: not the file that {CHECKSUM_FILE} names"):
        verify.open_report(str(older_release))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (replace_weights_and_remove_their_checksum, "no line lists"),
        (break_encoding_of_checksums, "line 1 is not"),
        (empty_checksums, "no line lists"),
    ],
)
def test_weights_without_a_checksum_are_refused_as_a_start(release_copy, damage, message):
    """A new system starts from the weights of a release: `init_from: {new: {folder: ...}}`."""
    damage(release_copy)

    with pytest.raises(UserError, match=f"{CHECKSUM_FILE} is damaged: {message}"):
        init_files(InitFrom(folder=str(release_copy)), Run("new", "another", 1))


def test_the_exported_script_writes_nothing_into_the_release(release_copy):
    """Python would write compiled modules, which no checksum covers."""
    script = release_copy / "ctranslate2/tiny/own/1/translate.py"
    command = [sys.executable, str(script)]

    subprocess.run(command, input="ba deo\n", text=True, capture_output=True, check=True)

    verify.open_report(str(release_copy))


@pytest.mark.parametrize("name", ["constraints.txt", WEIGHTS])
def test_a_file_that_is_a_link_out_of_the_project_is_not_released(
    released, tmp_path, monkeypatch, name
):
    """The link may lead to a secret, which a release would publish."""
    project = tmp_path / "project"
    shutil.copytree(released[0], project, symlinks=True)
    monkeypatch.chdir(project)
    monkeypatch.setattr("bleuprint.pipeline.release.code_commit", lambda: "c0ffee")
    secret = tmp_path / "netrc"
    secret.write_text("password")
    (project / name).unlink(missing_ok=True)
    (project / name).symlink_to(secret)

    with pytest.raises(UserError) as error:
        release(load_settings(), tmp_path / "new", system="tiny")

    assert f"{name}: leads to {secret}, outside the project" in str(error.value)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", [".", "reports", "reports/results.json", "PROJECT", "LINK"])
def test_a_project_is_not_compared_with_itself(released, tmp_path, monkeypatch, name):
    """PROJECT stands for the absolute path of the project, LINK for a link to the project."""
    project, _ = released
    monkeypatch.chdir(project)
    link = tmp_path / "link"
    link.symlink_to(project)
    path = {"PROJECT": str(project), "LINK": str(link)}.get(name, name)

    with pytest.raises(UserError, match="leads to the results of this project"):
        verify.open_report(path)


def test_a_system_on_any_corpus_may_start_from_a_release(release_copy):
    """The vocabularies are beside the weights, so the corpus of the release is not needed."""
    files = init_files(InitFrom(folder=str(release_copy)), Run("new", "another", 1))

    assert files.weights == release_copy / WEIGHTS
    vocabularies = set(files.weights.parent.glob("vocabulary.*"))
    assert {path.suffix for path in vocabularies} == {".de", ".en"}
    assert {files.vocabulary("source"), files.vocabulary("target")} <= vocabularies


def test_a_release_does_not_overwrite_a_folder_with_files(released, monkeypatch):
    project, release_folder = released
    monkeypatch.chdir(project)

    with pytest.raises(UserError, match=r"exists already, and is not an empty folder\. Name"):
        release(load_settings(), release_folder)


@pytest.mark.parametrize(
    ("system", "corpus", "section"),
    [
        pytest.param("none", None, "system", id="system"),
        pytest.param("tiny", "none", "corpora", id="system and corpus"),
        pytest.param(None, "none", "corpora", id="corpus"),
    ],
)
def test_a_release_of_an_unknown_system_or_corpus_is_refused(
    released, tmp_path, monkeypatch, system, corpus, section
):
    """The unknown system or corpus is called none."""
    monkeypatch.chdir(released[0])

    with pytest.raises(UserError, match=f"^params.yaml: no {section}.* entry 'none'"):
        release(load_settings(), tmp_path / "new", system=system, corpus=corpus)

    assert not (tmp_path / "new").exists()


def test_a_release_is_refused_while_a_stage_is_out_of_date(released, tmp_path, monkeypatch):
    monkeypatch.chdir(released[0])
    monkeypatch.setattr("bleuprint.pipeline.release.changed_stages", lambda: {"train@a-b-1": []})

    with pytest.raises(UserError, match=r"^train@a-b-1 is out of date: .* Run: make reproduce$"):
        release(load_settings(), tmp_path / "new")

    assert not (tmp_path / "new").exists()
