"""Reach MLflow's store: the user's server or database, or mlflow.db at the project's root.

`open_client` returns MLflow's client, and `name_store_in_errors` turns the errors of MLflow into
one line. database.py creates and migrates mlflow.db.

A server may be slow or down, or hang. So no request takes longer than half a minute, unless the
user sets MLFLOW_HTTP_REQUEST_... differently.
"""

import logging
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError, masked_line
from bleuprint.runtime.locks import FileLock
from bleuprint.runtime.secrets import mask
from bleuprint.tracking import database

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

# By default, MLflow waits for minutes, prints addresses and progress bars, sends usage statistics
# and does not watch the machine. These variables must be set before it is imported.
_MLFLOW_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
for _name, _value in _MLFLOW_ENVIRONMENT.items():
    os.environ.setdefault(_name, _value)

# The address of a database in a file begins with this.
_FILE_SCHEME = "sqlite:///"
# How long to wait for other processes that create the database.
_LOCK_SECONDS = 120
# The packages of the modules by which SQLAlchemy reaches databases, if their names differ.
_PACKAGE_OF_DRIVER = {"psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}
_MAX_ERROR_CHARACTERS = 200


def store_uri() -> str:
    """Return the address of MLflow's store."""
    address = environment.value("MLFLOW_TRACKING_URI")
    if address:
        return address
    return f"{_FILE_SCHEME}{environment.project_root() / 'mlflow.db'}"


def database_file() -> Path | None:
    """Return the file of the store's database; None if the store is not a file."""
    address = store_uri()
    if not address.startswith(_FILE_SCHEME):
        return None
    path, _, _ = address.removeprefix(_FILE_SCHEME).partition("?")
    return Path(path)


def open_client() -> "MlflowClient":
    """Return MLflow's client of the store. A database in a file is created if necessary.

    Raises:
        UserError: The address of the store is not valid, or its database is damaged.
    """
    from mlflow.tracking import MlflowClient

    # Their warnings are errors that are reported here, in one line.
    for logger_name in ("mlflow", "alembic", "urllib3"):
        logging.getLogger(logger_name).setLevel(logging.ERROR)
    _check_address()
    path = database_file()
    if path is None:
        return MlflowClient(store_uri())
    # Processes that create the database at the same time would crash in its migrations. The time to
    # wait is limited, because the holder of the lock may be stopped, or on another machine.
    environment.work_folder().mkdir(parents=True, exist_ok=True)
    with FileLock(environment.work_folder() / "mlflow.lock", timeout=_LOCK_SECONDS):
        database.prepare_database(path)
        return MlflowClient(store_uri())


def _check_address() -> None:
    """Raise UserError if a part of the password would be read as the host.

    MLflow's errors name the host, and so would print the password.
    """
    address = store_uri()
    try:
        urlsplit(address)
    except ValueError as error:
        raise UserError(f"MLFLOW_TRACKING_URI: {error}") from None
    if address.startswith(_FILE_SCHEME):
        return
    _, _, after_scheme = address.partition("://")
    # Up to the last @. In a valid address, this is USER:PASSWORD.
    user_and_password = after_scheme.rpartition("@")[0]
    misread_characters = "[/?#@]" if address.startswith("http") else "@"
    if ":" in user_and_password and re.search(misread_characters, user_and_password):
        raise UserError(
            "MLFLOW_TRACKING_URI: in a user name or password write / as %2F, ? as %3F, # as %23, "
            "@ as %40"
        )


def experiment_id(client: "MlflowClient", name: str) -> str:
    """Return the id of an MLflow experiment, which is created if necessary.

    Args:
        client: MLflow's client.
        name: The name of the experiment.

    Raises:
        MlflowException: The experiment was deleted. MLflow keeps its name, and logs nothing there.
    """
    from mlflow.exceptions import MlflowException

    existing_id = find_experiment_id(client, name)
    if existing_id is not None:
        return existing_id
    try:
        return client.create_experiment(name, _artifact_folder(name))
    except MlflowException:
        # Another process may have created it meanwhile.
        existing_id = find_experiment_id(client, name)
        if existing_id is None:
            raise
        return existing_id


def find_experiment_id(client: "MlflowClient", name: str) -> str | None:
    """Return the id of an MLflow experiment; None if it does not exist.

    Args:
        client: MLflow's client.
        name: The name of the experiment.

    Raises:
        MlflowException: The experiment was deleted. MLflow keeps its name, and logs nothing there.
    """
    from mlflow.exceptions import MlflowException

    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return None
    if experiment.lifecycle_stage == "deleted":
        restore = f"mlflow experiments restore --experiment-id {experiment.experiment_id}"
        raise MlflowException(f"experiment {name} was deleted; to log there again: {restore}")
    return str(experiment.experiment_id)


def _artifact_folder(experiment: str) -> str | None:
    """Return the address of the folder for artifacts of a new experiment.

    MLflow would take the working folder, which is temporary in `dvc exp run --temp`.

    Returns:
        None if the store is not a file. It then decides itself.
    """
    if database_file() is None:
        return None
    return (environment.project_root() / "mlruns" / experiment).as_uri()


@contextmanager
def name_store_in_errors() -> Iterator[None]:
    """Raise UserError with the address of the store if MLflow or its database fails.

    A driver of the database that is not installed is such a failure. Other errors, which are bugs,
    are raised as they are.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError, ImportError) as error:
        raise UserError(f"MLflow at {mask(store_uri())}: {summarize_error(error)}") from error


def summarize_error(error: Exception) -> str:
    """Return the cause of an error in one line of at most 200 characters, without secrets.

    If a server is down, this is the message of the system ("Connection refused"), without the six
    exceptions that libraries wrap around it.
    """
    if isinstance(error, ModuleNotFoundError):
        package = _PACKAGE_OF_DRIVER.get(error.name or "", error.name)
        return f"needs the Python module {error.name}: pip install {package}"
    foreign_schema = re.search(r"schema \(found version (\w+)", str(error))
    if foreign_schema:
        return (
            f"made by another MLflow (schema {foreign_schema[1]}): install that one, or run "
            "'mlflow db upgrade' on a copy of the database, or set MLFLOW_TRACKING_URI to another "
            "one, which bleuprint sync fills"
        )
    system_error = _find_system_error(error)
    if system_error is not None:
        cause = system_error.strerror or str(system_error) or type(system_error).__name__
        return f"{system_error.filename}: {cause}" if system_error.filename else cause
    # Secrets are masked before the line is cut, since half a secret would not be recognized.
    line = masked_line(str(error)) or type(error).__name__
    # SQLAlchemy adds the query and an address; the message of the database is in between.
    line = re.sub(r"\(sqlite3\.\w+\) (.*?) (\[SQL: |\(Background on ).*", r"\1", line)
    if len(line) <= _MAX_ERROR_CHARACTERS:
        return line
    return f"{line[: _MAX_ERROR_CHARACTERS - 1]}…"


def _find_system_error(error: Exception) -> OSError | None:
    """Return the system's error that has caused an exception; None if there is none.

    Libraries derive errors of their own from OSError. These are skipped.
    """
    cause: BaseException | None = error
    while cause is not None:
        is_system_error = type(cause).__module__ in ("builtins", "socket")
        if is_system_error and isinstance(cause, OSError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
