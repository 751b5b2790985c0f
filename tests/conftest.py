"""Fixtures that several files share."""

import os
import signal
import time
import urllib.request
from types import SimpleNamespace

import pytest

import micro
import requirements
import warm
from bleuprint import native
from bleuprint.corpus.download import http
from bleuprint.runtime import machine_errors
from hosts import two_hosts_up
from servers import Host, running
from shared_folders import SharedFolders

# Shells make background processes ignore Ctrl-C, and children inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Test files that take minutes each: run first, so that no worker is alone with one at the end.
# test_dvc and test_dvc_systems follow test_snakemake: the fixture by_dvc then exists.
LONG_TEST_FILES = (
    "test_recipes_translate",
    "test_recipes_run",
    "test_project_files",
    "test_tutorial",
    "test_snakemake",
    "test_trainer",
    "test_resolve",
    "test_resolve_runs",
    "test_learning",
    "test_dvc",
    "test_dvc_systems",
    "test_launch",
)


def pytest_make_parametrize_id(val):
    """Name bytes by their number: compressed bytes contain a time, and workers need equal names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


def pytest_configure(config):
    """Start the server of loaded processes early (see warm); pytest calls this function."""
    starts_processes = "not processes" not in config.option.markexpr
    if config.getoption("numprocesses", None) and starts_processes:
        # One server of loaded processes for all workers, which starts while they collect tests.
        warm.start()


def pytest_collection_modifyitems(items):
    """Let the longest tests run first, so that no worker has to finish one alone at the end."""
    order = {name: number for number, name in enumerate(LONG_TEST_FILES)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Choose for each test whether micro projects start stages in loaded processes (see warm)."""
    marks = {mark.name for mark in item.iter_markers()}
    micro.Project.warm = not marks & {"cluster", "long"}


@pytest.fixture(autouse=True)
def no_memory_of_a_stage(monkeypatch):
    """Forget the memory that a stage run in this process needed; later messages would name it."""
    monkeypatch.setattr(machine_errors, "needed_memory_gb", None)


@pytest.fixture
def two_hosts():
    """Return the names of two hosts with a link between them."""
    with two_hosts_up() as names:
        yield names


@pytest.fixture
def pauses(monkeypatch):
    """Return a list to which downloads add the seconds that they would sleep; they do not sleep."""
    seconds = []
    clock = SimpleNamespace(sleep=seconds.append, monotonic=time.monotonic)
    monkeypatch.setattr(http, "time", clock)
    return seconds


@pytest.fixture
def no_proxies(monkeypatch):
    """Remove the user's proxies, so that requests reach the servers of tests."""
    # urlopen keeps the proxies of its first call.
    monkeypatch.setattr(urllib.request, "_opener", None)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def require_native_library():
    """Skip the test if there is no compiler; fail if there is one, and it built no library."""
    if native.library() is None:
        requirements.skip_without("g++")
        pytest.fail(f"{native.unavailable_reason()}; run: rm .venv/.ready; make setup")


@pytest.fixture(scope="session")
def native_library():
    """Skip the test if the compiled functions are missing and there is no compiler."""
    require_native_library()


@pytest.fixture(params=["native", "python"], scope="module")
def with_and_without_native(request):
    """Run each test twice: with the compiled functions and without."""
    if request.param == "native":
        require_native_library()
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(native, "library", lambda: None)
        yield


@pytest.fixture
def host():
    """Return a web server on this machine that answers as tests tell it (tests/support/servers)."""
    with running(Host()) as host:
        yield host


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """Return a function that makes a folder once for all of pytest-xdist's workers.

    Tests leave these folders as they are: a change in one of them fails at the end.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folders = SharedFolders(base)
    yield folders.folder
    folders.check()


@pytest.fixture(scope="session")
def toy(shared_folder):
    """Return a toy project that translates (see trainings). Not to be changed."""
    import trainings  # Loads torch, which few tests need.

    return shared_folder("toy", trainings.make_translator)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Return a headless Chromium that logs the requests of a module; skips if it is missing."""
    from browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="session")
def mlserver(tmp_path_factory):
    """Return a real `mlflow server` that runs; a test that kills it starts it again."""
    from mlservers import MlServer

    server = MlServer(tmp_path_factory.mktemp("mlserver"))
    server.start()
    server.wait()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def mldatabase(shared_folder):
    """Return MLflow's database without a run, to be copied, since creating one takes seconds."""

    def make(folder):
        from mlflow.tracking import MlflowClient

        folder.mkdir()
        MlflowClient(f"sqlite:///{folder / 'mlflow.db'}").search_experiments()

    return shared_folder("mldatabase", make) / "mlflow.db"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Return a real SLURM cluster of three virtual nodes (see slurmcluster)."""
    import slurmcluster

    slurmcluster.skip_unless_installed()
    cluster = slurmcluster.Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def slurm_project(cluster, tmp_path):
    """Return a micro project on the cluster's login node; its jobs end with the test."""
    from slurmprojects import make_project

    yield make_project(cluster, tmp_path / "project")
    for number, state, *_ in cluster.jobs():
        if state in ("PENDING", "RUNNING"):
            cluster.run("scancel", number)


@pytest.fixture(scope="session")
def clean(shared_folder):
    """Return a micro project (see micro) in which nothing has run. Not to be changed."""

    def make(folder):
        micro.make(folder).commit()

    return micro.Project(shared_folder("clean", make))


@pytest.fixture(scope="session")
def by_dvc(clean, shared_folder):
    """Return a micro project after `dvc repro`, committed. Not to be changed."""

    def make(folder):
        project = clean.copy(folder)
        stage_count = 22
        assert len(project.repro()) == stage_count
        project.commit()

    return micro.Project(shared_folder("dvc", make))


@pytest.fixture(scope="session")
def stand_in(shared_folder):
    """Return a project whose stages compute nothing (see stand_ins); all have run.

    Not to be changed.
    """
    import stand_ins

    def make(folder):
        stand_ins.run(stand_ins.make(folder))

    return micro.Project(shared_folder("stand-in", make))


@pytest.fixture
def reproduced(by_dvc, tmp_path):
    """Return a copy of the micro project after `dvc repro`, which a test may change."""
    return by_dvc.copy(tmp_path / "project")
