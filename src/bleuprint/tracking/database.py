"""The file of MLflow's database: made whole or not at all, and read without loading MLflow.

MLflow creates its database in some fifty migrations, and migrates that of an older MLflow in place.
If it is killed meanwhile or the disk is full, it fails at what is left for ever after. So both are
done on a copy, which replaces the file when it is complete.
"""

import glob
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from bleuprint.runtime.errors import UserError
from bleuprint.tracking.runs import FINISHED, OUTPUTS

# Alembic copies a table to one with this prefix, removes the table, and renames the copy.
_COPIED = "_alembic_tmp_"
# What MLflow itself writes into a new database: an experiment and a workspace.
_INITIAL_ROWS = {"experiments": "Default", "workspaces": "default"}

_LOGGED = f"""
SELECT tags.value
FROM tags
JOIN runs ON runs.run_uuid = tags.run_uuid
JOIN experiments ON experiments.experiment_id = runs.experiment_id
WHERE tags.key = '{OUTPUTS}' AND experiments.name = ?
AND runs.status = '{FINISHED}'
AND runs.lifecycle_stage = 'active' AND experiments.lifecycle_stage = 'active'
"""


def logged_outputs(path: Path, experiment: str) -> set[str]:
    """Return the tags `outputs` of an experiment's finished runs; none if that cannot be read."""
    address = f"file:{quote(str(path))}?mode=ro"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as opened:
        return {value for (value,) in opened.execute(_LOGGED, [experiment])}
    return set()


def prepare(path: Path) -> None:
    """Make the database in a file usable for the installed MLflow.

    A new file gets a database. What is left of an unfinished creation is replaced: it holds
    nothing of the user's. A database that holds something is migrated, on a copy, if MLflow would
    migrate it.

    Args:
        path: The file; it may be missing.

    Raises:
        UserError: If the database was being migrated when that was interrupted, and holds runs.
        sqlite3.Error: If the file cannot be read; MLflow would try that again for minutes.
    """
    from sqlalchemy.exc import SQLAlchemyError

    with closing(sqlite3.connect(path)) as opened:
        tables = _tables(opened)
        revision = _revision(opened, tables)
        holds_content = _holds_content(opened, tables)
        run_count = _count(opened, "runs") if "runs" in tables else 0
    known_revisions = _known_revisions()
    if revision == known_revisions[0]:
        return
    if revision and revision not in known_revisions:
        return  # a newer MLflow made it, as MLflow will say
    if not holds_content:
        _replace(path, is_kept=False)
        return
    if any(table.startswith(_COPIED) for table in tables):
        raise _interrupted(path, run_count)
    try:
        _replace(path, is_kept=True)
    except SQLAlchemyError as error:
        # A migration does not fit the tables, as where an earlier one was interrupted; a full disk
        # has another name.
        if getattr(getattr(error, "orig", None), "sqlite_errorname", "") == "SQLITE_ERROR":
            raise _interrupted(path, run_count) from error
        raise


def _replace(path: Path, is_kept: bool) -> None:
    """Put a complete database in the place of a file; `is_kept`: with the content of the file."""
    from mlflow.tracking import MlflowClient

    target = path.resolve()  # of a link the file that it names
    prefix = f"{target.name}.new."
    for left_over in target.parent.glob(f"{glob.escape(prefix)}*"):  # by a process that was killed
        shutil.rmtree(left_over)
    # another name each time: within a process MLflow keeps the connection to a name
    with TemporaryDirectory(prefix=prefix, dir=target.parent) as folder:
        copy = Path(folder, target.name)
        if is_kept:
            with closing(sqlite3.connect(target)) as source, closing(sqlite3.connect(copy)) as new:
                source.backup(new)
        MlflowClient(f"sqlite:///{copy}").search_experiments(max_results=1)
        copy.replace(target)


def _interrupted(path: Path, run_count: int) -> UserError:
    """The error of a database whose migration did not end; it is left as it is."""
    noun = "run" if run_count == 1 else "runs"
    return UserError(
        f"{path} is damaged: its migration to another MLflow did not end, and it holds {run_count} "
        f"{noun}. Put back your copy of it, or move it away: mv {path} {path}.damaged. Then run: "
        "bleuprint sync"
    )


def _tables(opened: sqlite3.Connection) -> set[str]:
    """The names of all tables."""
    rows = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows if not name.startswith("sqlite_")}


def _revision(opened: sqlite3.Connection, tables: set[str]) -> str | None:
    """The last migration of MLflow's that was done; None if none was."""
    if "alembic_version" not in tables:
        return None
    row = opened.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else None


def _holds_content(opened: sqlite3.Connection, tables: set[str]) -> bool:
    """Whether a database holds anything besides what MLflow writes when it creates one."""
    for table in tables - {"alembic_version"}:
        initial_name = _INITIAL_ROWS.get(table.removeprefix(_COPIED))
        if initial_name is None:
            if _count(opened, table):
                return True
        else:
            rows = opened.execute(f'SELECT name FROM "{table}"')
            if any(name != initial_name for (name,) in rows):
                return True
    return False


def _count(opened: sqlite3.Connection, table: str) -> int:
    """The number of rows of a table."""
    (count,) = opened.execute(f'SELECT count(*) FROM "{table}"').fetchone()
    return int(count)


def _known_revisions() -> list[str]:
    """The migrations of the installed MLflow, the newest first."""
    import mlflow
    from alembic.script import ScriptDirectory

    folder = Path(mlflow.__file__).parent / "store" / "db_migrations"
    return [each.revision for each in ScriptDirectory(str(folder)).walk_revisions()]
