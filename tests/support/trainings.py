"""A toy corpus and a micro system, and the train stage as a process of its own."""

import dataclasses
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch
from ruamel.yaml import YAML

import systems
from bleuprint.config.corpus import Bpe, Units
from bleuprint.config.experiment import load_settings
from bleuprint.config.paths import Run, corpus_folder
from bleuprint.model.transformer import Transformer
from bleuprint.pipeline.train_stage import check_training
from bleuprint.runtime import reexec
from bleuprint.runtime.closure import code_fingerprint
from bleuprint.runtime.distributed.group import Group
from bleuprint.training.fingerprints import Fingerprints
from bleuprint.training.job import Job
from bleuprint.training.observer import Observer
from bleuprint.training.train_state import TrainState
from bleuprint.training.train_step import TrainStep
from bleuprint.training.trainer import Trainer
from corpora import TOKENIZE
from params import corpus_entry, write_resolved
from prepared import prepare
from processes import in_loaded_python, run
from root import ROOT

STAGES = ROOT / "stages"
ONE_PROCESS = Group(0, 1, torch.device("cpu"))
WORDS = [first + second for first in "bdfgklmnprst" for second in "aeiou"]


def toy_pairs(count, seed):
    """Return pairs of a sentence of invented words and its translation.

    Source and target differ in length and vocabulary.
    """
    rng = random.Random(seed)
    pairs = []
    for _ in range(count):
        words = [rng.choice(WORDS) for _ in range(rng.randint(2, 6))]
        pairs.append((" ".join(words), translate_words(words)))
    return pairs


def translate_words(words):
    """Translate a toy sentence: write its words from last to first, in capitals.

    Words that end in "a" or "e" have the article SE, so that targets are longer than sources. Words
    in "o" and in "u" have one translation, so that the target language has fewer words.
    """
    target = []
    for word in reversed(words):
        if word.endswith(("a", "e")):
            target.append("SE")
        target.append(word.replace("u", "o").upper())
    return " ".join(target)


def mirrored_pairs(count, seed):
    """Return pairs as `toy_pairs` does, but without articles: they are easier to learn."""
    pairs = []
    for source, _ in toy_pairs(count, seed):
        target_words = reversed(source.upper().split())
        pairs.append((source, " ".join(target_words)))
    return pairs


def bpe_units(count, joint=True):
    """Return the settings of byte-pair encoding with `count` merges."""
    return Units(bpe=Bpe(count, joint, threshold=0))


def make_project(
    root, pairs=None, units=None, test=None, tokenize=TOKENIZE, pairs_of=toy_pairs, **train
):
    """Make a project in which `stages/train.py micro toy 1` can run.

    Args:
        root: The folder of the project.
        pairs: The training pairs; None for 600 toy pairs.
        units: The units of the vocabulary; None for 60 merges of byte-pair encoding.
        test: The pairs of the test set; None for those of the validation set.
        tokenize: The tokenizer.
        pairs_of: The function that invents pairs, such as `toy_pairs`.
        train: Settings of the training that differ from the usual ones.
    """
    held_out = pairs_of(40, 2)
    sets = {"train": pairs or pairs_of(600, 1), "valid": held_out, "test.x": test or held_out}
    units = units or bpe_units(60)
    prepared = prepare(root / "prepared", sets, units=units, tokenize=tokenize)
    for run_stage in ("binary", "split", "tokens"):
        (root / "data" / run_stage).mkdir(parents=True)
        (prepared.root / run_stage).rename(root / "data" / run_stage / "toy")
    write_params(root, units, tokenize, **train)
    write_graph(root)
    return root


def write_graph(root):
    """Put dvc.yaml, which names the code of a training, and that code into a project."""
    shutil.copy(STAGES.parent / "dvc.yaml", root)
    for name in ("src", "stages"):
        (root / name).symlink_to(STAGES.parent / name)


def write_params(root, units=None, tokenize=TOKENIZE, **train):
    """Write params.yaml with one system, `micro`, and resolve it.

    The corpus is prepared already, so the text files that the settings name need not exist.

    Args:
        root: The folder of the project.
        units: The units of the vocabulary; None for 60 merges of byte-pair encoding.
        tokenize: The tokenizer.
        train: Settings of the training that differ from the usual ones.
    """
    text_a = {
        "license_and_citation": "own",
        "source": {"path": "inputs/a.de"},
        "target": {"path": "inputs/a.en"},
    }
    text = {"a": text_a}
    units = units or bpe_units(60)
    corpus = corpus_entry(
        "de",
        "en",
        {"train": text, "valid": text, "tests": {"x": text}},
        clean={"unicode": {"form": "NFC"}, "non_printing": {}},
        tokenize=dataclasses.asdict(tokenize),
        vocabulary={kind: value for kind, value in dataclasses.asdict(units).items() if value},
    )
    model = systems.model(dropout=0.1, tie_embeddings="all" if units.joint else "decoder")
    system = systems.as_yaml(systems.system(model=model, train=systems.train(**train)))
    content = {
        "experiment": "toy",
        "seeds": [1],
        "published": [],
        "corpora": {"toy": corpus},
        "systems": {"micro": system},
    }
    with (root / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML().dump(content, stream)
    write_resolved(root)


def environment(processes=1):
    """Return the environment of a stage, without variables of DVC, which would change it."""
    kept_variables = {
        name: value for name, value in os.environ.items() if not name.startswith("DVC")
    }
    return {
        **kept_variables,
        "BLEUPRINT_PROCESSES": str(processes),
        "CUDA_VISIBLE_DEVICES": "",  # With GPUs, each process would need one of its own.
        "OMP_NUM_THREADS": "1",  # The matrices are too small for more threads.
    }


def start(root, processes=1, system="micro", cold=False):
    """Start the train stage of a project.

    Args:
        root: The folder of the project.
        processes: The number of processes that train together.
        system: The system to train.
        cold: Whether to start a new Python, which ends with this process, instead of a copy of one
            that has loaded the libraries.
    """
    command = [sys.executable, str(STAGES / "train.py"), system, "toy", "1"]
    return subprocess.Popen(
        command if cold else in_loaded_python(command),
        cwd=root,
        env={**reexec.VARIABLES, **environment(processes), **without_mlflow(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def without_mlflow(root):
    """Return an environment that hides MLflow, which loads longer than these trainings take."""
    hidden = root / "hidden"
    hidden.mkdir(exist_ok=True)
    (hidden / "mlflow.py").write_text("raise ImportError('not in this test')")
    return {"PYTHONPATH": os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])}


def train(root, processes=1, status=0):
    """Run the train stage to its end and return its output."""
    if processes == 1:
        done = run_stage(root, "train")
        output = f"{done.stdout.decode()}{done.stderr.decode()}"
        actual_status = done.returncode
    else:
        process = start(root, processes)
        output, _ = process.communicate(timeout=240)
        actual_status = process.returncode
    assert actual_status == status, output
    return output


def run_stage(root, name):
    """Run a stage of the toy project, such as `train`, and return the ended process."""
    command = [sys.executable, str(STAGES / f"{name}.py"), "micro", "toy", "1"]
    return run(command, root, {**environment(), **without_mlflow(root)})


def make_translator(root):
    """Make a toy project, train its system and translate its test set."""
    train(make_project(root, pairs_of=mirrored_pairs, keep_last=2, keep_best=0, keep_interval=0))
    for name in ("average", "translate"):
        run_stage(root, name).check_returncode()
    return root


def untrained_copy(trained, root):
    """Make an untrained copy of a project, and return its folder."""
    shutil.copytree(trained / "data", root / "data")
    shutil.copy(trained / "params.yaml", root / "params.yaml")
    write_resolved(root)
    write_graph(root)
    return root


def job_in(root, monkeypatch):
    """Return the training job of a toy project, and make the project the working folder."""
    monkeypatch.chdir(root)
    return Job(
        Run("micro", "toy", 1),
        load_settings().system_settings("micro"),
        corpus_folder("toy", "binary"),
        corpus_folder("toy", "split"),
        code_fingerprint("train"),
    )


class TrainingHere(NamedTuple):
    """A training that was done in this process.

    Attributes:
        folder: The folder of its checkpoints.
        state: Its state at the end.
        fingerprints: The fingerprints of what it depends on.
    """

    folder: Path
    state: TrainState
    fingerprints: Fingerprints


def train_here(job, work, observer=None):
    """Train in this process.

    Args:
        job: The training job.
        work: The folder in which the training makes a folder for its checkpoints.
        observer: Is told of the training's events; None for nobody.
    """
    fingerprints = Fingerprints.from_job(job)
    folder = work / ".".join(map(str, job.run))
    check_training(job, fingerprints, ONE_PROCESS)
    folder.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(job, ONE_PROCESS, folder, fingerprints, observer or Observer())
    trainer.run()
    return TrainingHere(folder, trainer.state, fingerprints)


def new_train_step(corpus, settings, **model_settings):
    """Return the training steps of a new small model.

    Args:
        corpus: A binarized corpus with a joint vocabulary.
        settings: The settings of the training.
        model_settings: Settings of the model that differ from the usual ones.
    """
    torch.manual_seed(3)
    vocabulary_size = len(corpus.segmentation("de").vocabulary)
    model = Transformer(systems.model(**model_settings), vocabulary_size, vocabulary_size)
    return TrainStep(model, settings, 1, ONE_PROCESS)


def checkpoints(root):
    """Return the checkpoint folders of a toy project, oldest first."""
    return sorted((root / "work" / "trainings").glob("*/checkpoint-*"))


def wait_for_checkpoint(root, more_than):
    """Wait for more checkpoints than `more_than` (old ones are pruned, so three at most)."""
    deadline = time.monotonic() + 300
    while len(checkpoints(root)) <= more_than:
        assert time.monotonic() < deadline, "no checkpoint within five minutes"
        time.sleep(0.02)
