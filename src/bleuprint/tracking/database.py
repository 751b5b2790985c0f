"""Create, migrate and read the file of MLflow's database, mlflow.db.

`prepare_database` makes the file usable for the installed MLflow, and `logged_outputs` reads which
results it shows without loading MLflow, which takes seconds.

MLflow creates its database in some fifty migrations (changes of its tables), and migrates the
database of an older MLflow in place. If it is killed in between, or if the disk is full, it can
never open the database again. So both are done on a copy, which replaces the file when it is
complete.
"""

import glob
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from bleuprint.runtime.errors import UserError
from bleuprint.runtime.wording import counted
from bleuprint.tracking.runs import FINISHED, OUTPUTS

# Alembic, which runs the migrations, copies a table to one with this prefix, removes the table, and
# renames the copy. A table with this prefix shows that a migration was interrupted.
_COPIED_TABLE_PREFIX = "_alembic_tmp_"
# The table with the id of the last migration.
_REVISION_TABLE = "alembic_version"
# MLflow itself writes one row into these tables of a new database, with these names.
_INITIAL_ROWS = {"experiments": "Default", "workspaces": "default"}

# The values of the tag `outputs` of all finished runs of one experiment.
_LOGGED_OUTPUTS_QUERY = f"""
SELECT tags.value
FROM tags
JOIN runs ON runs.run_uuid = tags.run_uuid
JOIN experiments ON experiments.experiment_id = runs.experiment_id
WHERE tags.key = '{OUTPUTS}' AND experiments.name = ?
AND runs.status = '{FINISHED}'
AND runs.lifecycle_stage = 'active' AND experiments.lifecycle_stage = 'active'
"""


def logged_outputs(path: Path, experiment: str) -> set[str]:
    """Return the fingerprints of the outputs that an experiment's finished runs show.

    Args:
        path: The file of the database.
        experiment: The name of the experiment.

    Returns:
        The values of the tag `outputs`; an empty set if the database cannot be read.
    """
    read_only_address = f"file:{quote(str(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(read_only_address, uri=True)) as connection:
            rows = connection.execute(_LOGGED_OUTPUTS_QUERY, [experiment])
            return {value for (value,) in rows}
    except sqlite3.Error:
        return set()


def prepare_database(path: Path) -> None:
    """Make the database in a file usable for the installed MLflow.

    A new database is created in an empty or missing file, and in place of what an unfinished
    creation has left, which contains nothing of the user's. A database with content is migrated on
    a copy, if MLflow would migrate it.

    Args:
        path: The file; it may be missing.

    Raises:
        UserError: A migration of the database was interrupted earlier, and the database contains
            runs.
        sqlite3.Error: The file cannot be read. MLflow would retry this for minutes.
    """
    from sqlalchemy.exc import SQLAlchemyError

    with closing(sqlite3.connect(path)) as connection:
        tables = _table_names(connection)
        revision = _revision(connection, tables)
        has_content = _has_content(connection, tables)
        run_count = _row_count(connection, "runs") if "runs" in tables else 0
    known_revisions = _known_revisions()
    is_up_to_date = revision == known_revisions[0]
    # A newer MLflow made the database. The installed one will report this.
    is_newer = revision is not None and revision not in known_revisions
    if is_up_to_date or is_newer:
        return
    if not has_content:
        _replace_database(path, keeps_content=False)
        return
    if any(table.startswith(_COPIED_TABLE_PREFIX) for table in tables):
        raise _interrupted_migration(path, run_count)
    try:
        _replace_database(path, keeps_content=True)
    except SQLAlchemyError as error:
        if _is_wrong_table(error):
            raise _interrupted_migration(path, run_count) from error
        raise


def _is_wrong_table(error: Exception) -> bool:
    """Return whether a migration failed because it does not fit the tables of the database.

    This happens if an earlier migration was interrupted. SQLite then reports the general error; a
    full disk, for example, has an error name of its own.
    """
    sqlite_error = getattr(error, "orig", None)
    return getattr(sqlite_error, "sqlite_errorname", "") == "SQLITE_ERROR"


def _replace_database(path: Path, keeps_content: bool) -> None:
    """Replace a file by a complete database for the installed MLflow.

    Args:
        path: The file.
        keeps_content: Whether the new database gets the content of the file.
    """
    from mlflow.tracking import MlflowClient

    # If the path is a link, the file that it points to is replaced.
    target = path.resolve()
    folder_prefix = f"{target.name}.new."
    # Remove what earlier processes left when they were killed.
    for left_over in target.parent.glob(f"{glob.escape(folder_prefix)}*"):
        shutil.rmtree(left_over)
    # The folder has a new name each time: within a process, MLflow keeps its connection to a name.
    with TemporaryDirectory(prefix=folder_prefix, dir=target.parent) as folder:
        new_path = Path(folder, target.name)
        if keeps_content:
            _copy_database(target, new_path)
        # Any request makes MLflow create or migrate the database first.
        MlflowClient(f"sqlite:///{new_path}").search_experiments(max_results=1)
        new_path.replace(target)


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database that other processes may be using."""
    with (
        closing(sqlite3.connect(source)) as source_connection,
        closing(sqlite3.connect(target)) as target_connection,
    ):
        source_connection.backup(target_connection)


def _interrupted_migration(path: Path, run_count: int) -> UserError:
    """Return the error of a database whose migration was interrupted.

    Args:
        path: The file of the database.
        run_count: The number of runs that it contains.
    """
    return UserError(
        f"{path} is damaged: its migration to another MLflow did not end, and it holds "
        f"{counted(run_count, 'run')}. Put back your copy of it, or move it away: mv {path} "
        f"{path}.damaged. Then run: bleuprint sync"
    )


def _table_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of all tables except SQLite's own."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows if not name.startswith("sqlite_")}


def _revision(connection: sqlite3.Connection, tables: set[str]) -> str | None:
    """Return the id of the last migration; None if the creation of the database was interrupted."""
    if _REVISION_TABLE not in tables:
        return None
    row = connection.execute(f"SELECT version_num FROM {_REVISION_TABLE}").fetchone()
    return None if row is None else str(row[0])


def _has_content(connection: sqlite3.Connection, tables: set[str]) -> bool:
    """Return whether a database contains more than MLflow writes when it creates one."""
    for table in tables:
        if table == _REVISION_TABLE:
            continue
        initial_name = _INITIAL_ROWS.get(table.removeprefix(_COPIED_TABLE_PREFIX))
        if initial_name is None:
            if _row_count(connection, table) > 0:
                return True
            continue
        rows = connection.execute(f'SELECT name FROM "{table}"')
        if any(name != initial_name for (name,) in rows):
            return True
    return False


def _row_count(connection: sqlite3.Connection, table: str) -> int:
    """Return the number of rows of a table."""
    (row_count,) = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    return int(row_count)


def _known_revisions() -> list[str]:
    """Return the ids of the migrations of the installed MLflow, the newest first."""
    import mlflow
    from alembic.script import ScriptDirectory

    folder = Path(mlflow.__file__).parent / "store" / "db_migrations"
    migrations = ScriptDirectory(str(folder)).walk_revisions()
    return [migration.revision for migration in migrations]
