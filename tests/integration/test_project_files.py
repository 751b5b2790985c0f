"""Files that other tools read: pre-commit's, the container's, GitHub's, git's."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from root import ROOT

HOOKS = YAML(typ="safe").load(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
CONTAINER = (ROOT / "tools" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
STEPS = re.findall(r"^RUN (.*)", CONTAINER, re.MULTILINE)


def test_hooks_are_the_checks_of_make_lint():
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint: setup\n")[2]
    programs = {line.split()[0] for line in lint.partition("\n\n")[0].splitlines()}
    hooks = {shlex.split(hook["entry"])[0].removeprefix(".venv/bin/") for hook in HOOKS}
    # Snakemake's linter takes too long for each commit
    assert hooks - {"bleuprint"} == programs - {"snakemake"}


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_options_of_hooks_exist(hook):
    """pre-commit would stop each commit at one that does not."""
    program, *options = shlex.split(hook["entry"])
    assert program.startswith(".venv/bin/")
    # The programs of the environment that runs the tests, since .venv may be another checkout's.
    installed = Path(sys.executable).with_name(Path(program).name)
    subcommands = [option for option in options if not option.startswith("-")]
    command = [str(installed), *subcommands, "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for option in options:
        assert option in subcommands or option in done.stdout


def test_the_image_has_what_the_readme_asks_for():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    oldest = re.search(r"Python (\d+)\.(\d+) or newer, git and make", readme)
    python = re.search(r"^FROM .*python:(\d+)\.(\d+)", CONTAINER, re.MULTILINE)
    assert [int(part) for part in python.groups()] >= [int(part) for part in oldest.groups()]
    (packages,) = (step for step in STEPS if "apt-get install" in step)
    assert {"git", "make", "g++"} <= set(packages.split())
    assert STEPS[-1] == "make setup"


def test_make_test_fast_leaves_out_what_make_test_leaves_out():
    """-m on the command line replaces the -m of pyproject.toml, so the Makefile repeats it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    options = shlex.split(settings["tool"]["pytest"]["ini_options"]["addopts"])
    by_default = options[options.index("-m") + 1]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (fast,) = re.findall("^FAST = (.*)", makefile, re.MULTILINE)
    assert fast == f"not processes and {by_default}"


def test_targets_of_make_that_a_page_names_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"^```.*?^```|`[^`\n]+`", text, re.MULTILINE | re.DOTALL))
        # At the start of a command; a message may have the word elsewhere.
        named.update(re.findall(r"(?:^|`|[$;&] )make ([a-z][a-z-]*)", code, re.MULTILINE))
    assert {"setup", "reproduce", "recipe"} < named
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    assert named - targets == set()


def test_the_workflow_catalogue_is_told_that_there_is_a_report():
    catalogue = YAML(typ="safe").load(ROOT / ".snakemake-workflow-catalog.yml")
    deployment = catalogue["usage"]["software-stack-deployment"]
    assert deployment["report"] is True
    assert deployment["conda"] is True


def test_what_is_built_here_is_not_copied_into_the_image():
    ignored = set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())
    by_git = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    at_the_top = (path.strip("/") for path in by_git if path.startswith("/"))
    folders = {path for path in at_the_top if "*" not in path and not Path(path).suffix}
    assert {"data", "work", ".venv"} <= folders
    assert folders - ignored == {"mlruns"}  # of other tools


@pytest.mark.parametrize(("python", "kept"), [("/moved/python", False), ("/bin/sh", True)])
def test_a_venv_that_was_moved_is_made_again(tmp_path, python, kept):
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "bleuprint").write_text(f"#!{python}\n")
    (tmp_path / ".venv" / ".ready").touch()
    subprocess.run(["make", "-C", str(tmp_path), "help"], check=True)
    assert (tmp_path / ".venv").exists()
    subprocess.run(["make", "-C", str(tmp_path), ".venv/.ready", "PYTHON=true"], check=False)
    assert (tmp_path / ".venv" / "bin").exists() == kept


@pytest.mark.slow
def test_the_steps_of_the_image_make_a_command(tmp_path):
    """Without the Debian packages; what CI runs first in its own checkout."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tmp_path / "clone")], check=True)
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    pip = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "UV_"))}
    subprocess.run(
        ["bash", "-c", STEPS[-1]], cwd=tmp_path / "clone", check=True, env=environment | pip
    )
    done = subprocess.run(
        [tmp_path / "clone/.venv/bin/bleuprint", "--version"], capture_output=True, text=True
    )
    assert re.fullmatch(r"bleuprint \d+\.\d+\.\d+\n", done.stdout)


def test_the_workflow_is_one_of_github():
    command = ["-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([sys.executable, *command, WORKFLOW], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_workflow_runs_what_there_is_and_publishes_what_make_docs_builds():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    workflow = YAML(typ="safe").load(WORKFLOW)
    assert workflow["permissions"] == {"contents": "read"}
    jobs, commands, actions = workflow["jobs"], [], {}
    for name, job in jobs.items():
        assert 0 < job["timeout-minutes"] <= 90
        commands += [step["run"] for step in job["steps"] if "run" in step]
        actions |= {step["uses"]: (name, step) for step in job["steps"] if "uses" in step}
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in actions)
    assert {".ci/run", "make docs"} < set(commands)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    for target in re.findall(r"\bmake ([\w-]+)", "\n".join(commands)):
        assert f"\n{target}:" in makefile
    ((build, upload),) = (a for name, a in actions.items() if "upload-pages-artifact" in name)
    assert f" . {upload['with']['path']}\n" in makefile.partition("\ndocs: setup\n")[2]
    ((publish, _),) = (each for name, each in actions.items() if "deploy-pages" in name)
    assert jobs[publish]["needs"] == build
    assert jobs[build]["needs"] == "test"
    assert jobs[publish]["permissions"] == {"pages": "write", "id-token": "write"}
    # A pull request publishes nothing and so builds no site; another branch runs nothing.
    for job in (build, publish):
        assert jobs[job]["if"] == "github.event_name == 'push'"
    assert workflow["on"]["push"] == {"branches": ["main"]}


def test_the_weekly_run_and_pushes_do_not_wait_for_each_other():
    """GitHub cancels the waiting run of a concurrency group when a third run begins."""
    group = YAML(typ="safe").load(WORKFLOW)["concurrency"]["group"]
    assert "${{ github.event_name }}" in group
    assert "${{ github.ref }}" in group


@pytest.mark.parametrize("job", ["test", "newest-packages"])
def test_the_workflow_gives_its_tests_the_whole_history_and_privileges(job):
    """Without them, tests would be skipped in CI for reasons that are allowed elsewhere."""
    described = YAML(typ="safe").load(WORKFLOW)["jobs"][job]
    assert "--privileged" in described["container"]["options"].split()
    (checkout,) = (
        step for step in described["steps"] if "actions/checkout@" in step.get("uses", "")
    )
    assert checkout["with"] == {"fetch-depth": 0}


def test_git_changes_no_line_ends():
    """Nothing in git has CR LF, and what git takes for binary is said to be."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "--eol"], check=True, capture_output=True, text=True
    )
    lines = listed.stdout.splitlines()
    assert lines
    for line in lines:
        in_git, _, attributes = line.partition("\t")[0].split(maxsplit=2)
        assert (in_git, attributes.strip()) in {
            ("i/lf", "attr/text=auto eol=lf"),
            ("i/none", "attr/text=auto eol=lf"),
            ("i/-text", "attr/-text"),
        }, line


def test_set_up_says_what_it_does_and_ends_silently(tmp_path):
    """By programs that stand in for uv, which installs, and for sleep, to save time."""
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    # Before the second pause from now, the loop has written the line that follows the first.
    wait_for_a_line = (
        'pauses=$(wc -l < "$log"); for _ in $(seq 6000); do\n'
        '[ "$(wc -l < "$log")" -ge $((pauses + 2)) ] && break; /bin/sleep 0.01; done\n'
    )
    programs = {
        "uv": 'mkdir -p .venv/bin; cp "$(dirname "$0")/python" .venv/bin\n'
        '[ "$1" = venv ] && exit\n'
        f'log="$(dirname "$0")/pauses"; touch "$log"; {wait_for_a_line}'
        f"head -c 150M /dev/zero > .venv/torch; {wait_for_a_line}",
        "sleep": 'echo >> "$(dirname "$0")/pauses"; exec /bin/sleep 0.01',
        "python": '[ "$2" = compileall ] || echo note: no C++ functions were built',
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (file := tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        ["make", ".venv/.ready"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        r"\d+ s, downloading packages, of which",
        r"1\d\d MB of some 3,000 unpacked after",
    ):
        assert re.search(rf"(?m)^\.venv: {line} ", done.stdout)
    assert done.stdout.endswith("\nnote: no C++ functions were built\n")


def test_the_last_step_of_set_up_runs():
    """Nothing else of the project runs this step in its own environment."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (module,) = re.findall(r"\.venv/bin/python -m (bleuprint\S*)\n", makefile)

    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_recipe_that_is_not_there_names_the_nearest():
    done = subprocess.run(
        ["make", "--no-print-directory", "recipe", "NAME=toysentence"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout.endswith("\ndid you mean toy-sentence?\n")


def test_each_python_is_tested_in_the_workflow_and_named_for_pypi():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    test = YAML(typ="safe").load(WORKFLOW)["jobs"]["test"]
    pythons = test["strategy"]["matrix"]["python"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    assert named == pythons
    assert project["requires-python"] == f">={pythons[0]}"


def test_the_newest_packages_are_tried_once_a_week():
    workflow = YAML(typ="safe").load(WORKFLOW)
    assert len(workflow["on"]["schedule"]) == 1
    newest = workflow["jobs"]["newest-packages"]
    assert newest["if"] == "github.event_name == 'schedule'"
    commands = [step["run"] for step in newest["steps"] if "run" in step]
    assert commands[-2:] == ["truncate --size 0 constraints.txt", ".ci/run"]
