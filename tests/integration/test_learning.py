"""A correct model learns the phrasebook; a deliberately broken one does not.

A broken mask, a target shifted by one or a misaligned corpus must not yield a plausible score.
"""

import dataclasses

import pytest
import torch

from bleuprint.config.experiment import load
from bleuprint.config.optimization import InverseSqrt, LrSchedule
from bleuprint.config.paths import Cell
from bleuprint.config.system import Average, Keep, System
from bleuprint.corpus.phrasebook import sentences
from bleuprint.dataset.batch import Batch
from bleuprint.dataset.binarized import BinaryCorpus
from bleuprint.model import transformer
from bleuprint.text.parallel import Pair
from bleuprint.training.job import Job
from prepared import prepare
from root import ROOT
from trainings import merges, train_here

# with one layer and this learning rate it learns in fewer updates than the default's `tiny`
UPDATES, LAYERS = 280, 1
LR_SCHEDULE = LrSchedule(InverseSqrt(lr=0.006, warmup_updates=100, warmup_init_lr=0.0))


def pairs(split, lines=None):
    both = zip(sentences(split, "de"), sentences(split, "en"), strict=True)
    return [Pair(*pair) for pair in both][:lines]


def moved(text):
    """One side a line further on: what a single dropped line does to a corpus."""
    targets = [pair.target for pair in text]
    return [Pair(pair.source, t) for pair, t in zip(text, targets[1:] + targets[:1], strict=True)]


def see_the_future(patch):
    attend = transformer.functional.scaled_dot_product_attention

    def uncausal(*arguments, is_causal=False, **names):
        del is_causal
        return attend(*arguments, **names)

    patch.setattr(transformer.functional, "scaled_dot_product_attention", uncausal)


def shift_the_target(patch):
    make = Batch.from_ids.__func__

    def shifted(cls, *arguments):
        batch = make(cls, *arguments)
        return dataclasses.replace(batch, target=torch.roll(batch.target, -1, dims=1))

    patch.setattr(Batch, "from_ids", classmethod(shifted))


def nothing(patch):
    del patch


@pytest.fixture(scope="module")
def text(request, tmp_path_factory):
    train = {"aligned": pairs, "misaligned": lambda split: moved(pairs(split))}[request.param]
    sets = {"train": train("train"), "valid": pairs("valid", 100), "test.x": pairs("test", 50)}
    return prepare(tmp_path_factory.mktemp(request.param), sets, units=merges(3000))


@pytest.mark.parametrize(
    ("text", "fault", "low", "high"),
    [
        ("aligned", nothing, 30, 100),
        pytest.param("misaligned", nothing, 0, 10, marks=pytest.mark.slow),
        # tests of the model and of batches tell these at once, without a training
        pytest.param("aligned", see_the_future, 0, 10, marks=pytest.mark.slow),
        pytest.param("aligned", shift_the_target, 0, 10, marks=pytest.mark.slow),
    ],
    indirect=["text"],
    ids=["sound", "misaligned", "future seen", "target shifted"],
)
def test_bleu_tells_a_sound_model(text, tmp_path, monkeypatch, fault, low, high):
    monkeypatch.chdir(tmp_path)
    fault(monkeypatch)
    system = load(ROOT / "params.yaml").system("tiny")
    settings = dataclasses.replace(
        system.train,
        max_updates=UPDATES,
        validate_every=UPDATES,
        checkpoint_every=UPDATES,
        keep=Keep(last=1, best=0, every=0),
        lr_schedule=LR_SCHEDULE,
    )
    model = dataclasses.replace(system.model, encoder_layers=LAYERS, decoder_layers=LAYERS)
    job = Job(
        cell=Cell("tiny", "phrasebook", 1),
        system=System(model=model, train=settings, average=Average(last=1), decode=system.decode),
        corpus=text.root / "binary",
        texts=text.root / "split",
        code="code",
    )
    assert BinaryCorpus(job.corpus).sets["train"].pairs > 12_000
    _, state, _ = train_here(job, tmp_path / "work")
    assert low <= state.validations[-1]["bleu"] <= high
