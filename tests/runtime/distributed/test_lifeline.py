"""The connections by which processes know of one another. Whole processes: test_processes."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from bleuprint.runtime.distributed.lifeline import Lifeline


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\n"])
def test_a_stranger_who_knocks_is_sent_away(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """A scan of ports may come before the others do; it speaks HTTP, TLS, or nothing."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    seen = TCPStore("127.0.0.1", store.port, is_master=False)  # one for each thread
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(store.port))
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")  # taken back in the end
    with ThreadPoolExecutor() as pool:
        first = pool.submit(Lifeline, 0, 2, store, False)
        address, port, *_ = seen.get("bleuprint/lifeline").decode().split(" ")
        with socket.create_connection((address, int(port)), 10) as stranger:
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(1) == b""
        second = Lifeline(1, 2, seen, False)
        for one in (first.result(), second):
            one.leave(well=True)
