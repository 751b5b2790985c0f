"""A project with prepared test sets, for the tests of external systems."""

import shutil

import pytest

import result_trees as trees
from external_translations import TEST_SETS


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Write the test sets of a project, of 40 lines each."""
    root = tmp_path_factory.mktemp("texts")
    trees.write_texts(root, trees.settings_in(root, corpora=TEST_SETS), 40)
    return root


@pytest.fixture
def root(texts, tmp_path):
    """Copy the project, so that a test may change it."""
    return shutil.copytree(texts, tmp_path / "copy")
