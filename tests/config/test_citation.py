"""BibTeX entries, whose braces may be nested."""

import pytest

from bleuprint.config.citation import _check_bibtex, entries

NESTED_ENTRY = "@misc{one, title = {A {Nested {Title}}}, year = 2026}"
ENTRY_WITH_SPACES = "@Book { two2026:a,\n  note = {x}\n}"


def test_bibtex_is_split_into_entries_with_their_keys():
    bibtex = f"{NESTED_ENTRY}\n{ENTRY_WITH_SPACES}"

    assert list(entries(bibtex)) == [("one", NESTED_ENTRY), ("two2026:a", ENTRY_WITH_SPACES)]


@pytest.mark.parametrize(
    "bibtex",
    [
        pytest.param(NESTED_ENTRY, id="nested braces"),
        pytest.param(ENTRY_WITH_SPACES, id="spaces and line breaks"),
        pytest.param(f"{NESTED_ENTRY} {ENTRY_WITH_SPACES}\n", id="two entries"),
        pytest.param("@misc{own,}", id="no fields"),
    ],
)
def test_valid_bibtex_is_not_changed(bibtex):
    assert _check_bibtex(bibtex) == bibtex


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(" \n", id="blank"),
        pytest.param("none", id="a word"),
        pytest.param(f"{NESTED_ENTRY} and more", id="text after an entry"),
        pytest.param("@misc{one", id="open brace"),
        pytest.param("@misc{one}", id="no comma after the key"),
        pytest.param("@misc{one, title = {x}", id="braces not balanced"),
    ],
)
def test_text_that_is_not_bibtex_is_refused(text):
    with pytest.raises(ValueError, match=r"is not a BibTeX entry\. Write"):
        _check_bibtex(text)
