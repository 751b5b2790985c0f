"""SIGKILL at random moments, and the same command again: the result is the same, byte for byte.

`make test-long`: 20 kills of what `make reproduce` runs and half as many of Snakemake, in projects
of five kills each. BLEUPRINT_KILLS is another number, BLEUPRINT_KILLS_SEED repeats a run.
"""

import os
import random
import re
import threading
import time

import pytest

import micro

pytestmark = pytest.mark.long
KILLS = int(os.environ.get("BLEUPRINT_KILLS", "20"))
SEED = int(os.environ.get("BLEUPRINT_KILLS_SEED", time.time_ns() % 1_000_000))
CHAIN = 5
COMMANDS = {
    # what it runs, and what is in the lines between stages
    "make": (("bleuprint", "reproduce"), "] ", KILLS),
    "snakemake": (("snakemake", "-c2"), "Finished job", KILLS // 2),
}
CASES = [
    pytest.param(name, chain, min(CHAIN, kills - CHAIN * chain), id=f"{name}-{chain}")
    for name, (*_, kills) in COMMANDS.items()
    for chain in range(-(-kills // CHAIN))
]


@pytest.fixture(scope="module")
def undisturbed(clean, tmp_path_factory):
    """By command, a project in which it has run to its end."""
    projects = {}

    def project(name):
        if name not in projects:
            projects[name] = clean.copy(tmp_path_factory.mktemp(name) / "project")
            projects[name].run(*COMMANDS[name][0], timeout=600)
        return projects[name]

    return project


@pytest.mark.parametrize(("name", "chain", "kills"), CASES)
def test_killed_and_run_again(clean, undisturbed, tmp_path, name, chain, kills):
    command, ended, _ = COMMANDS[name]
    draw = random.Random(f"{SEED} {name} {chain}")
    project = clean.copy(tmp_path / "project")
    for number in range(kills):
        moment = _moment(draw, number)
        print(f"seed {SEED}, kill {number + 1} of {kills}: {moment}")
        output = _killed(project, command, ended, *moment)
        assert "Traceback" not in output, output
        project.mend()
    output = project.run(*command, timeout=600)
    assert project.changed() == set(), output
    assert project.contents() == undisturbed(name).contents()
    assert _stages(project) == _stages(undisturbed(name))


def _moment(draw, number):
    """The stage whose end is waited for (None: the start), and the seconds after it.

    A third falls anywhere; the others just after the end of a stage, where DVC and Snakemake write.
    """
    if draw.random() < 1 / 3:
        return None, draw.uniform(0, 30)
    return draw.randint(1, max(1, 12 - 2 * number)), draw.uniform(0, 0.3)


def _killed(project, command, ended, stage, delay):
    """Run a command and kill it with all it started; what it printed."""
    process, lines, reached = project.start(*command), [], threading.Event()

    def read():
        count = 0
        for line in process.stdout:
            lines.append(line)
            count += ended in line
            if stage is not None and count == stage:
                reached.set()
        reached.set()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        if stage is not None:
            reached.wait(240)
        deadline = time.monotonic() + delay
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
    finally:
        micro.kill(process)
    process.wait()
    reader.join()
    return "".join(lines)


def _stages(project):
    """dvc.lock by stage, since the order is that of execution; without measured times and the
    reports, which contain some."""
    from dvc.utils.serialize import load_yaml

    stages = load_yaml(str(project.root / "dvc.lock"))["stages"]
    for stage in stages.values():
        for kind in ("deps", "outs"):
            stage[kind] = [
                entry for entry in stage[kind] if not re.match("timings|reports", entry["path"])
            ]
    return stages
