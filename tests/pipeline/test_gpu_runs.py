"""`make reproduce` and Snakemake keep all GPUs busy: made-up GPUs, real processes, real locks."""

import json
import sys
import uuid
from itertools import combinations

import pytest

from bleuprint.runtime import gpu_locks
from bleuprint.runtime.gpu_locks import VISIBLE_GPUS

# A training: it takes its GPUs, works for four seconds, and writes which GPUs it had, and when.
TRAIN_ON_GPUS = """\
python -c '
import json, os, time
from bleuprint.runtime.gpu_locks import hold_gpus
with hold_gpus() as gpus:
    start = time.time()
    time.sleep(4)
    record = {"gpus": gpus, "start": start, "end": time.time()}
os.makedirs("work/uses", exist_ok=True)
with open(f"work/uses/{os.getpid()}.json", "w") as file:
    json.dump(record, file)
'
"""
RUN_CHANGED_STAGES = """\
import sys
from dataclasses import replace
from bleuprint.pipeline import stage_runner
from bleuprint.runtime import processor
from bleuprint.pipeline.resolve import write_resolved
from bleuprint.runtime.errors import run_main
def main():
    write_resolved()
    processor.THIS = replace(processor.THIS, cores=int(sys.argv[1]))
    status = stage_runner.run_changed_stages(lambda name, is_restored: print(name, flush=True))
    raise SystemExit(status)
run_main(main)
"""
TRAININGS = 3


@pytest.fixture
def project(stand_in, tmp_path):
    """Return a project with three trainings to run, which use GPUs if there are any."""
    copy = stand_in.copy(tmp_path / "project")
    copy.edit("params.yaml", "max_updates: 60", "max_updates: 61")
    copy.environment["WHILE_TRAINING"] = TRAIN_ON_GPUS
    return copy


@pytest.fixture
def give_gpus(project):
    """Return a function that gives the project made-up GPUs, and returns their names.

    Its argument is their number.
    """
    lock_files = []

    def give(count):
        identity = uuid.uuid4().hex
        names = [f"GPU-{identity}-{number}" for number in range(count)]
        project.environment[VISIBLE_GPUS] = ",".join(names)
        lock_files.extend(gpu_locks._lock_file(name) for name in names)
        return names

    yield give
    for lock_file in lock_files:
        lock_file.unlink(missing_ok=True)


def uses_of_gpus(project):
    """Return the records of the trainings that ran, in the order of their starts."""
    records = []
    for path in (project.root / "work" / "uses").glob("*.json"):
        records.append(json.loads(path.read_text()))
    assert len(records) == TRAININGS
    return sorted(records, key=lambda record: record["start"])


def assert_no_gpu_is_shared(records):
    """Check that two trainings at the same time never had the same GPU."""
    for first, second in combinations(records, 2):
        is_simultaneous = first["start"] < second["end"] and second["start"] < first["end"]
        if is_simultaneous:
            assert set(first["gpus"]).isdisjoint(second["gpus"])


def most_gpus_at_once(records):
    """Return the highest number of GPUs that were busy at the same time."""
    highest = 0
    for record in records:
        busy = set()
        for other in records:
            if other["start"] <= record["start"] < other["end"]:
                busy.update(other["gpus"])
        highest = max(highest, len(busy))
    return highest


def reproduce(project, cores=8):
    """Run the changed stages as `make reproduce` does, as on a machine with some cores.

    Returns:
        The names of the stages, in the order of their starts.
    """
    return project.run(sys.executable, "-c", RUN_CHANGED_STAGES, str(cores)).splitlines()


def run_snakemake(project):
    """Run the changed stages by Snakemake, as on a machine with eight cores."""
    project.snakemake("-c8")


RUNNERS = [
    pytest.param(reproduce, id="make reproduce"),
    pytest.param(run_snakemake, id="snakemake"),
]


@pytest.mark.parametrize("run", RUNNERS)
@pytest.mark.parametrize(
    ("gpu_count", "gpus_per_training"),
    [
        pytest.param(6, [2, 2, 2], id="two GPUs for each"),
        pytest.param(3, [1, 1, 1], id="one GPU for each"),
        pytest.param(2, [1, 1, 1], id="the third waits for a GPU"),
    ],
)
def test_three_trainings_divide_the_gpus(project, give_gpus, run, gpu_count, gpus_per_training):
    """None has a GPU of another, and none is idle while a training waits."""
    names = give_gpus(gpu_count)

    run(project)

    records = uses_of_gpus(project)
    assert_no_gpu_is_shared(records)
    assert most_gpus_at_once(records) == gpu_count
    assert {name for record in records for name in record["gpus"]} == set(names)
    assert [len(record["gpus"]) for record in records] == gpus_per_training


@pytest.mark.parametrize("cores", [1, 8])
def test_stages_without_a_gpu_do_not_wait_for_all_trainings(project, give_gpus, cores):
    """Three trainings run one after the other on one GPU.

    After the first one, its checkpoints are averaged while the next one trains, and not after the
    last one.
    """
    give_gpus(1)

    stages = reproduce(project, cores)

    trainings = [name for name in stages if name.startswith("train@")]
    averages = [name for name in stages if name.startswith("average@")]
    assert len(trainings) == TRAININGS
    assert stages.index(averages[0]) < stages.index(trainings[-1])


def test_snakemake_on_two_cores_keeps_all_gpus_busy(project, give_gpus):
    """Only two of the three trainings run at a time, so each of them gets half of the GPUs."""
    give_gpus(6)

    project.snakemake("-c2")

    records = uses_of_gpus(project)
    assert_no_gpu_is_shared(records)
    assert [len(record["gpus"]) for record in records] == [3, 3, 3]
    assert most_gpus_at_once(records) == 6


def test_two_runs_of_two_projects_share_no_gpu(project, give_gpus, tmp_path):
    """Two people run their projects on a machine with two GPUs at the same time."""
    give_gpus(2)
    other = project.copy(tmp_path / "other")
    other.environment.update(project.environment, PYTHONPATH=str(other.root / "src"))

    process = other.start(sys.executable, "-c", RUN_CHANGED_STAGES, "8")
    reproduce(project)
    assert process.wait(timeout=300) == 0

    records = uses_of_gpus(project) + uses_of_gpus(other)
    assert_no_gpu_is_shared(records)


def test_the_number_of_gpus_is_not_in_dvc_lock(project, give_gpus):
    """After a run on three GPUs, a machine with one has nothing to do."""
    give_gpus(3)
    reproduce(project)
    lock = project.read("dvc.lock")

    give_gpus(1)
    reproduce(project)

    assert project.read("dvc.lock") == lock
    assert len(uses_of_gpus(project)) == TRAININGS
