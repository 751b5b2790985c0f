"""Names with accents, which Unicode writes in two ways, and what stands in place of a file."""

import os
import unicodedata

import pytest

from bleuprint.runtime.regular_files import describe_non_file
from bleuprint.runtime.unicode_paths import path_on_disk

COMPOSED = unicodedata.normalize("NFC", "übung.de")
DECOMPOSED = unicodedata.normalize("NFD", "übung.de")


@pytest.mark.parametrize("written", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("asked", [COMPOSED, DECOMPOSED])
def test_a_file_is_found_by_both_forms_of_its_name(tmp_path, written, asked):
    (tmp_path / written).touch()
    (tmp_path / "other.de").touch()
    assert path_on_disk(tmp_path / asked) == tmp_path / written


def test_folders_are_found_as_well(tmp_path):
    (tmp_path / DECOMPOSED / "a").mkdir(parents=True)
    (tmp_path / DECOMPOSED / "a" / COMPOSED).touch()
    found = path_on_disk(tmp_path / COMPOSED / "a" / DECOMPOSED)
    assert found == tmp_path / DECOMPOSED / "a" / COMPOSED


def test_a_path_that_no_name_or_several_names_equal_stays(tmp_path):
    for name in (COMPOSED, "übung.en", "missing.de"):
        assert path_on_disk(tmp_path / name) == tmp_path / name
    assert path_on_disk(tmp_path / "missing" / COMPOSED) == tmp_path / "missing" / COMPOSED
    # a name with two accents has four forms
    one, other = "u\u0308\u00e9", "\u00fce\u0301"
    (tmp_path / one).touch()
    (tmp_path / other).touch()
    asked = tmp_path / unicodedata.normalize("NFC", one)
    assert path_on_disk(asked) == asked


def test_what_is_no_file_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert describe_non_file(tmp_path) == "a folder"
    assert describe_non_file(tmp_path / "missing") == "no such file"
    expected = "a pipe or device: copy what it gives into a file"
    assert describe_non_file(tmp_path / "pipe") == expected
