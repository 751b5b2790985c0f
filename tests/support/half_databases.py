"""MLflow's database as interruptions leave it, written by MLflow itself in processes of their own.

`python half_databases.py create FILE` and `... migrate FILE` let MLflow create or migrate a
database; with a third argument files may have that many bytes, as on a disk that is full then.
`... old FILE` creates the database of an older MLflow with one run.
"""

import resource
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

# The last migration of that older MLflow. Later ones copy the table of experiments to another.
OLD_REVISION = "bf29a5ff90ea"
RUN_ID = "0123456789abcdef0123456789abcdef"


def run_mlflow(
    action: str, path: Path, size_limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Let MLflow create or migrate a database in a process of its own.

    Args:
        action: `create`, `migrate`, or `old`, which creates the database of an older MLflow.
        path: The database.
        size_limit: How many bytes a file may have. MLflow fails where the limit is too low, as on
            a full disk.
    """
    command = [sys.executable, __file__, action, str(path)]
    if size_limit is not None:
        command.append(str(size_limit))
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)


def _open_database(path: str) -> None:
    """Open a database with MLflow, which creates or migrates it first if needed."""
    from mlflow.tracking import MlflowClient

    MlflowClient(f"sqlite:///{path}")


def _create_old_database(path: str) -> None:
    """Create the database of an older MLflow, with one run in the experiment `precious`."""
    from alembic import command
    from mlflow.store.db.utils import _get_alembic_config
    from mlflow.store.tracking.dbmodels.initial_models import Base
    from sqlalchemy import create_engine

    address = f"sqlite:///{path}"
    engine = create_engine(address)
    Base.metadata.create_all(engine)
    engine.dispose()
    command.upgrade(_get_alembic_config(address), OLD_REVISION)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage) "
            "VALUES (1, 'precious', '/nowhere', 'active')"
        )
        database.execute(
            "INSERT INTO runs (run_uuid, name, user_id, status, lifecycle_stage, experiment_id, "
            "start_time) VALUES (?, 'kept', 'somebody', 'FINISHED', 'active', 1, 1)",
            [RUN_ID],
        )


def _main(action: str, path: str, size_limit: str = "") -> None:
    """Run an action by the command-line arguments."""
    if size_limit:
        # Without the signal, a write beyond the limit fails, as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size_limit), int(size_limit)))
    if action == "old":
        _create_old_database(path)
    else:
        _open_database(path)


if __name__ == "__main__":
    _main(*sys.argv[1:])
