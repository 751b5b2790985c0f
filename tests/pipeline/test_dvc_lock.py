"""A dvc.lock cut short by a kill, and Snakemake's lock left by one."""

import subprocess
import sys

import pytest

from bleuprint.pipeline import dvc_lock
from bleuprint.runtime.errors import UserError

HEAD = "schema: '2.0'\nstages:\n"


@pytest.fixture
def project(tmp_path):
    from dvc.repo import Repo

    Repo.init(str(tmp_path), no_scm=True).close()
    return tmp_path


@pytest.mark.parametrize("text", ["", HEAD + "  a:\n    cmd: 'true'\n    o", HEAD + "  a:\n"])
def test_a_dvc_lock_that_was_cut_short_says_the_way_out(project, text):
    (project / "dvc.yaml").write_text("stages:\n  a: {cmd: 'true'}\n")
    (project / "dvc.lock").write_text(text)
    with pytest.raises(UserError, match=r"dvc\.lock'.*; run: git checkout dvc\.lock"):
        dvc_lock.changed_stages(project)


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

    lock.touch()
    (tmp_path / "work/snakemake/host").write_text("another")  # which may still run there
    another().communicate()
    assert lock.exists()
