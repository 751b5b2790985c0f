"""A project after random runs, edits, kills and full disks has the files of a fresh clone.

BLEUPRINT_HISTORIES sets the number of histories (default: 3), and BLEUPRINT_KILLS_SEED the seed of
the first.
"""

import os
import random
import shutil
import signal
import time

import pytest

import micro

pytestmark = pytest.mark.long
HISTORIES = int(os.environ.get("BLEUPRINT_HISTORIES", "3"))
FIRST_SEED = int(os.environ.get("BLEUPRINT_KILLS_SEED", "1"))
STEPS_PER_HISTORY = 6
RUN_TIMEOUT_SECONDS = 900
# An edit replaces the value after one of these by the other one. The settings belong to decoding,
# filtering, BPE and training, which costs most.
VALUES_BY_SETTING = {
    "beam: ": ("2", "3"),
    "length: {min: 1, max: ": ("100", "90"),
    "num_merges: ": ("40", "30"),
    "lr: ": ("0.02", "0.03"),
}


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + HISTORIES))
def test_a_project_with_a_random_history_ends_as_a_fresh_clone(clean, tmp_path, seed):
    """Six random actions are, for example, an edit of a setting, a run that is killed, a full disk.

    Then `dvc repro` must give the same files as in a clone that only has the last settings.
    """
    generator = random.Random(seed)
    project = clean.copy(tmp_path / "project")
    for step in range(1, STEPS_PER_HISTORY + 1):
        action = generator.choice(ACTIONS)
        print(f"seed {seed}, step {step}: {action.__name__}", flush=True)
        output = action(project, generator)
        assert "Traceback" not in output, output
        project.repair_dvc_files()

    project.run("dvc", "repro", timeout=RUN_TIMEOUT_SECONDS)

    stages_out_of_date = project.changed_stages()
    assert stages_out_of_date == set()
    fresh_clone = clean.copy(tmp_path / "fresh")
    fresh_clone.write("params.yaml", project.read("params.yaml"))
    fresh_clone.run("dvc", "repro", timeout=RUN_TIMEOUT_SECONDS)
    assert project.contents() == fresh_clone.contents()


def run_dvc(project, generator):  # noqa: ARG001
    """Run what is missing with DVC."""
    return project.run("dvc", "repro", timeout=RUN_TIMEOUT_SECONDS)


def run_snakemake(project, generator):  # noqa: ARG001
    """Run what is missing with Snakemake, which may refuse files that DVC changed."""
    return project.run(
        "snakemake", "-c2", "--rerun-incomplete", status=None, timeout=RUN_TIMEOUT_SECONDS
    )


def edit_a_setting(project, generator):
    """Replace the value of a random setting in params.yaml by the other of its two values."""
    setting, values = generator.choice(list(VALUES_BY_SETTING.items()))
    text = project.read("params.yaml")
    before, _, after = text.partition(setting)
    first_value, second_value = values
    if after.startswith(first_value):
        edited = second_value + after.removeprefix(first_value)
    else:
        assert after.startswith(second_value)
        edited = first_value + after.removeprefix(second_value)
    project.write("params.yaml", before + setting + edited)
    return ""


def edit_a_setting_during_a_run(project, generator):
    """Start DVC, and edit params.yaml up to half a minute later."""
    process = project.start("dvc", "repro")
    time.sleep(generator.uniform(0, 30))
    edit_a_setting(project, generator)
    return process.communicate(timeout=RUN_TIMEOUT_SECONDS)[0]


def stop_a_run(project, generator):
    """Start DVC or Snakemake, and kill or terminate it up to 40 seconds later."""
    command = generator.choice((("dvc", "repro"), ("snakemake", "-c2")))
    process = project.start(*command)
    time.sleep(generator.uniform(0, 40))
    micro.kill(process, generator.choice((signal.SIGKILL, signal.SIGTERM)))
    try:
        return process.communicate(timeout=120)[0]
    finally:
        micro.kill(process)


def delete_the_cache(project, generator):  # noqa: ARG001
    """Delete DVC's cache, as a user does who needs space."""
    shutil.rmtree(project.root / ".dvc" / "cache", ignore_errors=True)
    return ""


def run_dvc_on_a_full_disk(project, generator):
    """Run DVC where no file may be longer than a few kilobytes, as if the disk were full."""
    kilobytes = generator.choice((4, 16, 64))
    return project.run("sh", "-c", f"ulimit -f {kilobytes}; exec dvc repro", status=None)


def delete_the_data_and_check_it_out(project, generator):  # noqa: ARG001
    """Delete data/, and have DVC bring back what its cache has."""
    shutil.rmtree(project.root / "data", ignore_errors=True)
    return project.run("dvc", "checkout", status=None)


# Edits and stops are drawn twice as often as the others.
ACTIONS = [
    run_dvc,
    run_snakemake,
    edit_a_setting,
    edit_a_setting,
    edit_a_setting_during_a_run,
    stop_a_run,
    stop_a_run,
    delete_the_cache,
    run_dvc_on_a_full_disk,
    delete_the_data_and_check_it_out,
]
