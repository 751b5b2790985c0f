"""What dvc.lock records; one cut short by a kill, and Snakemake's lock left by one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bleuprint.pipeline import dvc_lock
from bleuprint.pipeline.dvc_lock import LockFile
from bleuprint.pipeline.dvc_repo import changed_stages
from bleuprint.runtime.errors import UserError

DVC_LOCK = """\
schema: '2.0'
stages:
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


@pytest.fixture
def project(tmp_path):
    """Return a project of DVC without Git, whose dvc.yaml has one stage, `a`."""
    from dvc.repo import Repo

    Repo.init(str(tmp_path), no_scm=True).close()
    (tmp_path / "dvc.yaml").write_text("stages:\n  a: {cmd: 'true'}\n")
    return tmp_path


@pytest.fixture
def lock(tmp_path):
    """Read DVC_LOCK from a file, with the stages train@small-own-1 and report."""
    (tmp_path / "dvc.lock").write_text(DVC_LOCK)
    return LockFile.read(tmp_path)


def test_a_lock_has_the_stages_that_the_file_names(lock):
    assert list(lock.blocks) == ["train@small-own-1", "report"]
    assert list(lock.stages) == ["train@small-own-1", "report"]


@pytest.mark.parametrize("name", ["train@small-own-1", "report"])
def test_a_stage_is_the_same_whether_it_or_the_whole_file_is_parsed(lock, name):
    """Parsing a large dvc.lock takes seconds, so `stage` parses only the lines of one stage."""
    assert lock.stage(name) == lock.stages[name]


def test_a_stage_that_dvc_has_not_recorded_is_empty(lock):
    """The lock has a stage train@small-own-1, but none called train."""
    assert lock.stage("train") == {}
    assert lock.settings("train") == {}


def test_a_lock_tells_the_settings_with_which_a_stage_ran(lock):
    assert lock.settings("train@small-own-1") == {
        "code.train": "abc",
        "runs.small.own.arithmetic": "portable",
    }


def test_a_lock_tells_the_md5_of_an_output(lock):
    assert lock.output_md5("report", Path("reports/results.json")) == "0c"


@pytest.mark.parametrize(
    ("stage", "path"),
    [
        pytest.param("report", "reports/table.md", id="no output"),
        pytest.param("train@small-own-1", "reports/results.json", id="output of another stage"),
    ],
)
def test_a_file_that_is_not_an_output_of_the_stage_has_no_md5(lock, stage, path):
    assert lock.output_md5(stage, Path(path)) is None


def test_a_project_without_dvc_lock_has_no_recorded_stages(tmp_path):
    lock = LockFile.read(tmp_path)

    assert lock.blocks == {}
    assert lock.stages == {}


def test_reading_a_dvc_lock_with_merge_conflicts_is_an_error(tmp_path):
    """Git writes the markers <<<<<<<, ======= and >>>>>>> where two branches differ."""
    text_after_a_merge = "schema: '2.0'\nstages:\n<<<<<<< HEAD\n  a:\n=======\n>>>>>>> other\n"
    (tmp_path / "dvc.lock").write_text(text_after_a_merge)

    with pytest.raises(UserError, match=r"dvc\.lock contains merge conflicts"):
        LockFile.read(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("schema: '2.0'\nstages:\n  a:\n    cmd: 'true'\n    o", id="in a key"),
        pytest.param("schema: '2.0'\nstages:\n  a:\n", id="after a name"),
    ],
)
def test_the_error_for_a_truncated_dvc_lock_says_to_remove_it(project, text):
    """DVC was killed while it wrote the file. Git cannot restore it: it was never committed."""
    (project / "dvc.lock").write_text(text)

    with pytest.raises(UserError, match=r"dvc\.lock'.*\. Git has no copy of dvc\.lock\. Run: rm"):
        changed_stages(project)


@pytest.mark.parametrize("name", ["dvc.yaml", "dvc.lock"])
def test_the_error_for_a_file_of_dvc_that_is_nested_too_deeply_says_to_remove_it(project, name):
    """5,000 nested lists make the YAML parser exceed Python's recursion limit."""
    (project / name).write_text("a: " + "[" * 5000 + "]" * 5000)

    with pytest.raises(UserError) as error:
        changed_stages(project)

    message = "dvc.yaml or dvc.lock is nested too deeply. Git has no copy of dvc.lock. Run: rm"
    assert str(error.value).startswith(message)


class InterruptedStage:
    """A stage in place of DVC's, which empties dvc.lock, and is stopped before it writes it."""

    def __init__(self, lock_file):
        self._lock_file = lock_file

    @property
    def dvcfile(self):
        """The object that writes the stage into dvc.lock."""
        return self

    def dump_stages(self, _stages, update_pipeline):  # noqa: ARG002
        """Begin to write dvc.lock."""
        self._lock_file.write_text("")
        raise KeyboardInterrupt


def test_dvc_lock_is_restored_if_writing_it_is_interrupted(tmp_path, monkeypatch):
    """InterruptedStage simulates Ctrl-C: it empties the file, then raises KeyboardInterrupt."""
    monkeypatch.chdir(tmp_path)
    lock_file = tmp_path / "dvc.lock"
    lock_file.write_text(DVC_LOCK)

    with pytest.raises(KeyboardInterrupt):
        dvc_lock.write_lock([InterruptedStage(lock_file)])

    assert lock_file.read_text() == DVC_LOCK


def start_snakemake(folder):
    """Start a process that begins like Snakemake and then waits for the end of its input.

    At its beginning, it removes the lock of a killed Snakemake. When this function returns, this is
    done.
    """
    program = """\
import sys
from bleuprint.pipeline.snakemake_run import unlock_after_kill
unlock_after_kill()
print(flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    return process


@pytest.fixture
def snakemake_lock(tmp_path):
    """Return the path of Snakemake's lock in an existing folder; the file does not exist yet."""
    folder = tmp_path / ".snakemake" / "locks"
    folder.mkdir(parents=True)
    return folder / "0.input.lock"


@pytest.fixture
def running_snakemake(tmp_path, snakemake_lock):
    """Start a Snakemake that has locked the project; kill it at the end."""
    process = start_snakemake(tmp_path)
    snakemake_lock.touch()
    yield process
    process.kill()
    process.communicate()


def test_the_lock_of_a_running_snakemake_stays(tmp_path, snakemake_lock, running_snakemake):
    start_snakemake(tmp_path).communicate()

    assert running_snakemake.poll() is None
    assert snakemake_lock.exists()


def test_the_lock_of_a_killed_snakemake_is_removed_at_the_next_start(
    tmp_path, snakemake_lock, running_snakemake
):
    """A lock file that stays after a kill would make every later Snakemake refuse to start."""
    running_snakemake.kill()
    running_snakemake.communicate()

    start_snakemake(tmp_path).communicate()

    assert not snakemake_lock.exists()


def test_the_lock_of_a_snakemake_on_another_machine_stays(
    tmp_path, snakemake_lock, running_snakemake
):
    """Machines may share the project's folder; only its own machine can see if a process runs.

    The file `host` says on which machine the Snakemake with the lock was started.
    """
    running_snakemake.kill()
    running_snakemake.communicate()
    (tmp_path / "work/snakemake/host").write_text("another")

    start_snakemake(tmp_path).communicate()

    assert snakemake_lock.exists()


@pytest.fixture(scope="module")
def small_repository(tmp_path_factory):
    """Make a repository of Git and DVC with one stage, which has run; dvc.lock is not committed."""
    folder = tmp_path_factory.mktemp("small")
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    (folder / "dvc.yaml").write_text("stages:\n  one:\n    cmd: echo 1 > a\n    outs: [a]\n")
    for command in (
        ["git", "init", "--quiet"],
        [sys.executable, "-m", "dvc", "init", "--quiet"],
        [sys.executable, "-m", "dvc", "repro", "--quiet"],
    ):
        subprocess.run(command, cwd=folder, env=environment, check=True)
    return folder


@pytest.fixture
def small_project(small_repository, tmp_path, monkeypatch):
    """Return a copy of the repository of one stage, which is the working folder."""
    project = tmp_path / "small"
    shutil.copytree(small_repository, project)
    monkeypatch.chdir(project)
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    assert not changed_stages()
    return project


@pytest.fixture(
    params=[
        pytest.param(b"", id="empty"),
        pytest.param(
            b"schema: '2.0'\nstages:\n  one:\n    cmd: echo 1 > a\n    ou", id="cut short"
        ),
        pytest.param(b"\0" * 90, id="zero bytes"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param(b"[" * 5000, id="nested deeply"),
        pytest.param(b"[]", id="a list"),
    ]
)
def damaged_bytes(request):
    """Return the content of a damaged dvc.lock."""
    return request.param


def test_following_the_error_for_a_damaged_dvc_lock_outside_git_restores_it(
    small_project, damaged_bytes
):
    """The error says to remove the file and run the stages; DVC then writes it as before."""
    lock_file = small_project / "dvc.lock"
    content_before_damage = lock_file.read_bytes()
    lock_file.write_bytes(damaged_bytes)
    with pytest.raises(UserError, match=r"Git has no copy of dvc\.lock\. Run: rm dvc\.lock; make"):
        changed_stages()

    lock_file.unlink()
    subprocess.run([sys.executable, "-m", "dvc", "repro", "--quiet"], check=True)

    assert lock_file.read_bytes() == content_before_damage


def test_following_the_error_for_a_damaged_dvc_lock_in_git_restores_it(
    small_project, damaged_bytes
):
    """The error says to check out Git's copy; all stages are then up to date again."""
    subprocess.run(["git", "add", "dvc.lock"], check=True)
    (small_project / "dvc.lock").write_bytes(damaged_bytes)
    with pytest.raises(UserError, match=r"Run: git checkout dvc\.lock; make reproduce"):
        changed_stages()

    subprocess.run(["git", "checkout", "--quiet", "dvc.lock"], check=True)

    stages_out_of_date = changed_stages()
    assert not stages_out_of_date


def test_the_error_for_a_named_pipe_among_the_files_gives_its_path(small_project):
    """Reading a pipe waits until another process writes to it, so DVC alone would wait forever."""
    (small_project / "data" / "raw").mkdir(parents=True)
    os.mkfifo(small_project / "data" / "raw" / "pipe")

    with pytest.raises(
        UserError, match=r"data/raw/pipe: a pipe or device, for which DVC would wait"
    ):
        changed_stages()


@pytest.mark.parametrize(
    "damaged_content",
    [pytest.param(b"", id="empty"), pytest.param(b'{"a": ', id="cut short")],
)
def test_the_error_for_a_damaged_list_of_locks_says_which_file_to_remove(
    small_project, damaged_content
):
    """DVC lists in .dvc/tmp/rwlock, a JSON file, which processes read or write outputs."""
    (small_project / ".dvc" / "tmp" / "rwlock").write_bytes(damaged_content)

    with pytest.raises(UserError, match=r"rwlock'.*\. Remove it, if no other DVC runs here$"):
        changed_stages()


def interrupt(_content, file):
    """Begin to write into a file, and be stopped by Ctrl-C."""
    file.write('{"rea')
    raise KeyboardInterrupt


def test_ctrl_c_while_dvc_writes_its_list_of_locks_keeps_the_old_list(small_project, monkeypatch):
    """DVC lists in .dvc/tmp/rwlock which processes read or write outputs.

    `interrupt` replaces json.dump: it writes half of the list and raises KeyboardInterrupt. A file
    with half of a list would stop all later DVC commands.
    """
    rwlock = small_project / ".dvc" / "tmp" / "rwlock"
    old_list = b'{"read": {}, "write": {}}'
    rwlock.write_bytes(old_list)
    monkeypatch.setattr("dvc.rwlock.json.dump", interrupt)

    with pytest.raises(KeyboardInterrupt):
        changed_stages()

    assert rwlock.read_bytes() == old_list


def test_ctrl_c_while_dvc_writes_its_first_list_of_locks_removes_the_half_written_file(
    small_project, monkeypatch
):
    """DVC lists in .dvc/tmp/rwlock which processes read or write outputs.

    `interrupt` replaces json.dump: it writes half of the list and raises KeyboardInterrupt.
    """
    rwlock = small_project / ".dvc" / "tmp" / "rwlock"
    rwlock.unlink(missing_ok=True)
    monkeypatch.setattr("dvc.rwlock.json.dump", interrupt)

    with pytest.raises(KeyboardInterrupt):
        changed_stages()

    assert not rwlock.exists()
