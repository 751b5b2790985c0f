"""A small but complete project, for tests that run DVC and Snakemake on it.

The graph and the code are the real ones; the corpus has some hundred pairs, and a training takes
a second.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import warm
from bleuprint.pipeline.dvc_repo import changed_stages
from bleuprint.runtime import reexec
from bleuprint.runtime.errors import UserError
from processes import without_progress
from root import ROOT

PARAMS = """\
experiment: micro
seeds: [1]
corpora:
  own:
    source: en
    target: de
    license_and_citation: {own: {license: none, bibtex: "@misc{own,}"}}
    files:
      train:
        a: {license_and_citation: own, source: {path: inputs/a.en}, target: {path: inputs/a.de}}
    filter: {length: {min: 1, max: 100}, length_ratio: {max: 3.0}}
    vocabulary: {bpe: {num_merges: 40}}
systems:
  tiny:
    model: {encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 48, heads: 2}
    train:
      tokens_per_update: 300
      max_tokens: 300
      max_updates: 60
      lr_schedule: {inverse_sqrt: {lr: 0.02, warmup_updates: 20}}
      clip_norm: 1.0
      validate_interval: 60
      save_interval: 30
      keep_last: 2
    average: {last: 2}
    decode: {beam: 2, max_len_b: 5}
  wide:
    like: tiny
    model: {d_ff: 64}
    train: {lr_schedule: {inverse_sqrt: {lr: 0.015}}}
"""
THIRD_SYSTEM = """\
  deep:
    like: tiny
    model: {encoder_layers: 2}
    average: {last: 1}
"""
SECOND_CORPUS = """\
  other:
    like: own
    vocabulary: {bpe: {num_merges: 10}}
"""
# Its training text is continued by a translation of that of the first corpus.
SYNTHETIC = """\
    files:
      train:
        forward: {license_and_citation: own, source: {path: inputs/a.en}}
synthetic:
  forward: {part_of: other, system: tiny, corpus: own}
"""
COMET = f"""\
comet:
  own-model: {{python: comet/bin/python, folder: comet/own-model, sha256: {"c0" * 32}}}
"""

# A system whose translations were not made here.
EXTERNAL = """\
  online-a:
    about: "system A, with its default settings"
    corpora: {own: {}}
    translations:
      held-out: {path: inputs/external/a.de, sha256: %s}
""" % (64 * "a")

# The words of the corpus. Two of the eight have an article, so that targets are longer than
# sources. Twice, two words have the same translation, so that the target language has fewer words.
_TRANSLATIONS = {
    "ba": "BA",
    "deo": "DAS DEO",
    "fi": "FI",
    "gu": "FI",
    "kam": "DAS KAM",
    "leon": "LEON",
    "min": "MIN",
    "nu": "MIN",
}
_SOURCES = (
    *("dvc.yaml", "Snakefile", "profiles", "corpora", "own", "stages", "src"),
    *(".dvc/config", ".dvc/plots", ".dvcignore", ".gitignore"),
)
# The reports that contain no measured times.
_REPEATED = ("results.json", "metrics.json", "validation.csv")
_FOR_USERS = ("BLEUPRINT_", "DVC_", "MLFLOW_", "SNAKEMAKE_", "GIT_", "PYTHON", "PYTEST")


class Project:
    """A project's folder, and commands run in it.

    Attributes:
        root: The folder.
        environment: The environment variables of the commands.
        warm: Whether stages start in processes that have loaded their libraries already. Tests on a
            cluster set it to False, since SLURM does not see these processes as part of a job.
    """

    warm = True

    def __init__(self, root: Path) -> None:
        """Set the environment of commands; nothing is written to the folder `root`."""
        self.root = root
        self.environment = {}
        for name, value in os.environ.items():
            if not name.startswith(_FOR_USERS):
                self.environment[name] = value
        self.environment |= {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(root / "src"),
            "OMP_WAIT_POLICY": "passive",  # Waiting threads leave the cores to other processes.
            "DVC_NO_ANALYTICS": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        for role in ("AUTHOR", "COMMITTER"):
            self.environment[f"GIT_{role}_NAME"] = "tester"
            self.environment[f"GIT_{role}_EMAIL"] = "tester@localhost"
        # A process that lacks these variables would restart itself.
        self.environment |= reexec.VARIABLES

    def start(self, *command: str, path: str = "") -> "subprocess.Popen[str]":
        """Start a command in the project, without waiting for its end.

        The process has a process group of its own, so that a signal can be sent to all processes
        that it starts.

        Args:
            *command: The command and its arguments.
            path: A folder of programs, which comes first in PATH; empty for none.
        """
        environment = self.environment
        if path:
            environment = {**environment, "PATH": f"{path}{os.pathsep}{environment['PATH']}"}
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *command: str, status: int | None = 0, timeout: float = 600) -> str:
        """Run a command in the project; return what it prints, without lines of progress.

        Args:
            *command: The command and its arguments.
            status: The expected exit status, without which the test fails; None allows any.
            timeout: The seconds after which the command is killed and the test fails.
        """
        process = self.start(*command, path=warm.folder() if self.warm else "")
        try:
            output, _ = process.communicate(timeout=timeout)
        finally:
            kill(process)
        assert status is None or process.returncode == status, f"{command}:\n{output}"
        return without_progress(output)

    def repro(self) -> list[str]:
        """Run `dvc repro`; return the stages that it ran, in order."""
        return stages_in_output(self.run("dvc", "repro"))

    def snakemake(self, *arguments: str, status: int = 0) -> str:
        """Run Snakemake on two cores with some arguments; return what it prints.

        Args:
            *arguments: The arguments.
            status: The expected exit status.
        """
        return self.run("snakemake", "-c2", *arguments, status=status)

    def changed_stages(self) -> set[str]:
        """Return the stages that `dvc status` reports as changed."""
        return set(changed_stages(self.root))

    def repair_dvc_files(self) -> None:
        """Repair DVC's files if a killed process left half of one: do what the messages say.

        DVC's message names the file of locks, and ours the file dvc.lock; they are removed.
        """
        locks = self.root / ".dvc" / "tmp" / "rwlock"
        try:
            json.loads(locks.read_bytes() if locks.exists() else "{}")
        except ValueError:
            locks.unlink()
        try:
            self.changed_stages()
        except UserError as error:
            assert re.search("git checkout dvc.lock|rm dvc.lock", str(error)), error
            (self.root / "dvc.lock").unlink()

    def recorded_stages(self) -> set[str]:
        """Return the names of the stages in dvc.lock, whose outputs DVC knows."""
        from dvc.utils.serialize import load_yaml

        lock = self.root / "dvc.lock"
        if not lock.exists():
            return set()
        return set(load_yaml(str(lock))["stages"])

    def read(self, path: str) -> str:
        """Return the text of a file, given by its path from the project's root."""
        return (self.root / path).read_text()

    def write(self, path: str, text: str) -> None:
        """Write a text to a file, given by its path from the project's root."""
        (self.root / path).write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the only occurrence of a text in a file; fail if there are none or several."""
        text = self.read(path)
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
        self.write(path, text.replace(old, new))

    def rows(self) -> list[str]:
        """Return the names of the systems in results.json, in order."""
        runs = json.loads(self.read("reports/results.json"))["runs"]
        return list(dict.fromkeys(run["system"] for run in runs))

    def contents(self) -> dict[str, bytes]:
        """Return the bytes of all outputs by their path from the root.

        Reports that contain measured times are omitted, since they differ from run to run.
        """
        contents = {}
        for folder in ("data", "models", "results", "reports"):
            for path in (self.root / folder).rglob("*"):
                if not path.is_file() or path.name == ".snakemake_timestamp":
                    continue
                if path.parent.name == "reports" and path.name not in _REPEATED:
                    continue
                contents[str(path.relative_to(self.root))] = path.read_bytes()
        return contents

    def commit(self) -> None:
        """Commit all files of the project to its Git repository."""
        self.run("git", "add", ".")
        self.run("git", "commit", "--quiet", "--message", "a commit")

    def copy(self, root: Path) -> "Project":
        """Copy the project to another folder, with modification times; return the copy."""
        shutil.copytree(self.root, root, symlinks=True)
        return Project(root)


def kill(process: "subprocess.Popen[str]", signal_: int = signal.SIGKILL) -> None:
    """Send a signal to a process and to all processes that it has started, if it still runs.

    Args:
        process: A process that `Project.start` has started.
        signal_: The signal.
    """
    if process.poll() is None:
        os.killpg(process.pid, signal_)


def stages_in_output(output: str) -> list[str]:
    """Return the stages that DVC ran, from the lines "Running stage 'NAME'" in its output."""
    prefix = "Running stage '"
    stages = []
    for line in output.splitlines():
        if line.startswith(prefix):
            name, _, _ = line.removeprefix(prefix).partition("'")
            stages.append(name)
    return stages


def read_results(project: Project) -> Any:
    """Return the content of a project's reports/results.json."""
    return json.loads(project.read("reports/results.json"))


def make(root: Path) -> Project:
    """Make a project as it is after cloning, with a small corpus: no stage has run.

    Args:
        root: The folder of the project.
    """
    for name in _SOURCES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("*.egg-info")
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, root / name)
    project = Project(root)
    # Loading MLflow takes longer than these training runs; MLflow has tests of its own.
    project.write("src/mlflow.py", "raise ImportError('not in this test')\n")
    project.write("params.yaml", PARAMS)
    (root / "inputs").mkdir()
    # This file is in Git, so DVC's copies of the project for experiments contain it.
    shutil.copy(ROOT / "inputs/README.md", root / "inputs")
    _write_corpus(project)
    project.run("git", "init", "--quiet", "--initial-branch", "main")
    return project


def _write_corpus(project: Project) -> None:
    """Write a corpus of 300 pairs of 3 to 6 source words, which are translated word by word.

    The words are drawn with a fixed seed, so that each project has the same corpus.
    """
    draw = random.Random(1)
    source_words = list(_TRANSLATIONS)
    source_lines = []
    target_lines = []
    for _ in range(300):
        words = draw.choices(source_words, k=draw.randint(3, 6))
        translations = [_TRANSLATIONS[word] for word in words]
        source_lines.append(" ".join(words) + "\n")
        target_lines.append(" ".join(translations) + "\n")
    project.write("inputs/a.en", "".join(source_lines))
    project.write("inputs/a.de", "".join(target_lines))
