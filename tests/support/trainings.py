"""A toy corpus and a micro system, and the train stage as a process of its own."""

import dataclasses
import os
import random
import shutil
import subprocess
import sys
import time

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
from bleuprint.training.train_step import TrainStep
from bleuprint.training.trainer import Trainer
from corpora import TOKENIZE
from params import corpus_entry, write_resolved
from prepared import prepare
from processes import loaded, run
from root import ROOT

STAGES = ROOT / "stages"
ALONE = Group(0, 1, torch.device("cpu"))
WORDS = [first + second for first in "bdfgklmnprst" for second in "aeiou"]


def toy_pairs(count, seed):
    """Sentences of made-up words and their translations, which differ in length and vocabulary."""
    rng = random.Random(seed)
    sources = [[rng.choice(WORDS) for _ in range(rng.randint(2, 6))] for _ in range(count)]
    return [(" ".join(words), translated(words)) for words in sources]


def translated(words):
    """The translation of a toy sentence: the words from last to first, in capitals.

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
    """Like `toy_pairs`, but a translation has just the words of its source: easier to learn."""
    return [
        (source, " ".join(reversed(source.upper().split()))) for source, _ in toy_pairs(count, seed)
    ]


def merges(count, joint=True):
    """The settings of byte-pair encoding with `count` merges."""
    return Units(bpe=Bpe(count, joint, threshold=0))


def project(
    root, pairs=None, units=None, test=None, tokenize=TOKENIZE, pairs_of=toy_pairs, **train
):
    """A folder in which `stages/train.py micro toy 1` can run; `train` changes settings."""
    held_out = pairs_of(40, 2)
    sets = {"train": pairs or pairs_of(600, 1), "valid": held_out, "test.x": test or held_out}
    units = units or merges(60)
    prepared = prepare(root / "prepared", sets, units=units, tokenize=tokenize)
    for stage in ("binary", "split", "tokens"):
        (root / "data" / stage).mkdir(parents=True)
        (prepared.root / stage).rename(root / "data" / stage / "toy")
    write_params(root, units, tokenize, **train)
    write_graph(root)
    return root


def write_graph(root):
    """dvc.yaml, which names the code of a training, and that code."""
    shutil.copy(STAGES.parent / "dvc.yaml", root)
    for name in ("src", "stages"):
        (root / name).symlink_to(STAGES.parent / name)


def write_params(root, units=None, tokenize=TOKENIZE, **train):
    """Settings with one system, `micro`; the files of its corpus are not used any more."""
    sides = {"source": {"path": "inputs/a.de"}, "target": {"path": "inputs/a.en"}}
    text = {"a": {"license_and_citation": "own", **sides}}
    units = units or merges(60)
    corpus = corpus_entry(
        *("de", "en", {"train": text, "valid": text, "tests": {"x": text}}),
        clean={"unicode": {"form": "NFC"}, "non_printing": {}},
        tokenize=dataclasses.asdict(tokenize),
        vocabulary={kind: given for kind, given in dataclasses.asdict(units).items() if given},
    )
    model = systems.model(dropout=0.1, tie_embeddings="all" if units.joint else "decoder")
    system = systems.as_yaml(systems.system(model=model, train=systems.train(**train)))
    content = {
        **{"experiment": "toy", "seeds": [1], "published": []},
        **{"corpora": {"toy": corpus}, "systems": {"micro": system}},
    }
    with (root / "params.yaml").open("w", encoding="utf-8") as stream:
        YAML().dump(content, stream)
    write_resolved(root)


def environment(processes=1):
    """The stage's environment, without the caller's variables that would change what it does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DVC")}
    return {
        **kept,
        "BLEUPRINT_PROCESSES": str(processes),
        "CUDA_VISIBLE_DEVICES": "",  # where there are GPUs, processes would need one each
        "OMP_NUM_THREADS": "1",  # matrices are too small for more
    }


def start(root, processes=1, system="micro", cold=False):
    """Start the train stage in `root`; `cold`: as children of this one, which end with it."""
    command = [sys.executable, str(STAGES / "train.py"), system, "toy", "1"]
    return subprocess.Popen(
        command if cold else loaded(command),
        cwd=root,
        env={**reexec.VARIABLES, **environment(processes), **without_mlflow(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def without_mlflow(root):
    """An environment that hides MLflow, which takes longer to load than these trainings."""
    hidden = root / "hidden"
    hidden.mkdir(exist_ok=True)
    (hidden / "mlflow.py").write_text("raise ImportError('not in this test')")
    return {"PYTHONPATH": os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])}


def train(root, processes=1, status=0):
    """Run the train stage to its end and return its output."""
    if processes == 1:
        done = stage(root, "train")
        said, ended = f"{done.stdout.decode()}{done.stderr.decode()}", done.returncode
    else:
        process = start(root, processes)
        said, ended = process.communicate(timeout=240)[0], process.returncode
    assert ended == status, said
    return said


def stage(root, name):
    """Run a stage of the toy's run."""
    command = [sys.executable, str(STAGES / f"{name}.py"), "micro", "toy", "1"]
    return run(command, root, {**environment(), **without_mlflow(root)})


def translator(root):
    """A toy project in `root` that has been trained and has translated."""
    train(project(root, pairs_of=mirrored_pairs, keep_last=2, keep_best=0, keep_interval=0))
    for name in ("average", "translate"):
        stage(root, name).check_returncode()
    return root


def fresh(made, root):
    """The same project, untrained."""
    shutil.copytree(made / "data", root / "data")
    shutil.copy(made / "params.yaml", root / "params.yaml")
    write_resolved(root)
    write_graph(root)
    return root


def job_in(root, monkeypatch):
    """The training of a toy project, for this process to do."""
    monkeypatch.chdir(root)
    places = (corpus_folder("toy", "binary"), corpus_folder("toy", "split"))
    return Job(
        Run("micro", "toy", 1),
        load_settings().system_settings("micro"),
        *places,
        code_fingerprint("train"),
    )


def train_here(job, work, observer=None):
    """Train in this process; the folder of the checkpoints, the final state, the fingerprints."""
    fingerprints, folder = Fingerprints.from_job(job), work / ".".join(map(str, job.run))
    check_training(job, fingerprints, ALONE)
    folder.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(job, ALONE, folder, fingerprints, observer or Observer())
    trainer.run()
    return folder, trainer.state, fingerprints


def learner(corpus, settings, **shape):
    """The updates of a small model for a corpus with a joint vocabulary."""
    torch.manual_seed(3)
    size = len(corpus.segmentation("de").vocabulary)
    return TrainStep(Transformer(systems.model(**shape), size, size), settings, 1, ALONE)


def checkpoints(root):
    return sorted((root / "work" / "trainings").glob("*/checkpoint-*"))


def wait_for_checkpoint(root, more_than):
    """Wait for more checkpoints than `more_than` (old ones are pruned, so three at most)."""
    deadline = time.monotonic() + 300
    while len(checkpoints(root)) <= more_than:
        assert time.monotonic() < deadline, "no checkpoint within five minutes"
        time.sleep(0.02)
