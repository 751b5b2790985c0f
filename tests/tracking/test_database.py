"""MLflow's database after an interruption: the same command ends right, and no run is lost."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import half_databases
from bleuprint.tracking import database

# Opens the store as all commands do; prints its runs, of each experiment.
_OPEN = """
import json
from bleuprint.runtime.errors import run_main
from bleuprint.tracking import store

def main():
    with store.name_store_in_errors():
        client = store.open_client()
        ids = {each.name: each.experiment_id for each in client.search_experiments()}
        print(json.dumps({
            name: [run.info.run_id for run in client.search_runs([number])]
            for name, number in ids.items()
        }))

run_main(main)
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where the project's database is."""
    monkeypatch.chdir(tmp_path)
    for name in ("MLFLOW_TRACKING_URI", "DVC_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "mlflow.db"


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """The database of an older MLflow, with a run."""
    made = tmp_path_factory.mktemp("old") / "old.db"
    assert half_databases.made("old", made).returncode == 0
    return made


def opened(*, size_limit=None):
    """What a process that opens the store printed, as files may have that many bytes."""
    program = _OPEN
    if size_limit is not None:
        program = (
            "import resource, signal\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size_limit}, {size_limit}))\n{_OPEN}"
        )
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def tables(path):
    with closing(sqlite3.connect(path)) as opened_file:
        return {name for (name,) in opened_file.execute("SELECT name FROM sqlite_master")}


@pytest.mark.parametrize(
    ("size_limit", "left"),
    [(20_000, "experiments"), (200_000, "alembic_version"), (600_000, "_alembic_tmp_experiments")],
)
def test_a_database_whose_creation_was_interrupted_is_made_again(path, size_limit, left):
    """The third is the one that MLflow cannot open any more."""
    assert half_databases.made("create", path, size_limit).returncode != 0
    assert left in tables(path)
    result = opened()
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {"Default": []}
    assert not [name for name in tables(path) if name.startswith("_alembic_tmp")]
    assert [each.name for each in path.parent.glob("mlflow.db*")] == ["mlflow.db"]


def test_a_full_disk_leaves_nothing_behind_that_stops_the_next_command(path):
    full = opened(size_limit=600_000)
    assert full.returncode == 1
    said = f"bleuprint: error: MLflow at sqlite:///{path}: "
    assert full.stderr in {
        f"{said}{why}\n" for why in ("disk I/O error", "database or disk is full")
    }
    assert not path.exists() or not path.stat().st_size
    assert [each.name for each in path.parent.glob("mlflow.db?*")] == []
    assert json.loads(opened().stdout) == {"Default": []}


def test_what_a_killed_creation_left_is_removed(path):
    left_over = path.with_name("mlflow.db.new.killed")
    left_over.mkdir()
    (left_over / "mlflow.db").write_text("half")
    assert json.loads(opened().stdout) == {"Default": []}
    assert [each.name for each in path.parent.glob("mlflow.db*")] == ["mlflow.db"]


@pytest.mark.parametrize("more_bytes", [20_000, 140_000], ids=["half a step", "a copied table"])
def test_a_database_with_runs_whose_migration_was_interrupted_is_kept_and_named(
    path, old, more_bytes
):
    shutil.copyfile(old, path)
    limit = old.stat().st_size + more_bytes
    assert half_databases.made("migrate", path, limit).returncode != 0
    assert half_databases.made("migrate", path).returncode != 0  # MLflow itself cannot go on
    before = path.read_bytes()
    result = opened()
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"bleuprint: error: {path} is damaged: its migration to another MLflow did not end, and it "
        f"holds 1 run. Put back your copy of it, or move it away: mv {path} {path}.damaged. Then "
        "run: bleuprint sync\n"
    )
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.glob("mlflow.db*")] == ["mlflow.db"]
    # what the message says to do
    path.rename(f"{path}.damaged")
    assert json.loads(opened().stdout) == {"Default": []}


def test_a_migration_that_fails_leaves_the_database_of_the_older_mlflow(path, old):
    shutil.copyfile(old, path)
    assert opened(size_limit=old.stat().st_size + 140_000).returncode == 1
    assert path.read_bytes() == old.read_bytes()
    # with room, the same command migrates it
    experiments = json.loads(opened().stdout)
    # MLflow may list its own experiment Default, too, which then has no run.
    assert experiments.pop("Default", []) == []
    assert experiments == {"precious": [half_databases.RUN]}


def test_the_newest_migration_is_that_of_a_new_database(mldatabase):
    """MLflow's folder of migrations is not part of its interface. If it has moved: database.py."""
    with closing(sqlite3.connect(mldatabase)) as opened_file:
        ((revision,),) = opened_file.execute("SELECT version_num FROM alembic_version")
    assert database._known_revisions()[0] == revision


def test_a_link_to_a_database_stays_a_link(path):
    elsewhere = path.with_name("elsewhere.db")
    path.symlink_to(elsewhere)
    assert json.loads(opened().stdout) == {"Default": []}
    assert path.is_symlink() and "runs" in tables(elsewhere)
