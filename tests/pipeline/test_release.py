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


def test_the_checksums_of_a_release_list_every_file_except_readme_and_sha256sums(release_copy):
    """SHA256SUMS lists a sum and a name per line. The model card, README.md, contains its sum."""
    listed_files = set()
    for line in (release_copy / "SHA256SUMS").read_text().splitlines():
        _sum, name = line.split("  ", 1)
        listed_files.add(name)

    files = set()
    for path in release_copy.rglob("*"):
        if path.is_file():
            files.add(path.relative_to(release_copy).as_posix())
    assert listed_files == files - {"SHA256SUMS", "README.md"}
    assert WEIGHTS in listed_files


def test_sha256sum_finds_changed_weights_in_a_release(release_copy):
    """Users can check a download without bleuprint: `sha256sum --check SHA256SUMS`."""
    weights = "models/tiny/own/1/averaged/model.safetensors"
    (release_copy / weights).write_bytes(b"other")

    process = run_sha256sum(release_copy)

    assert process.returncode == 1
    assert process.stdout == f"{weights}: FAILED\n"


def test_the_model_card_names_languages_experiment_commit_and_licenses(released):
    """The release is of the experiment micro, at a commit that starts with c0ffee.

    The model translates from English (en) to German (de). The corpus own has a source called own,
    whose license is "none".
    """
    _, release_folder = released

    # The card starts with metadata in YAML, between two lines of dashes.
    _, metadata, text = (release_folder / "README.md").read_text().split("---\n", 2)

    assert YAML(typ="safe").load(metadata)["language"] == ["de", "en"]
    assert "# micro\n" in text
    assert "git checkout c0ffee" in text
    assert "- own, own: none" in text
    assert (release_folder / "references.bib").exists()


def test_a_release_of_one_system_contains_the_weights_of_this_system_only(released):
    """The project has trained the systems tiny and wide; tiny was released."""
    project, release_folder = released
    weights = "models/tiny/own/1/averaged/model.safetensors"

    assert sha256_of(release_folder / weights) == sha256_of(project / weights)
    assert load_file(release_folder / weights)
    assert (release_folder / "ctranslate2/tiny/own/1/model/model.bin").exists()
    assert not (release_folder / "models/wide").exists()


def test_only_the_html_report_of_a_release_quotes_sentences_of_the_corpus(released):
    """A license may forbid publishing the corpus; a user can delete the report, index.html."""
    project, release_folder = released
    corpus_sentences = (project / "inputs/a.en").read_text().splitlines()
    # A short sentence could occur anywhere by chance.
    long_sentences = [text.encode() for text in corpus_sentences if len(text) > 15]

    for path in release_folder.rglob("*"):
        if path.is_file() and path.name != "index.html":
            content = path.read_bytes()
            for sentence in long_sentences:
                assert sentence not in content, path


def test_a_release_is_refused_while_the_code_differs_from_its_commit(by_dvc, tmp_path):
    """A release names its commit, by which others reproduce it.

    Here dvc.yaml has a comment that is not committed. It makes no stage out of date.
    """
    project = by_dvc.copy(tmp_path / "project")
    commit = project.run("git", "rev-parse", "HEAD").strip()
    project.write("dvc.yaml", f"{project.read('dvc.yaml')}# a comment\n")
    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()
    release_folder = tmp_path / "released"

    output = project.run(
        sys.executable, "-m", "bleuprint", "release", str(release_folder), status=1
    )

    assert output == (
        f"bleuprint: error: src, stages, own or dvc.yaml differs from the commit {commit[:12]}. "
        "Commit the changes (git status lists them), then run the same command again\n"
    )
    assert not release_folder.exists()


def test_verify_finds_the_results_of_a_release_equal_to_the_results_of_its_project(release_copy):
    """The working folder is the project. The release of system tiny has 2 results to compare."""
    own_report = verify.open_own_report()
    released_report = verify.open_report(str(release_copy))

    verification = verify.compare_reports(own_report, released_report)

    assert verification.is_same
    assert "2 results with the same bytes" in verification.lines[0]


@pytest.mark.parametrize("path_in_release", ["", "reports/results.json"])
def test_verify_refuses_a_release_whose_weights_were_replaced(release_copy, path_in_release):
    """SHA256SUMS contains the checksum of the weights.

    All files are checked even if the user only names the results in the release.
    """
    weights = "models/tiny/own/1/averaged/model.safetensors"
    (release_copy / weights).write_bytes(b"other")

    message = f"copy/{weights} is missing or differs from SHA256SUMS"
    with pytest.raises(UserError, match=message):
        verify.open_report(str(release_copy / path_in_release))


def test_verify_refuses_a_release_whose_weights_are_missing(release_copy):
    """SHA256SUMS of the release lists the weights."""
    weights = "models/tiny/own/1/averaged/model.safetensors"
    (release_copy / weights).unlink()

    with pytest.raises(UserError, match=f"copy/{weights} is missing or differs"):
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
        (
            empty_checksums,
            f"{CHECKSUM_FILE} is damaged: its SHA-256 differs from the one in {CARD}",
        ),
        (cut_checksums, f"{CHECKSUM_FILE} is damaged: "),
        (
            replace_weights_and_remove_their_checksum,
            f"{CHECKSUM_FILE} is damaged: its SHA-256 differs from the one in {CARD}",
        ),
        (
            break_encoding_of_checksums,
            f"{CHECKSUM_FILE} is damaged: line 1 is not a SHA-256 and a name",
        ),
        (remove_checksums, f"{CHECKSUM_FILE}: no such file, although"),
        (replace_checksums_by_folder, f"{CHECKSUM_FILE}: a folder"),
        (replace_checksums_by_pipe, f"{CHECKSUM_FILE}: a pipe or device"),
        (add_python_module, f"numpy.py: {CHECKSUM_FILE} does not list this file. Remove it"),
        (add_pipe, "reports/pipe is a pipe or device"),
        (add_link, "reports/elsewhere is a link to /etc"),
        (replace_reports_by_link, "reports is a link to "),
        (list_file_above, "names '../params.yaml', which is not inside the folder"),
        (list_absolute_path, "which is not inside the folder"),
    ],
    ids=[
        "checksums emptied",
        "checksums cut",
        "weights replaced, their checksum removed",
        "checksums not text",
        "checksums removed",
        "checksums a folder",
        "checksums a pipe",
        "Python module added",
        "pipe added",
        "link added",
        "reports a link",
        "checksum of a file above",
        "checksum of an absolute path",
    ],
)
def test_verify_refuses_a_manipulated_release_in_one_line(release_copy, damage, message):
    """Each function damages the release in the way that its name says.

    SHA256SUMS must cover every file of a release: users run its code and load its weights.
    """
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


def test_verify_refuses_an_older_release_whose_model_card_was_replaced(older_release):
    """In earlier versions, SHA256SUMS also listed the checksum of the model card, README.md."""
    list_model_card(older_release)
    (older_release / "README.md").write_text("other")

    with pytest.raises(UserError, match=r"README\.md is missing or differs from SHA256SUMS"):
        verify.open_report(str(older_release))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (replace_weights_and_remove_their_checksum, "no line lists"),
        (break_encoding_of_checksums, "line 1 is not"),
        (empty_checksums, "no line lists"),
    ],
)
def test_a_system_cannot_start_from_released_weights_whose_checksum_is_lost(
    release_copy, damage, message
):
    """The system `new` starts from the weights of a release: `init_from: {new: {folder: ...}}`.

    SHA256SUMS of the release is damaged, so the weights might be of anyone.
    """
    damage(release_copy)

    with pytest.raises(UserError, match=f"SHA256SUMS is damaged: {message}"):
        init_files(InitFrom(folder=str(release_copy)), Run("new", "another", 1))


def test_running_the_exported_script_leaves_the_release_valid(release_copy):
    """By default, Python would write compiled modules beside the script.

    `verify` refuses a release with a file that SHA256SUMS does not list.
    """
    script = release_copy / "ctranslate2/tiny/own/1/translate.py"
    command = [sys.executable, str(script)]

    subprocess.run(command, input="ba deo\n", text=True, capture_output=True, check=True)

    verify.open_report(str(release_copy))  # Raises UserError for an unlisted file.


@pytest.mark.parametrize("name", ["constraints.txt", WEIGHTS])
def test_a_release_is_refused_if_a_file_is_a_link_to_a_file_outside_the_project(
    released, tmp_path, monkeypatch, name
):
    """Publishing the release would publish the other file, here one with a password."""
    secret_file = tmp_path / "netrc"
    secret_file.write_text("password")
    released_project, _ = released
    project = tmp_path / "project"
    shutil.copytree(released_project, project, symlinks=True)
    (project / name).unlink(missing_ok=True)
    (project / name).symlink_to(secret_file)
    monkeypatch.chdir(project)
    # Skips the check that the code is committed.
    monkeypatch.setattr("bleuprint.pipeline.release.code_commit", lambda: "c0ffee")

    with pytest.raises(UserError) as error:
        release(load_settings(), tmp_path / "new", system="tiny")

    assert f"{name} leads to {secret_file}, outside the project" in str(error.value)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", [".", "reports", "reports/results.json", "PROJECT", "LINK"])
def test_verify_refuses_to_compare_a_project_with_itself(released, tmp_path, monkeypatch, name):
    """The comparison would always succeed and prove nothing.

    PROJECT is replaced by the absolute path of the project, LINK by a link to the project.
    """
    project, _ = released
    monkeypatch.chdir(project)
    link = tmp_path / "link"
    link.symlink_to(project)
    path = {"PROJECT": str(project), "LINK": str(link)}.get(name, name)

    with pytest.raises(UserError, match="leads to the results of this project"):
        verify.open_report(path)


def test_a_system_on_another_corpus_can_start_from_the_weights_of_a_release(release_copy):
    """The release was trained on the corpus own; system new trains on the corpus another.

    The vocabularies are beside the weights, so the corpus of the release is not needed.
    """
    files = init_files(InitFrom(folder=str(release_copy)), Run("new", "another", 1))

    assert files.weights == release_copy / "models/tiny/own/1/averaged/model.safetensors"
    folder_of_weights = files.weights.parent
    vocabularies = {folder_of_weights / "vocabulary.de", folder_of_weights / "vocabulary.en"}
    assert set(folder_of_weights.glob("vocabulary.*")) == vocabularies
    assert {files.vocabulary("source"), files.vocabulary("target")} <= vocabularies


def test_a_release_into_a_folder_with_files_is_refused(released, monkeypatch):
    """The folder contains an earlier release, which must not be overwritten."""
    project, release_folder = released
    monkeypatch.chdir(project)

    with pytest.raises(UserError, match=r"exists already and is not an empty folder\. Name"):
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
    """In params.yaml, no system and no corpus has the name `none`. The folder is not created."""
    project, _ = released
    monkeypatch.chdir(project)

    with pytest.raises(UserError, match=f"^params.yaml: no {section}.* entry 'none'"):
        release(load_settings(), tmp_path / "new", system=system, corpus=corpus)

    assert not (tmp_path / "new").exists()


def test_a_release_is_refused_while_a_stage_is_out_of_date(released, tmp_path, monkeypatch):
    """The results would belong to other settings than the released params.yaml.

    `changed_stages` asks DVC for the stages that are out of date; here one is simulated.
    """
    project, _ = released
    monkeypatch.chdir(project)
    monkeypatch.setattr("bleuprint.pipeline.release.changed_stages", lambda: {"train@a-b-1": []})

    with pytest.raises(UserError, match=r"^train@a-b-1 is out of date\. .*: make reproduce$"):
        release(load_settings(), tmp_path / "new")

    assert not (tmp_path / "new").exists()
