"""Resources of jobs, and what is refused before any is submitted, without a SLURM."""

import shutil
from types import SimpleNamespace

import pytest

from bleuprint.pipeline import slurm
from bleuprint.pipeline.rules import make_rules
from bleuprint.runtime.errors import UserError

# The wildcards of a job of the training rule.
TRAINING = {"system": "tiny", "corpus": "own", "seed": "1"}


@pytest.fixture(scope="module")
def resources(project, stages):
    """Return the functions that compute what a job asks for, by the name of its rule."""
    rules = make_rules(stages.values(), root=project.root)
    return {rule.name: slurm.job_resources(rule) for rule in rules}


@pytest.fixture
def program_folder(tmp_path, monkeypatch):
    """Return a folder whose programs are found first."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def write_program(folder, name, output):
    """Write a program that prints a text to standard output and standard error."""
    (folder / name).write_text(f"#!/bin/sh\ntee /dev/stderr <<'END'\n{output}END\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def queued_jobs(program_folder):
    """Let SLURM's squeue list three jobs: number, name and working folder."""
    jobs = f"""\
7|rule_train_w_a_b_1|{program_folder}
8|mine|{program_folder}
9|rule_train_w_a_b_1|/elsewhere
"""
    write_program(program_folder, "squeue", jobs)


@pytest.mark.usefixtures("queued_jobs")
def test_jobs_that_a_killed_run_of_this_project_has_left_are_an_error(tmp_path):
    """SLURM's queue has three jobs: 7 and 9 have names of our rules, 7 and 8 run in this project.

    So job 7 is left from a killed Snakemake, and a new run would write the same outputs.
    """
    with pytest.raises(UserError, match=r"this project: 7\. Wait .*\(squeue .*scancel 7$"):
        slurm.check_no_earlier_jobs(tmp_path)


@pytest.mark.usefixtures("queued_jobs")
def test_jobs_of_other_projects_are_accepted(tmp_path):
    """No queued job has the parent folder as its working folder."""
    slurm.check_no_earlier_jobs(tmp_path.parent)


def test_a_training_asks_for_a_day(resources):
    minutes = resources["train"]["runtime"](TRAINING)

    assert minutes == 24 * 60


def test_a_job_that_is_tried_again_asks_for_twice_the_memory(resources):
    """It may have failed for lack of memory. dvc.yaml says 8 GB for the stage filter.

    The second argument is the number of the attempt.
    """
    memory_in_mb = resources["filter"]["mem_mb"]

    assert memory_in_mb({"key": "own"}, 1) == 8000
    assert memory_in_mb({"key": "own"}, 2) == 16000
    assert memory_in_mb({"key": "own"}, 3) == 16000


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_training_that_is_tried_again_asks_for_the_same_memory(resources, attempt):
    assert resources["train"]["mem_mb"](TRAINING, attempt) == 32000


def slurm_workflow(status_command):
    """Return a workflow of Snakemake on SLURM.

    Args:
        status_command: The program that Snakemake asks for the state of jobs, by its profile; None
            for the default.
    """
    return SimpleNamespace(
        executor_plugin=SimpleNamespace(name="slurm"),
        executor_settings=SimpleNamespace(status_command=status_command),
    )


def write_slurm_programs(folder, accounting_storage):
    """Write SLURM's programs scontrol, which shows the settings, squeue and sacct."""
    settings = f"""\
AccountingStorageTRES = cpu
AccountingStorageType   = {accounting_storage}
X = none
"""
    write_program(folder, "scontrol", settings)
    write_program(folder, "squeue", "")
    write_program(folder, "sacct", "")


@pytest.mark.parametrize(
    ("status_command", "accounting_storage"),
    [
        pytest.param("sacct", "accounting_storage/none", id="sacct"),
        pytest.param(None, "(null)", id="the default"),
    ],
)
def test_asking_sacct_for_the_state_of_jobs_is_refused_if_slurm_keeps_no_accounts(
    program_folder, status_command, accounting_storage
):
    """Snakemake asks a program of SLURM whether its jobs have ended: sacct by default, or squeue.

    sacct reads SLURM's accounts. If SLURM stores none, Snakemake would wait forever.
    """
    write_slurm_programs(program_folder, accounting_storage)

    message = r"no accounts .* Add .*: slurm-status-command: squeue$"
    with pytest.raises(UserError, match=message):
        slurm.check_cluster(slurm_workflow(status_command))


@pytest.mark.parametrize(
    ("status_command", "accounting_storage"),
    [
        pytest.param("squeue", "accounting_storage/none", id="squeue without accounts"),
        pytest.param("sacct", "accounting_storage/slurmdbd", id="sacct with accounts"),
    ],
)
def test_asking_a_program_that_knows_the_jobs_is_accepted(
    program_folder, status_command, accounting_storage
):
    """Snakemake asks a program of SLURM whether its jobs have ended.

    squeue always knows the jobs. sacct knows them if SLURM stores accounts.
    """
    write_slurm_programs(program_folder, accounting_storage)

    slurm.check_cluster(slurm_workflow(status_command))  # A wrong program would raise UserError.


def test_the_setting_sacct_is_accepted_on_a_cluster_without_the_program_sacct(
    program_folder, monkeypatch
):
    """Snakemake then asks squeue whether its jobs have ended, although its profile says sacct."""
    write_slurm_programs(program_folder, "accounting_storage/none")
    (program_folder / "sacct").unlink()
    # The machine of this test may have another sacct in PATH.
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "sacct" else which(name))

    slurm.check_cluster(slurm_workflow("sacct"))  # A wrong program would raise UserError.


def test_the_error_without_slurm_says_to_use_a_login_node(tmp_path, monkeypatch):
    """PATH names an empty folder, so the program squeue is not found."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(
        UserError, match=r"squeue is not installed here\. Run snakemake on a login node"
    ):
        slurm.check_no_earlier_jobs(tmp_path)
