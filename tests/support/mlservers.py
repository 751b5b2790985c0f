"""A real MLflow server on the loopback, which tests can kill, and results to show in it."""

import os
import signal
import subprocess
import sys
import time
import urllib.request

import result_trees
from bleuprint.config.experiment import load_settings
from bleuprint.config.runs import trained_runs
from params import write_resolved
from servers import free_port

# What `bleuprint sync` does after it has recorded stages in DVC.
SYNC = """
from bleuprint.config.experiment import load_settings
from bleuprint.tracking.sync import sync
print(*sync(load_settings()), sep="\\n")
"""
# The server starts sooner without the eight processes that wait for jobs.
_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


class MlServer:
    """`mlflow server` on a free port, with its database and artifacts in a folder.

    Attributes:
        port: The port.
        uri: The address.
    """

    def __init__(self, folder):
        """Choose a port. The server starts with `start`."""
        self.port = free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self):
        """Start the server unless it runs, without waiting for it."""
        if self._process is not None:
            return
        command = [sys.executable, "-m", "mlflow", "server"]
        command += ["--host", "127.0.0.1"]
        command += ["--port", str(self.port)]
        command += ["--workers", "1"]
        command += ["--backend-store-uri", f"sqlite:///{self._folder / 'server.db'}"]
        command += ["--artifacts-destination", str(self._folder / "artifacts")]
        self._process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=os.environ | _QUIET,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait(self):
        """Wait until the server answers."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, "the server has stopped"
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=60):
                    return
            except OSError:
                time.sleep(0.2)
        raise AssertionError("the server did not start within two minutes")

    def kill(self):
        """Kill the server, as when its machine loses power: clients get no notice."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=60)
            self._process = None


def runs_in(uri, experiment):
    """Return a client of a store, and the runs of an experiment in it."""
    from mlflow.tracking import MlflowClient  # Loading it takes two seconds.

    client = MlflowClient(uri, registry_uri=uri)
    record = client.get_experiment_by_name(experiment)
    if record is None:
        return client, []
    return client, list(client.search_runs([record.experiment_id]))


def history(client, run, metric):
    """Return the update and value of all points of a metric, sorted, with repetitions."""
    points = client.get_metric_history(run.info.run_id, metric)
    return sorted((point.step, point.value) for point in points)


# Two sizes of BPE, two learning rates, three label smoothings.
_ABLATIONS = """\
  lr-0p002: {like: base, train: {lr_schedule: {inverse_sqrt: {lr: 0.002}}}}
  lr-0p004: {like: base, train: {lr_schedule: {inverse_sqrt: {lr: 0.004}}}}
  smoothing-0p0: {like: base, train: {label_smoothing: 0.0}}
  smoothing-0p2: {like: base, train: {label_smoothing: 0.2}}
  smoothing-0p3: {like: base, train: {label_smoothing: 0.3}}
"""


def write_ablations(root, experiment):
    """Write results of some ablations on two corpora, in the working folder `root`.

    The corpora are news-en-de and 4000-en-de, which differ in the number of merges.
    """
    corpora = {"news-en-de": ("first",), "4000-en-de": ("first",)}
    result_trees.settings_in(root, ("base",), corpora)
    path = root / "params.yaml"
    text = path.read_text().replace("trial_run", experiment)
    first, second = text.split("  4000-en-de:\n")
    text = f"{first}  4000-en-de:\n{second.replace('num_merges: 100', 'num_merges: 4000')}"
    systems_are_last = text.rindex("\nsystems:") > text.rindex("\ncorpora:")
    assert text.endswith("\n")
    assert systems_are_last
    path.write_text(text + _ABLATIONS)
    settings = load_settings(path)
    write_resolved(root)
    result_trees.write_all(root, settings)
    return settings


def write_project(root, seeds=(1, 2)):
    """Write results and weights of the systems tiny and small, in the working folder `root`."""
    settings = result_trees.settings_in(root, corpora={"news-en-de": ("first",)}, seeds=seeds)
    result_trees.write_all(root, settings)
    for run in trained_runs(settings):
        weights = root / run.models_folder / "averaged" / "model.safetensors"
        weights.parent.mkdir(parents=True)
        weights.write_bytes(str(run).encode())
    return settings
