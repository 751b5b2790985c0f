"""Artifacts of runs: the page, and the folder it is kept in."""

import shutil
from pathlib import Path

import pytest

from bleuprint.config.experiment import load
from bleuprint.tracking.sync import sync
from mlruns import named
from mlservers import runs_in


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


@pytest.mark.parametrize("database", ["mlflow.db", "all.db"])
def test_a_project_that_was_copied_writes_artifacts_of_its_own(
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    database: str,
) -> None:
    page = root / "reports" / "index.html"
    page.parent.mkdir()
    page.write_text("<p>original")
    list(sync(load()))
    copy = tmp_path_factory.mktemp("elsewhere") / "a copy"
    shutil.copytree(root, copy)
    # another process, which has no run's folder cached
    monkeypatch.setattr("mlflow.tracking._tracking_service.utils._artifact_repos_cache", {})
    monkeypatch.chdir(copy)
    if database != "mlflow.db":
        (copy / "mlflow.db").rename(copy / database)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{copy / database}")
    Path("reports", "index.html").write_text("<p>copy")
    assert list(sync(load())) == ["run report: the page attached"]
    place = Path("mlartifacts", "trial_run")
    (mine,) = (copy / place).rglob("index.html")
    (theirs,) = (root / place).rglob("index.html")
    assert (mine.read_text(), theirs.read_text()) == ("<p>copy", "<p>original")
    assert mine.relative_to(copy) == theirs.relative_to(root)
    client, runs = runs_in(f"sqlite:///{copy / database}", "trial_run")
    assert all(str(root) + "/" not in f"{run.info.artifact_uri}/" for run in runs)
    shutil.rmtree(root / "mlartifacts")
    for run in runs:  # as `make ui` shows them
        for file in client.list_artifacts(run.info.run_id):
            assert Path(client.download_artifacts(run.info.run_id, file.path)).exists()
