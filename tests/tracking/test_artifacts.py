"""The folder in which MLflow keeps artifacts, such as models that were logged."""

import shutil

from bleuprint.config.experiment import load
from bleuprint.tracking.sync import sync
from mlruns import named


def attach(root, text):
    """Attach a file to a run, as a model is attached."""
    client, runs = named(root)
    client.log_text(runs["tiny news-en-de 1"].info.run_id, text, "note.txt")


def test_artifacts_lie_beside_a_database_of_the_users(root, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.move(root / "mlflow.db", folder / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")
    list(sync(load()))
    attach(folder, "a note")
    assert len(list((folder / "mlartifacts" / "trial_run").rglob("note.txt"))) == 1
    assert not (root / "mlruns").exists()
