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
from trainings import bpe_units, train_here

UPDATES = 280


def phrasebook_pairs(set_name):
    """Return the pairs of a set of the phrasebook: train, valid or test."""
    sources = sentences(set_name, "de")
    targets = sentences(set_name, "en")
    return [Pair(source, target) for source, target in zip(sources, targets, strict=True)]


def misalign(pairs):
    """Return pairs with the target of the next pair: as if one line of a file were missing."""
    misaligned_pairs = []
    for number, pair in enumerate(pairs):
        next_pair = pairs[(number + 1) % len(pairs)]
        misaligned_pairs.append(Pair(pair.source, next_pair.target))
    return misaligned_pairs


def small_system():
    """Return the system `tiny` with one layer and a high learning rate.

    It learns the phrasebook in fewer updates than the default's `tiny`.
    """
    tiny = load_settings(ROOT / "params.yaml").system_settings("tiny")
    training = dataclasses.replace(
        tiny.train,
        tokens_per_update=800,
        max_tokens=800,
        max_updates=UPDATES,
        validate_interval=UPDATES,
        save_interval=UPDATES,
        keep_last=1,
        keep_best=0,
        keep_interval=0,
        lr_schedule=LrSchedule(InverseSqrt(lr=0.006, warmup_updates=100, warmup_init_lr=0.0)),
    )
    model = dataclasses.replace(tiny.model, encoder_layers=1, decoder_layers=1)
    return System(model=model, train=training, average=Average(last=1), decode=tiny.decode)


@pytest.fixture
def bleu_after_training(tmp_path, monkeypatch):
    """Return a function that trains on pairs, and returns the BLEU of the last validation."""
    monkeypatch.chdir(tmp_path)

    def train(training_pairs):
        sets = {
            "train": training_pairs,
            "valid": phrasebook_pairs("valid")[:100],
            "test.x": phrasebook_pairs("test")[:50],
        }
        prepared = prepare(tmp_path / "corpus", sets, units=bpe_units(3000))
        assert BinaryCorpus(prepared.root / "binary").sets["train"].pairs > 12_000
        job = Job(
            run=Run("tiny", "phrasebook", 1),
            system=small_system(),
            corpus_folder=prepared.root / "binary",
            split_folder=prepared.root / "split",
            code_fingerprint="code",
        )
        _, state, _ = train_here(job, tmp_path / "work")
        return state.validations[-1]["bleu"]

    return train


def test_a_model_learns_to_translate_the_phrasebook(bleu_after_training):
    """A broken model or a wrong alignment of training pairs gives a BLEU below 10."""
    bleu = bleu_after_training(phrasebook_pairs("train"))

    assert 30 <= bleu <= 100


@pytest.mark.slow
def test_a_model_that_is_trained_on_misaligned_pairs_gets_a_low_bleu(bleu_after_training):
    """Each source has the target of the next pair, as if one line of a file were missing.

    The test with the right pairs asks for 30 BLEU, so it would find such a mistake.
    """
    bleu = bleu_after_training(misalign(phrasebook_pairs("train")))

    assert 0 <= bleu <= 10
