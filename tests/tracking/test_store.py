"""A failure of MLflow is an error of one line without secrets; a bug keeps its traceback."""

import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest

from bleuprint.runtime.errors import UserError
from bleuprint.tracking import store


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return an empty project, whose database is mlflow.db; it is the working folder."""
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def without_mlflow_client(monkeypatch):
    """Fail the test if MLflow's client is used, which would try again for minutes."""
    monkeypatch.setattr(
        "mlflow.tracking.MlflowClient", lambda *_, **__: pytest.fail("MLflow was called")
    )


def open_error():
    """Open the store, which must fail; return the message."""
    with pytest.raises(UserError) as error, store.name_store_in_errors():
        store.open_client()
    return str(error.value)


@pytest.mark.usefixtures("without_mlflow_client")
def test_a_file_that_is_no_database_is_reported_at_once(project):
    """MLflow's client, which would try again for minutes, is not called: it fails this test."""
    path = project / "mlflow.db"
    path.write_bytes(b"no database" * 500)

    assert open_error() == f"MLflow at sqlite:///{path}: file is not a database"


@pytest.mark.usefixtures("without_mlflow_client")
def test_a_folder_in_place_of_the_database_is_reported_at_once(project):
    """MLflow's client, which would try again for minutes, is not called: it fails this test."""
    path = project / "mlflow.db"
    path.mkdir()

    assert open_error() == f"MLflow at sqlite:///{path}: unable to open database file"


@pytest.mark.usefixtures("without_mlflow_client")
def test_a_link_to_a_missing_folder_is_reported_at_once(project):
    """MLflow's client, which would try again for minutes, is not called: it fails this test."""
    path = project / "mlflow.db"
    path.symlink_to("missing/mlflow.db")

    assert open_error() == f"MLflow at sqlite:///{path}: unable to open database file"


def test_a_bug_is_not_reported_as_a_failure_of_mlflow():
    with pytest.raises(KeyError), store.name_store_in_errors():
        raise KeyError("metrics")


def test_a_database_whose_driver_is_missing_is_reported_with_the_package_to_install(monkeypatch):
    """Setup does not install PostgreSQL's driver, psycopg2. The message hides user and password."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:hu/sh@localhost/db")

    assert open_error() == (
        "MLflow at postgresql://***@localhost/db: the Python module psycopg2 is missing. "
        "Install it: pip install psycopg2-binary"
    )


@pytest.mark.parametrize(
    "revision",
    [
        pytest.param("f00dfeedf00d", id="newer than any MLflow"),
        pytest.param("0c779009ac13", id="of 2022"),
    ],
)
def test_a_database_of_another_mlflow_is_reported_with_its_schema(
    project, mldatabase, monkeypatch, revision
):
    """The database names the schema of its tables, which is replaced by one that MLflow rejects."""
    from mlflow.tracking import MlflowClient  # Importing it takes two seconds.

    with_experiment = shutil.copyfile(mldatabase, project / "first.db")
    MlflowClient(f"sqlite:///{with_experiment}").create_experiment("kept")
    # A copy under another name, since within a process MLflow checks a database only once.
    path = shutil.copyfile(with_experiment, project / "mlflow.db")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = ?", [revision])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{path}")

    message = open_error()

    problem = f"another MLflow version wrote this database (schema {revision}). "
    assert message.startswith(f"MLflow at sqlite:///{path}: {problem}")
    assert message.endswith(" and run: bleuprint sync")


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("http://me:hu/sh@localhost:5000", id="slash"),
        pytest.param("http://me:hu?sh@localhost:5000", id="question mark"),
        pytest.param("http://hu/sh:hush@localhost:5000", id="slash in the user name"),
        pytest.param("postgresql://me:hu@x/sh@localhost/db", id="at sign and slash"),
    ],
)
@pytest.mark.usefixtures("without_mlflow_client")
def test_a_password_that_contains_a_separator_of_urls_is_refused(monkeypatch, address):
    """A library would take a part of the password for the host, and print it as not found.

    Each of these addresses contains the secret `hu`, which the message must hide.
    """
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)

    with pytest.raises(UserError, match=r"write / as %2F, \? as %3F, # as %23, @ as %40") as error:
        store.open_client()

    assert "hu" not in str(error.value)


def test_an_invalid_tracking_uri_is_refused(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://[localhost:5000")

    with pytest.raises(UserError, match="MLFLOW_TRACKING_URI is not a valid URL: Invalid IPv6 URL"):
        store.open_client()


@pytest.mark.parametrize("length_before", range(100, 200))
def test_a_password_is_masked_before_a_long_message_is_shortened(length_before):
    """Messages are cut at 200 characters, here somewhere before, within or after the address.

    An address cut within its password could not be recognized, and its beginning would be shown.
    """
    error = ValueError(f"{'x' * length_before} http://me:hushhushhush@host")

    summary = store.summarize_error(error)

    assert "hush" not in summary
    assert len(summary) <= 200


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("http://hush@localhost:9", id="user"),
        pytest.param("http://me:hush@localhost:9/?token=hush", id="password and token"),
        pytest.param("databricks://hush@", id="Databricks"),
        pytest.param("unknown://me:hush@localhost", id="unknown kind of store"),
        pytest.param("postgres://me:hush@localhost", id="old name of PostgreSQL"),
    ],
)
def test_mlflows_messages_about_an_address_are_shown_without_its_secrets(monkeypatch, address):
    """Nothing can be reached at these addresses. In each, `hush` is a user, password or token."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")

    with pytest.raises(UserError) as error, store.name_store_in_errors():
        store.open_client().get_experiment_by_name("trial")

    assert "***@" in str(error.value)
    assert "hush" not in str(error.value)


def test_the_message_about_a_deleted_experiment_ends_with_a_command_that_restores_it(
    project, mldatabase, monkeypatch
):
    """MLflow keeps deleted experiments, and their names, until they are restored.

    The test runs the command and then finds the experiment `gone` again.
    """
    path = shutil.copyfile(mldatabase, project / "mlflow.db")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{path}")
    client = store.open_client()
    experiment_id = store.experiment_id(client, "gone")
    client.delete_experiment(experiment_id)

    with pytest.raises(UserError) as error, store.name_store_in_errors():
        store.experiment_id(client, "gone")

    problem, _, command = str(error.value).partition(". To log there again: ")
    assert problem == f"MLflow at sqlite:///{path}: experiment gone was deleted"
    subprocess.run(command.split(), check=True, capture_output=True)
    assert store.experiment_id(client, "gone") == experiment_id
