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
    *("dvc.yaml", "Snakefile", "profiles", "corpora", "stages", "src"),
    *(".dvc/config", ".dvc/plots", ".dvcignore", ".gitignore"),
)
# The reports that contain no measured times.
_REPEATED = ("results.json", "metrics.json", "validation.csv")
_FOR_USERS = ("BLEUPRINT_", "DVC_", "MLFLOW_", "SNAKEMAKE_", "GIT_", "PYTHON", "PYTEST")


class Project:
    """A project's folder, and commands run in it.

    `warm`: whether stages start in processes that have loaded their libraries already. Tests on a
    cluster set it to False, since SLURM does not see these processes as part of a job.
    """

    warm = True

    def __init__(self, root: Path) -> None:
        self.root = root
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOR_USERS)}
        self.environment = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(root / "src"),
            "OMP_WAIT_POLICY": "passive",  # others may be at work on the same cores
            **reexec.VARIABLES,  # which would start each process twice
            "DVC_NO_ANALYTICS": "1",
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{f"GIT_{who}_NAME": "tester" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "tester@localhost" for who in ("AUTHOR", "COMMITTER")},
        }

    def start(self, *command: str, path: str = "") -> "subprocess.Popen[str]":
        """A process of its own group; `path` comes first in PATH."""
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
            start_new_session=True,  # so that a signal can go to all it has started
        )

    def run(self, *command: str, status: int | None = 0, timeout: float = 600) -> str:
        """What a command printed, without progress.

        Fails if the command ends with another status; with None, any status is right.
        """
        process = self.start(*command, path=warm.folder() if self.warm else "")
        try:
            output, _ = process.communicate(timeout=timeout)
        finally:
            kill(process)
        assert status is None or process.returncode == status, f"{command}:\n{output}"
        return without_progress(output)

    def repro(self) -> list[str]:
        """`dvc repro`; the stages it ran, in order."""
        return ran(self.run("dvc", "repro"))

    def snakemake(self, *arguments: str, status: int = 0) -> str:
        return self.run("snakemake", "-c2", *arguments, status=status)

    def changed(self) -> set[str]:
        """The stages that `dvc status` reports as changed."""
        return set(changed_stages(self.root))

    def mend(self) -> None:
        """What DVC's and our messages tell to do where a kill has cut a file of DVC's short."""
        locks = self.root / ".dvc" / "tmp" / "rwlock"
        try:
            json.loads(locks.read_bytes() if locks.exists() else "{}")
        except ValueError:
            locks.unlink()
        try:
            self.changed()
        except UserError as error:
            assert re.search("git checkout dvc.lock|rm dvc.lock", str(error)), error
            (self.root / "dvc.lock").unlink()

    def recorded(self) -> set[str]:
        """The stages in dvc.lock."""
        from dvc.utils.serialize import load_yaml

        lock = self.root / "dvc.lock"
        return set(load_yaml(str(lock))["stages"]) if lock.exists() else set()

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
        self.write(path, text.replace(old, new))

    def rows(self) -> list[str]:
        """The systems in results.json, in order."""
        runs = json.loads(self.read("reports/results.json"))["runs"]
        return list(dict.fromkeys(run["system"] for run in runs))

    def contents(self) -> dict[str, bytes]:
        """The bytes of all outputs, and of the reports that contain no measured times."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for folder in ("data", "models", "results", "reports")
            for path in (self.root / folder).rglob("*")
            if path.is_file()
            and path.name != ".snakemake_timestamp"
            and not (path.parent.name == "reports" and path.name not in _REPEATED)
        }

    def commit(self) -> None:
        self.run("git", "add", ".")
        self.run("git", "commit", "--quiet", "--message", "a commit")

    def copy(self, root: Path) -> "Project":
        """The same project elsewhere, modification times included."""
        shutil.copytree(self.root, root, symlinks=True)
        return Project(root)


def kill(process: "subprocess.Popen[str]", signal_: int = signal.SIGKILL) -> None:
    """Send a signal to a process and all it has started, if it still runs."""
    if process.poll() is None:
        os.killpg(process.pid, signal_)


def ran(output: str) -> list[str]:
    """The stages that DVC ran, from what it printed."""
    began = "Running stage '"
    return [
        line.removeprefix(began).partition("'")[0]
        for line in output.splitlines()
        if line.startswith(began)
    ]


def make(root: Path) -> Project:
    """A project as it is after cloning, with a corpus of its own: nothing has run."""
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
    # the copies of experiments have it alone
    shutil.copy(ROOT / "inputs/README.md", root / "inputs")
    _write_corpus(project)
    project.run("git", "init", "--quiet", "--initial-branch", "main")
    return project


def _write_corpus(project: Project) -> None:
    """Write a corpus of 300 pairs of 3 to 6 source words, which are translated word by word."""
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
