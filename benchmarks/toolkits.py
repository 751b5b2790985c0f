"""Trainings of one model by one toolkit: its settings and its commands.

Other toolkits are run by their own training commands, with the settings in benchmarks/peers/, each
in an environment of its own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Any

from ruamel.yaml import YAML

from bleuprint.config.paths import corpus_folder
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.pipeline.dvc_yaml import load_entries
from bleuprint.pipeline.resolve import write_resolved

ROOT = Path(__file__).resolve().parent.parent
PEERS, SOURCE = ROOT / "benchmarks" / "peers", str(ROOT / "src")
CORPUS, BATCH_TOKENS = "c", 4096
# The scripts that prepare a corpus, in the order of dvc.yaml.
STAGES = [entry.script for entry in load_entries(ROOT).values() if entry.is_of_corpora()]


@dataclass(frozen=True)
class Size:
    """The size of a model, with as many layers in the encoder as in the decoder."""

    d_model: int
    d_ff: int
    layers: int
    heads: int


@dataclass(frozen=True)
class Speed:
    """What a contestant reached; `gflops`: billions of operations a second, where counted."""

    tokens_per_second: float
    gflops: float | None = None


@dataclass(frozen=True)
class Trial:
    """What a contestant is to train, and with how many threads; `project` is the scratch folder."""

    project: Path
    size: Size
    updates: int
    seed: int
    threads: int

    def call(self, command: list[str], **variables: str) -> str:
        """Run a contestant in the scratch folder, with memory handled as the system does."""
        threads = {"OMP_NUM_THREADS": str(self.threads), "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(
            command,
            cwd=self.project,
            env={**environment(), **threads, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
        return done.stdout

    def call_own(self, script: str, *arguments: object) -> dict[str, Any]:
        """Run a script of this folder; the JSON object it prints."""
        path = str(ROOT / "benchmarks" / script)
        said = self.call([sys.executable, path, *map(str, arguments)], PYTHONPATH=SOURCE)
        found: dict[str, Any] = json.loads(re.findall(r"^\{.*\}$", said, re.MULTILINE)[-1])
        return found


def read_recipe(name: str) -> dict[str, Any]:
    recipe: dict[str, Any] = YAML(typ="safe").load(ROOT / "recipes" / f"{name}.yaml")
    return recipe


def prepare(project: Path, params: dict[str, Any], corpus: str) -> None:
    """Send a corpus of `params` through all data stages, in the scratch folder, once."""
    for name in ("dvc.yaml", "corpora", "src", "stages"):
        if not (project / name).exists():
            (project / name).symlink_to(ROOT / name)
    (project / "params.yaml").write_text(json.dumps(params), encoding="utf-8")
    write_resolved(project)
    run_stage(project, "resolve")
    if not (project / corpus_folder(corpus, "binary")).exists():
        for stage in STAGES:
            run_stage(project, stage, corpus)


def run_stage(project: Path, stage: str, *names: object) -> None:
    command = [sys.executable, str(ROOT / "stages" / f"{stage}.py"), *map(str, names)]
    subprocess.run(command, cwd=project, env=own_environment(), check=True)


def own_environment() -> dict[str, str]:
    """`environment` in which this project is found, and what the caller's PYTHONPATH has."""
    given = os.environ.get("PYTHONPATH")
    return {**environment(), "PYTHONPATH": os.pathsep.join([SOURCE, *([given] if given else [])])}


def environment() -> dict[str, str]:
    """The caller's environment without variables that change search paths or speed."""
    known = ("DVC", "GLIBC_", "MALLOC_", "GOMP_", "LRU_", "ONEDNN_", "PYTHON", "MLFLOW")
    return {name: text for name, text in os.environ.items() if not name.startswith(known)}


def opennmt(python: Path, trial: Trial) -> Speed:
    config = configure(trial, "opennmt")
    said = trial.call([str(python), "-m", "onmt.bin.train", "-config", config])
    shutil.rmtree(trial.project / "opennmt")
    return Speed(told(rf"Step\s+{2 * trial.updates}/.*?/\s*(\d+) tok/s", said))


def joeynmt(python: Path, trial: Trial) -> Speed:
    config = configure(trial, "joeynmt")
    said = trial.call([str(python), "-m", "joeynmt", "train", config, "--skip-test"])
    return Speed(told(rf"Step:\s+{2 * trial.updates},.*Tokens per Sec:\s+(\d+)", said))


def configure(trial: Trial, name: str) -> str:
    """Write a peer's settings into the scratch folder; their path."""
    given = {
        **asdict(trial.size),
        "max_tokens": BATCH_TOKENS,
        "pairs": BinaryCorpus(trial.project / corpus_folder(CORPUS, "binary")).sets["train"].pairs,
        "seed": trial.seed,
        "updates": trial.updates,
        "last": 2 * trial.updates,
        "never": 100 * trial.updates,
    }
    text = (PEERS / f"{name}.yaml").read_text(encoding="utf-8")
    path = trial.project / f"{name}.yaml"
    path.write_text(Template(text).substitute(given), encoding="utf-8")
    return str(path)


def told(pattern: str, said: str) -> float:
    """The rate in a peer's log."""
    if not (found := re.search(pattern, said)):
        sys.exit(f"no rate in this log:\n{said[-4000:]}")
    return float(found[1])


def ready(peers: Path, name: str) -> Path:
    """The Python of a peer's environment, which is made if it is not there."""
    home = peers / name
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        wanted = PEERS / f"{name}.txt"
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qr", str(wanted)], check=True)
        (home / ".ready").touch()
    return python


def installed(python: Path, package: str) -> str:
    """The version of a package in a peer's environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([str(python), "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()
