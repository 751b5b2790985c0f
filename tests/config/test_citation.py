"""BibTeX entries, whose braces may be nested."""

import pytest

from bleuprint.config.citation import _check_bibtex, entries

ONE = "@misc{one, title = {A {Nested {Title}}}, year = 2026}"
TWO = "@Book { two2026:a,\n  note = {x}\n}"


def test_each_entry_has_its_key():
    assert list(entries(f"{ONE}\n{TWO}")) == [("one", ONE), ("two2026:a", TWO)]


@pytest.mark.parametrize("text", [ONE, TWO, f"{ONE} {TWO}\n", "@misc{own,}"])
def test_entries_are_kept_as_they_are_written(text):
    assert _check_bibtex(text) == text


@pytest.mark.parametrize(
    "text",
    ["", " \n", "none", f"{ONE} and more", "@misc{one", "@misc{one}", "@misc{one, title = {x}"],
)
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="is not a BibTeX entry: write"):
        _check_bibtex(text)
