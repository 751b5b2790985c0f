"""Processes that are started by hand: wrong variables, and other programs at the address."""

import os
import re
import socket
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from bleuprint.runtime.distributed import ranks, rendezvous, store
from bleuprint.runtime.distributed.gpus import Member
from bleuprint.runtime.distributed.ranks import ProcessRank
from bleuprint.runtime.errors import UserError
from process_groups import start_group, wait_for_exit
from servers import free_port


def process_variables(**changed):
    """Return the environment variables of process 1 of 2, started by hand, with some changed."""
    variables = {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    }
    return {**variables, **changed}


@pytest.fixture
def set_process_variables(monkeypatch):
    """Return a function that sets the variables of process 1 of 2, with some changed."""
    for name in list(os.environ):
        if name.startswith(("SLURM", "TORCHELASTIC", "BLEUPRINT_", "LOCAL_RANK")):
            monkeypatch.delenv(name)

    def set_variables(**changed):
        for name, text in process_variables(**changed).items():
            monkeypatch.setenv(name, text)

    return set_variables


@pytest.mark.parametrize(
    ("variable", "text", "limits"),
    [
        pytest.param("RANK", "x", "from 0", id="rank-letter"),
        pytest.param("RANK", "-1", "from 0", id="rank-negative"),
        pytest.param("RANK", "1.0", "from 0", id="rank-decimal-point"),
        pytest.param("RANK", " 1", "from 0", id="rank-space"),
        pytest.param("RANK", "١", "from 0", id="rank-arabic-digit"),
        pytest.param("WORLD_SIZE", "two", "from 1", id="size-word"),
        pytest.param("WORLD_SIZE", "0", "from 1", id="size-zero"),
        pytest.param("WORLD_SIZE", "-2", "from 1", id="size-negative"),
        pytest.param("WORLD_SIZE", "", "from 1", id="size-empty"),
        pytest.param("MASTER_PORT", "x", "from 1 to 65535", id="port-letter"),
        pytest.param("MASTER_PORT", "0", "from 1 to 65535", id="port-zero"),
        pytest.param("MASTER_PORT", "65536", "from 1 to 65535", id="port-too-high"),
        pytest.param("MASTER_PORT", "-1", "from 1 to 65535", id="port-negative"),
        pytest.param("LOCAL_RANK", "x", "from 0", id="local-rank-letter"),
        pytest.param("LOCAL_RANK", "-1", "from 0", id="local-rank-negative"),
        pytest.param("LOCAL_RANK", "", "from 0", id="local-rank-empty"),
    ],
)
def test_an_invalid_number_is_an_error_with_variable_and_value(
    set_process_variables, variable, text, limits
):
    """The user has started process 1 of 2 by hand, with one invalid variable."""
    set_process_variables(**{variable: text})

    with pytest.raises(UserError) as error:
        ranks.rank_from_launcher()

    assert str(error.value) == f"{variable} is {text!r}. It must be a whole number {limits}"


@pytest.mark.parametrize("rank", ["2", "5"])
def test_a_rank_must_be_below_the_number_of_processes(set_process_variables, rank):
    """The user has started a process by hand, and RANK or WORLD_SIZE is wrong."""
    set_process_variables(RANK=rank, WORLD_SIZE="2")

    with pytest.raises(UserError) as error:
        ranks.rank_from_launcher()

    assert str(error.value) == f"RANK is {rank}, but WORLD_SIZE is 2. Ranks are 0 to 1"


@pytest.mark.parametrize("variable", ["RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_an_empty_variable_counts_as_missing(set_process_variables, variable):
    """The variables of process 1 of 2 are set, except for this one."""
    set_process_variables(**{variable: ""})

    message = f"WORLD_SIZE is 2, but {variable} is not set. Start the command by"
    with pytest.raises(UserError, match=message):
        ranks.rank_from_launcher()


def test_rank_and_size_are_read_from_the_variables(set_process_variables):
    """A launcher, or the user, sets these environment variables for each process."""
    set_process_variables(RANK="1", WORLD_SIZE="2", LOCAL_RANK="3")

    assert ranks.rank_from_launcher() == ProcessRank(rank=1, size=2, local_rank=3)


def test_a_process_alone_needs_no_valid_port(set_process_variables):
    """With WORLD_SIZE=1 there is no other process to connect to, so the port is ignored."""
    set_process_variables(WORLD_SIZE="1", RANK="0", LOCAL_RANK="0", MASTER_PORT="any")

    assert ranks.rank_from_launcher() == ProcessRank(rank=0, size=1, local_rank=0)


def test_an_unknown_host_is_an_error_at_once(set_process_variables, monkeypatch):
    """The resolver says that the host of process 0 does not exist, so waiting would not help."""

    def raise_unknown_host(*_):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    # A machine without a network could not ask for a name, and the error would be another one.
    monkeypatch.setattr(socket, "getaddrinfo", raise_unknown_host)
    set_process_variables(MASTER_ADDR="nowhere.invalid")

    with pytest.raises(UserError) as error:
        store.connect(ProcessRank(rank=1, size=2, local_rank=0))

    assert str(error.value) == "MASTER_ADDR is 'nowhere.invalid': no such host"


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("a b", id="space"),
        pytest.param("x" * 64 + ".org", id="part-of-64-characters"),  # DNS allows 63
    ],
)
def test_an_invalid_host_name_is_an_error_at_once(set_process_variables, host):
    """The process does not wait for process 0 at a host that cannot exist."""
    set_process_variables(MASTER_ADDR=host)

    with pytest.raises(UserError) as error:
        store.connect(ProcessRank(rank=1, size=2, local_rank=0))

    assert str(error.value) == f"MASTER_ADDR is {host!r}: no such host"


@contextmanager
def program_at_port(answer):
    """Run a server on 127.0.0.1 in a thread of this process; yield its port.

    Args:
        answer: A function that the server calls with each connection.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(connection)
                threading.Thread(target=answer, args=[connection], daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for connection in connections:
            connection.close()


def stay_silent(connection):
    """Send nothing, and keep the connection open."""


def greet_like_ssh(connection):
    """Send the first line of an SSH server, and keep the connection open."""
    connection.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")


def refuse_like_http(connection):
    """Wait for a request, then send an error as a web server does."""
    connection.recv(100)
    connection.sendall(b"HTTP/1.0 400 Bad request\r\n\r\n")
    connection.close()


def close_connection(connection):
    """Close the connection without sending anything."""
    connection.close()


@pytest.mark.parametrize(
    ("answer", "quoted_answer"),
    [
        pytest.param(stay_silent, "", id="silent"),
        pytest.param(greet_like_ssh, ", it says 'SSH-2.0-OpenSSH_9.2p1 Debian-2'", id="ssh"),
        pytest.param(refuse_like_http, ", it says 'HTTP/1.0 400 Bad request'", id="http"),
        pytest.param(close_connection, "", id="closes"),
    ],
)
def test_process_1_names_another_program_at_the_address_of_process_0(
    tmp_path, answer, quoted_answer
):
    """The other program is a server in the process of this test. Its answer is quoted."""
    with program_at_port(answer) as port:
        variables = process_variables(RANK="1", MASTER_PORT=str(port), BLEUPRINT_TIMEOUT="5")
        process = start_group(tmp_path, "all_reduce_forever(group)", **variables)
        result = wait_for_exit(process)

    assert result.status == 1
    other_program = rf"[\w.-]+, process {os.getpid()}{re.escape(quoted_answer)}"
    assert re.fullmatch(
        rf"bleuprint: error: process 1 of 2: MASTER_ADDR and MASTER_PORT are 127\.0\.0\.1:{port}, "
        rf"but another program answers there, not process 0 \({other_program}\)\. "
        r"Choose a free port\n",
        result.stderr,
    ), result.stderr


def test_process_0_names_another_program_at_its_port(tmp_path):
    """Process 0 must listen at MASTER_PORT, where an SSH server listens already.

    The SSH server is simulated in the process of this test.
    """
    with program_at_port(greet_like_ssh) as port:
        variables = process_variables(RANK="0", MASTER_PORT=str(port), BLEUPRINT_TIMEOUT="5")
        process = start_group(tmp_path, "all_reduce_forever(group)", **variables)
        result = wait_for_exit(process)

    assert result.status == 1
    greeting = re.escape("SSH-2.0-OpenSSH_9.2p1 Debian-2")
    other_program = rf"[\w.-]+, process {os.getpid()}, it says '{greeting}'"
    assert re.fullmatch(
        rf"bleuprint: error: MASTER_PORT is {port}: process 0 of 2 cannot listen there on \S+: "
        rf"address already in use \({other_program}\)\. Choose a free port\n",
        result.stderr,
    ), result.stderr


def test_a_process_does_not_join_a_training_with_another_number_of_processes(tmp_path):
    """Two trainings, of two and of three processes, were started with the same MASTER_PORT.

    Process 1 of 3 finds process 0 of 2 and ends; then process 1 of 2 comes, and both succeed.
    """
    python = [sys.executable, "-u"]
    port = free_port()
    variables = process_variables(MASTER_PORT=str(port), BLEUPRINT_TIMEOUT="60")
    rank_0_of_2 = {**variables, "RANK": "0", "WORLD_SIZE": "2"}
    rank_1_of_2 = {**variables, "RANK": "1", "WORLD_SIZE": "2"}
    rank_1_of_3 = {**variables, "RANK": "1", "WORLD_SIZE": "3"}

    process_0_of_2 = start_group(tmp_path, "pass", *python, **rank_0_of_2)
    try:
        result_of_1_of_3 = wait_for_exit(start_group(tmp_path, "pass", *python, **rank_1_of_3))
        result_of_1_of_2 = wait_for_exit(start_group(tmp_path, "pass", *python, **rank_1_of_2))
    finally:
        result_of_0_of_2 = wait_for_exit(process_0_of_2)

    assert result_of_1_of_3.status == 1
    # The parentheses contain the arguments of each command: here none.
    assert result_of_1_of_3.stderr == (
        "bleuprint: error: process 1 of 3 () found process 0 of 2 of another command () at "
        f"127.0.0.1:{port}. Give each command its own MASTER_PORT, and "
        "all its processes the same WORLD_SIZE\n"
    )
    for result in (result_of_0_of_2, result_of_1_of_2):
        assert result.stderr == ""
        assert result.status == 0


class StoreWithTwoProcessesOfRank0(dict):
    """A stand-in for torch's key-value store, with the methods that processes use to meet.

    When a process writes its entry `member/0`, another process with rank 0 overwrites it.
    """

    def check(self, names):
        """Return whether all of these keys are in the store."""
        return all(name in self for name in names)

    def set(self, name, text):
        """Write a text as bytes."""
        self[name] = text.encode()
        if name == "member/0":
            self[name] = b'["entry of another process"]'


def test_two_processes_with_the_same_rank_are_an_error():
    """Processes write an entry `member/RANK` into a common store.

    Here another process with rank 0 overwrites the entry of this one.
    """
    store_of_group = StoreWithTwoProcessesOfRank0()
    store_of_group["member/1"] = b"[]"  # process 1 has joined
    process = ProcessRank(rank=0, size=2, local_rank=0)

    message = "RANK is 0 in two processes. Give each process its own"
    with pytest.raises(UserError, match=message):
        rendezvous.exchange_members(store_of_group, process, Member("host"))


def test_a_wait_ends_after_the_timeout_and_says_what_is_missing(monkeypatch):
    """The timeout is 1 s, and the condition `is_done` never holds."""
    monkeypatch.setenv("BLEUPRINT_TIMEOUT", "1")
    start = time.monotonic()

    with pytest.raises(UserError, match=r"process 3 did not join within 1 s \(BLEUPRINT_TIMEOUT\)"):
        store.wait_until(is_done=lambda: False, describe_missing=lambda: "process 3 did not join")

    assert time.monotonic() - start >= 1
