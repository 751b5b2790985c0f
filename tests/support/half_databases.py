"""MLflow's database as interruptions leave it, made by MLflow itself in processes of their own.

`python half_databases.py create FILE` and `... migrate FILE` let MLflow create or migrate a
database; with a third argument files may have that many bytes, as on a disk that is full then.
`... old FILE` makes the database of an older MLflow with one run.
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
RUN = "0123456789abcdef0123456789abcdef"


def made(what: str, path: Path, size_limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run this file as a script; MLflow fails where the limit is too low."""
    limit = [] if size_limit is None else [str(size_limit)]
    command = [sys.executable, __file__, what, str(path), *limit]
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False)


def _open(path: str) -> None:
    from mlflow.tracking import MlflowClient

    MlflowClient(f"sqlite:///{path}")


def _make_old(path: str) -> None:
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
            [RUN],
        )


def _main(what: str, path: str, size_limit: str = "") -> None:
    if size_limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write then fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size_limit), int(size_limit)))
    if what == "old":
        _make_old(path)
    else:
        _open(path)


if __name__ == "__main__":
    _main(*sys.argv[1:])
