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

from requirements import skip_without

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
_PATH = f"{os.environ['PATH']}{os.pathsep}/usr/sbin"

# No accounting; a node that comes back is used again; nodes say they are as large as is claimed;
# a job that lost its node is tried again once its credential has expired: after 20 s, not 120.
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


class Cluster:
    """A SLURM with `nodes` virtual nodes, each with 16 CPUs and a fake GPU.

    A node is named after its port: what runs on it is found by its name, and another test's
    cluster may be up on the same machine.
    """

    def __init__(self, root: Path, nodes: int = 3) -> None:
        controller, *ports = _free_ports(nodes + 1)
        self.root, self.nodes = root, [f"n{port}" for port in ports]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for folder in ("state", "spool", "bin"):
            (root / folder).mkdir(parents=True)
        (root / "slurm.conf").write_text(
            _CONFIGURATION.format(
                host=socket.gethostname().partition(".")[0],
                controller=controller,
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
        # the GPUs are fake: PyTorch would look for those that SLURM assigns
        _script(root / "bin" / "task-prolog", "echo unset CUDA_VISIBLE_DEVICES")
        # the executor's job step drops SLURM_CONF before it calls srun
        real = shutil.which("srun", path=_PATH)
        _script(root / "bin" / "srun", f'SLURM_CONF={root}/slurm.conf exec {real} "$@"')

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands that use this cluster."""
        return {
            "SLURM_CONF": str(self.root / "slurm.conf"),
            "PATH": f"{self.root / 'bin'}{os.pathsep}{_PATH}",
        }

    def start(self) -> None:
        """Start all daemons; fails if the nodes are not idle within half a minute."""
        munge = f"{self.root}/munge"
        self._start(
            "munged",
            "--foreground",
            "--force",  # the folder may be readable by others
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
        """End a node as a power failure does: its slurmd, and all that its jobs have started."""
        daemon = self._processes.pop(node)
        found = [daemon.pid, *_jobs_on(node)]
        # at once: none may report the other's end
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        daemon.wait()

    def stop(self) -> None:
        """End all daemons, and what jobs may have left."""
        for node in self.nodes:
            if node in self._processes:
                self.kill_node(node)
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()
        self._processes.clear()

    def run(self, *command: str) -> str:
        """The output of a SLURM command."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    def jobs(self) -> list[tuple[str, str, str, str]]:
        """Number, state, node and rule of each job in SLURM's memory."""
        listed = self.run("squeue", "--states=all", "-h", "-o", "%i|%T|%N|%k")
        rows = [line.split("|") for line in listed.split("\n") if line]
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def _start(self, program: str, *arguments: str, name: str | None = None) -> None:
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
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def skip_unless_installed() -> None:
    skip_without(*PROGRAMS, path=_PATH)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _jobs_on(node: str) -> list[int]:
    """What a node's jobs have started, and the daemon of each job's step, which is above them."""
    found: dict[int, None] = {}
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if not folder.name.isdecimal():
                continue
            if f"SLURMD_NODENAME={node}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
                command = Path("/proc", parent, "cmdline").read_bytes()
                if command.startswith(b"slurmstepd"):
                    found[int(parent)] = None
                found[int(folder.name)] = None
    return list(found)


def _wait(condition, what: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        with suppress(subprocess.CalledProcessError):
            if condition():
                return
        assert time.monotonic() < deadline, f"no {what} within two minutes"
        time.sleep(0.2)
