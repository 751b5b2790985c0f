"""A real tracking server on the loopback, that can be killed, and results to be shown there."""

import os
import signal
import subprocess
import sys
import time
import urllib.request

import result_trees
from bleuprint.config.cells import cells_of
from bleuprint.config.experiment import load
from params import write_resolved
from servers import free_port

# what `bleuprint record` does after it has recorded stages in DVC
SYNC = """
from bleuprint.config.experiment import load
from bleuprint.tracking.sync import sync
print(*sync(load()), sep="\\n")
"""
# without the eight processes that wait for jobs it starts sooner
_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


class MlServer:
    """`mlflow server` on a free port, its database and artifacts in `folder`."""

    def __init__(self, folder):
        self.port = free_port()
        self.uri, self._folder = f"http://127.0.0.1:{self.port}", folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self):
        """Start it unless it runs; does not wait for it."""
        if self._process is None:
            store = f"sqlite:///{self._folder / 'server.db'}"
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"),
                    *("--port", str(self.port), "--workers", "1", "--backend-store-uri", store),
                    *("--artifacts-destination", str(self._folder / "artifacts")),
                ],
                cwd=self._folder,
                env={**os.environ, **_QUIET},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def wait(self):
        """Until it answers."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self._process is not None and self._process.poll() is None, "it has stopped"
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=2):
                    return
            except OSError:
                time.sleep(0.2)
        raise AssertionError("the server did not start within two minutes")

    def kill(self):
        """End like a machine that loses power: clients get no notice."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=30)
            self._process = None


def runs_in(uri, experiment):
    from mlflow.tracking import MlflowClient  # which takes two seconds

    client = MlflowClient(uri, registry_uri=uri)
    found = client.get_experiment_by_name(experiment)
    return client, list(client.search_runs([found.experiment_id])) if found else []


def history(client, run, metric):
    """Update and value of all that is logged of a metric, sorted; with what is there twice."""
    found = client.get_metric_history(run.info.run_id, metric)
    return sorted((point.step, point.value) for point in found)


# Two sizes of BPE, two learning rates, three label smoothings.
_ABLATIONS = """\
  lr: {like: base, over: {train.lr_schedule.inverse_sqrt.lr: [0.002, 0.004]}}
  smoothing: {like: base, over: {train.label_smoothing: [0.0, 0.2, 0.3]}}
"""


def write_ablations(root, experiment):
    """Results of some ablations on news-en-de and 4000-en-de; the working folder is `root`."""
    corpora = {"news-en-de": ("first",), "4000-en-de": ("first",)}
    result_trees.settings_in(root, ("base",), corpora)
    path = root / "params.yaml"
    text = path.read_text().replace("trial_run", experiment)
    first, second = text.split("  4000-en-de:\n")
    text = f"{first}  4000-en-de:\n{second.replace('num_merges: 100', 'num_merges: 4000')}"
    assert text.endswith("\n") and text.rindex("\nsystems:") > text.rindex("\ncorpora:")
    path.write_text(text + _ABLATIONS)
    settings = load(path)
    write_resolved(root)
    result_trees.write_all(root, settings)
    return settings


def write_project(root, seeds=(1, 2)):
    """Results and weights of the systems tiny and small; the working folder is `root`."""
    settings = result_trees.settings_in(root, corpora={"news-en-de": ("first",)}, seeds=seeds)
    result_trees.write_all(root, settings)
    for cell in cells_of(settings):
        weights = root / cell.models / "averaged" / "model.safetensors"
        weights.parent.mkdir(parents=True)
        weights.write_bytes(str(cell).encode())
    return settings
