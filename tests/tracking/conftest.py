"""Projects with results for MLflow, for the tests of this folder."""

import shutil

import pytest

from mlservers import write_project


@pytest.fixture
def root(tmp_path, monkeypatch, mldatabase):
    """Return a project with an empty MLflow database; it is the working folder.

    It has results of the systems tiny and small on the corpus news-en-de, with seeds 1 and 2, and
    their weights.
    """
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    write_project(tmp_path)
    shutil.copy(mldatabase, tmp_path)
    return tmp_path
