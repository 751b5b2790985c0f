"""Which fingerprints of code count as the same one, and what is refused in stages/accepted.yaml."""

import json

import pytest

from bleuprint.runtime.accepted_code import (
    AcceptedChange,
    changes_in_use,
    counted_code,
    equal_codes,
    read_accepted_changes,
    read_reported_changes,
)
from bleuprint.runtime.errors import UserError

# Fingerprints of code.
A, B, C, D = (letter * 64 for letter in "abcd")
ENTRY = f"""\
- script: train
  old: "{A}"
  new: "{B}"
  because: only renamed
  date: "2026-11-30"
"""


def change(old, new, script="train"):
    """Return an accepted change of code."""
    return AcceptedChange(script, old, new, because="only renamed", date="2026-11-30")


def write_file(root, text):
    """Write a text to stages/accepted.yaml."""
    (root / "stages").mkdir(exist_ok=True)
    (root / "stages" / "accepted.yaml").write_text(text)


def test_code_counts_as_itself_if_no_change_is_accepted():
    assert counted_code([], "train", A) == A


def test_new_code_counts_as_the_old_code_of_the_accepted_change():
    assert counted_code([change(old=A, new=B)], "train", B) == A
    assert counted_code([change(old=A, new=B)], "train", A) == A


def test_an_accepted_change_of_one_script_does_not_count_for_another_one():
    assert counted_code([change(old=A, new=B, script="score")], "train", B) == B


def test_code_after_the_accepted_change_counts_as_itself():
    """A and B are equal; C was written after B."""
    assert counted_code([change(old=A, new=B)], "train", C) == C


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([change(A, B), change(A, C)], id="both from the first code"),
        pytest.param([change(A, B), change(B, C)], id="each from the code before"),
        pytest.param([change(A, C), change(B, C)], id="two old codes, one new code"),
        pytest.param([change(A, B), change(B, C), change(C, A)], id="in a circle"),
    ],
)
@pytest.mark.parametrize("code", [A, B, C])
def test_all_codes_that_changes_connect_count_as_the_first_old_code(changes, code):
    """`git merge` may bring accepted changes together in any of these forms."""
    assert counted_code(changes, "train", code) == A
    assert set(equal_codes(changes, "train", code)) == {A, B, C}


def test_changes_that_no_code_connects_are_separate():
    changes = [change(old=A, new=B), change(old=C, new=D)]

    assert counted_code(changes, "train", B) == A
    assert counted_code(changes, "train", D) == C


def test_only_changes_of_the_present_code_are_in_use(tmp_path):
    """The present code is B; the other entries are of code D and of a removed script."""
    other_code = ENTRY.replace(A, C).replace(B, D)
    other_script = ENTRY.replace("train", "removed")
    write_file(tmp_path, ENTRY + other_code + other_script)

    assert changes_in_use({"train": B, "score": D}, tmp_path) == [change(old=A, new=B)]


@pytest.mark.parametrize("text", [None, "", "# a comment\n", "[]\n"])
def test_nothing_is_accepted_without_entries(tmp_path, text):
    """None: the file is missing."""
    if text is not None:
        write_file(tmp_path, text)

    assert read_accepted_changes(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(f'"{A}"', "abc", r":2: 0\.old: .*, not 'abc'", id="short hash"),
        pytest.param(B, A, r":1: 0: new and old are the same code", id="equal codes"),
        pytest.param("only renamed", '" "', r":4: 0\.because: ' ' ", id="reason without words"),
        pytest.param(
            '"2026-11-30"',
            "2026-11-30",
            r":5: 0\.date: .* is not text",
            id="date not quoted",
        ),
        pytest.param(
            "2026-11-30", "yesterday", r":1: 0: date 'yesterday' is not a date", id="no date"
        ),
        pytest.param("because", "why", r":4: 0\.why: unknown key", id="unknown key"),
        pytest.param("  date", "  #", r":1: 0: the key 'date' is missing", id="missing key"),
        pytest.param("- script", "  script", "is not a list of accepted changes", id="no list"),
        pytest.param("- script", "- train\n- script", r":1: 0: 'train' is", id="no mapping"),
        pytest.param("because:", "because", r":\d: not valid YAML", id="no YAML"),
        pytest.param("- script", "<<<<<<< HEAD\n- script", r"not valid YAML", id="merge conflict"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path, old, new, message):
    """Each case replaces a text in a file with one entry."""
    assert old in ENTRY
    write_file(tmp_path, ENTRY.replace(old, new, 1))

    with pytest.raises(UserError, match=message) as error:
        read_accepted_changes(tmp_path)

    assert str(tmp_path / "stages" / "accepted.yaml") in str(error.value)


def test_reported_changes_are_read_from_the_resolved_settings(tmp_path):
    entry = {
        "script": "train",
        "old": A,
        "new": B,
        "because": "only renamed",
        "date": "2026-11-30",
    }
    resolved = tmp_path / "resolved.json"
    resolved.write_text(json.dumps({"accepted": [entry]}))

    assert read_reported_changes(resolved) == [change(old=A, new=B)]


@pytest.mark.parametrize("content", [None, "{}"])
def test_resolved_settings_of_older_versions_report_no_accepted_changes(tmp_path, content):
    """None: the file is missing."""
    resolved = tmp_path / "resolved.json"
    if content is not None:
        resolved.write_text(content)

    assert read_reported_changes(resolved) == []


def test_damaged_reported_changes_are_an_error(tmp_path):
    resolved = tmp_path / "resolved.json"
    resolved.write_text('{"accepted": [{"script": "train"}]}')

    with pytest.raises(UserError, match=r"resolved\.json.* field accepted\.0\.old is missing"):
        read_reported_changes(resolved)
