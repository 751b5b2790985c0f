"""Results of two systems with two seeds, and copies of them for tests that change files.

The experiment has the systems tiny (the baseline) and small, on the corpus news-en-de with the test
sets first and second, and on talks-en-fr with the test set only; the seeds are 3 and 1.
"""

import pickle
import shutil

import pytest
from markupsafe import Markup

import result_trees as trees
from bleuprint.report import report
from bleuprint.report.frame import RESULTS
from bleuprint.report.page import curves
from bleuprint.report.records import collect
from result_trees import Experiment
from shared_folders import left_unchanged


@pytest.fixture(autouse=True, scope="module")
def fast():
    """Draw fewer samples in significance tests, and each chart once: equal data, equal charts."""
    with pytest.MonkeyPatch.context() as patch:
        trees.few_samples(patch)
        patch.setattr(curves, "_quantity_chart", _cached_chart)
        yield


@pytest.fixture
def all_samples(monkeypatch):
    """Draw as many samples in significance tests as commands do."""
    trees.all_samples(monkeypatch)


# The charts that tests have drawn, by their pickled arguments.
_CHARTS: dict[bytes, Markup] = {}
_quantity_chart = curves._quantity_chart


def _cached_chart(*arguments):
    """Return the chart of these arguments, which is drawn the first time."""
    key = pickle.dumps(arguments)
    if key not in _CHARTS:
        _CHARTS[key] = _quantity_chart(*arguments)
    return _CHARTS[key]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Return the experiment before the report stage. Tests must not change its files."""
    root = tmp_path_factory.mktemp("experiment")
    settings = trees.settings_in(root, seeds=(3, 1))
    trees.write_all(root, settings)
    return Experiment(root, settings)


@pytest.fixture(scope="module")
def reported_experiment(experiment, tmp_path_factory):
    """Return the experiment after the report stage. Tests must not change its files."""
    root = shutil.copytree(experiment.root, tmp_path_factory.mktemp("reported") / "copy")
    report.write_reports(experiment.settings, root)
    with left_unchanged(root):
        yield Experiment(root, experiment.settings)


@pytest.fixture
def experiment_copy(experiment, tmp_path):
    """Return a copy of the experiment before the report stage, which a test may change."""
    root = shutil.copytree(experiment.root, tmp_path / "copy")
    return Experiment(root, experiment.settings)


@pytest.fixture(scope="module")
def collected(experiment):
    """Return the records collected from the experiment. Tests must not change them."""
    return collect(experiment.settings, experiment.root)


@pytest.fixture
def saved_experiment(experiment_copy, collected):
    """Return a copy of the experiment with results.json, which a test may change."""
    collected.save(experiment_copy.root / RESULTS)
    return experiment_copy
