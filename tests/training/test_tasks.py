"""The first examples of papers and courses: copying, and memorizing four words."""

import dataclasses
import random
from pathlib import Path

import pytest

import systems
from bleuprint.config.corpus import Units, Words
from bleuprint.config.optimization import Constant, Cosine, LrSchedule
from bleuprint.config.paths import Cell
from bleuprint.config.system import Average, Keep, System
from bleuprint.dataset.batch import pad
from bleuprint.model.weights import load_model
from bleuprint.text.tokenizers import Tokenize
from bleuprint.training.averaging import average
from bleuprint.training.job import Job
from bleuprint.training.outputs import export_checkpoints
from bleuprint.training.validation import greedy_search
from prepared import prepare
from trainings import train_here

WORDS = Units(words=Words(joint=False, max_size=100, min_count=1))
SPACES = Tokenize(name="none", lowercase=False, hyphens=False, escape=False)


def translations(
    root: Path, system: System, sets: dict[str, list[tuple[str, str]]], sources: list[str]
) -> list[str]:
    """What a system makes of some sentences, greedily, once it is trained on others."""
    prepared = prepare(root / "data", sets, tokenize=SPACES, units=WORDS, checks=())
    job = Job(Cell("s", "c", 1), system, root / "data/binary", root / "data/split", "code")
    work, _, fingerprints = train_here(job, root)
    corpus = prepared.binary
    export_checkpoints(job, work, fingerprints, root / "checkpoints")
    average(root / "checkpoints", Average(last=1), root / "averaged")
    model = load_model(root / "averaged", corpus)
    side = corpus.segmentation("de")
    ids = pad([list(side.encode([line])) for line in sources])
    return [corpus.text("en", words) for words in greedy_search(model, ids)]


def digits(rng: random.Random) -> str:
    return " ".join(str(rng.randint(1, 10)) for _ in range(10))


@pytest.mark.slow
def test_copying_is_learnt_to_exactness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Annotated Transformer's first example: ten symbols, any of ten, as they are."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    rng = random.Random(1)
    lines = list(dict.fromkeys(digits(rng) for _ in range(8000)))
    parts = {"valid": lines[:50], "test.x": lines[50:100], "train": lines[100:]}
    sets = {name: [(line, line) for line in part] for name, part in parts.items()}
    unseen = parts["test.x"]
    settings = systems.train(
        tokens_per_update=800,
        max_tokens=800,
        lr_schedule=LrSchedule(
            cosine=Cosine(lr=0.003, warmup_updates=100, max_updates=900, min_lr=0.0)
        ),
        label_smoothing=0.0,
        validate_every=900,
        checkpoint_every=900,
        keep=Keep(last=1, best=0, every=0),
        max_updates=900,
    )
    shape = systems.model(
        encoder_layers=2,
        decoder_layers=2,
        d_model=64,
        d_ff=128,
        d_k=16,
        d_v=16,
        tie_embeddings="none",
    )
    system = dataclasses.replace(systems.SYSTEM, model=shape, train=settings)
    assert translations(tmp_path, system, sets, unseen) == unseen


def test_four_words_are_learnt_by_heart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "off")
    sets = {
        "train": [("ich mochte ein bier", "i want a beer")],
        "valid": [("ich mochte ein cola", "i want a coke")],
        "test.x": [("ich mochte ein wasser", "i want a water")],
    }
    settings = systems.train(
        tokens_per_update=5,
        max_tokens=5,
        lr_schedule=LrSchedule(constant=Constant(0.001)),
        label_smoothing=0.0,
        validate_every=40,
        checkpoint_every=40,
        keep=Keep(last=1, best=0, every=0),
        max_updates=40,
    )
    system = dataclasses.replace(
        systems.SYSTEM, model=systems.model(tie_embeddings="none"), train=settings
    )
    found = translations(tmp_path, system, sets, ["ich mochte ein bier"])
    assert found == ["i want a beer"]
