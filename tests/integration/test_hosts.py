"""One training on two hosts, started by profiles/hosts/train.sh, and the loss of either host."""

import json
import os
import signal
import subprocess
import time

import pytest

from hosts import command_on, cut_link, kill_all, processes_on, two_hosts_up
from root import ROOT
from trainings import environment, make_project, train, untrained_copy, without_mlflow, write_params

pytestmark = pytest.mark.cluster
SCRIPT = ROOT / "profiles" / "hosts" / "train.sh"
UPDATES = 150
# How long a process waits for another one before it takes it for lost.
TIMEOUT_SECONDS = 7
# How often torchrun starts the processes of a host again.
RESTARTS = 1
# The time in which a job ends after a host is lost: each start waits for the time-out, since the
# processes of the other host do not come, and takes some seconds of its own.
END_SECONDS = (1 + RESTARTS) * (TIMEOUT_SECONDS + 20)


class Training:
    """A training on two hosts, each with one process.

    Attributes:
        root: The project, to which each host writes its log.
        hosts: The names of the hosts.
        torchruns: The processes of torchrun, by host.
    """

    def __init__(self, root, hosts):
        """Start the training as users do: profiles/hosts/train.sh on each host."""
        self.root = root
        self.hosts = hosts
        self.torchruns = {}
        variables = {
            **environment(),
            **without_mlflow(root),
            "BLEUPRINT_TIMEOUT": str(TIMEOUT_SECONDS),
            "PET_MAX_RESTARTS": str(RESTARTS),
        }
        for number, host in enumerate(hosts):
            address = f"{hosts[0]}:29400"
            command = [str(SCRIPT), address, str(number), "2", "1", "micro", "toy", "1"]
            with (root / f"{host}.log").open("w") as log:
                self.torchruns[host] = subprocess.Popen(
                    command_on(host, *command),
                    cwd=root,
                    env=variables,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

    def exit_statuses(self, *hosts):
        """Return the statuses with which torchrun ends on some hosts; on both if none is named.

        Fails unless all processes of these hosts have ended in time.
        """
        deadline = time.monotonic() + END_SECONDS
        statuses = []
        for host in hosts or self.hosts:
            statuses.append(self.torchruns[host].wait(max(0, deadline - time.monotonic())))
        for host in hosts or self.hosts:
            while processes_on(host):
                assert time.monotonic() < deadline + 10, processes_on(host)
                time.sleep(0.05)
        return statuses

    def log(self, host):
        """Return what a host has printed."""
        return (self.root / f"{host}.log").read_text()

    def wait_for_update(self, first_update):
        """Wait until there is a checkpoint of an update or a later one."""
        deadline = time.monotonic() + 60
        while max(self._checkpoint_updates(), default=0) < first_update:
            ends_of_logs = [self.log(host)[-2000:] for host in self.hosts]
            assert time.monotonic() < deadline, ends_of_logs
            time.sleep(0.02)

    def _checkpoint_updates(self):
        """Return the updates of the checkpoints that are there."""
        updates = []
        for path in (self.root / "work" / "trainings").glob("*/checkpoint-*"):
            updates.append(int(path.name.rpartition("-")[2]))
        return updates


def training_processes(host):
    """Return the ids of the processes that train on a host, which torchrun has started."""
    pids = []
    for pid, command in processes_on(host).items():
        if "stages/train.py" in command and "torchrun" not in command:
            pids.append(pid)
    return pids


def read_result(root, file_name):
    """Return the content of a JSON file in the results of the training."""
    return json.loads((root / "results" / "micro" / "toy" / "1" / file_name).read_text())


def read_losses(root):
    """Return the training losses of a finished training."""
    return [point["loss"] for point in read_result(root, "curves.json")["training"]]


@pytest.fixture(scope="module")
def trained_by_two_hosts(tmp_path_factory):
    """Return the folder of a project that was trained on two hosts without an interruption."""
    root = make_project(tmp_path_factory.mktemp("together"), max_updates=UPDATES)
    with two_hosts_up() as hosts:
        training = Training(root, hosts)
        statuses = training.exit_statuses()
        assert statuses == [0, 0], [training.log(host)[-2000:] for host in hosts]
    return root


def test_two_hosts_train_with_the_losses_of_one_process(trained_by_two_hosts, tmp_path):
    """The hosts share the batches of each update, so the sum of their gradients is the same."""
    one_process_root = untrained_copy(trained_by_two_hosts, tmp_path)

    train(one_process_root)

    losses_of_one_process = read_losses(one_process_root)
    losses_of_two_hosts = read_losses(trained_by_two_hosts)
    assert losses_of_two_hosts == pytest.approx(losses_of_one_process, rel=1e-3)


def test_two_hosts_train_to_the_last_update(trained_by_two_hosts):
    assert read_result(trained_by_two_hosts, "training.json")["updates"] == UPDATES


def test_one_record_of_timings_counts_the_processes_of_all_hosts(trained_by_two_hosts):
    (path,) = (trained_by_two_hosts / "timings").rglob("train-*.json")

    assert json.loads(path.read_text())["processes"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("host1 0 2 4", "no HOST:PORT: host1\n", id="no port"),
        pytest.param(":29400 0 2 4", "no HOST:PORT: :29400\n", id="no host"),
        pytest.param("host1:29x00 0 2 4", "no HOST:PORT: host1:29x00\n", id="port not a number"),
        pytest.param("host1:29400 0 two 4", "no three numbers: 0 two 4\n", id="hosts in words"),
        pytest.param("host1:29400 0 2 0", "no three numbers: 0 2 0\n", id="no processes"),
        pytest.param(
            "host1:29400 2 2 4",
            "host number 2 of 2: they are numbered from 0\n",
            id="host numbered from 1",
        ),
    ],
)
def test_the_script_that_starts_a_training_on_several_hosts_names_a_wrong_argument(
    arguments, message
):
    """A right call, on the first of two hosts with four processes each: train.sh host1:29400 0 2 4.

    Then follow a system, a corpus and a seed.
    """
    run = ["small", "phrasebook-en-de", "1"]
    command = [str(SCRIPT), *arguments.split(), *run]

    process = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert process.returncode == 2
    assert process.stderr == message


for_each_host = pytest.mark.parametrize("host_number", [0, 1], ids=["host 0", "host 1"])


@for_each_host
def test_a_training_with_a_killed_process_goes_on_from_its_checkpoint_to_equal_results(
    trained_by_two_hosts, tmp_path, two_hosts, host_number
):
    """Each host has one training process. One of them is killed after update 50.

    The reference is `trained_by_two_hosts`, the same training without an interruption.
    """
    training = Training(untrained_copy(trained_by_two_hosts, tmp_path), two_hosts)
    training.wait_for_update(50)

    (pid,) = training_processes(two_hosts[host_number])
    os.kill(pid, signal.SIGKILL)

    assert training.exit_statuses() == [0, 0]
    logs = "".join(training.log(host) for host in two_hosts)
    assert "continuing from update" in logs
    for file_name in ("training.json", "curves.json"):
        expected_result = read_result(trained_by_two_hosts, file_name)
        assert read_result(tmp_path, file_name) == expected_result


@pytest.fixture
def endless_training(trained_by_two_hosts, tmp_path, two_hosts):
    """Return a Training with more updates than there is time for, which has begun."""
    root = untrained_copy(trained_by_two_hosts, tmp_path)
    write_params(root, max_updates=1_000_000)
    training = Training(root, two_hosts)
    training.wait_for_update(20)
    return training


def test_a_cut_link_ends_the_training_on_both_hosts_after_the_timeout(endless_training):
    """The network between the hosts fails during a training; each waits for the other one.

    Without an end, both would occupy their GPUs until the job's time limit.
    """
    hosts = endless_training.hosts

    cut_link(hosts[0])

    assert 0 not in endless_training.exit_statuses()
    for rank, host in enumerate(hosts):
        message = f"process {rank} of 2 on {host} lost another process: Timed out waiting"
        assert f"bleuprint: error: {message}" in endless_training.log(host)
    # Each host starts its process again, which does not find the other one.
    assert f"did not join within {TIMEOUT_SECONDS} s" in endless_training.log(hosts[0])
    assert "process 1 of 2: process 0 does not answer" in endless_training.log(hosts[1])


@for_each_host
def test_a_lost_host_ends_the_training_on_the_other_host(endless_training, host_number):
    """All processes of one host are killed at once, as by a power failure."""
    other_number = 1 - host_number
    other_host = endless_training.hosts[other_number]

    kill_all(endless_training.hosts[host_number])

    assert endless_training.exit_statuses(other_host) != [0]
    message = f"process {other_number} of 2 on {other_host} lost another process: "
    assert f"bleuprint: error: {message}" in endless_training.log(other_host)


def test_sigterm_to_the_torchrun_of_one_host_saves_the_training_on_both(endless_training):
    """A scheduler such as SLURM sends SIGTERM to end a job, perhaps only to one of its hosts.

    torchrun starts the training process of a host and passes the signal on.
    """
    second_host = endless_training.hosts[1]

    endless_training.torchruns[second_host].send_signal(signal.SIGTERM)

    assert 0 not in endless_training.exit_statuses()
    for host in endless_training.hosts:
        assert "stopped by SIGTERM and saved at update" in endless_training.log(host)
