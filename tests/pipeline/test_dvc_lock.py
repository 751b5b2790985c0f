"""dvc.lock cut short by a kill, and Snakemake's lock left by one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warm
from bleuprint.pipeline import dvc_lock
from bleuprint.runtime.errors import UserError

STAGE = """\
  {name}:
    cmd: env PYTHONPATH=src python stages/{name}.py
    deps:
    - path: data/ä
      hash: md5
      md5: 988c6f0688801f9b88e4663547bd71e5.dir
      size: 357
      nfiles: 1
    outs:
    - path: data/{name}
      hash: md5
      md5: 1f86863da7d23b8c45a2e626e3abe303.dir
      size: 50151
      nfiles: 17
"""
NAMES = [f"stage@{number}" for number in range(12)]
HEAD = "schema: '2.0'\nstages:\n"
LOCK = HEAD + "".join(STAGE.format(name=name) for name in NAMES)


@pytest.fixture
def project(tmp_path):
    for command in (["git", "init", "-q"], [f"{warm.folder()}/dvc", "init", "-q"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    return tmp_path


def stages(text):
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from dvc.utils.serialize import parse_yaml

    return COMPILED_LOCKFILE_SCHEMA(parse_yaml(text, "dvc.lock"))["stages"]


def test_whole_entries_of_a_dvc_lock_cut_short_are_kept(project, capsys):
    lock, content = project / "dvc.lock", LOCK.encode()
    every = [len(content) * tenth // 10 for tenth in range(10)]
    for end in (*every, *range(len(content) - 450, len(content), 15)):
        lock.write_bytes(content[:end])
        dvc_lock.repair(project)
        complete = {
            name
            for name, after in zip(NAMES, [*NAMES[1:], None], strict=True)
            if end >= (content.index(f"  {after}:".encode()) if after else len(content))
        }
        found = set(stages(lock.read_text())) if lock.exists() else set()
        assert found == complete, end
        at_an_entry = content[end:].startswith(b"  stage@") and end
        assert at_an_entry or "dvc.lock was damaged" in capsys.readouterr().err


def test_a_whole_dvc_lock_and_one_with_conflicts_are_left(project, capsys):
    conflict = LOCK.replace("50151\n      nfiles: 17\n", "5\n<<<<<<< HEAD\n=======\n>>>>>>> b\n", 1)
    for text in (LOCK, conflict):
        (project / "dvc.lock").write_text(text)
        dvc_lock.repair(project)
        assert (project / "dvc.lock").read_text() == text
    assert capsys.readouterr().err == ""


def test_a_conflict_says_the_way_out(project):
    (project / "dvc.lock").write_text(f"{HEAD}<<<<<<< HEAD\n=======\n>>>>>>> b\n")
    with pytest.raises(UserError, match="both sides of a git merge; take one: git checkout --ours"):
        dvc_lock.check_no_conflict(project / "dvc.lock")


def test_an_output_that_has_changed_since_it_was_recorded(tmp_path):
    (tmp_path / "out").write_text("abc")
    assert not dvc_lock.differs(Path("out"), tmp_path)
    md5 = "900150983cd24fb0d6963f7d28e17f72"  # of abc, RFC 1321
    entry = f"  report:\n    cmd: x\n    outs:\n    - path: out\n      md5: {md5}\n"
    (tmp_path / "dvc.lock").write_text(HEAD + entry)
    assert not dvc_lock.differs(Path("out"), tmp_path)
    (tmp_path / "out").write_text("abd")
    assert dvc_lock.differs(Path("out"), tmp_path)
    for damaged in ("", "schema: '2.0'\nstages:\n"):
        (tmp_path / "dvc.lock").write_text(damaged)
        assert not dvc_lock.differs(Path("out"), tmp_path)


def test_entries_that_are_lost_are_taken_from_the_commit(project, capsys):
    lock = project / "dvc.lock"
    lock.write_text(LOCK.replace("size: 50151", "size: 50152"))
    name = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for command in (["add", "dvc.lock"], ["commit", "-qm", "a"]):
        subprocess.run(["git", *name, *command], cwd=project, check=True)
    lock.write_text(LOCK[: LOCK.index("stage@5") + 30])
    dvc_lock.repair(project)
    found = stages(lock.read_text())
    assert list(found) == NAMES
    sizes = [stage["outs"][0]["size"] for stage in found.values()]
    assert sizes == [50151] * 5 + [50152] * 7
    assert "5 entries kept, 7 taken from git's HEAD" in capsys.readouterr().err


def test_dvc_list_of_locks_cut_short_is_removed(project):
    from dvc.repo import Repo
    from dvc.rwlock import rwlock

    locks = project / ".dvc" / "tmp" / "rwlock"
    locks.write_text("")
    dvc_lock.repair(project)
    with Repo(str(project)) as repo, rwlock(repo.tmp_dir, repo.fs, "test", [], [], False):
        pass


SNAKEMAKE = """\
import sys
from bleuprint.pipeline.dvc_lock import unlock_after_kill
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

    lock.parent.mkdir()
    lock.touch()
    (tmp_path / "work/snakemake/host").write_text("another")  # which may still run there
    another().communicate()
    assert lock.exists()


def test_params_are_parsed_once_for_each_of_their_states(clean, tmp_path, monkeypatch):
    from dvc.dependency import param

    parsed, load = [], param.load_path

    def counted(path, fs, **options):
        parsed.append(Path(path).name)
        return load(path, fs, **options)

    monkeypatch.setattr(param, "load_path", counted)
    root = clean.copy(tmp_path / "project").root
    path = root / "params.yaml"
    with dvc_lock.open_repo(root) as repo:

        def seeds():
            return param.read_param_file(repo.fs, str(path), ["seeds"], flatten=True)["seeds"]

        assert seeds() == seeds() == [1]
        assert parsed == ["params.yaml"]
        path.write_text(path.read_text().replace("seeds: [1]", "seeds: [12]"))
        assert seeds() == [12]
    assert param.load_path is counted


READ_ONLY = 'mount --bind "$PWD" "$PWD" && mount -o remount,bind,ro "$PWD" && cd "$PWD" && '


def mounts_work():
    command = ["unshare", "-rm", "mount", "--bind", "/tmp", "/tmp"]
    return shutil.which("unshare") and not subprocess.run(command, capture_output=True).returncode


@pytest.mark.skipif(not mounts_work(), reason="may not mount a folder")
def test_a_checkout_that_is_read_only_is_named_in_one_line(clean, tmp_path):
    project = clean.copy(tmp_path / "project")
    project.run("dvc", "status")  # it writes what DVC has once only
    for command in ("plan", "exp run --temp -S seeds=[2]"):
        script = f"{READ_ONLY} exec {sys.executable} -m bleuprint {command}"
        output = project.run("unshare", "-rm", "sh", "-c", script, status=1)
        assert output.startswith(f"bleuprint: error: the checkout is read-only: {project.root}")
        assert output.count("\n") == 1
