"""`bleuprint verify OTHER` compares the results of two projects: results.json and dvc.lock."""

import hashlib

import pytest
from ruamel.yaml import YAML

from bleuprint.config.paths import Run
from bleuprint.pipeline.first_difference import Difference, first_difference
from bleuprint.pipeline.verify import open_report
from bleuprint.report.frame import RESULTS
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json, write_json
from reports_to_verify import TRAINED_WITH_OTHER_CODE, verify_reports, write_lock, write_report
from result_rows import record, records_from_rows


@pytest.mark.parametrize(
    "path_in_project",
    [
        pytest.param("", id="project"),
        pytest.param("reports/results.json", id="file of results"),
        pytest.param("reports", id="folder of the report"),
    ],
)
def test_results_are_found_equal_whether_the_user_names_a_file_or_a_folder(
    tmp_path, path_in_project
):
    """Both projects have equal results of two systems, tiny and small."""
    first = write_report(tmp_path / "a")
    second = write_report(tmp_path / "b") / path_in_project

    verification = verify_reports(first, second)

    assert verification.is_same
    assert verification.lines == [f"{first} and {second}: 2 results with the same bytes"]


def test_a_different_result_is_shown_with_both_scores_the_first_different_stage_and_the_cause(
    tmp_path,
):
    """Each project has results of two systems, tiny and small, on the test set `first`.

    In the second project, small was trained with other code; the results of tiny are equal.
    """
    first = write_report(tmp_path / "a", bleu_of_small=33.0)
    second = write_report(tmp_path / "b", bleu_of_small=33.5, **TRAINED_WITH_OTHER_CODE)

    verification = verify_reports(first, second)

    assert not verification.is_same
    assert verification.lines == [
        f"{first} and {second}: 1 result with the same bytes, 1 different",
        "different: small on news-en-de, seed 1, first: 33.00 and 33.50 BLEU",
        "  from train on: code of the training",
    ]


@pytest.mark.parametrize(
    ("changes_of_lock", "stage", "cause"),
    [
        pytest.param(
            {"smoothing": 0.2},
            "train",
            "settings runs.small.news-en-de.train.label_smoothing",
            id="setting",
        ),
        pytest.param({"train_code": "n"}, "train", "code of stages/train.py", id="code"),
        pytest.param(
            {"vocabulary": "c", "text": "e"}, "learn_vocabulary", "data inputs/a.en", id="text"
        ),
        pytest.param(
            {"vocabulary": "c"},
            "learn_vocabulary",
            "all recorded inputs are the same. The cause may be another",
            id="unknown",
        ),
    ],
)
def test_the_dvc_locks_of_both_projects_tell_which_stage_differed_first_and_why(
    tmp_path, changes_of_lock, stage, cause
):
    """dvc.lock records the settings, the code and the hashes of the files of each stage.

    The system small has other translations in the second project. Its dvc.lock differs as
    `changes_of_lock` says.
    """
    first = write_report(tmp_path / "a", bleu_of_small=33.0)
    second = write_report(tmp_path / "b", bleu_of_small=36.0, **TRAINED_WITH_OTHER_CODE)
    write_lock(first)
    write_lock(second, **changes_of_lock)

    verification = verify_reports(first, second)

    assert not verification.is_same
    different, stage_and_cause = verification.lines[1:3]
    assert different == "different: small on news-en-de, seed 1, first: 33.00 and 36.00 BLEU"
    assert stage_and_cause.startswith(f"  from {stage} on: ")
    assert cause in stage_and_cause


@pytest.mark.parametrize("arithmetic", ["native", "portable"])
def test_dvc_lock_tells_whether_a_training_used_portable_arithmetic(tmp_path, arithmetic):
    """Portable arithmetic gives the same bits on every machine, so results must be equal."""
    root = write_report(tmp_path / "a")
    write_lock(root, arithmetic=arithmetic)

    is_portable = open_report(str(root)).is_portable(Run("small", "news-en-de", 1))

    assert is_portable == (arithmetic == "portable")


def test_a_training_is_not_portable_without_a_dvc_lock(tmp_path):
    root = write_report(tmp_path / "a")

    assert not open_report(str(root)).is_portable(Run("small", "news-en-de", 1))


def test_a_results_file_of_someone_else_is_not_explained_by_the_dvc_lock_of_this_project(tmp_path):
    """A colleague's results.json is stored in this project as colleague.json.

    This project's dvc.lock describes other trainings. So the cause has to follow from the hashes in
    both files of results, as if the colleague's file were elsewhere.
    """
    root = write_report(tmp_path / "a")
    write_lock(root)
    colleague_root = write_report(tmp_path / "b", bleu_of_small=36.0, **TRAINED_WITH_OTHER_CODE)
    cause_if_elsewhere = verify_reports(root, colleague_root).lines[2]
    colleague_file = (colleague_root / RESULTS).rename(root / "colleague.json")

    cause = verify_reports(root, colleague_file).lines[2]

    assert cause == cause_if_elsewhere
    assert cause == "  from train on: code of the training"


@pytest.mark.parametrize("name", ["SHA256SUMS", "costs.csv"])
def test_unrelated_files_in_the_folder_of_a_downloaded_result_are_ignored(tmp_path, name):
    """A release has files of these names beside its results.

    Here the user has downloaded a single result into a folder with other downloads.
    """
    root = write_report(tmp_path / "a")
    downloads = tmp_path
    downloaded = (write_report(tmp_path / "b") / RESULTS).rename(downloads / "colleague.json")
    (downloads / name).write_text(f"{'0' * 64}  picture.iso\n")

    verification = verify_reports(root, downloaded)

    assert verification.is_same


@pytest.fixture
def with_recorded_report(tmp_path):
    """Return a project with results, whose dvc.lock records the MD5 of results.json."""
    root = write_report(tmp_path)
    md5 = hashlib.md5((root / RESULTS).read_bytes()).hexdigest()
    outs = f"    - path: {RESULTS}\n      hash: md5\n      md5: {md5}\n"
    (root / "dvc.lock").write_text(f"stages:\n  report:\n    outs:\n{outs}")
    return root


def test_results_that_dvc_lock_records_cause_no_warning(with_recorded_report, capsys):
    open_report(str(with_recorded_report))

    assert capsys.readouterr().err == ""


def test_a_warning_says_that_results_were_changed_after_dvc_recorded_them(
    with_recorded_report, capsys
):
    """dvc.lock records the MD5 of results.json. Then someone edits a score to 45 BLEU."""
    root = with_recorded_report
    write_report(root, bleu_of_small=45.0)

    open_report(str(root))

    warning = f"{root}: {RESULTS} differs from the file that dvc.lock records. "
    assert warning in capsys.readouterr().err


@pytest.fixture
def locked_stages(tmp_path):
    """Return the stages in the dvc.lock of write_lock, by name."""
    write_lock(tmp_path)
    return YAML(typ="safe").load(tmp_path / "dvc.lock")["stages"]


def test_equal_stages_have_no_first_difference(locked_stages):
    assert first_difference(locked_stages, locked_stages, "score@small-news-en-de-1") is None


def test_a_stage_that_the_other_dvc_lock_lacks_is_the_first_difference(locked_stages):
    """Among the stages before score, only translate differs: the other dvc.lock lacks it."""
    other_stages = dict(locked_stages)
    del other_stages["translate@small-news-en-de-1"]

    difference = first_difference(
        locked_stages, other_stages, last_stage="score@small-news-en-de-1"
    )

    assert difference == Difference("translate", ["the stage did not run there"])


@pytest.mark.parametrize(
    ("damaged_lock", "message"),
    [
        pytest.param(
            "stages: [1]\n",
            r"/b: dvc\.lock is damaged: field stages: .*\. To restore it: git checkout dvc\.lock",
            id="list of stages",
        ),
        pytest.param(
            "stages:\n  a: 1\n",
            r"/b: dvc\.lock is damaged: field stages\.a: .*\. To restore it",
            id="number for a stage",
        ),
        pytest.param(
            "stages:\n  a: {\n", r"/b: dvc\.lock:\d+: not valid YAML: ", id="invalid YAML"
        ),
    ],
)
def test_a_damaged_dvc_lock_is_an_error_if_results_differ(tmp_path, damaged_lock, message):
    """`verify` reads dvc.lock to say why results differ, here the BLEU of one system."""
    first = write_report(tmp_path / "a", bleu_of_small=33.0)
    second = write_report(tmp_path / "b", bleu_of_small=36.0, **TRAINED_WITH_OTHER_CODE)
    write_lock(first)
    (second / "dvc.lock").write_text(damaged_lock)

    with pytest.raises(UserError, match=message):
        verify_reports(first, second)


@pytest.mark.parametrize(
    "damaged_lock",
    [
        pytest.param("stages: [1]\n", id="list of stages"),
        pytest.param("stages:\n  a: 1\n", id="number for a stage"),
        pytest.param("stages:\n  a: {\n", id="invalid YAML"),
    ],
)
def test_equal_results_are_found_equal_although_dvc_lock_is_damaged(tmp_path, damaged_lock):
    """`verify` reads dvc.lock only to say why results differ; these do not."""
    first = write_report(tmp_path / "a")
    second = write_report(tmp_path / "b")
    write_lock(first)
    (second / "dvc.lock").write_text(damaged_lock)

    verification = verify_reports(first, second)

    assert verification.is_same


def test_results_are_compared_by_the_metrics_that_both_reports_have(tmp_path):
    """An earlier version did not compute all metrics; a line names the missing ones."""
    first = write_report(tmp_path / "a")
    second = write_report(tmp_path / "b")
    missing_metrics = {"chrf2pp", "loss", "perplexity", "ter"}
    content = read_json(second / RESULTS)
    content["metrics"] = [row for row in content["metrics"] if row["metric"] not in missing_metrics]
    write_json(second / RESULTS, content)

    verification = verify_reports(first, second)

    assert verification.is_same
    line = "not compared, since one side lacks them: chrf2pp, loss, perplexity, ter"
    assert verification.lines[1] == line


def test_a_result_of_version_1_0_is_refused_in_one_line(tmp_path):
    """In version 1.0, the sections runs and metrics had the names cells and measures."""
    path = write_report(tmp_path / "b") / RESULTS
    content = read_json(path)
    write_json(path, {"cells": content["runs"], "measures": content["metrics"]})

    message = f"^{path}: bleuprint 1.0 wrote this result, with the key cells instead of runs. Run "
    with pytest.raises(UserError, match=message):
        open_report(str(path))


def test_results_that_only_one_report_contains_are_counted(tmp_path):
    """The first report has results of tiny and small, the second one only of tiny."""
    first = write_report(tmp_path / "a")
    second = write_report(tmp_path / "b")
    result_of_tiny = record("tiny", "news-en-de", "first", 30.0)
    records_from_rows(result_of_tiny).save(second / RESULTS)

    verification = verify_reports(first, second)

    assert not verification.is_same
    assert verification.lines[1] == "only here: 1 result, only there: 0"


def write_reports_with_causes(folder, **other_changes):
    """Write two reports that differ by settings, test set and data; return their folders.

    Args:
        folder: Where to write them.
        other_changes: What else differs in the second report.
    """
    first = write_report(folder / "a")
    second = write_report(
        folder / "b",
        bleu_of_small=33.5,
        hypotheses_sha256="99" * 32,
        settings_sha256="ab" * 32,
        sources_sha256="bc" * 32,
        binary_sha256="cd" * 32,
        **other_changes,
    )
    return first, second


def test_three_causes_of_a_difference_are_written_out(tmp_path):
    """Two reports differ by settings, test set and data."""
    first, second = write_reports_with_causes(tmp_path)

    cause_line = verify_reports(first, second).lines[2]

    assert cause_line == "  from split on: settings; test set; data"


def test_a_fourth_cause_of_a_difference_is_counted(tmp_path):
    """Two reports differ by settings, test set and data, and also by the libraries for scoring."""
    first, second = write_reports_with_causes(tmp_path, scored_with="torch 2.0.0, sacrebleu 2.7.0")

    cause_line = verify_reports(first, second).lines[2]

    assert cause_line == "  from split on: settings; test set; data; and 1 more"


@pytest.fixture
def reports_with_many_differences(tmp_path):
    """Write two reports on 12 test sets, t0 to t11, and return the project's folders.

    All translations differ. BLEU differs on the first nine test sets. The settings differ if the
    number of the test set is odd, the data if it is not divisible by 3, and BLEU's signature if it
    is not divisible by 5. The second report lacks t0.
    """
    first_rows = []
    second_rows = []
    for number in range(12):
        first_row = record(
            system="tiny",
            corpus="news-en-de",
            test=f"t{number}",
            bleu=30.0,
            models=4,
            hypotheses_sha256=f"first {number}",
            settings_sha256="first",
            binary_sha256="first",
        )
        second_row = record(
            system="tiny",
            corpus="news-en-de",
            test=f"t{number}",
            bleu=30.5 if number < 9 else 30.0,
            models=4 + number,
            hypotheses_sha256=f"second {number}",
            settings_sha256="second" if number % 2 else "first",
            binary_sha256=f"second {number % 3}" if number % 3 else "first",
        )
        first_row["metrics"]["bleu", ""]["signature"] = "tok:a|version:0.0"
        version = 0.5 * (number % 5)
        second_row["metrics"]["bleu", ""]["signature"] = f"tok:a|version:{version}"
        first_rows.append(first_row)
        second_rows.append(second_row)
    first = write_report(tmp_path / "a")
    second = write_report(tmp_path / "b")
    records_from_rows(*first_rows).save(first / RESULTS)
    records_from_rows(*second_rows[1:]).save(second / RESULTS)
    return first, second


def test_results_that_differ_for_the_same_causes_share_two_lines(reports_with_many_differences):
    """The reports contain results on 12 test sets, of which many differ.

    The results on t1 and t11 both differ by settings, data and the signature of BLEU. The first
    line shows one of them and counts the other; the second line shows the causes.
    """
    first, second = reports_with_many_differences

    verification = verify_reports(first, second)

    assert not verification.is_same
    example, causes = verification.lines[2:4]
    assert example.endswith("30.00 and 30.50 BLEU, and 1 other")
    assert causes == "  from binarize on: settings; data; signature version:0.0 and version:0.5"


def test_only_three_groups_of_differences_are_described(reports_with_many_differences):
    """Results that differ for the same causes are a group. These reports have more than three."""
    first, second = reports_with_many_differences

    lines = verify_reports(first, second).lines

    lines_of_counts = 2
    lines_per_group = 2
    assert len(lines) == lines_of_counts + 3 * lines_per_group
    # The last line counts the other groups.
    assert lines[7].endswith(" more groups of results, by where and why they differ)")
