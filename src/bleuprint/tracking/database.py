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
    """Return hashes of the results that MLflow already shows for an experiment.

    The caller compares them with the hashes of the present results: if all are there, nothing needs
    to be logged. Each finished MLflow run has a tag `outputs`, a SHA-256 of the results that it
    shows. The tags are read with SQL, because importing MLflow takes seconds.

    Args:
        path: The file of MLflow's SQLite database.
        experiment: The name of the experiment.

    Returns:
        The values of the tag; an empty set if the database cannot be read.
    """
    read_only_address = f"file:{quote(str(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(read_only_address, uri=True)) as connection:
            rows = connection.execute(_LOGGED_OUTPUTS_QUERY, [experiment])
            return {value for (value,) in rows}
    except sqlite3.Error:
        return set()


def prepare_database(path: Path) -> None:
    """Create the MLflow database in a file, or migrate it to the tables of the installed MLflow.

    Migrating a database changes its tables as a newer MLflow needs them. What happens depends on
    the file:

    - Missing, or without content of the user: it is replaced by a new database. Such a file is left
      when the creation of a database is interrupted.
    - Written by an older MLflow: the database is migrated, with its runs.
    - Up to date, or written by a newer MLflow: nothing.

    Args:
        path: The file of the SQLite database; it may be missing.

    Raises:
        UserError: An earlier migration of the database was interrupted, and the database contains
            runs.
        sqlite3.Error: The file cannot be read. MLflow would retry this for minutes.
    """
    from sqlalchemy.exc import SQLAlchemyError

    with closing(sqlite3.connect(path)) as connection:
        tables = _table_names(connection)
        revision = _revision(connection, tables)
        has_content = _has_content(connection, tables)
        run_count = _row_count(connection, "runs") if "runs" in tables else 0
    # A revision is the id of a migration. The database has the id of the last one that was run.
    newest_first = _known_revisions()
    is_up_to_date = revision == newest_first[0]
    is_newer = revision is not None and revision not in newest_first
    if is_up_to_date or is_newer:
        # The installed MLflow will itself say that it cannot open the database of a newer one.
        return
    if not has_content:
        _replace_database(path, keeps_content=False)
        return
    if any(table.startswith(_COPIED_TABLE_PREFIX) for table in tables):
        # A migration removes these temporary tables when it ends.
        raise _interrupted_migration_error(path, run_count)
    try:
        _replace_database(path, keeps_content=True)
    except SQLAlchemyError as error:
        if _is_sql_error(error):
            # A migration that was interrupted has changed some tables, but not all. So the tables
            # are not as the migration expects them.
            raise _interrupted_migration_error(path, run_count) from error
        raise


def _is_sql_error(error: Exception) -> bool:
    """Return whether an SQL statement was wrong for the tables of a SQLite database.

    For example, a statement creates a table that exists already. SQLite calls this SQLITE_ERROR.
    Problems of the machine have other names, such as SQLITE_FULL for a full disk.

    Args:
        error: An error of SQLAlchemy, which keeps the error of SQLite in its attribute `orig`.
    """
    sqlite_error = getattr(error, "orig", None)
    return getattr(sqlite_error, "sqlite_errorname", "") == "SQLITE_ERROR"


def _replace_database(path: Path, keeps_content: bool) -> None:
    """Replace a file by a new MLflow database, or by a copy that the installed MLflow has migrated.

    The database is made in a temporary folder, and moved in one step at the end. So a process that
    is killed meanwhile leaves the file as it was.

    Args:
        path: The file of the SQLite database.
        keeps_content: Whether the new database is a migrated copy of the file; otherwise it is
            empty.
    """
    from mlflow.tracking import MlflowClient

    # If the path is a link, the file that it points to is replaced.
    target = path.resolve()
    folder_prefix = f"{target.name}.new."
    # Remove the temporary folders of earlier processes that were killed.
    for left_over_folder in target.parent.glob(f"{glob.escape(folder_prefix)}*"):
        shutil.rmtree(left_over_folder)
    # Each call has a folder with a new name, because MLflow keeps one connection per path: it would
    # use the connection to the file of an earlier call.
    with TemporaryDirectory(prefix=folder_prefix, dir=target.parent) as folder:
        new_path = Path(folder, target.name)
        if keeps_content:
            _copy_database(target, new_path)
        # MLflow creates or migrates a database at the first request, whatever the request is.
        MlflowClient(f"sqlite:///{new_path}").search_experiments(max_results=1)
        new_path.replace(target)


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database by SQLite's backup, which also works while other processes write to it."""
    with (
        closing(sqlite3.connect(source)) as source_connection,
        closing(sqlite3.connect(target)) as target_connection,
    ):
        source_connection.backup(target_connection)


def _interrupted_migration_error(path: Path, run_count: int) -> UserError:
    """Return the error that tells the user that the migration of a database was interrupted.

    MLflow can never open such a database again. The message says how many runs are in it, so that
    the user can decide whether to search for a backup.

    Args:
        path: The file of the database.
        run_count: The number of runs that the database contains.
    """
    return UserError(
        f"{path} is damaged: its migration to another MLflow version did not end. The file "
        f"contains {counted(run_count, 'run')}. Restore your copy of it, or move it away: mv "
        f"{path} {path}.damaged. Then run: bleuprint sync"
    )


def _table_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of all tables of a database, without the internal tables of SQLite."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows if not name.startswith("sqlite_")}


def _revision(connection: sqlite3.Connection, tables: set[str]) -> str | None:
    """Return the id of the last migration that MLflow has run on a database.

    Args:
        connection: The connection to the database.
        tables: The names of its tables.

    Returns:
        The id, such as `c4b9a1e2d3f0`; None if the database is empty, or if MLflow was interrupted
        while it created the database.
    """
    if _REVISION_TABLE not in tables:
        return None
    row = connection.execute(f"SELECT version_num FROM {_REVISION_TABLE}").fetchone()
    if row is None:
        return None
    (revision,) = row
    return str(revision)


def _has_content(connection: sqlite3.Connection, tables: set[str]) -> bool:
    """Return whether a database contains anything of the user, such as a run.

    MLflow itself writes some rows into a new database; these do not count.

    Args:
        connection: The connection to the database.
        tables: The names of its tables.
    """
    return any(_has_rows_of_user(connection, table) for table in tables)


def _has_rows_of_user(connection: sqlite3.Connection, table: str) -> bool:
    """Return whether a table contains rows of the user.

    MLflow itself writes some rows into a new database, such as the experiment `Default`; these do
    not count.

    Args:
        connection: The connection to the database.
        table: The name of the table.
    """
    if table == _REVISION_TABLE:
        return False
    # A migration that was interrupted may have left a copy of a table, under a longer name.
    original_name = table.removeprefix(_COPIED_TABLE_PREFIX)
    initial_row_name = _INITIAL_ROWS.get(original_name)
    if initial_row_name is None:
        return _row_count(connection, table) > 0
    rows = connection.execute(f'SELECT name FROM "{table}"')
    return any(name != initial_row_name for (name,) in rows)


def _row_count(connection: sqlite3.Connection, table: str) -> int:
    """Return the number of rows of a table."""
    (row_count,) = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    return int(row_count)


def _known_revisions() -> list[str]:
    """Return the ids of all migrations that the installed MLflow contains, the newest first.

    They are scripts of Alembic, the tool with which MLflow changes the tables of its database.
    """
    import mlflow
    from alembic.script import ScriptDirectory

    folder = Path(mlflow.__file__).parent / "store" / "db_migrations"
    migrations = ScriptDirectory(str(folder)).walk_revisions()
    return [migration.revision for migration in migrations]
