"""`bleuprint reproduce`: DVC's lines of a stage as one, and what is to be committed."""

import subprocess

from bleuprint.cli.reproduce import changes, oom_kills, stage_lines

STAGES = {"clean@a": None, "train@x-a-1": 90.0, "train@y-a-1": 3600.0, "score@x-a-1": None}


def said(*lines):
    return list(stage_lines((f"{line}\n" for line in lines), STAGES))


def test_a_stage_is_one_line_with_its_number_and_what_it_took():
    assert said(
        "Stage 'download@a' didn't change, skipping",
        "Running stage 'clean@a':",
        "> env PYTHONPATH=src python stages/clean.py a",
        "12 pairs",
        "",
        "Running stage 'project/dvc.yaml:train@y-a-1':",
        "Updating lock file 'dvc.lock'",
        "To track the changes with git, run:",
        "\tgit add dvc.lock",
        "Running stage 'new@b':",
        "Stage 'b' is cached - skipping run, checking out outputs",
    ) == [
        "[1/4] clean@a",
        "12 pairs",
        "[3/4] train@y-a-1 (took 1:00:00 before)",
        "new@b",
        "Stage 'b' is cached - skipping run, checking out outputs",
    ]


def test_what_the_real_dvc_prints_is_known(tmp_path):
    (tmp_path / "dvc.yaml").write_text("stages: {one: {cmd: echo text}, two: {cmd: exit 3}}\n")
    subprocess.run(["dvc", "init", "--no-scm", "--quiet"], cwd=tmp_path, check=True)
    done = subprocess.run(["dvc", "repro"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode
    lines = stage_lines(done.stdout.splitlines(True), {"one": None, "two": 5.0})
    assert list(lines) == ["[1/2] one", "text", "[2/2] two (took 0:00:05 before)"]


def test_processes_that_the_kernel_has_ended_are_counted(tmp_path):
    (statistics := tmp_path / "vmstat").write_text("pgfault 3\noom_kill 12\nswap_ra 0\n")
    assert oom_kills(statistics) == 12
    assert oom_kills() >= 0


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
