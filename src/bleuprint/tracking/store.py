"""MLflow's store: the user's server, or mlflow.db at the project's root.

A server may be slow, gone or hang: no request takes longer than half a minute, unless the user's
own MLFLOW_HTTP_REQUEST_... say so.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from bleuprint.runtime import environment
from bleuprint.runtime.errors import UserError

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.tracking import MlflowClient

# What MLflow reads: its own figures wait for minutes, and it would print addresses of runs.
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
# Those that tell on stderr what is told here in one line.
_TALKATIVE = ("mlflow", "alembic", "urllib3", "mlflow.system_metrics")
# Stores that keep no files.
_DATABASES = "sqlite:", "postgresql", "mysql", "mssql"


def uri() -> str:
    """Where MLflow keeps its runs."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{environment.root() / 'mlflow.db'}"


def remote() -> bool:
    """Whether that is a server, which may come back after it was away."""
    return uri().startswith(("http://", "https://"))


def client() -> "MlflowClient":
    """A client of the store, which is made if need be."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    from mlflow.tracking import MlflowClient

    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.ERROR)
    if os.environ.get("MLFLOW_TRACKING_URI"):
        return MlflowClient(uri(), registry_uri=uri())
    # Processes that create the database at the same time crash in its migrations.
    with lock():
        made = MlflowClient(uri(), registry_uri=uri())
        made.search_experiments(max_results=1)
        return made


def lock() -> FileLock:
    """Held where two processes would make the same thing twice."""
    environment.work().mkdir(parents=True, exist_ok=True)
    return FileLock(environment.work() / "mlflow.lock")


def find_experiment(client: "MlflowClient", name: str) -> "Experiment | None":
    return client.get_experiment_by_name(name)


def experiment(client: "MlflowClient", name: str) -> "Experiment":
    """The experiment called `name`, made if need be."""
    from mlflow.exceptions import MlflowException

    if found := find_experiment(client, name):
        return found
    with suppress(MlflowException):  # another process was first
        client.create_experiment(name, artifact_location=_artifacts(name))
    if found := find_experiment(client, name):
        return found
    raise MlflowException(f"no experiment {name!r} could be made")


def _artifacts(experiment: str) -> str | None:
    """Where an experiment's artifacts go; None where MLflow itself has a place for them.

    For a database it would take the folder it was called in.
    """
    store = uri()
    if not store.startswith(_DATABASES):
        return None
    file = store.removeprefix("sqlite:///").partition("?")[0]
    local = store.startswith("sqlite:///")
    root = Path(file).resolve().parent if local else environment.root().resolve()
    return (root / "mlartifacts" / experiment).as_uri()


@contextmanager
def failures_named() -> Iterator[None]:
    """Raise UserError where MLflow or its database fails, naming the store; bugs stay bugs."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:
        raise UserError(f"MLflow at {uri()}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Why something failed, in one line that is not too long.

    Of a server that is away: what the system says ("Connection refused"), without the six errors
    that libraries wrap around it.
    """
    inner: BaseException | None = error
    while inner is not None:
        if type(inner).__module__ in ("builtins", "socket") and isinstance(inner, OSError):
            what = inner.strerror or str(inner) or type(inner).__name__
            return f"{inner.filename}: {what}" if inner.filename else what
        inner = inner.__cause__ or inner.__context__
    line = " ".join(str(error).split()) or type(error).__name__
    return line if len(line) <= 200 else f"{line[:199]}…"
