"""MLflow's database after an interruption: the next command works, and no run is lost."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import half_databases
from bleuprint.tracking import database

# Opens the database as all commands of bleuprint do, and prints the ids of its runs by experiment.
_OPEN = """
import json
from bleuprint.runtime.errors import run_main
from bleuprint.tracking import store

def main():
    with store.name_store_in_errors():
        client = store.open_client()
        run_ids = {}
        for experiment in client.search_experiments():
            runs = client.search_runs([experiment.experiment_id])
            run_ids[experiment.name] = [run.info.run_id for run in runs]
        print(json.dumps(run_ids))

run_main(main)
"""
# Limits the size of files in bytes, so that writing fails as on a full disk.
_LIMIT_FILES = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Return the path of the database of a project, which does not exist yet."""
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "mlflow.db"


@pytest.fixture(scope="module")
def old_database(tmp_path_factory):
    """Return the database of an older MLflow, with a run. Not to be changed."""
    old_path = tmp_path_factory.mktemp("old") / "old.db"
    assert half_databases.run_mlflow("old", old_path).returncode == 0
    return old_path


def open_database(size_limit=None):
    """Open the database in a process of its own, and return the process.

    Args:
        size_limit: How many bytes a file may have; by default any number.
    """
    program = _OPEN
    if size_limit is not None:
        program = _LIMIT_FILES.format(size_limit) + _OPEN
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def open_and_list_runs():
    """Open the database, and return the ids of its runs by experiment."""
    return json.loads(open_database().stdout)


def table_names(path):
    """Return the names of all tables in a database."""
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def database_files(path):
    """Return the names of the database and of the files beside it whose names begin like its."""
    return [file.name for file in path.parent.glob("mlflow.db*")]


@pytest.mark.parametrize(
    ("size_limit", "last_table"),
    [
        pytest.param(20_000, "experiments", id="after the first table"),
        pytest.param(200_000, "alembic_version", id="during the first migrations"),
        # MLflow cannot open this one any more.
        pytest.param(600_000, "_alembic_tmp_experiments", id="while a table is copied"),
    ],
)
def test_a_database_whose_creation_was_interrupted_is_created_again(path, size_limit, last_table):
    """Files may have `size_limit` bytes, so that creating the database fails as on a full disk.

    The next command, without the limit, finds the tables made so far. It makes a new database,
    which contains MLflow's experiment Default without runs.
    """
    process = half_databases.run_mlflow("create", path, size_limit)
    assert process.returncode != 0
    assert last_table in table_names(path)

    process = open_database()

    assert process.returncode == 0
    assert process.stderr == ""
    assert json.loads(process.stdout) == {"Default": []}
    temporary_tables = [name for name in table_names(path) if name.startswith("_alembic_tmp")]
    assert temporary_tables == []
    assert database_files(path) == ["mlflow.db"]


def test_creating_a_database_on_a_full_disk_ends_with_one_line(path):
    """Files may have 600,000 bytes, too few for a new database, so that writing fails.

    SQLite names the cause in one of two ways.
    """
    process = open_database(size_limit=600_000)

    assert process.returncode == 1
    error = f"bleuprint: error: MLflow at sqlite:///{path}: "
    assert process.stderr in (f"{error}disk I/O error\n", f"{error}database or disk is full\n")


def test_the_next_command_creates_a_database_after_the_disk_was_full(path):
    """The first command may leave an empty file at most, which the next one fills.

    MLflow's experiment Default, without runs, is all that a new database contains.
    """
    open_database(size_limit=600_000)  # The limit is too small for a database.
    assert not path.exists() or path.stat().st_size == 0
    assert set(database_files(path)) <= {"mlflow.db"}

    run_ids = open_and_list_runs()

    assert run_ids == {"Default": []}


def test_the_remains_of_a_killed_creation_are_removed(path):
    """A database is first created in a folder next to its place, and then moved.

    Here this folder, with half a database, is left from a process that was killed.
    """
    remains = path.with_name("mlflow.db.new.killed")
    remains.mkdir()
    (remains / "mlflow.db").write_text("half")

    run_ids = open_and_list_runs()

    assert run_ids == {"Default": []}  # what a new database contains
    assert database_files(path) == ["mlflow.db"]


@pytest.fixture(params=[20_000, 140_000], ids=["half a step", "a copied table"])
def half_migrated_database(request, path, old_database):
    """Return a database whose migration to a newer MLflow was interrupted, so that MLflow fails.

    The parameter says after how many more bytes than the old database has.
    """
    shutil.copyfile(old_database, path)
    size_limit = old_database.stat().st_size + request.param
    assert half_databases.run_mlflow("migrate", path, size_limit).returncode != 0
    assert half_databases.run_mlflow("migrate", path).returncode != 0
    return path


def test_a_half_migrated_database_with_runs_is_kept_and_reported(half_migrated_database):
    """Another MLflow was killed while it changed the tables of a database with one run.

    A new database in its place would lose the run, so the user decides what to do.
    """
    path = half_migrated_database
    content = path.read_bytes()

    process = open_database()

    assert process.returncode == 1
    assert process.stdout == ""
    assert process.stderr == (
        f"bleuprint: error: {path} is damaged: its migration to another MLflow version did not "
        f"end. The file contains 1 run. Restore your copy of it, or move it away: mv {path} "
        f"{path}.damaged. Then run: bleuprint sync\n"
    )
    assert path.read_bytes() == content
    assert database_files(path) == ["mlflow.db"]


def test_a_new_database_is_created_if_a_half_migrated_one_is_moved_away(half_migrated_database):
    """The message about a half-migrated database says to move it."""
    half_migrated_database.rename(f"{half_migrated_database}.damaged")

    assert open_and_list_runs() == {"Default": []}


def test_a_migration_that_fails_leaves_the_database_of_the_older_mlflow(path, old_database):
    """Migrating the database to the installed MLflow takes more space than the limit allows."""
    shutil.copyfile(old_database, path)

    process = open_database(size_limit=old_database.stat().st_size + 140_000)

    assert process.returncode == 1
    assert path.read_bytes() == old_database.read_bytes()


def test_a_failed_migration_is_repeated_when_the_disk_has_room(path, old_database):
    """The database of an older MLflow contains one run, of the experiment `precious`."""
    shutil.copyfile(old_database, path)
    # The limit is too small for the migration, which fails.
    open_database(size_limit=old_database.stat().st_size + 140_000)

    run_ids = open_and_list_runs()

    # MLflow may list its own experiment Default, too, which then has no run.
    assert run_ids.pop("Default", []) == []
    assert run_ids == {"precious": [half_databases.RUN_ID]}


def test_the_last_known_migration_is_that_of_a_new_database(mldatabase):
    """The list of migrations is read from a folder of MLflow that may move in a new version.

    If this test fails, adapt `_known_revisions` in database.py. The expected value is the schema
    that the installed MLflow has written into a new database.
    """
    with closing(sqlite3.connect(mldatabase)) as connection:
        ((revision,),) = connection.execute("SELECT version_num FROM alembic_version")

    assert database._known_revisions()[0] == revision


def test_a_database_behind_a_symbolic_link_is_created_there(path):
    elsewhere = path.with_name("elsewhere.db")
    path.symlink_to(elsewhere)

    run_ids = open_and_list_runs()

    assert run_ids == {"Default": []}  # what a new database contains
    assert path.is_symlink()
    assert "runs" in table_names(elsewhere)
