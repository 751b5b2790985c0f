"""When a torchrun that waits is given up. On hosts that are lost: test_hosts."""

import socket
import subprocess
import time
from collections.abc import Iterator

import psutil
import pytest

from bleuprint.runtime.distributed import watch


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_INTERVAL", 0.05)
    monkeypatch.setattr(watch, "_ANSWER", 0.05)
    monkeypatch.setattr(watch, "_START", 1.0)


@pytest.fixture
def held() -> Iterator[str]:
    """A port that a program holds which says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def started(command: str) -> psutil.Popen:
    """What stands for torchrun: with processes of its own at first, if there is a `;`."""
    torchrun = psutil.Popen(["sh", "-c", command], stdout=subprocess.DEVNULL)
    while ";" in command and not torchrun.children():
        time.sleep(0.01)
    return torchrun


def test_one_that_starts_nothing_is_given_up(held: str) -> None:
    with started("exec sleep 60") as torchrun:
        said = watch.in_vain(held, torchrun)
        torchrun.kill()
    assert said == f"torchrun has not begun in 1 s: is {held} another program's port?"


def test_one_that_has_begun_is_left_to_end_by_itself(held: str) -> None:
    """Its processes have ended before: it waits for those of other hosts."""
    with started("sleep 0.3; exec sleep 1.5") as torchrun:
        assert watch.in_vain(held, torchrun) is None


def test_a_host_without_an_answer_is_given_up_at_the_third(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def silence(address: tuple[str, int], _: float) -> socket.socket:
        looks.append(address)
        raise TimeoutError

    monkeypatch.setattr(watch.socket, "create_connection", silence)
    with started("sleep 0.3; exec sleep 60") as torchrun:
        said = watch.in_vain("far:29400", torchrun)
        torchrun.kill()
    assert said == "far, where the hosts meet, cannot be reached"
    assert looks == [("far", 29400)] * 3  # none while its processes ran


def test_a_wrong_name_is_given_up() -> None:
    with started("exec sleep 60") as torchrun:
        said = watch.in_vain("nowhere.invalid:29400", torchrun)
        torchrun.kill()
    assert said == "nowhere.invalid, where the hosts meet, cannot be reached"


def test_a_port_that_is_closed_is_left_to_torchrun() -> None:
    with started("sleep 0.2; exec sleep 1") as torchrun:
        assert watch.in_vain("127.0.0.1:1", torchrun) is None
