"""What dvc.lock records; one cut short by a kill, and Snakemake's lock left by one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bleuprint.pipeline import dvc_lock
from bleuprint.pipeline.dvc_lock import LockFile
from bleuprint.pipeline.dvc_repo import changed_stages
from bleuprint.runtime.errors import UserError

HEAD = "schema: '2.0'\nstages:\n"
TWO_STAGES = (
    HEAD
    + """\
  train@small-own-1:
    cmd: python train.py
    params:
      reports/resolved.json:
        code.train: abc
        runs.small.own.arithmetic: portable
    outs:
    - path: models/small
      hash: md5
      md5: 0a.dir
  report:
    cmd: python report.py
    outs:
    - path: reports/metrics.json
      md5: 0b
    - path: reports/results.json
      md5: 0c
"""
)


@pytest.fixture
def project(tmp_path):
    from dvc.repo import Repo

    Repo.init(str(tmp_path), no_scm=True).close()
    return tmp_path


@pytest.fixture
def lock(tmp_path):
    (tmp_path / "dvc.lock").write_text(TWO_STAGES)
    return LockFile.read(tmp_path)


def test_a_lock_records_the_stages_that_it_names(lock):
    assert list(lock.blocks) == list(lock.stages) == ["train@small-own-1", "report"]


def test_a_stage_that_is_parsed_alone_is_that_of_the_whole_file(lock):
    for name in lock.stages:
        assert lock.stage(name) == lock.stages[name]


def test_a_stage_that_is_not_recorded_is_empty(lock):
    assert lock.stage("train") == {}
    assert lock.settings("train") == {}


def test_the_settings_are_those_that_a_stage_ran_with(lock):
    settings = {"code.train": "abc", "runs.small.own.arithmetic": "portable"}
    assert lock.settings("train@small-own-1") == settings


def test_an_output_has_the_hash_of_its_stage(lock):
    assert lock.output_md5("report", Path("reports/results.json")) == "0c"
    assert lock.output_md5("report", Path("reports/table.md")) is None
    assert lock.output_md5("train@small-own-1", Path("reports/results.json")) is None


def test_without_a_lock_nothing_is_recorded(tmp_path):
    lock = LockFile.read(tmp_path)
    assert (lock.blocks, lock.stages) == ({}, {})


def test_a_lock_with_merge_conflicts_is_refused(tmp_path):
    (tmp_path / "dvc.lock").write_text(f"{HEAD}<<<<<<< HEAD\n  a:\n=======\n>>>>>>> other\n")
    with pytest.raises(UserError, match=r"dvc\.lock: contains merge conflicts"):
        LockFile.read(tmp_path)


@pytest.mark.parametrize("text", ["", HEAD + "  a:\n    cmd: 'true'\n    o", HEAD + "  a:\n"])
def test_a_dvc_lock_that_was_cut_short_says_the_way_out(project, text):
    (project / "dvc.yaml").write_text("stages:\n  a: {cmd: 'true'}\n")
    (project / "dvc.lock").write_text(text)
    with pytest.raises(UserError, match=r"dvc\.lock'.*; git has no copy of it\. Run: rm"):
        changed_stages(project)


@pytest.mark.parametrize("name", ["dvc.yaml", "dvc.lock"])
def test_a_file_of_dvc_that_is_nested_too_deeply_says_the_way_out(project, name):
    (project / "dvc.yaml").write_text("stages:\n  a: {cmd: 'true'}\n")
    (project / name).write_text("a: " + "[" * 5000 + "]" * 5000)
    with pytest.raises(UserError) as raised:
        changed_stages(project)
    message = "dvc.yaml or dvc.lock is nested too deeply; git has no copy of it. Run: rm"
    assert str(raised.value).startswith(message)


def test_a_lock_that_is_written_is_not_lost_at_a_stop(tmp_path, monkeypatch):
    class Cut:
        dvcfile: "Cut"

        def dump_stages(self, _stages, update_pipeline):  # noqa: ARG002
            (tmp_path / "dvc.lock").write_text("")
            raise KeyboardInterrupt

    Cut.dvcfile = Cut()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.lock").write_text(HEAD)
    with pytest.raises(KeyboardInterrupt):
        dvc_lock.write_lock([Cut()])
    assert (tmp_path / "dvc.lock").read_text() == HEAD


SNAKEMAKE = """\
import sys
from bleuprint.pipeline.snakemake_run import unlock_after_kill
unlock_after_kill()
print(flush=True)
sys.stdin.read()
"""


def test_the_lock_of_a_killed_snakemake_is_removed_and_others_are_not(tmp_path):
    lock = tmp_path / ".snakemake" / "locks" / "0.input.lock"
    lock.parent.mkdir(parents=True)

    def another():
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = subprocess.Popen([sys.executable, "-c", SNAKEMAKE], cwd=tmp_path, **pipes)
        process.stdout.readline()
        return process

    process = another()
    lock.touch()  # as Snakemake does now
    another().communicate()
    assert lock.exists()
    process.kill()
    process.communicate()
    another().communicate()
    assert not lock.exists()

    lock.touch()
    (tmp_path / "work/snakemake/host").write_text("another")  # which may still run there
    another().communicate()
    assert lock.exists()


@pytest.fixture
def small_project(tmp_path, monkeypatch):
    """A repository of git and DVC with one stage, which has run and is not committed."""
    monkeypatch.chdir(tmp_path)
    for name, value in (("DVC_NO_ANALYTICS", "1"), ("GIT_CONFIG_GLOBAL", os.devnull)):
        monkeypatch.setenv(name, value)
    subprocess.run(["git", "init", "--quiet"], check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "--quiet"], check=True)
    Path("dvc.yaml").write_text("stages:\n  one:\n    cmd: echo 1 > a\n    outs: [a]\n")
    subprocess.run([sys.executable, "-m", "dvc", "repro", "--quiet"], check=True)
    assert not changed_stages()
    return tmp_path


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"schema: '2.0'\nstages:\n  one:\n    cmd: echo 1 > a\n    ou",
        b"\0" * 90,
        b"\xff",
        b"[" * 5000,
        b"[]",
    ],
    ids=["empty", "cut", "nul", "utf8", "nested", "list"],
)
def test_a_damaged_lock_names_the_way_back(small_project, damaged):
    lock = small_project / "dvc.lock"
    whole = lock.read_bytes()
    lock.write_bytes(damaged)
    with pytest.raises(UserError, match=r"git has no copy of it\. Run: rm dvc\.lock, then"):
        changed_stages()
    lock.unlink()
    subprocess.run([sys.executable, "-m", "dvc", "repro", "--quiet"], check=True)
    assert lock.read_bytes() == whole
    subprocess.run(["git", "add", "dvc.lock"], check=True)
    lock.write_bytes(damaged)
    with pytest.raises(UserError, match=r"run: git checkout dvc\.lock, then"):
        changed_stages()
    subprocess.run(["git", "checkout", "--quiet", "dvc.lock"], check=True)
    assert not changed_stages()


def test_a_pipe_where_dvc_reads_is_named(small_project):
    """DVC itself would wait for a writer for ever."""
    (small_project / "data" / "raw").mkdir(parents=True)
    os.mkfifo(small_project / "data" / "raw" / "pipe")
    with pytest.raises(UserError, match=r"data/raw/pipe: a pipe or device, which DVC would wait"):
        changed_stages()


@pytest.mark.parametrize("damaged", [b"", b'{"a": '])
def test_a_damaged_list_of_locks_says_what_to_remove(small_project, damaged):
    (small_project / ".dvc" / "tmp" / "rwlock").write_bytes(damaged)
    with pytest.raises(UserError, match=r"rwlock'.*; remove it, if no other DVC runs here$"):
        changed_stages()


@pytest.mark.parametrize("before", [None, b'{"read": {}, "write": {}}'])
def test_a_stop_while_dvc_writes_its_list_of_locks_leaves_a_whole_one(
    small_project, monkeypatch, before
):
    rwlock = small_project / ".dvc" / "tmp" / "rwlock"
    rwlock.unlink(missing_ok=True)
    if before is not None:
        rwlock.write_bytes(before)
    monkeypatch.setattr("dvc.rwlock.json.dump", interrupt)
    with pytest.raises(KeyboardInterrupt):
        changed_stages()
    monkeypatch.undo()
    assert (rwlock.read_bytes() if rwlock.exists() else None) == before


def interrupt(_content, file):
    """Begin to write into a file, and be stopped by Ctrl-C."""
    file.write('{"rea')
    raise KeyboardInterrupt
