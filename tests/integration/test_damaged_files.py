"""Damaged files of a finished project: every command ends well or in one line, never in a bug."""

import shutil

import pytest

import damage
from bleuprint.runtime import machine_errors, reexec
from bleuprint.runtime.errors import UserError

# Commands that change nothing, and files that each reads.
FILES_BY_COMMAND = {
    "table --all": [
        "params.yaml",
        "dvc.lock",
        "reports/results.json",
        "reports/costs.csv",
        "data/corpus_stats/own/bleu_ceiling.json",
        "timings/tiny/own/1/train-*.json",
    ],
    "verify theirs": ["theirs/reports/results.json", "theirs/dvc.lock", "reports/costs.csv"],
    "compare tiny wide": [
        "results/tiny/own/1/scores.json",
        "results/tiny/own/1/translation.json",
        "results/tiny/own/1/training.json",
    ],
    "translate --system tiny --corpus own inputs/a.en": [
        "data/binary/own/corpus.json",
        "data/binary/own/segmentation/segmentation.json",
        "data/binary/own/segmentation/codes.en",
        "data/binary/own/segmentation/vocabulary.de",
        "results/tiny/own/1/training.json",
        "models/tiny/own/1/averaged/model.json",
        "models/tiny/own/1/averaged/model.safetensors",
    ],
    "check": ["params.yaml"],
    "cite": ["params.yaml"],
}
# Stages, and files that each reads.
FILES_BY_STAGE = {
    "average tiny own 1": [
        "dvc.yaml",
        "work/code.json",
        "models/tiny/own/1/checkpoints/checkpoints.json",
        "models/tiny/own/1/checkpoints/0000060.safetensors",
    ],
    "score tiny own 1": ["data/test_stats/own/held-out.json", "reports/resolved.json"],
    "binarize own": ["data/bpe/own/own/segmentation.json", "reports/resolved.json"],
    "corpus_stats own": ["data/binary/own/train.de.ids.npy", "data/binary/own/valid.en.ends.npy"],
}


def run_command(words):
    """Run a command of bleuprint in this process."""
    damage.run_command(words)


def run_stage(words):
    """Run a stage in this process."""
    damage.run_stage(*words)


def error_of(run, words):
    """Run a command or stage, and return the message of its error; "" if there is none.

    Errors that are bugs are raised: those of which a user would see a traceback.

    Args:
        run: `run_command` or `run_stage`.
        words: The command or stage with its arguments.
    """
    try:
        run(words)
    except UserError as error:
        return str(error)
    except SystemExit as end:
        # Such as 3 for results that differ; the status is what these commands are run for.
        assert end.code in (None, 0, 1, 3, 4, 5), words
    except Exception as error:
        # Errors of the machine, such as a full disk, are described to users in a line.
        line = machine_errors.describe_machine_error(error)
        if line is None:
            raise
        return line
    return ""


@pytest.fixture(scope="module")
def finished_project(by_dvc, tmp_path_factory):
    """Return a finished project, with the results of another person in the folder `theirs`."""
    project = by_dvc.copy(tmp_path_factory.mktemp("damaged") / "project")
    (project.root / "theirs").mkdir()
    shutil.copytree(project.root / "reports", project.root / "theirs" / "reports")
    shutil.copy(project.root / "dvc.lock", project.root / "theirs")
    return project


@pytest.fixture
def working_folder(finished_project, monkeypatch, tmp_path):
    """Return a copy of the finished project, in which this process works."""
    folder = tmp_path / "copy"
    ignored = shutil.ignore_patterns("cache")
    shutil.copytree(finished_project.root, folder, symlinks=True, ignore=ignored)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BLEUPRINT_WORKERS", "1")
    for variable, value in reexec.VARIABLES.items():
        monkeypatch.setenv(variable, value)
    return folder


def cases():
    """Return the parameters of the test below: each file of each command and stage above."""
    parameters = []
    for run, files_by_name in ((run_command, FILES_BY_COMMAND), (run_stage, FILES_BY_STAGE)):
        for name, files in files_by_name.items():
            for file in files:
                parameters.append(pytest.param(run, name, file, id=f"{name[:30]}-{file}"))
    return parameters


@pytest.mark.parametrize(("run", "name", "file"), cases())
def test_a_command_or_stage_that_reads_a_damaged_file_fails_in_one_line_at_most(
    working_folder, run, name, file
):
    """The file is damaged in six ways, drawn at random with a fixed seed, and restored each time.

    `error_of` runs the command or stage and returns the message of its error, or "" if it succeeds.
    A bug, which would show users a traceback, is raised and fails the test.
    """
    words = tuple(name.split())
    (path,) = working_folder.glob(file)
    intact_content = path.read_bytes()

    for number in range(6):
        draw = damage.seeded(1, words, file, number)
        damaged_content = damage.damaged(intact_content, path.name, draw)
        path.write_bytes(damaged_content)

        try:
            message = error_of(run, words)
        except Exception as error:
            error.add_note(f"damage {number} of {file}: {damaged_content[:2000]!r}")
            raise

        # The message about params.yaml lists all wrong settings, one per line.
        if file != "params.yaml":
            assert len(message.splitlines()) <= 1, (number, message)
            assert len(message) < 1000, (number, message)
        # A command may have removed the damaged file, such as a cache.
        if path.is_file():
            path.write_bytes(intact_content)

    assert error_of(run, words) == "", "the command still fails after the file is restored"
