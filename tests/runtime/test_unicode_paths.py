"""Files are found although Unicode writes an accent in two ways.

A composed "ü" is one character. A decomposed "ü" is a "u" followed by an accent; macOS names files
so.
"""

import unicodedata

import pytest

from bleuprint.runtime.unicode_paths import path_on_disk

COMPOSED = unicodedata.normalize("NFC", "übung.de")
DECOMPOSED = unicodedata.normalize("NFD", "übung.de")


@pytest.mark.parametrize("name_on_disk", [COMPOSED, DECOMPOSED], ids=["NFC", "NFD"])
@pytest.mark.parametrize("typed_name", [COMPOSED, DECOMPOSED], ids=["typed NFC", "typed NFD"])
def test_a_file_is_found_by_both_unicode_forms_of_its_name(tmp_path, name_on_disk, typed_name):
    (tmp_path / name_on_disk).touch()
    (tmp_path / "other.de").touch()

    assert path_on_disk(tmp_path / typed_name) == tmp_path / name_on_disk


def test_folders_with_the_other_unicode_form_are_found(tmp_path):
    file = tmp_path / DECOMPOSED / "a" / COMPOSED
    file.parent.mkdir(parents=True)
    file.touch()

    typed_path = tmp_path / COMPOSED / "a" / DECOMPOSED

    assert path_on_disk(typed_path) == file


@pytest.mark.parametrize("name", [COMPOSED, f"missing/{COMPOSED}", "missing.de"])
def test_the_path_of_a_missing_file_is_returned_as_typed(tmp_path, name):
    """A message about the missing file must show what the user typed."""
    (tmp_path / "übung.en").touch()  # Has another language suffix.

    assert path_on_disk(tmp_path / name) == tmp_path / name


def test_a_path_that_fits_two_files_is_returned_as_typed(tmp_path):
    """A name with two accents has four forms: two files have mixed forms, and neither is typed."""
    first_name = "u\u0308" + "\u00e9"  # Decomposed ü, composed é.
    second_name = "\u00fc" + "e\u0301"  # Composed ü, decomposed é.
    typed_name = "\u00fc" + "\u00e9"  # Both composed.
    (tmp_path / first_name).touch()
    (tmp_path / second_name).touch()

    assert path_on_disk(tmp_path / typed_name) == tmp_path / typed_name
