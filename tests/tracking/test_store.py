"""Failures of MLflow are one line; bugs keep their traceback."""

from pathlib import Path

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.tracking import store, tracker


def test_a_damaged_database_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "mlflow.db"
    database.write_bytes(b"no database" * 500)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{database}")
    monkeypatch.chdir(tmp_path)
    expected = f"MLflow at sqlite:///{database}: .*file is not a database"
    with pytest.raises(UserError, match=expected), store.failures_named():
        store.client()


def test_a_bug_is_no_failure_of_mlflow() -> None:
    with pytest.raises(KeyError), store.failures_named():
        raise KeyError("metrics")


def test_a_password_in_the_servers_address_is_not_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tracker._say("http://me:secret@host:5000: down")
    assert capsys.readouterr().err == "MLflow: http://host:5000: down\n"


def test_a_folder_whose_name_sqlite_would_cut_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "why?").mkdir()
    monkeypatch.chdir(tmp_path / "why?")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    with pytest.raises(UserError, match=r"why\?: the name of a folder contains"):
        store.client()
    assert [path.name for path in tmp_path.iterdir()] == ["why?"]
