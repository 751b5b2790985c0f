"""Processes that are started by hand: wrong variables, and others at the address."""

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
from process_groups import GO_ON, end, start
from servers import free_port

BY_HAND = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture
def variables(monkeypatch):
    """A function that sets the variables of a process started by hand, with some changed."""
    for name in list(os.environ):
        if name.startswith(("SLURM", "TORCHELASTIC", "BLEUPRINT_", "LOCAL_RANK")):
            monkeypatch.delenv(name)

    def set_all(changed):
        for name, text in {**BY_HAND, **changed}.items():
            monkeypatch.setenv(name, text)

    return set_all


@pytest.mark.parametrize(
    ("name", "text", "limits"),
    [
        ("RANK", "x", "from 0"),
        ("RANK", "-1", "from 0"),
        ("RANK", "1.0", "from 0"),
        ("RANK", " 1", "from 0"),
        ("RANK", "١", "from 0"),  # a digit, but not one of launchers
        ("WORLD_SIZE", "two", "from 1"),
        ("WORLD_SIZE", "0", "from 1"),
        ("WORLD_SIZE", "-2", "from 1"),
        ("WORLD_SIZE", "", "from 1"),
        ("MASTER_PORT", "x", "from 1 to 65535"),
        ("MASTER_PORT", "0", "from 1 to 65535"),
        ("MASTER_PORT", "65536", "from 1 to 65535"),
        ("MASTER_PORT", "-1", "from 1 to 65535"),
        ("LOCAL_RANK", "x", "from 0"),
        ("LOCAL_RANK", "-1", "from 0"),
        ("LOCAL_RANK", "", "from 0"),
    ],
)
def test_a_bad_number_is_named_with_its_variable(variables, name, text, limits):
    variables({name: text})
    with pytest.raises(UserError) as raised:
        ranks.rank_from_launcher()
    assert str(raised.value) == f"{name} is {text!r}: it must be a whole number {limits}"


@pytest.mark.parametrize("rank", ["2", "5"])
def test_a_rank_beyond_the_size_blames_nobody_else(variables, rank):
    variables({"RANK": rank})
    with pytest.raises(UserError) as raised:
        ranks.rank_from_launcher()
    assert str(raised.value) == f"RANK is {rank}, but WORLD_SIZE is 2: ranks are 0 to 1"


@pytest.mark.parametrize("name", ["RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_a_variable_that_is_empty_is_missing(variables, name):
    variables({name: ""})
    with pytest.raises(UserError, match=rf"WORLD_SIZE is 2, but {name} is not set: start it by"):
        ranks.rank_from_launcher()


def test_good_variables_are_a_place(variables):
    variables({"LOCAL_RANK": "3"})
    assert ranks.rank_from_launcher() == ProcessRank(rank=1, size=2, local_rank=3)
    variables({"WORLD_SIZE": "1", "RANK": "0", "MASTER_PORT": "any", "LOCAL_RANK": "0"})
    assert ranks.rank_from_launcher() == ProcessRank(rank=0, size=1, local_rank=0)


@pytest.mark.parametrize("host", ["nowhere.invalid", "a b", "x" * 64 + ".org"])
def test_a_host_that_cannot_exist_is_not_waited_for(variables, monkeypatch, host):
    def resolve(*_):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    if host == "nowhere.invalid":  # without a network it may be a name that cannot be asked for
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
    variables({"MASTER_ADDR": host})
    with pytest.raises(UserError) as raised:
        store.connect(ProcessRank(1, 2, 0))
    assert str(raised.value) == f"MASTER_ADDR is {host!r}: no such host"


@contextmanager
def listening(answer):
    """A port at which `answer(connection)` is called with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                kept.append(connection)
                threading.Thread(target=answer, args=[connection], daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for connection in kept:
            connection.close()


def silent(connection):
    """Say nothing, and keep the connection."""


def ssh(connection):
    connection.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")


def http(connection):
    connection.recv(100)
    connection.sendall(b"HTTP/1.0 400 Bad request\r\n\r\n")
    connection.close()


def closing(connection):
    connection.close()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (silent, ""),
        (ssh, ", it says 'SSH-2.0-OpenSSH_9.2p1 Debian-2'"),
        (http, ", it says 'HTTP/1.0 400 Bad request'"),
        (closing, ""),
    ],
)
def test_another_program_at_the_address_is_named(tmp_path, answer, says):
    with listening(answer) as port:
        given = {**BY_HAND, "MASTER_PORT": port, "BLEUPRINT_TIMEOUT": 5}
        status, said = end(start(tmp_path, GO_ON, **given))
        listener = rf"[\w.-]+, process {os.getpid()}"
        assert status == 1
        assert re.fullmatch(
            rf"bleuprint: error: process 1 of 2: MASTER_ADDR and MASTER_PORT are 127.0.0.1:{port}, "
            rf"but what answers there is not process 0 \({listener}{re.escape(says)}\): choose a "
            r"port that is free\n",
            said,
        ), said


def test_process_0_names_who_has_its_port(tmp_path):
    with listening(ssh) as port:
        given = {**BY_HAND, "RANK": "0", "MASTER_PORT": port, "BLEUPRINT_TIMEOUT": 5}
        status, said = end(start(tmp_path, GO_ON, **given))
        assert status == 1
        assert re.fullmatch(
            rf"bleuprint: error: MASTER_PORT is {port}: process 0 of 2 cannot listen there on \S+: "
            rf"address already in use \([\w.-]+, process {os.getpid()}, it says 'SSH-2.0-OpenSSH_"
            r"9.2p1 Debian-2'\): choose a port that is free\n",
            said,
        ), said


def test_process_0_of_another_command_is_not_joined(tmp_path):
    """Two trainings with the same port: the second one's rank 1 must not enter the first."""
    given = {**BY_HAND, "MASTER_PORT": free_port(), "BLEUPRINT_TIMEOUT": 60}
    command = [sys.executable, "-u"]
    first = start(tmp_path, "print('met')", *command, **{**given, "RANK": 0})
    try:
        other = start(tmp_path, GO_ON, *command, **{**given, "WORLD_SIZE": 3})
        status, said = end(other)
        assert status == 1
        assert said == (
            "bleuprint: error: process 1 of 3 () found process 0 of 2 of another command () at "
            f"127.0.0.1:{given['MASTER_PORT']}: give each command a MASTER_PORT of its own, and "
            "all its processes the same WORLD_SIZE\n"
        )
        second = start(tmp_path, "print('met')", *command, **given)
        assert end(second) == (0, "")
    finally:
        assert end(first) == (0, "")


def test_two_processes_of_one_rank_are_told_apart():
    class Store(dict):
        """Of torch's store what is used; another process has published this rank as well."""

        def check(self, names):
            return all(name in self for name in names)

        def set(self, name, text):
            self[name] = b'["other"]' if name == "member/0" else text.encode()

    with pytest.raises(UserError, match="RANK is 0 in two processes: give each process its own"):
        rendezvous.exchange_members(
            Store({"member/1": b"[]"}), ProcessRank(0, 2, 0), Member("host")
        )


def test_a_wait_ends_with_what_is_late(monkeypatch):
    monkeypatch.setenv("BLEUPRINT_TIMEOUT", "1")
    began = time.monotonic()
    with pytest.raises(UserError, match=r"nobody within 1 s \(BLEUPRINT_TIMEOUT\)"):
        store.wait_until(lambda: False, lambda: "nobody")
    assert time.monotonic() - began >= 1
