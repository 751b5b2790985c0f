"""A model learns the phrasebook; from a misaligned corpus it gets no plausible score.

A broken mask and a shifted target fail tests of the model and of batches at once.
"""

import dataclasses

import pytest

from bleuprint.config.experiment import load_settings
from bleuprint.config.optimization import InverseSqrt, LrSchedule
from bleuprint.config.paths import Run
from bleuprint.config.system import Average, System
from bleuprint.corpus.phrasebook import sentences
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.text.parallel import Pair
from bleuprint.training.job import Job
from prepared import prepare
from root import ROOT
from trainings import merges, train_here

# with one layer and this learning rate it learns in fewer updates than the default's `tiny`
UPDATES, LAYERS, TOKENS = 280, 1, 800
LR_SCHEDULE = LrSchedule(InverseSqrt(lr=0.006, warmup_updates=100, warmup_init_lr=0.0))


def pairs(split, lines=None):
    both = zip(sentences(split, "de"), sentences(split, "en"), strict=True)
    return [Pair(*pair) for pair in both][:lines]


def moved(text):
    """One side a line further on: what a single dropped line does to a corpus."""
    targets = [pair.target for pair in text]
    return [Pair(pair.source, t) for pair, t in zip(text, targets[1:] + targets[:1], strict=True)]


@pytest.fixture(scope="module")
def text(request, tmp_path_factory):
    train = {"aligned": pairs, "misaligned": lambda split: moved(pairs(split))}[request.param]
    sets = {"train": train("train"), "valid": pairs("valid", 100), "test.x": pairs("test", 50)}
    return prepare(tmp_path_factory.mktemp(request.param), sets, units=merges(3000))


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("aligned", 30, 100), pytest.param("misaligned", 0, 10, marks=pytest.mark.slow)],
    indirect=["text"],
)
def test_bleu_tells_a_sound_model(text, tmp_path, monkeypatch, low, high):
    monkeypatch.chdir(tmp_path)
    system = load_settings(ROOT / "params.yaml").system_settings("tiny")
    settings = dataclasses.replace(
        system.train,
        tokens_per_update=TOKENS,
        max_tokens=TOKENS,
        max_updates=UPDATES,
        validate_interval=UPDATES,
        save_interval=UPDATES,
        keep_last=1,
        keep_best=0,
        keep_interval=0,
        lr_schedule=LR_SCHEDULE,
    )
    model = dataclasses.replace(system.model, encoder_layers=LAYERS, decoder_layers=LAYERS)
    job = Job(
        run=Run("tiny", "phrasebook", 1),
        system=System(model=model, train=settings, average=Average(last=1), decode=system.decode),
        corpus_folder=text.root / "binary",
        split_folder=text.root / "split",
        code_fingerprint="code",
    )
    assert BinaryCorpus(job.corpus_folder).sets["train"].pairs > 12_000
    _, state, _ = train_here(job, tmp_path / "work")
    assert low <= state.validations[-1]["bleu"] <= high
