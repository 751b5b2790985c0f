"""`bleuprint reproduce`: the line of a stage, and what is to be committed."""

import subprocess

from bleuprint.cli.reproduce import changes, line, oom_kills


def test_a_stage_is_one_line_with_its_number_and_what_it_took():
    planned = {"clean@a": None, "train@x-a-1": 90.0}
    assert line(planned, "clean@a", restored=False) == "[1/2] clean@a"
    assert line(planned, "train@x-a-1", restored=False) == "[2/2] train@x-a-1 (took 0:01:30 before)"
    from_cache = "[2/2] train@x-a-1: outputs from the run cache"
    assert line(planned, "train@x-a-1", restored=True) == from_cache
    assert line(planned, "new@b", restored=False) == "new@b"


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
