"""A project with results for MLflow."""

import shutil

import pytest

from mlservers import write_project


@pytest.fixture
def root(tmp_path, monkeypatch, mldatabase):
    """A project with results of two systems and seeds, its weights pulled."""
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    write_project(tmp_path)
    shutil.copy(mldatabase, tmp_path)
    return tmp_path
