"""Reports and `bleuprint verify` name the changes of code that were accepted."""

import json

import pytest

from bleuprint.pipeline.verify import compare_reports, open_report
from bleuprint.report import notes
from bleuprint.report.accepted_notes import accepted_notes
from bleuprint.report.frame import load
from bleuprint.report.report import write_reports
from reports_to_verify import TRAINED_WITH_OTHER_CODE, write_report


def write_accepted(root, *changes):
    """Write reports/resolved.json with accepted changes, each a script and a reason."""
    entries = []
    for script, because in changes:
        entries.append(
            {
                "script": script,
                "old": "a" * 64,
                "new": "b" * 64,
                "because": because,
                "date": "2026-11-30",
            }
        )
    resolved = root / "reports" / "resolved.json"
    content = json.loads(resolved.read_text()) if resolved.exists() else {}
    resolved.write_text(json.dumps({**content, "accepted": entries}))


@pytest.fixture
def project(tmp_path):
    """Return a project whose report has two accepted changes for one reason, and another one."""
    root = write_report(tmp_path / "a")
    write_accepted(
        root, ("train", "only renamed."), ("average", "only renamed"), ("score", "a comma\nmoved")
    )
    return root


EXPECTED_NOTES = [
    "Accepted on 2026-11-30: the code of train and average has changed since its results were "
    "computed, and they were not computed again. Reason: only renamed.",
    "Accepted on 2026-11-30: the code of score has changed since its results were computed, and "
    "they were not computed again. Reason: a comma moved.",
]


def test_there_is_one_note_for_each_reason(project):
    assert list(accepted_notes(project)) == EXPECTED_NOTES


def test_there_is_no_note_if_nothing_was_accepted(tmp_path):
    root = write_report(tmp_path / "a")

    assert list(accepted_notes(root)) == []


def test_the_notes_below_the_tables_end_with_the_accepted_changes(project):
    assert notes.all_notes(load(project), project)[-2:] == EXPECTED_NOTES


@pytest.mark.parametrize("file_name", ["table.md", "table.tex", "index.html"])
def test_tables_and_the_html_report_name_the_accepted_change(experiment_copy, file_name):
    write_accepted(experiment_copy.root, ("train", "only renamed"))

    write_reports(experiment_copy.settings, experiment_copy.root)

    text = " ".join((experiment_copy.root / "reports" / file_name).read_text().split())
    assert text.count("Accepted on 2026-11-30: the code of train has changed since its") == 1
    assert text.count("Reason: only renamed.") == 1


def test_verify_names_what_was_accepted_in_either_report(project, tmp_path):
    other = write_report(tmp_path / "b")

    verification = compare_reports(open_report(str(project)), open_report(str(other)))

    assert verification.is_same
    assert verification.lines[1:] == [
        f"{project}: code accepted without running it again: train and average (2026-11-30: only "
        "renamed); score (2026-11-30: a comma moved)"
    ]


def test_verify_names_what_was_accepted_where_results_differ(project, tmp_path):
    """The accepted code may be the cause of the difference."""
    other = write_report(tmp_path / "b", bleu_of_small=33.5, **TRAINED_WITH_OTHER_CODE)
    write_accepted(other, ("translate", "faster"))

    verification = compare_reports(open_report(str(project)), open_report(str(other)))

    assert not verification.is_same
    assert verification.lines[-2].startswith(f"{project}: code accepted")
    assert verification.lines[-1].endswith(": translate (2026-11-30: faster)")
