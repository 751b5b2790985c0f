"""Results of two systems with two seeds, and a copy for tests that change them."""

import shutil
from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.config.experiment import Settings


@pytest.fixture(scope="module", name="made")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings]:
    root = tmp_path_factory.mktemp("made")
    settings = trees.settings_in(root, seeds=(3, 1))
    trees.write_all(root, settings)
    return root, settings


@pytest.fixture
def copy(made: tuple[Path, Settings], tmp_path: Path) -> tuple[Path, Settings]:
    shutil.copytree(made[0], tmp_path / "copy")
    return tmp_path / "copy", made[1]
