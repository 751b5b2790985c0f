"""Random histories of a project end as a fresh clone does.

BLEUPRINT_HISTORIES: how many (default: 3); BLEUPRINT_KILLS_SEED: the first one's seed.
"""

import os
import random
import shutil
import signal
import time

import pytest

import micro

pytestmark = pytest.mark.long
COUNT = int(os.environ.get("BLEUPRINT_HISTORIES", "3"))
SEED = int(os.environ.get("BLEUPRINT_KILLS_SEED", "1"))
STEPS = 6
# An edit replaces one of these by another; the training's last, which costs most.
SETTINGS = {
    "beam: ": ("2", "3"),
    "length: {min: 1, max: ": ("100", "90"),
    "num_merges: ": ("40", "30"),
    "lr: ": ("0.02", "0.03"),
}


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_a_history_ends_as_a_fresh_clone(clean, tmp_path, seed):
    draw = random.Random(seed)
    project = clean.copy(tmp_path / "project")
    for number in range(STEPS):
        action = draw.choice(ACTIONS)
        print(f"seed {seed}, step {number + 1}: {action.__name__}", flush=True)
        output = action(project, draw)
        assert "Traceback" not in output, output
        project.mend()
    project.run("dvc", "repro", timeout=900)
    assert project.changed() == set()
    fresh = clean.copy(tmp_path / "fresh")
    fresh.write("params.yaml", project.read("params.yaml"))
    fresh.run("dvc", "repro", timeout=900)
    assert project.contents() == fresh.contents()


def repro(project, draw):  # noqa: ARG001
    return project.run("dvc", "repro", timeout=900)


def snakemake(project, draw):  # noqa: ARG001
    return project.run("snakemake", "-c2", "--rerun-incomplete", status=None, timeout=900)


def edit(project, draw):
    start, values = draw.choice(list(SETTINGS.items()))
    text = project.read("params.yaml")
    before, _, after = text.partition(start)
    value = next(each for each in values if not after.startswith(each))
    old = next(each for each in values if after.startswith(each))
    project.write("params.yaml", f"{before}{start}{value}{after.removeprefix(old)}")
    return ""


def edit_during_repro(project, draw):
    process = project.start("dvc", "repro")
    time.sleep(draw.uniform(0, 30))
    edit(project, draw)
    return process.communicate(timeout=900)[0]


def end_a_run(project, draw):
    process = project.start(*draw.choice((("dvc", "repro"), ("snakemake", "-c2"))))
    time.sleep(draw.uniform(0, 40))
    micro.kill(process, draw.choice((signal.SIGKILL, signal.SIGTERM)))
    try:
        return process.communicate(timeout=120)[0]
    finally:
        micro.kill(process)


def delete_cache(project, draw):  # noqa: ARG001
    shutil.rmtree(project.root / ".dvc" / "cache", ignore_errors=True)
    return ""


def full_disk(project, draw):
    """No file may be longer than this, as if the disk were full for all that is."""
    kilobytes = draw.choice((4, 16, 64))
    return project.run("sh", "-c", f"ulimit -f {kilobytes}; exec dvc repro", status=None)


def checkout(project, draw):  # noqa: ARG001
    shutil.rmtree(project.root / "data", ignore_errors=True)
    return project.run("dvc", "checkout", status=None)


ACTIONS = [repro, snakemake, edit, edit, edit_during_repro, end_a_run, end_a_run, delete_cache]
ACTIONS += [full_disk, checkout]
