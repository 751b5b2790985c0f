"""Failures of MLflow are one line; bugs keep their traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.tracking import store, tracker


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.write_bytes(b"no database" * 500), "file is not a database"),
        (lambda path: path.mkdir(), "unable to open database file"),
        (lambda path: path.symlink_to("missing/mlflow.db"), "unable to open database file"),
    ],
)
def test_a_database_that_cannot_be_read_is_named_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], object],
    problem: str,
) -> None:
    """MLflow would try again for minutes."""
    make(tmp_path / "mlflow.db")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mlflow.tracking.MlflowClient", lambda *_, **__: pytest.fail("tried"))
    with pytest.raises(UserError) as error, store.failures_named():
        store.client()
    assert str(error.value) == f"MLflow at sqlite:///{tmp_path / 'mlflow.db'}: {problem}"


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
