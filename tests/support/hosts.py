"""Two hosts on one machine: network namespaces with a link, each with a host name of its own."""

import os
import shutil
import signal
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from requirements import PRIVILEGES, skip_without

LINK = "wire"


@contextmanager
def two_hosts_up():
    """The names of two network namespaces with a link between them: 10.77.0.1 and 10.77.0.2.

    Each resolves the name of the other, and its own to 127.0.1.1, as on Debian. Processes that
    still run there are killed in the end.
    """
    names = [f"bleuprint-{os.getpid()}-{number}" for number in range(2)]
    skip_without("ip", "unshare")
    if os.geteuid() != 0:
        pytest.skip(PRIVILEGES)

    def ip(*words):
        return not subprocess.run(["ip", *words], capture_output=True).returncode

    with ExitStack() as stack:
        for number, name in enumerate(names):
            if not ip("netns", "add", name):
                pytest.skip(PRIVILEGES)
            stack.callback(ip, "netns", "del", name)
            stack.callback(kill_all, name)
            files = Path("/etc/netns", name)
            files.mkdir(parents=True)
            stack.callback(shutil.rmtree, files)
            other = 1 - number
            lines = ["127.0.0.1 localhost", f"127.0.1.1 {name}"]
            lines.append(f"10.77.0.{other + 1} {names[other]}")
            (files / "hosts").write_text("\n".join([*lines, ""]))
            (files / "resolv.conf").touch()
        peer = ("type", "veth", "peer", "name", LINK, "netns", names[1])
        assert ip("link", "add", LINK, "netns", names[0], *peer)
        for number, name in enumerate(names):
            assert ip("-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", LINK)
            assert ip("-n", name, "link", "set", "lo", "up")
            assert ip("-n", name, "link", "set", LINK, "up")
        yield names


def on(host, *command):
    """The command line that runs `command` on a host, by exec."""
    named = ("unshare", "--uts", "env", f"GLOO_SOCKET_IFNAME={LINK}")
    named += ("sh", "-c", 'hostname "$0" && exec "$@"', host)
    return ["ip", "netns", "exec", host, *named, *command]


def cut(host):
    """Cut the link between the hosts."""
    subprocess.run(["ip", "-n", host, "link", "set", LINK, "down"], check=True)


def processes(host):
    """The processes of a host: command lines by process id."""
    listed = subprocess.run(["ip", "netns", "pids", host], stdout=subprocess.PIPE, text=True)
    found = {}
    for pid in map(int, listed.stdout.split()):
        with suppress(FileNotFoundError):
            found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return found


def kill_all(host):
    """Kill the processes of a host; its kernel still closes their connections."""
    for pid in processes(host):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
