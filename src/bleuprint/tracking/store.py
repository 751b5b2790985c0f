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
    """Return the address of the database or server to which runs are logged.

    The user may set it in MLFLOW_TRACKING_URI. By default, it is the file mlflow.db in the folder
    of the project.
    """
    address = environment.nonempty_variable("MLFLOW_TRACKING_URI")
    if address:
        return address
    return f"{_FILE_SCHEME}{environment.project_root() / 'mlflow.db'}"


def database_file() -> Path | None:
    """Return the path of the SQLite file that MLflow uses as its database.

    Returns:
        None if MLflow uses a server, or the database of a server.
    """
    address = store_uri()
    if not address.startswith(_FILE_SCHEME):
        return None
    # Options may follow the path: sqlite:///mlflow.db?timeout=60.
    path, _, _options = address.removeprefix(_FILE_SCHEME).partition("?")
    return Path(path)


def open_client() -> "MlflowClient":
    """Return a client of MLflow's server or database. A database in a file is created if missing.

    Raises:
        UserError: MLFLOW_TRACKING_URI is not a valid address, or the database is damaged.
    """
    from mlflow.tracking import MlflowClient

    # These libraries print warnings before they raise an error. The error is enough: the caller
    # reports it in one line.
    for logger_name in ("mlflow", "alembic", "urllib3"):
        logging.getLogger(logger_name).setLevel(logging.ERROR)
    _check_address()
    path = database_file()
    if path is None:
        return MlflowClient(store_uri())
    # If two processes created the database at the same time, both would crash. The time to wait for
    # the lock is limited, because the process that holds it may hang.
    environment.work_folder().mkdir(parents=True, exist_ok=True)
    with FileLock(environment.work_folder() / "mlflow.lock", timeout=_LOCK_SECONDS):
        database.prepare_database(path)
        return MlflowClient(store_uri())


def _check_address() -> None:
    """Raise UserError if MLFLOW_TRACKING_URI is not a valid URL, or its password is not escaped.

    In https://me:my/secret@host, the password `my/secret` is not escaped. In a URL, `/` ends the
    name of the host, so MLflow would search for the host "me:my". Its error message would contain
    this name, and so a part of the password.
    """
    address = store_uri()
    try:
        urlsplit(address)
    except ValueError as error:
        raise UserError(f"MLFLOW_TRACKING_URI is not a valid URL: {error}") from None
    if address.startswith(_FILE_SCHEME):
        return
    _scheme, _, after_scheme = address.partition("://")
    # All before the last @. In a valid address, this is USER:PASSWORD.
    user_and_password = after_scheme.rpartition("@")[0]
    characters_to_escape = "[/?#@]" if address.startswith("http") else "@"
    if ":" in user_and_password and re.search(characters_to_escape, user_and_password):
        raise UserError(
            "MLFLOW_TRACKING_URI contains a character that must be escaped. In a user name or "
            "password, write / as %2F, ? as %3F, # as %23, @ as %40"
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
        # Another process may have created the experiment in the meantime.
        id_of_other_process = find_experiment_id(client, name)
        if id_of_other_process is None:
            raise
        return id_of_other_process


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
        raise MlflowException(f"experiment {name} was deleted. To log there again: {restore}")
    return str(experiment.experiment_id)


def _artifact_folder(experiment: str) -> str | None:
    """Return the folder for the artifacts (copied files) of a new experiment, as a file: URL.

    It is in the folder of the project. By default, MLflow would use the working directory, which
    DVC removes after `dvc exp run --temp`.

    Args:
        experiment: The name of the experiment.

    Returns:
        None if a server is used, because it decides itself where its artifacts are.
    """
    if database_file() is None:
        return None
    folder = environment.project_root() / "mlruns" / experiment
    return folder.as_uri()


@contextmanager
def name_store_in_errors() -> Iterator[None]:
    """Turn errors of MLflow and its database into a UserError, one line that names the database.

    ImportError is among them, because the package that connects to the database may be missing. Any
    other error is a bug, and is raised unchanged.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError, ImportError) as error:
        raise UserError(f"MLflow at {mask(store_uri())}: {summarize_error(error)}") from error


def summarize_error(error: Exception) -> str:
    """Return one line that says why MLflow failed, with passwords masked.

    Its content depends on the error:

    - A Python package is missing: which one to install.
    - The database was written by another MLflow version: what to do with it.
    - The operating system caused the error: its message, such as "Connection refused".
    - Anything else: the message of the error, cut if it is long.

    Args:
        error: An error of MLflow, of its database or of the operating system.
    """
    if isinstance(error, ModuleNotFoundError):
        package = _PACKAGE_OF_DRIVER.get(error.name or "", error.name)
        return f"the Python module {error.name} is missing. Install it: pip install {package}"
    # MLflow names the version of the tables (schema) of a database that it cannot read.
    foreign_schema = re.search(r"schema \(found version (\w+)", str(error))
    if foreign_schema:
        return (
            f"another MLflow version wrote this database (schema {foreign_schema[1]}). Install "
            "that version, or run mlflow db upgrade on a copy of the database, or set "
            "MLFLOW_TRACKING_URI to a new database and run: bleuprint sync"
        )
    system_error = _find_system_error(error)
    if system_error is not None:
        message = system_error.strerror or str(system_error) or type(system_error).__name__
        return f"{system_error.filename}: {message}" if system_error.filename else message
    return _shorten(error)


def _shorten(error: Exception) -> str:
    """Return the message of an error as one line of at most 200 characters, without passwords.

    An error without a message is named by its class.
    """
    # Masked before the line is cut, since half a password would not be recognized.
    line = masked_line(str(error)) or type(error).__name__
    # SQLAlchemy writes the class of the error before the message, and the query and a link after
    # it. Only the message is kept.
    line = re.sub(r"\(sqlite3\.\w+\) (.*?) (\[SQL: |\(Background on ).*", r"\1", line)
    if len(line) <= _MAX_ERROR_CHARACTERS:
        return line
    shortened_line = line[: _MAX_ERROR_CHARACTERS - 1]
    return f"{shortened_line}…"


def _find_system_error(error: Exception) -> OSError | None:
    """Return the error of the operating system that has caused an exception, if there is one.

    Libraries wrap an error such as "Connection refused" into several exceptions of their own. These
    are skipped, even if they are subclasses of OSError.

    Args:
        error: The outermost exception.

    Returns:
        The error; None if no cause is an error of the operating system.
    """
    cause: BaseException | None = error
    while cause is not None:
        # An error of the operating system has a class of Python itself, such as
        # ConnectionRefusedError.
        has_class_of_python = type(cause).__module__ in ("builtins", "socket")
        if has_class_of_python and isinstance(cause, OSError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
