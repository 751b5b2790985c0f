"""Results of two systems with two seeds, and a copy for tests that change them."""

import pickle
import shutil

import pytest
from markupsafe import Markup

import result_trees as trees
from bleuprint.report import report
from bleuprint.report.frame import RESULTS
from bleuprint.report.page import curves
from bleuprint.report.records import collect
from shared_folders import left_unchanged


@pytest.fixture(autouse=True, scope="module")
def fast():
    """Fewer samples of significance tests, each chart drawn once: equal data give equal charts."""
    with pytest.MonkeyPatch.context() as patch:
        trees.few_samples(patch)
        patch.setattr(curves, "_quantity_chart", drawn_once)
        yield


@pytest.fixture
def all_samples(monkeypatch):
    """As many samples of significance tests as commands draw."""
    trees.all_samples(monkeypatch)


_DRAWN: dict[bytes, Markup] = {}
_quantity_chart = curves._quantity_chart


def drawn_once(*chart):
    key = pickle.dumps(chart)
    if key not in _DRAWN:
        _DRAWN[key] = _quantity_chart(*chart)
    return _DRAWN[key]


@pytest.fixture(scope="module", name="made")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    settings = trees.settings_in(root, seeds=(3, 1))
    trees.write_all(root, settings)
    return root, settings


@pytest.fixture(scope="module")
def written(made, tmp_path_factory):
    """After the report stage. Not to be changed."""
    made_root, settings = made
    root = shutil.copytree(made_root, tmp_path_factory.mktemp("written") / "copy")
    report.write_reports(settings, root)
    with left_unchanged(root):
        yield root, settings


@pytest.fixture
def copy(made, tmp_path):
    shutil.copytree(made[0], tmp_path / "copy")
    return tmp_path / "copy", made[1]


@pytest.fixture(scope="module")
def collected(made):
    """The records of `made`. Not to be changed."""
    root, settings = made
    return collect(settings, root)


@pytest.fixture
def saved(copy, collected):
    """A copy with results.json."""
    collected.save(copy[0] / RESULTS)
    return copy
