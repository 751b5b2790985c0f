"""`bleuprint reproduce`: the line of a stage, and what is to be committed."""

import subprocess
from threading import Thread

from bleuprint.cli.reproduce import alone, changes, line, oom_kills


def test_a_stage_is_one_line_with_its_number_and_what_it_took():
    planned = {"clean@a": None, "train@x-a-1": 90.0}
    assert line(planned, "clean@a", restored=False) == "[1/2] clean@a"
    assert line(planned, "train@x-a-1", restored=False) == "[2/2] train@x-a-1 (took 0:01:30 before)"
    from_cache = "[2/2] train@x-a-1: outputs from the run cache"
    assert line(planned, "train@x-a-1", restored=True) == from_cache
    assert line(planned, "new@b", restored=False) == "new@b"


def test_two_runs_of_a_project_wait_for_each_other(tmp_path, monkeypatch, capsys):
    def second():
        with alone():
            done.append("second")

    monkeypatch.chdir(tmp_path)
    done = []
    with alone():
        (other := Thread(target=second)).start()
        other.join(timeout=0.3)
        done.append("first")
    other.join()
    assert done == ["first", "second"]
    assert "another bleuprint reproduce runs here: waiting for it" in capsys.readouterr().err


def test_processes_that_the_kernel_has_ended_are_counted(tmp_path):
    (statistics := tmp_path / "vmstat").write_text("pgfault 3\noom_kill 12\nswap_ra 0\n")
    assert oom_kills(statistics) == 12
    assert oom_kills() >= 0
    assert oom_kills(tmp_path / "none") == 0


def test_what_has_changed_is_named_with_the_command_that_keeps_it(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    assert changes(tmp_path) == ""  # not in git
    git("init", "-q")
    for name in ("params.yaml", "dvc.lock", "other"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-qm", "one")
    (tmp_path / "other").write_text("2")
    assert changes(tmp_path).startswith("the same bytes as the committed")
    (tmp_path / "dvc.lock").write_text("2")
    assert changes(tmp_path) == (
        "changed: dvc.lock; to keep it: git add params.yaml dvc.lock reports && git commit"
    )
