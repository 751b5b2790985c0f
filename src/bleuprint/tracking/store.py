"""MLflow's store: the user's server, or mlflow.db at the project's root (see database.py).

A server may be slow, down or hang: no request takes longer than half a minute, unless the user sets
MLFLOW_HTTP_REQUEST_... differently.
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

# Set before MLflow is imported: its own defaults wait for minutes, print addresses and bars, and do
# not watch the machine.
for _name, _value in {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}.items():
    os.environ.setdefault(_name, _value)
_FILE = "sqlite:///"
# Seconds to wait for other processes that create the database.
_LOCKED = 120
# The packages of modules by which SQLAlchemy reaches databases, where they differ in name.
_DRIVERS = {"psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient"}


def uri() -> str:
    """The address of MLflow's store."""
    return (
        environment.value("MLFLOW_TRACKING_URI")
        or f"{_FILE}{environment.project_root() / 'mlflow.db'}"
    )


def database_file() -> Path | None:
    """The file of the store's database; None if the store is a server."""
    if not uri().startswith(_FILE):
        return None
    return Path(uri().removeprefix(_FILE).partition("?")[0])


def client() -> "MlflowClient":
    """A client of the store; a database in a file is created if necessary."""
    from mlflow.tracking import MlflowClient

    for name in ("mlflow", "alembic", "urllib3"):  # what they warn of is reported here in one line
        logging.getLogger(name).setLevel(logging.ERROR)
    _check_address()
    path = database_file()
    if path is None:
        return MlflowClient(uri())
    # processes that create the database at the same time crash in its migrations; the holder of
    # the lock may be a process that is stopped, or on another machine
    environment.work_folder().mkdir(parents=True, exist_ok=True)
    with FileLock(environment.work_folder() / "mlflow.lock", timeout=_LOCKED):
        database.prepare(path)
        return MlflowClient(uri())


def _check_address() -> None:
    """Raise UserError if a password would be taken for the host, which MLflow's errors name."""
    try:
        urlsplit(uri())
    except ValueError as error:
        raise UserError(f"MLFLOW_TRACKING_URI: {error}") from None
    user = uri().partition("://")[2].rpartition("@")[0]
    wrong = "[/?#@]" if uri().startswith("http") else "@"
    if ":" in user and re.search(wrong, user) and not uri().startswith(_FILE):
        raise UserError(
            "MLFLOW_TRACKING_URI: in a user name or password write / as %2F, ? as %3F, # as %23, "
            "@ as %40"
        )


def experiment(client: "MlflowClient", name: str, make: bool = True) -> str:
    """The id of the experiment called `name`; created if necessary. Without `make`: maybe "".

    Raises MlflowException if it was deleted: MLflow keeps its name, and logs nothing there.
    """
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None and make:
        try:
            return client.create_experiment(name, _artifact_folder(name))
        except MlflowException:
            if (found := client.get_experiment_by_name(name)) is None:  # no other was first
                raise
    if found and found.lifecycle_stage == "deleted":
        restore = f"mlflow experiments restore --experiment-id {found.experiment_id}"
        raise MlflowException(f"experiment {name} was deleted; to log there again: {restore}")
    return str(found.experiment_id) if found else ""


def _artifact_folder(experiment: str) -> str | None:
    """Where the artifacts of a new experiment are; None if the store decides that.

    MLflow would take the working folder, which is temporary in `dvc exp run --temp`.
    """
    if database_file() is None:
        return None
    return (environment.project_root() / "mlruns" / experiment).as_uri()


@contextmanager
def failures_named() -> Iterator[None]:
    """Raise UserError, naming the store, if MLflow or its database fails; not for bugs.

    A driver that is not installed is such a failure.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError, ImportError) as error:
        raise UserError(f"MLflow at {mask(uri())}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """The cause of an error in one line of at most 200 characters, without secrets.

    For a server that is down: the system's message ("Connection refused"), without the six
    exceptions that libraries wrap around it.
    """
    if isinstance(error, ModuleNotFoundError):
        package = _DRIVERS.get(error.name or "", error.name)
        return f"needs the Python module {error.name}: pip install {package}"
    if found := re.search(r"schema \(found version (\w+)", str(error)):
        return (
            f"made by another MLflow (schema {found[1]}): install that one, or run 'mlflow db "
            "upgrade' on a copy of the database, or set MLFLOW_TRACKING_URI to another one, which "
            "bleuprint sync fills"
        )
    inner: BaseException | None = error
    while inner is not None:
        if type(inner).__module__ in ("builtins", "socket") and isinstance(inner, OSError):
            cause = inner.strerror or str(inner) or type(inner).__name__
            return f"{inner.filename}: {cause}" if inner.filename else cause
        inner = inner.__cause__ or inner.__context__
    line = masked_line(str(error)) or type(error).__name__  # masked before it is cut
    # of SQLAlchemy's text the message of the database alone
    line = re.sub(r"\(sqlite3\.\w+\) (.*?) (\[SQL: |\(Background on ).*", r"\1", line)
    return line if len(line) <= 200 else f"{line[:199]}…"
