"""`bleuprint work`: what work/ holds, for what, and what of it can go."""

import os
import re
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from bleuprint.pipeline.leftovers import training_lock
from processes import run

MARK = "0123456789abcdef"
FINISHED, UNFINISHED = f"work/trainings/tiny.own.1.{MARK}", "work/trainings/tiny.own.2.fedcba98"
WHOLE, PARTIAL = f"work/downloads/{64 * 'a'}", f"work/downloads/{64 * 'b'}.partial"
SHARDS = "work/shards"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "params.yaml": 0,
        f"{FINISHED}/checkpoint-10/model": 3_000_000,
        f"{UNFINISHED}/checkpoint-5/model": 1_000_000,
        WHOLE: 200_000,
        PARTIAL: 100_000,
        f"{SHARDS}/clean/own/1-of-2/train.en": 50_000,
        "work/mlflow.lock": 0,
        ".dvc/cache/files/md5/ab/cd": 700_000,
    }
    for name, size in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    for system in ("tiny", "same"):  # two rows with one training
        path = tmp_path / "results" / system / "own" / "1" / "training.json"
        path.parent.mkdir(parents=True)
        path.write_text(f'{{"fingerprint": "{MARK}{48 * "0"}"}}')
    old = time.time() - 3 * 86400
    for path in (tmp_path / FINISHED, *(tmp_path / FINISHED).rglob("*")):
        os.utime(path, (old, old))
    return tmp_path


def work(root: Path, *arguments: str, status: int = 0) -> str:
    command = [sys.executable, "-m", "bleuprint", "work", *arguments]
    done = run(command, root)
    assert done.returncode == status, done.stderr
    return (done.stderr if status else done.stdout).decode()


def listed(root: Path, *arguments: str) -> dict[str, tuple[str, str, str]]:
    """Size, age and note by path."""
    *lines, cache = work(root, *arguments).splitlines()
    assert cache.split()[:3] == ["0.7", "MB", ".dvc/cache"]
    found = [re.fullmatch(r" *([\d.]+ MB) +([\d.]+ days)  (\S+)  (.*)", line) for line in lines]
    return {match[3]: (match[1], match[2], match[4]) for match in found if match}


def test_each_has_its_size_its_age_and_its_cells(root: Path) -> None:
    found = listed(root)
    assert list(found) == [FINISHED, UNFINISHED, WHOLE, PARTIAL, SHARDS]
    assert found[FINISHED] == ("3.0 MB", "3.0 days", "training of same-own-1, tiny-own-1")
    assert found[UNFINISHED] == ("1.0 MB", "0.0 days", "training that has not ended")


def test_what_is_in_use_stays(root: Path) -> None:
    download = root / PARTIAL.replace(".partial", ".lock")
    with FileLock(training_lock(root / UNFINISHED)), FileLock(download):
        found = listed(root, "--clear")
    assert {path for path, rest in found.items() if rest[-1].endswith("(in use)")} == {
        UNFINISHED,
        PARTIAL,
    }
    left = {str(path.relative_to(root)) for path in root.glob("work/*/*")}
    assert {name for name in left if not name.endswith(".lock")} == {UNFINISHED, PARTIAL}
    assert (root / ".dvc/cache/files/md5/ab/cd").exists()


def test_projects_of_rules_stay_while_they_run(root: Path) -> None:
    lock = root / "work/rules/own/.snakemake/locks/0.input.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    listed(root, "--clear", "work/rules")
    assert lock.exists()
    lock.unlink()
    listed(root, "--clear", "work/rules")
    assert not (root / "work/rules").exists()


def test_snakemakes_files_stay_while_it_runs(root: Path) -> None:
    lock = root / ".snakemake/locks/0.input.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    listed(root, "--clear", f"{SHARDS}/")
    assert (root / SHARDS).exists()
    lock.unlink()
    listed(root, "--clear", f"{SHARDS}/")
    assert not (root / SHARDS).exists() and (root / FINISHED).exists()


def test_another_path_is_refused(root: Path) -> None:
    said = work(root, "--clear", "results", status=1)
    assert said == "bleuprint: error: results: not in the list of `bleuprint work`\n"
    assert (root / "results").exists()


def test_before_anything_has_run_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").touch()
    (line,) = work(tmp_path).splitlines()
    assert line.split()[:3] == ["0.0", "MB", ".dvc/cache"]


def test_a_damaged_result_keeps_no_one_from_making_room(root: Path) -> None:
    (root / "results/tiny/own/1/training.json").write_text("{")
    assert "training of same-own-1" in work(root)
