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


# They take minutes each: run first, so that no worker is alone with one at the end.
# test_dvc follows test_snakemake: the fixture by_dvc then exists.
LONG = (
    "test_recipes_translate",
    "test_recipes_run",
    "test_project_files",
    "test_tutorial",
    "test_snakemake",
    "test_trainer",
    "test_resolve",
    "test_learning",
    "test_dvc",
    "test_launch",
)


def pytest_make_parametrize_id(val):
    """Workers must collect equal names; compressed bytes, as a name, contain a timestamp."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


def pytest_configure(config):
    starts_processes = "not processes" not in config.option.markexpr
    if config.getoption("numprocesses", None) and starts_processes:
        warm.start()  # one for all workers, while they collect tests


def pytest_collection_modifyitems(items):
    order = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    marks = {mark.name for mark in item.iter_markers()}
    micro.Project.warm = not marks & {"cluster", "long"}


@pytest.fixture(autouse=True)
def no_memory_of_a_stage(monkeypatch):
    """Forget the memory that a stage run in this process needed; later messages would name it."""
    monkeypatch.setattr(machine_errors, "needed_memory_gb", None)


@pytest.fixture
def two_hosts():
    """The names of two hosts with a link between them."""
    with two_hosts_up() as names:
        yield names


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that the code requested; none of them takes time."""
    made = []
    monkeypatch.setattr(http, "time", SimpleNamespace(sleep=made.append, monotonic=time.monotonic))
    return made


@pytest.fixture
def no_proxies(monkeypatch):
    monkeypatch.setattr(urllib.request, "_opener", None)  # urlopen keeps the first one's proxies
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
    require_native_library()


@pytest.fixture(params=["native", "python"], scope="module")
def with_and_without_native(request):
    """Each test twice: with the compiled functions and without."""
    if request.param == "native":
        require_native_library()
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(native, "library", lambda: None)
        yield


@pytest.fixture
def host():
    with running(Host()) as host:
        yield host


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """A function that makes a folder once for all of pytest-xdist's workers, which share it.

    Tests leave these folders as they are: a change in one of them fails at the end.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folders = SharedFolders(base)
    yield folders.made
    folders.check()


@pytest.fixture(scope="session")
def toy(made_once):
    """A toy project that translates (see trainings). Not to be changed."""
    import trainings  # loads torch, which few need

    return made_once("toy", trainings.translator)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium with a log of the requests of one module; skips if it is missing."""
    from browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="session")
def mlserver(tmp_path_factory):
    """A real `mlflow server`, started (a test that kills it starts it again)."""
    from mlservers import MlServer

    server = MlServer(tmp_path_factory.mktemp("mlserver"))
    server.start()
    server.wait()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def mldatabase(made_once):
    """MLflow's database without a run, to be copied, since creating one takes seconds."""

    def make(folder):
        from mlflow.tracking import MlflowClient

        folder.mkdir()
        MlflowClient(f"sqlite:///{folder / 'mlflow.db'}").search_experiments()

    return made_once("mldatabase", make) / "mlflow.db"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A real SLURM of three virtual nodes (see slurmcluster)."""
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
    """A micro project on the cluster's login node; its jobs end with the test."""
    from slurmprojects import make_project

    yield make_project(cluster, tmp_path / "project")
    for number, state, *_ in cluster.jobs():
        if state in ("PENDING", "RUNNING"):
            cluster.run("scancel", number)


@pytest.fixture(scope="session")
def clean(made_once):
    """A micro project (see micro) in which nothing has run. Not to be changed."""
    return micro.Project(made_once("clean", lambda folder: micro.make(folder).commit()))


@pytest.fixture(scope="session")
def by_dvc(clean, made_once):
    """A project after `dvc repro`, committed. Not to be changed."""

    def make(folder):
        project = clean.copy(folder)
        assert len(project.repro()) == 22
        project.commit()

    return micro.Project(made_once("dvc", make))


@pytest.fixture(scope="session")
def stand_in(made_once):
    """A project whose stages compute nothing (see stand_ins); all have run. Not to be changed."""
    import stand_ins

    def make(folder):
        stand_ins.run(stand_ins.make(folder))

    return micro.Project(made_once("stand-in", make))


@pytest.fixture
def reproduced(by_dvc, tmp_path):
    return by_dvc.copy(tmp_path / "project")
