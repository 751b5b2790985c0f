"""Trains one model with one toolkit: the settings of a trial, and each toolkit's own command.

Other toolkits are run by their own training commands, with the settings in benchmarks/peers/, each
in an environment of its own. benchmarks/train.py compares them.
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
PEERS = ROOT / "benchmarks" / "peers"
SOURCE = str(ROOT / "src")
# The name of the corpus in the scratch project.
CORPUS = "c"
BATCH_TOKENS = 4096
# The scripts that prepare a corpus, in the order of dvc.yaml.
STAGES = [entry.script for entry in load_entries(ROOT).values() if entry.is_per_corpus()]
# Variables whose names begin so change search paths or speed.
CHANGING_VARIABLES = ("DVC", "GLIBC_", "MALLOC_", "GOMP_", "LRU_", "ONEDNN_", "PYTHON", "MLFLOW")
SHOWN_LOG_CHARACTERS = 4000


@dataclass(frozen=True)
class Size:
    """The size of a model.

    Attributes:
        d_model: The dimension of embeddings and layers.
        d_ff: The inner dimension of the feed-forward blocks.
        layers: The number of layers, in the encoder and in the decoder.
        heads: The number of attention heads.
    """

    d_model: int
    d_ff: int
    layers: int
    heads: int


@dataclass(frozen=True)
class Speed:
    """What a toolkit reached.

    Attributes:
        tokens_per_second: Target tokens per second.
        gflops: Billions of operations per second; None where they are not counted.
    """

    tokens_per_second: float
    gflops: float | None = None


@dataclass(frozen=True)
class Trial:
    """A training that every toolkit does.

    Attributes:
        project: The scratch folder with the text.
        size: The size of the model.
        updates: How many updates are timed, after as many to warm up.
        seed: The seed of the training.
        threads: The number of threads.
    """

    project: Path
    size: Size
    updates: int
    seed: int
    threads: int

    def call(self, command: list[str], **variables: str) -> str:
        """Run a command in the scratch folder, and return its output; exit if it fails.

        Args:
            command: The command and its arguments.
            variables: Environment variables to set for it.
        """
        process = subprocess.run(
            command,
            cwd=self.project,
            env={
                **clean_environment(),
                "OMP_NUM_THREADS": str(self.threads),
                "CUDA_VISIBLE_DEVICES": "",
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if process.returncode:
            log = process.stdout[-SHOWN_LOG_CHARACTERS:]
            sys.exit(f"{' '.join(command)} failed:\n{log}")
        return process.stdout

    def call_benchmark(self, script: str, *arguments: object) -> dict[str, Any]:
        """Run a script of this folder, and return the last JSON object that it prints.

        Args:
            script: The name of the script, such as train.py.
            arguments: The arguments of the script.
        """
        path = str(ROOT / "benchmarks" / script)
        command = [sys.executable, path, *map(str, arguments)]
        output = self.call(command, PYTHONPATH=SOURCE)
        json_lines = re.findall(r"^\{.*\}$", output, re.MULTILINE)
        result: dict[str, Any] = json.loads(json_lines[-1])
        return result


def read_recipe(name: str) -> dict[str, Any]:
    """Read a recipe as plain data.

    Args:
        name: The name of the recipe, such as multi30k.
    """
    recipe: dict[str, Any] = YAML(typ="safe").load(ROOT / "recipes" / f"{name}.yaml")
    return recipe


def prepare(project: Path, params: dict[str, Any], corpus: str) -> None:
    """Prepare a corpus by all data stages in the scratch project, unless this was done before.

    Args:
        project: The scratch folder, into which the code is linked.
        params: The content of params.yaml.
        corpus: The name of the corpus.
    """
    for name in ("dvc.yaml", "corpora", "src", "stages"):
        link = project / name
        if not link.exists():
            link.symlink_to(ROOT / name)
    (project / "params.yaml").write_text(json.dumps(params), encoding="utf-8")
    write_resolved(project)
    run_stage(project, "resolve")
    is_prepared = (project / corpus_folder(corpus, "binary")).exists()
    if not is_prepared:
        for stage in STAGES:
            run_stage(project, stage, corpus)


def run_stage(project: Path, stage: str, *arguments: object) -> None:
    """Run the script of a stage in the scratch project.

    Args:
        project: The scratch project.
        stage: The name of the stage.
        arguments: The arguments of the script.
    """
    command = [sys.executable, str(ROOT / "stages" / f"{stage}.py"), *map(str, arguments)]
    subprocess.run(command, cwd=project, env=environment_with_source(), check=True)


def environment_with_source() -> dict[str, str]:
    """Return a clean environment in which Python finds our code before the caller's PYTHONPATH."""
    folders = [SOURCE]
    callers_path = os.environ.get("PYTHONPATH")
    if callers_path:
        folders.append(callers_path)
    return {**clean_environment(), "PYTHONPATH": os.pathsep.join(folders)}


def clean_environment() -> dict[str, str]:
    """Return the environment variables without those that change search paths or speed.

    So a variable such as MALLOC_ARENA_MAX that the user has set does not distort a comparison.
    """
    variables = {}
    for name, value in os.environ.items():
        if not name.startswith(CHANGING_VARIABLES):
            variables[name] = value
    return variables


def train_opennmt(python: Path, trial: Trial) -> Speed:
    """Train with OpenNMT-py, and return the speed of its last log line.

    Args:
        python: The Python of OpenNMT-py's environment.
        trial: What is trained.
    """
    config = write_peer_settings(trial, "opennmt")
    log = trial.call([str(python), "-m", "onmt.bin.train", "-config", str(config)])
    shutil.rmtree(trial.project / "opennmt")
    last_update = 2 * trial.updates
    return Speed(rate_in_log(rf"Step\s+{last_update}/.*?/\s*(\d+) tok/s", log))


def train_joeynmt(python: Path, trial: Trial) -> Speed:
    """Train with JoeyNMT, and return the speed of its last log line.

    Args:
        python: The Python of JoeyNMT's environment.
        trial: What is trained.
    """
    config = write_peer_settings(trial, "joeynmt")
    log = trial.call([str(python), "-m", "joeynmt", "train", str(config), "--skip-test"])
    last_update = 2 * trial.updates
    return Speed(rate_in_log(rf"Step:\s+{last_update},.*Tokens per Sec:\s+(\d+)", log))


def write_peer_settings(trial: Trial, name: str) -> Path:
    """Fill the template of a toolkit's settings, and return the path of the result.

    Args:
        trial: What is trained.
        name: The name of the template in benchmarks/peers/, without `.yaml`.
    """
    corpus = BinaryCorpus(trial.project / corpus_folder(CORPUS, "binary"))
    values = {
        **asdict(trial.size),
        "max_tokens": BATCH_TOKENS,
        "pairs": corpus.sets["train"].pairs,
        "seed": trial.seed,
        "updates": trial.updates,
        "last": 2 * trial.updates,
        "never": 100 * trial.updates,  # the update at which it would validate or save
    }
    template = Template((PEERS / f"{name}.yaml").read_text(encoding="utf-8"))
    path = trial.project / f"{name}.yaml"
    path.write_text(template.substitute(values), encoding="utf-8")
    return path


def rate_in_log(pattern: str, log: str) -> float:
    """Return the number that the pattern's group matches in a log; exit if there is none.

    Args:
        pattern: A regular expression with one group.
        log: The log of a training.
    """
    match = re.search(pattern, log)
    if match is None:
        sys.exit(f"no rate in this log:\n{log[-SHOWN_LOG_CHARACTERS:]}")
    return float(match[1])


def peer_python(peers: Path, name: str) -> Path:
    """Return the Python of a toolkit's environment, which is made if it does not exist yet.

    Args:
        peers: The folder of all environments.
        name: The toolkit, whose packages are listed in benchmarks/peers/NAME.txt.
    """
    environment = peers / name
    python = environment / "bin" / "python"
    mark = environment / ".ready"  # written last, so that a stopped installation is repeated
    if not mark.exists():
        requirements = str(PEERS / f"{name}.txt")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qr", requirements], check=True)
        mark.touch()
    return python


def installed_version(python: Path, package: str) -> str:
    """Return the version of a package in another environment.

    Args:
        python: The Python of the environment.
        package: The name of the package.
    """
    code = f"from importlib.metadata import version; print(version({package!r}))"
    command = [str(python), "-c", code]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return process.stdout.strip()
