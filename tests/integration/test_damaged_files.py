"""Damaged files of a finished project: every command ends well or in one line, never in a bug."""

import shutil

import pytest

import damage
from bleuprint.runtime import machine_errors, reexec
from bleuprint.runtime.errors import UserError

CELL = ("--system", "tiny", "--corpus", "own")
RESULTS = "results/tiny/own/1"
BINARY = "data/binary/own"
# Commands that change nothing, and files that each reads.
COMMANDS = {
    ("table", "--all"): [
        "params.yaml",
        "dvc.lock",
        "reports/results.json",
        "reports/costs.csv",
        "data/corpus_stats/own/bleu_ceiling.json",
        "timings/tiny/own/1/train-*.json",
    ],
    ("verify", "theirs"): ["theirs/reports/results.json", "theirs/dvc.lock", "reports/costs.csv"],
    ("compare", "tiny", "wide"): [
        f"{RESULTS}/scores.json",
        f"{RESULTS}/translation.json",
        f"{RESULTS}/training.json",
    ],
    ("translate", *CELL, "inputs/a.en"): [
        f"{BINARY}/corpus.json",
        f"{BINARY}/segmentation/segmentation.json",
        f"{BINARY}/segmentation/codes.en",
        f"{BINARY}/segmentation/vocabulary.de",
        f"{RESULTS}/training.json",
        "models/tiny/own/1/averaged/model.json",
        "models/tiny/own/1/averaged/model.safetensors",
    ],
    ("check",): ["params.yaml"],
    ("cite",): ["params.yaml"],
}
STAGES = {
    ("average", "tiny", "own", "1"): [
        "dvc.yaml",
        "work/code.json",
        "models/tiny/own/1/checkpoints/checkpoints.json",
        "models/tiny/own/1/checkpoints/0000060.safetensors",
    ],
    ("score", "tiny", "own", "1"): ["data/test_stats/own/held-out.json", "reports/resolved.json"],
    ("binarize", "own"): ["data/bpe/own/own/segmentation.json", "reports/resolved.json"],
    ("corpus_stats", "own"): [f"{BINARY}/train.de.ids.npy", f"{BINARY}/valid.en.ends.npy"],
}
CASES = [
    (kind, command, name)
    for kind, commands in (("command", COMMANDS), ("stage", STAGES))
    for command, names in commands.items()
    for name in names
]


@pytest.fixture(scope="module")
def finished(by_dvc, tmp_path_factory):
    """A finished project with the results of another person in `theirs`."""
    project = by_dvc.copy(tmp_path_factory.mktemp("damaged") / "project")
    (project.root / "theirs").mkdir()
    shutil.copytree(project.root / "reports", project.root / "theirs" / "reports")
    shutil.copy(project.root / "dvc.lock", project.root / "theirs")
    return project


def end_of(kind, command):
    """How a command ended: an error in lines, "" without one; a bug is raised."""
    try:
        if kind == "stage":
            damage.run_stage(*command)
        else:
            damage.run_command(command)
    except UserError as error:
        return str(error)
    except SystemExit as end:
        assert end.code in (None, 0, 1, 3, 4, 5), command
    except Exception as error:
        line = machine_errors.describe_machine_error(error)
        if line is None:
            raise
        return line
    return ""


@pytest.mark.parametrize(("kind", "command", "name"), CASES, ids=lambda value: str(value)[:60])
def test_a_damaged_file_ends_in_one_line(finished, monkeypatch, kind, command, name, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(finished.root, root, symlinks=True, ignore=shutil.ignore_patterns("cache"))
    monkeypatch.chdir(root)
    for variable, value in (*reexec.VARIABLES.items(), ("BLEUPRINT_WORKERS", "1")):
        monkeypatch.setenv(variable, value)
    (path,) = root.glob(name)
    whole = path.read_bytes()
    for number in range(6):
        draw = damage.seeded(1, command, name, number)
        content = damage.damaged(whole, path.name, draw)
        path.write_bytes(content)
        try:
            said = end_of(kind, command)
        except Exception as error:
            error.add_note(f"damage {number} of {name}: {content[:2000]!r}")
            raise
        lines = said.splitlines()
        assert len(lines) <= 1 or name == "params.yaml", (number, said)
        assert len(said) < 1000 or name == "params.yaml", (number, said)
        if path.is_file():
            path.write_bytes(whole)
    assert not end_of(kind, command)
