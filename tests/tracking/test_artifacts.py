"""The folder in which MLflow keeps artifacts, such as models that were logged."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bleuprint.config.experiment import load
from bleuprint.runtime.errors import UserError
from bleuprint.tracking.sync import sync
from mlruns import named
from mlservers import SYNC


def attach(root: Path, text: str) -> None:
    """Attach a file to a run, as a model is attached."""
    client, runs = named(root)
    client.log_text(runs["tiny news-en-de 1"].info.run_id, text, "note.txt")


def test_artifacts_lie_beside_a_database_of_the_users(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.move(root / "mlflow.db", folder / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")
    list(sync(load()))
    attach(folder, "a note")
    assert len(list((folder / "mlartifacts" / "trial_run").rglob("note.txt"))) == 1
    assert not (root / "mlruns").exists()


def test_the_database_of_a_project_that_was_copied_is_refused(
    root: Path,
    mldatabase: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MLflow stores absolute addresses: the copy would write into the original's folder."""
    list(sync(load()))
    attach(root, "original")
    copy = tmp_path_factory.mktemp("elsewhere") / "a copy"
    shutil.copytree(root, copy)
    monkeypatch.chdir(copy)
    said = f"MLflow at sqlite:///{copy}/mlflow.db: of a project in another folder: delete the"
    with pytest.raises(UserError, match=re.escape(said)):
        list(sync(load()))
    shutil.copy(mldatabase, copy / "mlflow.db")  # an empty one; this process has the old one open
    said = subprocess.check_output([sys.executable, "-c", SYNC], text=True)
    assert "run tiny news-en-de 1: made" in said.splitlines()
