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
CONTAINERFILE = (ROOT / "tools" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
CONTAINER_STEPS = re.findall(r"^RUN (.*)", CONTAINERFILE, re.MULTILINE)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOW_FILE = ROOT / ".github" / "workflows" / "ci.yml"
WORKFLOW = YAML(typ="safe").load(WORKFLOW_FILE)


def recipe_of(target):
    """Return the lines of the Makefile that run for a target."""
    _, _, rest = MAKEFILE.partition(f"\n{target}: setup\n")
    return rest.partition("\n\n")[0]


def job_commands(job):
    """Return the shell commands of a job of the workflow, in order."""
    return [step["run"] for step in job["steps"] if "run" in step]


def step_that_uses(job, action):
    """Return the step of a job in the workflow that uses an action of GitHub."""
    (step,) = [step for step in WORKFLOW["jobs"][job]["steps"] if action in step.get("uses", "")]
    return step


def jobs_that_use(action):
    """Return the names of the jobs in the workflow that use an action of GitHub."""
    names = []
    for name, job in WORKFLOW["jobs"].items():
        if any(action in step.get("uses", "") for step in job["steps"]):
            names.append(name)
    return names


def test_pre_commit_checks_commits_with_the_programs_of_make_lint():
    """HOOKS are the hooks in .pre-commit-config.yaml. A commit must not fail in CI afterwards.

    Snakemake's linter takes too long for each commit, and `bleuprint check` is only a hook.
    """
    lint_programs = set()
    for line in recipe_of("lint").splitlines():
        lint_programs.add(line.split()[0])

    hook_programs = set()
    for hook in HOOKS:
        program, *_ = shlex.split(hook["entry"])
        hook_programs.add(program.removeprefix(".venv/bin/"))

    assert hook_programs - {"bleuprint"} == lint_programs - {"snakemake"}


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_calls_its_program_with_options_that_exist(hook):
    """HOOKS are the hooks in .pre-commit-config.yaml. An unknown option would stop each commit.

    The options are looked up in what the program prints for --help.
    """
    program, *arguments = shlex.split(hook["entry"])
    assert program.startswith(".venv/bin/")
    # The test uses the programs beside its own Python, since .venv may be of another checkout.
    installed_program = Path(sys.executable).with_name(Path(program).name)
    options = [argument for argument in arguments if argument.startswith("-")]
    subcommands = [argument for argument in arguments if not argument.startswith("-")]

    help_command = [str(installed_program), *subcommands, "--help"]
    done = subprocess.run(help_command, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    for option in options:
        assert option in done.stdout


def test_the_container_has_a_python_that_the_readme_allows():
    """The README says "Python 3.X or newer"; the Containerfile begins with FROM ...python:3.Y."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    allowed = re.search(r"Python (\d+)\.(\d+) or newer, git and make", readme)
    oldest_allowed_version = (int(allowed[1]), int(allowed[2]))

    image = re.search(r"^FROM .*python:(\d+)\.(\d+)", CONTAINERFILE, re.MULTILINE)
    container_version = (int(image[1]), int(image[2]))

    assert container_version >= oldest_allowed_version


def test_the_container_installs_what_make_setup_needs_and_runs_it():
    (packages,) = [step for step in CONTAINER_STEPS if "apt-get install" in step]

    assert {"git", "make", "g++"} <= set(packages.split())
    assert CONTAINER_STEPS[-1] == "make setup"


def test_make_test_fast_skips_all_tests_that_make_test_skips():
    """pyproject.toml has the option -m 'not slow and ...', which selects the tests.

    The option -m of `make test-fast` replaces it, so the Makefile has to repeat it.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    options = shlex.split(settings["tool"]["pytest"]["ini_options"]["addopts"])
    marks_of_make_test = options[options.index("-m") + 1]

    (marks_of_make_test_fast,) = re.findall("^FAST = (.*)", MAKEFILE, re.MULTILINE)

    assert marks_of_make_test_fast == f"not processes and {marks_of_make_test}"


def test_the_documentation_names_only_targets_that_the_makefile_has():
    """The commands in code blocks and between backquotes count, such as `make reproduce`."""
    named_targets = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        code = "\n".join(re.findall(r"^```.*?^```|`[^`\n]+`", text, re.MULTILINE | re.DOTALL))
        # Only at the start of a command, since a message in an example may contain "make".
        named_targets.update(re.findall(r"(?:^|`|[$;&] )make ([a-z][a-z-]*)", code, re.MULTILINE))
    assert {"setup", "reproduce", "recipe"} < named_targets

    targets = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))

    unknown_targets = named_targets - targets
    assert unknown_targets == set()


def test_the_entry_for_snakemakes_workflow_catalog_mentions_the_report_and_conda():
    """The catalog, a website, reads .snakemake-workflow-catalog.yml from public repositories."""
    catalog_entry = YAML(typ="safe").load(ROOT / ".snakemake-workflow-catalog.yml")

    deployment = catalog_entry["usage"]["software-stack-deployment"]
    assert deployment["report"] is True
    assert deployment["conda"] is True


def test_docker_ignores_the_folders_that_git_ignores():
    """Building the container would otherwise copy gigabytes of data and models into it."""
    ignored_by_docker = set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())

    folders_ignored_by_git = set()
    for pattern in (ROOT / ".gitignore").read_text(encoding="utf-8").split():
        is_at_the_top = pattern.startswith("/")
        name = pattern.strip("/")
        if is_at_the_top and "*" not in name and not Path(name).suffix:
            folders_ignored_by_git.add(name)

    assert {"data", "work", ".venv"} <= folders_ignored_by_git
    copied_folders = folders_ignored_by_git - ignored_by_docker
    # MLflow itself writes mlruns/; bleuprint uses another folder.
    assert copied_folders == {"mlruns"}


def copy_make_files(folder):
    """Copy the files that `make` reads for .venv to a folder."""
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)


@pytest.mark.parametrize(
    ("python", "is_kept"),
    [
        pytest.param("/moved/python", False, id="Python that does not exist"),
        pytest.param("/bin/sh", True, id="program that exists"),
    ],
)
def test_make_removes_a_venv_whose_python_does_not_exist(tmp_path, python, is_kept):
    """The first line of a script in .venv names its Python, such as #!/moved/python.

    After the project was moved, this path does not exist, and `make` has to set up a new .venv. A
    target such as `help`, which does not need .venv, leaves it alone.
    """
    copy_make_files(tmp_path)
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "bleuprint").write_text(f"#!{python}\n")
    (venv / ".ready").touch()

    subprocess.run(["make", "-C", str(tmp_path), "help"], check=True)
    assert venv.exists()

    # The program `true` in place of Python makes no new .venv, so only the removal is seen.
    subprocess.run(["make", "-C", str(tmp_path), ".venv/.ready", "PYTHON=true"], check=False)
    assert (venv / "bin").exists() == is_kept


@pytest.mark.slow
def test_make_setup_in_a_clone_installs_the_command(tmp_path):
    """The last step of the Containerfile is `make setup`. Here it runs in a fresh clone.

    The environment has no variables of the user except PATH, HOME and the settings of pip and uv.
    """
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    environment = {}
    for name, value in os.environ.items():
        if name in ("PATH", "HOME") or name.startswith(("PIP_", "UV_")):
            environment[name] = value

    subprocess.run(["bash", "-c", CONTAINER_STEPS[-1]], cwd=clone, check=True, env=environment)

    command = [clone / ".venv/bin/bleuprint", "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert re.fullmatch(r"bleuprint \d+\.\d+\.\d+\n", done.stdout)


def test_the_workflow_file_follows_the_json_schema_of_github():
    """GitHub reports a mistake in .github/workflows/ci.yml only after a push."""
    command = [sys.executable, "-m", "check_jsonschema"]
    options = ["--builtin-schema", "vendor.github-workflows", str(WORKFLOW_FILE)]

    done = subprocess.run([*command, *options], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout


def test_the_workflow_runs_the_tests_and_builds_the_site():
    """WORKFLOW is .github/workflows/ci.yml. Its commands may only call targets of the Makefile."""
    commands = []
    for job in WORKFLOW["jobs"].values():
        commands.extend(job_commands(job))

    assert {".ci/run", "make docs"} < set(commands)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    for target in re.findall(r"\bmake ([\w-]+)", "\n".join(commands)):
        assert f"\n{target}:" in MAKEFILE


def test_the_workflow_uses_only_released_actions_of_github():
    """WORKFLOW is .github/workflows/ci.yml. An action of a stranger could change any day."""
    actions = set()
    for job in WORKFLOW["jobs"].values():
        for step in job["steps"]:
            if "uses" in step:
                actions.add(step["uses"])

    assert actions != set()
    for action in actions:
        assert re.fullmatch(r"actions/[\w-]+@v\d+", action)


def test_a_job_of_the_workflow_may_only_read_and_ends_after_90_minutes():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    for job in WORKFLOW["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 90


def test_the_workflow_publishes_the_folder_that_make_docs_writes():
    """`make docs` calls `sphinx ... . FOLDER`; one job of the workflow uploads the folder."""
    (build,) = jobs_that_use("upload-pages-artifact")

    folder = step_that_uses(build, "upload-pages-artifact")["with"]["path"]

    assert f" . {folder}\n" in recipe_of("docs")


def test_the_workflow_tests_then_builds_then_publishes_the_site():
    """A job begins after the job that it `needs`. WORKFLOW is .github/workflows/ci.yml."""
    (build,) = jobs_that_use("upload-pages-artifact")
    (publish,) = jobs_that_use("deploy-pages")

    jobs = WORKFLOW["jobs"]
    assert jobs[build]["needs"] == "test"
    assert jobs[publish]["needs"] == build
    assert jobs[publish]["permissions"] == {"pages": "write", "id-token": "write"}


@pytest.mark.parametrize("action", ["upload-pages-artifact", "deploy-pages"])
def test_the_site_is_built_and_published_only_for_pushes_to_main(action):
    """One job of the workflow builds the site and uploads it, another one publishes it.

    On pull requests, only the tests run. On other branches, the workflow does not run at all.
    """
    (job,) = jobs_that_use(action)

    assert WORKFLOW["jobs"][job]["if"] == "github.event_name == 'push'"
    assert WORKFLOW["on"]["push"] == {"branches": ["main"]}


def test_the_weekly_run_and_pushes_do_not_wait_for_each_other():
    """Runs in the same concurrency group wait for each other.

    GitHub cancels a waiting run when a third run begins, so the weekly run could be lost.
    """
    group = WORKFLOW["concurrency"]["group"]

    assert "${{ github.event_name }}" in group
    assert "${{ github.ref }}" in group


@pytest.mark.parametrize("job", ["test", "newest-packages"])
def test_the_workflow_gives_its_tests_the_whole_history_and_privileges(job):
    """Tests of Git's history need all commits, and tests of two hosts make virtual networks.

    Without these, the tests would be skipped.
    """
    container_options = WORKFLOW["jobs"][job]["container"]["options"]
    checkout = step_that_uses(job, "actions/checkout@")

    assert "--privileged" in container_options.split()
    all_commits = 0  # By default, the depth is 1, the newest commit.
    assert checkout["with"] == {"fetch-depth": all_commits}


def test_git_stores_line_feeds_and_changes_no_line_ends():
    """A line of `git ls-files --eol` has the line ends in Git, and attributes of .gitattributes.

    For example: i/lf w/lf attr/text=auto eol=lf README.md. Windows line ends would be i/crlf.
    """
    attributes_by_line_ends = {
        "i/lf": "attr/text=auto eol=lf",
        "i/none": "attr/text=auto eol=lf",  # text without a line end
        "i/-text": "attr/-text",  # a binary file
    }

    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "--eol"], check=True, capture_output=True, text=True
    )

    lines = listed.stdout.splitlines()
    assert lines != []
    for line in lines:
        fields, _, _path = line.partition("\t")
        line_ends_in_git, _line_ends_on_disk, attributes = fields.split(maxsplit=2)
        assert line_ends_in_git in attributes_by_line_ends, line
        assert attributes.strip() == attributes_by_line_ends[line_ends_in_git], line


# A shell loop of the stand-in for uv. Makefile reports progress between pauses; the loop waits
# until two more pauses have begun: before the second of them, the report of the first is written.
WAIT_FOR_A_PROGRESS_REPORT = """\
pauses=$(wc -l < "$log")
for _ in $(seq 6000); do
  [ "$(wc -l < "$log")" -ge $((pauses + 2)) ] && break
  /bin/sleep 0.01
done
"""
# Programs that stand in for uv, which would install packages, for Python, and for sleep.
SETUP_PROGRAMS = {
    "uv": f"""\
mkdir -p .venv/bin
cp "$(dirname "$0")/python" .venv/bin
[ "$1" = venv ] && exit
log="$(dirname "$0")/pauses"
touch "$log"
{WAIT_FOR_A_PROGRESS_REPORT}
head -c 150M /dev/zero > .venv/torch
{WAIT_FOR_A_PROGRESS_REPORT}
""",
    "sleep": """\
echo >> "$(dirname "$0")/pauses"
exec /bin/sleep 0.01
""",
    "python": """\
[ "$2" = compileall ] || echo note: no C++ functions were built
""",
}


def test_make_setup_reports_its_progress_and_no_errors(tmp_path):
    """`make setup` downloads packages, then unpacks them, then tries to build C++ functions.

    SETUP_PROGRAMS replace the real programs: `uv` writes a file of 150 MB instead of installing
    packages, and `python` prints that no C++ functions were built.
    """
    copy_make_files(tmp_path)
    (tmp_path / "bin").mkdir()
    for name, text in SETUP_PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}")
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}

    done = subprocess.run(
        ["make", ".venv/.ready"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0
    assert done.stderr == ""
    assert re.search(r"(?m)^\.venv: \d+ s, downloading packages, of which ", done.stdout)
    assert re.search(r"(?m)^\.venv: 1\d\d MB of some 3,000 unpacked after ", done.stdout)
    assert done.stdout.endswith("\nnote: no C++ functions were built\n")


def test_the_last_step_of_make_setup_runs():
    """The Makefile calls `python -m bleuprint...` at the end of the setup; no other test does."""
    (module,) = re.findall(r"\.venv/bin/python -m (bleuprint\S*)\n", MAKEFILE)

    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True)

    assert done.returncode == 0
    assert done.stderr == ""


def test_make_recipe_suggests_the_nearest_name_for_an_unknown_recipe():
    """There is a recipe toy-sentence."""
    command = ["make", "--no-print-directory", "recipe", "NAME=toysentence"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 2
    assert done.stdout.endswith("\ndid you mean toy-sentence?\n")


def test_the_package_declares_the_versions_of_python_that_the_workflow_tests():
    """pyproject.toml has lines such as "Programming Language :: Python :: 3.12"."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared_versions = []
    for classifier in project["classifiers"]:
        if "Python :: 3." in classifier:
            declared_versions.append(classifier.rpartition(" ")[2])

    tested_versions = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"]

    assert declared_versions == tested_versions
    assert project["requires-python"] == f">={tested_versions[0]}"


def test_the_newest_packages_are_tested_only_on_a_schedule():
    """A job of .github/workflows/ci.yml installs the newest packages and runs all tests.

    constraints.txt fixes the versions of packages; an empty file allows the newest. A failure must
    not stop a pull request, so the job runs once a week.
    """
    job = WORKFLOW["jobs"]["newest-packages"]

    assert len(WORKFLOW["on"]["schedule"]) == 1
    assert job["if"] == "github.event_name == 'schedule'"
    assert job_commands(job)[-2:] == ["truncate --size 0 constraints.txt", ".ci/run"]
