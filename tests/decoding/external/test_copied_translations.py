"""Files of external systems are copied and scored as they are, and others are refused."""

import hashlib
import re
import shutil

import pytest

import result_trees as trees
from bleuprint.decoding.copied_translations import CopiedTranslations, copy_translations
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.scoring.external_files import check_external_files
from corpora import TORTURE
from external_translations import (
    FILE,
    FORTY_LINES,
    REFERENCES,
    RESULTS,
    RUN,
    SCORES,
    SETTING,
    TEST_SETS,
    TRAINED_SYSTEM,
    as_text,
    copy_and_score,
    external_system,
    scores_of,
    translations_in,
    write_file,
    write_project,
)
from measuring import value_of
from scoring import sacrebleu


@pytest.fixture(scope="module")
def scored(texts, tmp_path_factory):
    """Copy and score the translations of the external system in a copy of the project."""
    root = shutil.copytree(texts, tmp_path_factory.mktemp("scored") / "copy")
    copy_and_score(write_project(root, as_text(translations_in(root))), root)
    return root


@pytest.fixture(scope="module")
def sacrebleu_scores(scored):
    """Score the file of translations by sacreBLEU's command line."""
    bleu, chrf, ter = sacrebleu(
        scored / REFERENCES, "-i", scored / FILE, "-l", "en-de", "-m", "bleu", "chrf", "ter"
    )
    return {"bleu": bleu["score"], "chrf2": chrf["score"], "ter": ter["score"]}


@pytest.mark.parametrize("metric", ["bleu", "chrf2", "ter"])
def test_an_external_system_has_the_scores_of_sacrebleus_command_line(
    scored, sacrebleu_scores, metric
):
    """An external system is a file of translations that were made elsewhere.

    `scored` is the folder in which 40 of its translations have been scored; the expected scores
    come from running sacreBLEU's command on the same file.
    """
    value = value_of(scores_of(scored), metric)

    assert value == pytest.approx(sacrebleu_scores[metric], abs=1e-5)


def test_an_external_system_is_scored_on_the_test_sets_of_its_files(scored):
    assert list(read_json(scored / SCORES)) == ["first"]


def test_an_external_system_has_all_scores_that_need_no_model(scored):
    """Its loss is unknown, since the loss needs the probabilities of the model.

    Its translations lack the first words of the references, so that BLEU is below 95.
    """
    scores = scores_of(scored)

    assert value_of(scores, "bleu") < 95
    assert value_of(scores, "any error") is not None
    assert value_of(scores, "loss") is None


def lines_with_odd_characters(root):
    """Put characters into 40 translations that some programs take for the end of a line."""
    odd_characters = [*TORTURE, "".join(TORTURE)] * 3
    lines = []
    for character, line in zip(odd_characters, translations_in(root), strict=False):
        lines.append(f"x{character}{line}{character}x")
    assert len(lines) == 40
    return lines


def test_only_a_newline_ends_a_line_of_a_copied_file(root):
    """The 40 translations contain other characters that some programs take for line ends.

    The file lacks a newline at its end, which the copy adds.
    """
    content_without_last_newline = "\n".join(lines_with_odd_characters(root)).encode()
    settings = write_project(root, content_without_last_newline)

    copy_and_score(settings, root)

    copy = root / RESULTS / "hypotheses" / "test.first.de"
    assert copy.read_bytes() == content_without_last_newline + b"\n"
    assert scores_of(root)["lines"] == 40


def test_a_file_with_odd_characters_has_no_note(root):
    settings = write_project(root, "\n".join(lines_with_odd_characters(root)).encode())

    assert list(check_external_files(settings, root)) == []


def test_a_byte_order_mark_and_windows_line_ends_do_not_change_the_scores(root):
    """Windows programs may begin a file with three bytes, ef bb bf, and end lines with CR LF."""
    lines = translations_in(root)
    copy_and_score(write_project(root, as_text(lines)), root)
    expected_scores = (root / SCORES).read_bytes()
    windows_content = as_text(lines).replace(b"\n", b"\r\n")

    copy_and_score(write_project(root, b"\xef\xbb\xbf" + windows_content), root)

    assert (root / SCORES).read_bytes() == expected_scores


def error_of_copying(settings, root):
    """Return the message with which the stage translate refuses a file."""
    with pytest.raises(UserError) as raised:
        copy_and_score(settings, root)
    return str(raised.value)


def project_with_too_few_lines(root):
    """Name a file with 39 lines for the test set of 40 lines; return settings and message."""
    settings = write_project(root, b"x\n" * 39)
    message = f"{root / FILE} has 39 lines, but the test set first of news-en-de has 40"
    return settings, message


def project_with_another_hash(root):
    """Change the file after params.yaml has named its hash; return settings and message."""
    settings = write_project(root, b"z\n")
    sha256_in_settings = hashlib.sha256(b"z\n").hexdigest()
    sha256 = write_file(root, b"y\n" * 40)
    message = f"{root / FILE} has SHA-256 {sha256}, but the setting sha256 is {sha256_in_settings}"
    return settings, message


def project_with_another_encoding(root):
    """Name a file whose 21st line is not UTF-8; return settings and message."""
    settings = write_project(root, b"x\n" * 20 + b"\xff\n" + b"x\n" * 19)
    message = f"{root / FILE}:21: byte 1 of the line is 0xff: not UTF-8"
    return settings, message


for_each_wrong_file = pytest.mark.parametrize(
    "project_with_wrong_file",
    [project_with_too_few_lines, project_with_another_hash, project_with_another_encoding],
)


@for_each_wrong_file
def test_a_wrong_file_is_refused_in_one_line_that_names_its_setting(root, project_with_wrong_file):
    """A file is wrong if it has too few lines, another hash, or a line that is not UTF-8.

    The message names the line of params.yaml and the setting systems.online-a.translations.first.
    """
    settings, message = project_with_wrong_file(root)

    error = error_of_copying(settings, root)

    assert f"{SETTING}{message}" in error
    assert "\n" not in error
    assert re.search(r"params\.yaml:\d+: systems", error)


@for_each_wrong_file
def test_the_scores_of_a_good_file_stay_if_a_wrong_file_replaces_it(root, project_with_wrong_file):
    """A file is wrong if it has too few lines, another hash, or a line that is not UTF-8."""
    copy_and_score(write_project(root, FORTY_LINES), root)
    old_scores = (root / SCORES).read_bytes()
    settings, _ = project_with_wrong_file(root)

    error_of_copying(settings, root)

    assert (root / SCORES).read_bytes() == old_scores


@pytest.mark.parametrize(
    "project_with_wrong_file", [project_with_another_hash, project_with_another_encoding]
)
def test_check_refuses_a_wrong_file_with_the_message_of_the_translate_stage(
    root, project_with_wrong_file
):
    """`bleuprint check` finds before a run what the stage would refuse."""
    settings, _ = project_with_wrong_file(root)
    error_of_stage = error_of_copying(settings, root)

    with pytest.raises(UserError) as raised:
        list(check_external_files(settings, root))

    assert str(raised.value) == error_of_stage


def test_check_notes_too_few_lines_without_an_error(root):
    """The test set has 40 lines, the file 39. This is no error yet for `bleuprint check`.

    The test set may be prepared again, with other lines, before the file is copied.
    """
    settings, _ = project_with_too_few_lines(root)

    (note,) = check_external_files(settings, root)

    assert note.endswith(f"/a.de: has 39 lines, but {root / REFERENCES} has 40")


def test_the_stage_refuses_a_missing_file(root):
    """The stage `translate` copies the file of an external system, a.de, which is deleted here."""
    settings = write_project(root, FORTY_LINES)
    (root / FILE).unlink()

    with pytest.raises(UserError, match=rf"{SETTING}.*a\.de: no such file"):
        copy_and_score(settings, root)


def test_check_notes_a_missing_file(root):
    """The user may add the file a.de before the stage needs it, so `check` prints a note."""
    settings = write_project(root, FORTY_LINES)
    (root / FILE).unlink()

    (note,) = check_external_files(settings, root)

    assert note.endswith(f"{SETTING}{root / FILE}: no such file")


def test_check_refuses_a_folder_in_place_of_a_file_of_translations(root):
    """The path of the translations, a.de, is a folder."""
    settings = write_project(root, FORTY_LINES)
    (root / FILE).unlink()
    (root / FILE).mkdir()

    with pytest.raises(UserError, match=rf"{SETTING}.*a\.de: a folder"):
        list(check_external_files(settings, root))


def notes_on_systems(root, systems, corpora):
    """Return what `check` says of systems, without what it says of the content of their files.

    Args:
        root: The folder of a new project, with a file of 40 lines.
        systems: The systems by name, as in params.yaml.
        corpora: The test sets of each corpus.
    """
    write_file(root, FORTY_LINES)
    settings = trees.settings_in(root, systems=(), corpora=corpora, external=systems)
    return [note for note in check_external_files(settings, root) if "a.de: " not in note]


SHA256 = hashlib.sha256(FORTY_LINES).hexdigest()


def test_one_file_for_test_sets_in_two_languages_gets_a_note(tmp_path):
    """The file of online-a cannot be both German and French, the targets of the two corpora."""
    systems = {"tiny": TRAINED_SYSTEM, "online-a": external_system(first=SHA256)}
    german_and_french = {"news-en-de": ("first",), "news-en-fr": ("first",)}

    (note,) = notes_on_systems(tmp_path, systems, german_and_french)

    assert re.search(r"params\.yaml:\d+: systems\.online-a\.translations\.first: ", note)
    assert note.endswith(
        "online-a has the same file for first of news-en-de and first of news-en-fr (de and fr). "
        "Name the file of each test set (in corpora, for each corpus)"
    )


def test_one_file_for_two_corpora_in_one_language_gets_no_note(tmp_path):
    """The corpora may prepare the same test set in two ways."""
    systems = {"tiny": TRAINED_SYSTEM, "online-a": external_system(first=SHA256)}
    both_german = {"news-en-de": ("first",), "more-en-de": ("first",)}

    assert notes_on_systems(tmp_path, systems, both_german) == []


def test_one_file_for_two_test_sets_of_a_corpus_gets_a_note(tmp_path):
    """The test sets `first` and `second` contain different sentences."""
    systems = {
        "tiny": TRAINED_SYSTEM,
        "online-a": external_system(first=SHA256, second=SHA256),
    }

    (note,) = notes_on_systems(tmp_path, systems, TEST_SETS)

    assert "translations.second: online-a has the same file for first of news-en-de and" in note


def test_an_external_system_listed_before_the_baseline_gets_a_note(tmp_path):
    """The baseline, with which other systems are compared, is the first system trained here."""
    systems = {
        "online-a": external_system(first=SHA256),
        "tiny": TRAINED_SYSTEM,
        "small": TRAINED_SYSTEM,
    }

    (note,) = notes_on_systems(tmp_path, systems, TEST_SETS)

    assert re.search(r"params\.yaml:\d+: systems\.online-a: ", note)
    assert note.endswith(
        "online-a is an external system, so tiny, the first system that is trained here, is the "
        "baseline"
    )


@pytest.fixture
def copied(root):
    """Copy the translations of the external system, and return the path of the copy's record."""
    copy_translations(write_project(root, FORTY_LINES), RUN, root)
    return root / RUN.results_folder / "translation.json"


def test_copied_translations_are_accepted_if_params_yaml_names_the_same_file(root, copied):
    settings = write_project(root, FORTY_LINES)

    CopiedTranslations.read(copied).check(copied, settings, RUN)


def test_copied_translations_are_refused_if_params_yaml_names_another_file(root, copied):
    settings = write_project(root, b"y\n" * 40)

    with pytest.raises(UserError, match=r"translate@online-a-news-en-de-1, then: dvc repro"):
        CopiedTranslations.read(copied).check(copied, settings, RUN)
