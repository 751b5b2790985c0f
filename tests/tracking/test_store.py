"""Failures of MLflow are one line; bugs keep their traceback."""

import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.tracking import store


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.write_bytes(b"no database" * 500), "file is not a database"),
        (lambda path: path.mkdir(), "unable to open database file"),
        (lambda path: path.symlink_to("missing/mlflow.db"), "unable to open database file"),
    ],
)
def test_a_database_that_cannot_be_read_is_named_at_once(tmp_path, monkeypatch, make, problem):
    """MLflow would try again for minutes."""
    make(tmp_path / "mlflow.db")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mlflow.tracking.MlflowClient", lambda *_, **__: pytest.fail("tried"))
    with pytest.raises(UserError) as error, store.name_store_in_errors():
        store.open_client()
    assert str(error.value) == f"MLflow at sqlite:///{tmp_path / 'mlflow.db'}: {problem}"


def test_a_bug_is_no_failure_of_mlflow():
    with pytest.raises(KeyError), store.name_store_in_errors():
        raise KeyError("metrics")


def test_a_database_without_its_driver_names_the_package(monkeypatch):
    """It is not among the packages that setup installs."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:hu/sh@localhost/db")
    needed = "needs the Python module psycopg2: pip install psycopg2-binary"
    with pytest.raises(UserError) as error, store.name_store_in_errors():
        store.open_client()
    assert str(error.value) == f"MLflow at postgresql://***@localhost/db: {needed}"


@pytest.mark.parametrize("revision", ["f00dfeedf00d", "0c779009ac13"], ids=["newer", "older"])
def test_a_database_of_another_mlflow_says_of_which(tmp_path, mldatabase, monkeypatch, revision):
    """One revision is no MLflow's yet, the other is of 2022."""
    from mlflow.tracking import MlflowClient  # which takes two seconds

    first = shutil.copyfile(mldatabase, tmp_path / "first.db")
    MlflowClient(f"sqlite:///{first}").create_experiment("kept")
    # under another name, since within a process MLflow checks a database once
    path = shutil.copyfile(first, tmp_path / "mlflow.db")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = ?", [revision])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{path}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error, store.name_store_in_errors():
        store.open_client()
    said = f"MLflow at sqlite:///{path}: made by another MLflow (schema {revision}): "
    assert str(error.value).startswith(said)
    assert str(error.value).endswith(", which bleuprint sync fills")


@pytest.mark.parametrize(
    "address",
    [
        "http://me:hu/sh@localhost:5000",
        "http://me:hu?sh@localhost:5000",
        "http://hu/sh:hush@localhost:5000",
        "postgresql://me:hu@x/sh@localhost/db",
    ],
)
def test_a_password_that_would_be_taken_for_a_host_is_refused(monkeypatch, address):
    """The error of a library would name its part as the host that is not found."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.setattr("mlflow.tracking.MlflowClient", lambda *_, **__: pytest.fail("tried"))
    with pytest.raises(UserError, match=r"write / as %2F, \? as %3F, # as %23, @ as %40") as error:
        store.open_client()
    assert "hu" not in str(error.value)


def test_an_address_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://[localhost:5000")
    with pytest.raises(UserError, match="MLFLOW_TRACKING_URI is not a valid URL: Invalid IPv6 URL"):
        store.open_client()


def test_a_secret_is_masked_before_a_long_message_is_cut():
    """Cut within a password, the address would no longer be known as one."""
    for length in range(100, 200):
        text = store.summarize_error(ValueError(f"{'x' * length} http://me:hushhushhush@host"))
        assert "hush" not in text and len(text) <= 200


@pytest.mark.parametrize(
    "address",
    [
        "http://hush@localhost:9",
        "http://me:hush@localhost:9/?token=hush",
        "databricks://hush@",
        "unknown://me:hush@localhost",
        "postgres://me:hush@localhost",
    ],
)
def test_what_mlflow_says_of_an_address_has_no_secret(monkeypatch, address):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(UserError) as error, store.name_store_in_errors():
        store.open_client().get_experiment_by_name("trial")
    assert "***@" in str(error.value)
    assert "hush" not in str(error.value)


def test_a_deleted_experiment_names_the_command_that_restores_it(tmp_path, mldatabase, monkeypatch):
    path = shutil.copyfile(mldatabase, tmp_path / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{path}")
    monkeypatch.chdir(tmp_path)
    client = store.open_client()
    number = store.experiment_id(client, "gone")
    client.delete_experiment(number)
    with pytest.raises(UserError) as error, store.name_store_in_errors():
        store.experiment_id(client, "gone")
    said, _, command = str(error.value).partition("; to log there again: ")
    assert said == f"MLflow at sqlite:///{path}: experiment gone was deleted"
    subprocess.run(command.split(), check=True, capture_output=True)
    assert store.experiment_id(client, "gone") == number
