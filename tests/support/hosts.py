"""Two hosts on one machine: network namespaces with a link, each with a host name of its own."""

import os
import shutil
import signal
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from requirements import PRIVILEGES, skip_without

# The name of the link's end on each host.
LINK = "wire"


@contextmanager
def two_hosts_up():
    """Make two network namespaces with a link between 10.77.0.1 and 10.77.0.2; yield their names.

    Each resolves the name of the other, and its own name to 127.0.1.1, as on Debian. Processes that
    still run there in the end are killed. The test is skipped where it may not do this.
    """
    names = [f"bleuprint-{os.getpid()}-{number}" for number in range(2)]
    skip_without("ip", "unshare")
    if os.geteuid() != 0:
        pytest.skip(PRIVILEGES)

    def ip(*words):
        """Run the command `ip` with these arguments, and return whether it succeeded."""
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


def command_on(host, *command):
    """Return the command line that runs a command on a host, as the same process."""
    in_namespace = ["ip", "netns", "exec", host]
    with_link = ["unshare", "--uts", "env", f"GLOO_SOCKET_IFNAME={LINK}"]
    with_host_name = ["sh", "-c", 'hostname "$0" && exec "$@"', host]
    return [*in_namespace, *with_link, *with_host_name, *command]


def cut_link(host):
    """Cut the link between the hosts."""
    subprocess.run(["ip", "-n", host, "link", "set", LINK, "down"], check=True)


def processes_on(host):
    """Return the command lines of a host's processes by process id."""
    listed = subprocess.run(["ip", "netns", "pids", host], stdout=subprocess.PIPE, text=True)
    commands = {}
    for pid in map(int, listed.stdout.split()):
        # A process may have ended since it was listed.
        with suppress(FileNotFoundError):
            commands[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return commands


def kill_all(host):
    """Kill the processes of a host; its kernel still closes their connections."""
    for pid in processes_on(host):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
