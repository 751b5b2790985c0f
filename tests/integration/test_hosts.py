"""One training on two hosts, started by profiles/hosts/train.sh, and the loss of either host."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hosts import cut, kill_all, on, processes, two_hosts_up
from root import ROOT
from trainings import environment, fresh, project, train, without_mlflow, write_params

pytestmark = pytest.mark.cluster
SCRIPT = ROOT / "profiles" / "hosts" / "train.sh"
CELL = Path("micro", "toy", "1")
UPDATES = 150
# Seconds: the time-out, and the bound on the end of a job on the hosts that are left: after the
# first time-out its processes are restarted, and find that the others do not come.
TIMEOUT, RESTARTS = 7, 1
BOUND = (1 + RESTARTS) * (TIMEOUT + 20)


class Training:
    """A training on some hosts, each of which writes its log into `root`."""

    def __init__(self, root, hosts):
        self.root, self.hosts = root, hosts
        self.started = {}
        for number, host in enumerate(hosts):
            place = (f"{hosts[0]}:29400", str(number), "2", "1")
            command = [str(SCRIPT), *place, "micro", "toy", "1"]
            with (root / f"{host}.log").open("w") as log:
                self.started[host] = subprocess.Popen(
                    on(host, *command),
                    cwd=root,
                    env={
                        **environment(),
                        **without_mlflow(root),
                        "BLEUPRINT_TIMEOUT": str(TIMEOUT),
                        "PET_MAX_RESTARTS": str(RESTARTS),
                    },
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def ends(self, *hosts, within=BOUND):
        """The statuses with which torchrun ends on these hosts; all of them, if none is named."""
        deadline = time.monotonic() + within
        hosts = hosts or tuple(self.hosts)
        statuses = [self.started[host].wait(max(0, deadline - time.monotonic())) for host in hosts]
        for host in hosts:  # nothing is left running
            while processes(host):
                assert time.monotonic() < deadline + 10, processes(host)
                time.sleep(0.05)
        return statuses

    def said(self, host):
        return (self.root / f"{host}.log").read_text()

    def wait_for_update(self, least):
        """Until there is a checkpoint of that update or a later one."""
        deadline = time.monotonic() + 60
        while not any(update >= least for update in self._updates()):
            assert time.monotonic() < deadline, [self.said(host)[-2000:] for host in self.hosts]
            time.sleep(0.02)

    def _updates(self):
        for path in (self.root / "work" / "trainings").glob("*/checkpoint-*"):
            yield int(path.name.rpartition("-")[2])


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The toy project after an uninterrupted training on two hosts."""
    root = project(tmp_path_factory.mktemp("together"), max_updates=UPDATES)
    with two_hosts_up() as hosts:
        training = Training(root, hosts)
        assert training.ends() == [0, 0], [training.said(host)[-2000:] for host in hosts]
    return root


def test_two_hosts_make_the_losses_of_one_process(together, tmp_path):
    alone = fresh(together, tmp_path)
    train(alone)
    assert losses(together) == pytest.approx(losses(alone), rel=1e-3)
    assert read(together, "results", "training.json")["updates"] == UPDATES
    (path,) = (together / "timings").rglob("train-*.json")
    assert json.loads(path.read_text())["processes"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("host1 0 2 4", "no HOST:PORT: host1\n"),
        (":29400 0 2 4", "no HOST:PORT: :29400\n"),
        ("host1:29x00 0 2 4", "no HOST:PORT: host1:29x00\n"),
        ("host1:29400 0 two 4", "no three numbers: 0 two 4\n"),
        ("host1:29400 0 2 0", "no three numbers: 0 2 0\n"),
        ("host1:29400 2 2 4", "host number 2 of 2: they are numbered from 0\n"),
    ],
)
def test_an_error_on_the_command_line_is_printed(words, said):
    command = [str(SCRIPT), *words.split(), "small", "phrasebook-en-de", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (2, said)


@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_restarts_from_the_checkpoint(together, tmp_path, two_hosts, killed):
    training = Training(fresh(together, tmp_path), two_hosts)
    training.wait_for_update(50)
    (worker,) = workers(two_hosts[killed])
    os.kill(worker, signal.SIGKILL)
    assert training.ends() == [0, 0]
    assert "continuing from update" in "".join(map(training.said, two_hosts))
    for name in ("training.json", "curves.json"):
        assert read(tmp_path, "results", name) == read(together, "results", name)


def test_a_link_that_is_cut_ends_both_sides_by_the_timeout(together, tmp_path, two_hosts):
    training = Training(endless(together, tmp_path), two_hosts)
    training.wait_for_update(20)
    cut(two_hosts[0])
    assert 0 not in training.ends()
    for rank, host in enumerate(two_hosts):
        line = f"process {rank} of 2 on {host} lost another process: Timed out waiting"
        assert f"bleuprint: error: {line}" in training.said(host)
    assert f"did not join within {TIMEOUT} s" in training.said(two_hosts[0])
    assert "process 1 of 2: no answer of process 0" in training.said(two_hosts[1])


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_host_ends_the_other(together, tmp_path, two_hosts, lost):
    training = Training(endless(together, tmp_path), two_hosts)
    training.wait_for_update(20)
    kill_all(two_hosts[lost])
    left = two_hosts[1 - lost]
    assert training.ends(left) != [0]
    line = f"bleuprint: error: process {1 - lost} of 2 on {left} lost another process: "
    assert line in training.said(left)


def test_sigterm_to_one_torchrun_saves_on_all(together, tmp_path, two_hosts):
    training = Training(endless(together, tmp_path), two_hosts)
    training.wait_for_update(20)
    training.started[two_hosts[1]].send_signal(signal.SIGTERM)
    assert 0 not in training.ends()
    for host in two_hosts:
        assert "stopped by SIGTERM: saved at update" in training.said(host)


def workers(host):
    """The processes that train on a host."""
    return [
        pid
        for pid, command in processes(host).items()
        if "stages/train.py" in command and "torchrun" not in command
    ]


def endless(made, root):
    """The same project, untrained, with more updates than there is time for."""
    fresh(made, root)
    write_params(root, max_updates=1_000_000)
    return root


def read(root, folder, name):
    content: dict[str, Any] = json.loads((root / folder / CELL / name).read_text())
    return content


def losses(root):
    return [point["loss"] for point in read(root, "results", "curves.json")["training"]]
