"""A real SLURM on the loopback: munge, slurmctld and several slurmd, each a virtual node.

Debian's packages slurmctld, slurmd, slurm-client and munge are enough, and no root is needed.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from requirements import skip_without

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
_PATH = f"{os.environ['PATH']}{os.pathsep}/usr/sbin"

# SLURM keeps no accounts, uses nodes again that come back, and believes how large nodes say they
# are. A job that lost its node is restarted when its credential has expired: after 20 seconds,
# where the default is 120.
_CONFIGURATION = """\
ClusterName=bleuprint
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={root}/munge.socket,cred_expire=20
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={root}/bin/task-prolog
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SlurmdTimeout=20
KillWait=20
ReturnToService=2
MinJobAge=3600
MailProg=/bin/true
GresTypes=gpu
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=small Nodes={first} MaxTime=60 State=UP
"""
_NODE = (
    "NodeName=n{port} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} "
    "CPUs=16 RealMemory=256000 Gres=gpu:1 State=UNKNOWN"
)


class Job(NamedTuple):
    """A job in SLURM's memory.

    Attributes:
        number: Its number.
        state: SLURM's word for its state, such as RUNNING.
        node: The name of its node; "" before it has one.
        comment: The comment of who submitted it. Snakemake writes `rule_` and the rule's name.
    """

    number: str
    state: str
    node: str
    comment: str


class Cluster:
    """A SLURM with virtual nodes, each with 16 CPUs and a fake GPU.

    A node is named after its port, which no other node of this machine has, so that processes on
    it are found by its name, even if the cluster of another test runs on the same machine.

    Attributes:
        root: The folder with the configuration, the logs and the state.
        nodes: The names of the nodes.
    """

    def __init__(self, root: Path, nodes: int = 3) -> None:
        """Write the configuration.

        Args:
            root: The folder for it.
            nodes: The number of nodes.
        """
        controller_port, *ports = _free_ports(nodes + 1)
        self.root = root
        self.nodes = [f"n{port}" for port in ports]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for folder in ("state", "spool", "bin"):
            (root / folder).mkdir(parents=True)
        (root / "slurm.conf").write_text(
            _CONFIGURATION.format(
                host=socket.gethostname().partition(".")[0],
                controller=controller_port,
                user=subprocess.check_output(["id", "-un"], text=True).strip(),
                root=root,
                nodes="\n".join(_NODE.format(port=port) for port in ports),
                first=self.nodes[0],
            )
        )
        (root / "gres.conf").write_text(
            f"NodeName={','.join(self.nodes)} Name=gpu File=/dev/null\n"
        )
        key = root / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        # The GPUs are fake, and PyTorch would look for the ones that SLURM assigns.
        _script(root / "bin" / "task-prolog", "echo unset CUDA_VISIBLE_DEVICES")
        # Snakemake's executor removes SLURM_CONF in a job, and then calls srun.
        srun = shutil.which("srun", path=_PATH)
        _script(root / "bin" / "srun", f'SLURM_CONF={root}/slurm.conf exec {srun} "$@"')

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands that use this cluster."""
        return {
            "SLURM_CONF": str(self.root / "slurm.conf"),
            "PATH": f"{self.root / 'bin'}{os.pathsep}{_PATH}",
        }

    def start(self) -> None:
        """Start all daemons; fails if the nodes are not idle within two minutes."""
        munge = f"{self.root}/munge"
        self._start(
            "munged",
            "--foreground",
            "--force",  # Without it, munged refuses a folder that other users can read.
            f"--key-file={munge}.key",
            f"--socket={munge}.socket",
            f"--pid-file={munge}.pid",
            f"--log-file={munge}.log",
            f"--seed-file={munge}.seed",
        )
        _wait(lambda: Path(f"{munge}.socket").exists(), "munged's socket")
        self._start("slurmctld", "-D", "-i")
        for node in self.nodes:
            self.start_node(node)
        _wait(lambda: self.run("sinfo", "-h", "-o", "%T", "-p", "main") == "idle\n", "idle nodes")

    def start_node(self, node: str) -> None:
        """Start a node, unless it is up."""
        if node not in self._processes:
            self._start("slurmd", "-D", "-N", node, name=node)

    def kill_node(self, node: str) -> None:
        """End a node as a power failure does: its slurmd, and all processes of its jobs."""
        daemon = self._processes.pop(node)
        pids = [daemon.pid, *_processes_on(node)]
        # All are stopped before the first is killed, since another could report its end.
        for kill_signal in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, kill_signal)
        daemon.wait()

    def stop(self) -> None:
        """End all daemons, and processes that jobs may have left."""
        for node in self.nodes:
            if node in self._processes:
                self.kill_node(node)
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()
        self._processes.clear()

    def run(self, *command: str) -> str:
        """Run a SLURM command, and return its output."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    def jobs(self) -> list[Job]:
        """Return the jobs in SLURM's memory, also those that have ended."""
        table = self.run("squeue", "--states=all", "-h", "-o", "%i|%T|%N|%k")
        jobs = []
        for line in table.splitlines():
            number, state, node, comment = line.split("|")[:4]
            jobs.append(Job(number, state, node, comment))
        return jobs

    def _start(self, program: str, *arguments: str, name: str | None = None) -> None:
        """Start a daemon under a name, by default the program's."""
        path = shutil.which(program, path=_PATH)
        assert path is not None, program
        with (self.root / f"{name or program}.out").open("ab") as output:
            self._processes[name or program] = subprocess.Popen(
                [path, *arguments],
                env={**os.environ, **self.environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


def _script(path: Path, line: str) -> None:
    """Write an executable shell script of one line."""
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def missing_programs() -> list[str]:
    """Return the names of SLURM's programs that are not installed."""
    return [program for program in PROGRAMS if shutil.which(program, path=_PATH) is None]


def skip_unless_installed() -> None:
    """Skip the test if a program of SLURM is missing."""
    skip_without(*PROGRAMS, path=_PATH)


def _free_ports(count: int) -> list[int]:
    """Return ports of this machine that nothing uses."""
    # All sockets are open at the same time, so that no two have the same port.
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = []
    for free_socket in sockets:
        ports.append(int(free_socket.getsockname()[1]))
        free_socket.close()
    return ports


def _processes_on(node: str) -> list[int]:
    """Return the processes of a node's jobs, and the daemon of each job's step, their parent."""
    variable = f"SLURMD_NODENAME={node}".encode()
    pids = []
    for folder in Path("/proc").iterdir():
        # A process may end while its files are read.
        with suppress(OSError):
            if not folder.name.isdecimal():
                continue
            if variable not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            # proc(5): after the name in parentheses come the state and the parent.
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            parent_command = Path("/proc", parent, "cmdline").read_bytes()
            if parent_command.startswith(b"slurmstepd") and int(parent) not in pids:
                pids.append(int(parent))
            pids.append(int(folder.name))
    return pids


def _wait(condition, name: str) -> None:
    """Wait until a condition is true; fails after two minutes.

    Args:
        condition: A function without arguments. A SLURM command in it may fail.
        name: What is waited for, for the message.
    """
    deadline = time.monotonic() + 120
    while True:
        with suppress(subprocess.CalledProcessError):
            if condition():
                return
        assert time.monotonic() < deadline, f"no {name} within two minutes"
        time.sleep(0.2)
