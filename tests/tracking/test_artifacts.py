"""Artifacts of runs: the page, and the folder it is kept in."""

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


def test_the_page_is_attached_and_replaced_when_it_changes(root: Path) -> None:
    page = root / "reports" / "index.html"
    page.parent.mkdir()
    for text in ("<p>first", "<p>second"):
        page.write_text(text)
        assert "run report: the page attached" in list(sync(load()))
        client, runs = named(root)
        identity = runs["report"].info.run_id
        assert Path(client.download_artifacts(identity, "index.html")).read_text() == text
    assert list(sync(load())) == []


def test_artifacts_lie_beside_a_database_of_the_users(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copy(root / "mlflow.db", folder / "all.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'all.db'}")
    page = root / "reports" / "index.html"
    page.parent.mkdir()
    page.write_text("<p>a page")
    list(sync(load()))
    assert len(list((folder / "mlartifacts" / "trial_run").rglob("index.html"))) == 1
    assert not (root / "mlruns").exists()


def test_the_database_of_a_project_that_was_copied_is_refused(
    root: Path,
    mldatabase: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MLflow stores absolute addresses: the copy would write into the original's folder."""
    page = root / "reports" / "index.html"
    page.parent.mkdir()
    page.write_text("<p>original")
    list(sync(load()))
    copy = tmp_path_factory.mktemp("elsewhere") / "a copy"
    shutil.copytree(root, copy)
    monkeypatch.chdir(copy)
    Path("reports", "index.html").write_text("<p>copy")
    said = f"MLflow at sqlite:///{copy}/mlflow.db: of a project in another folder: delete the"
    with pytest.raises(UserError, match=re.escape(said)):
        list(sync(load()))
    (theirs,) = (root / "mlartifacts").rglob("index.html")
    assert theirs.read_text() == "<p>original"
    shutil.copy(mldatabase, copy / "mlflow.db")  # an empty one; this process has the old one open
    said = subprocess.check_output([sys.executable, "-m", "bleuprint", "mlflow-sync"], text=True)
    assert "run report: the page attached" in said.splitlines()
    assert theirs.read_text() == "<p>original"
