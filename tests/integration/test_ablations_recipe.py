"""The recipe of ablations: rows that differ from base in one thing each."""

import pytest
import torch

from bleuprint.config.experiment import load
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.training.lr_schedule import learning_rate
from root import ROOT
from setting_changes import changes

SYSTEMS = load(ROOT / "recipes" / "ablations-phrasebook.yaml").systems_on("phrasebook-en-de")
SCHEDULE = "train.lr_schedule.inverse_sqrt"

CHANGES = {
    "no-positions": {"model.positional_encoding"},
    "rotary-positions": {"model.positional_encoding"},
    "unscaled-embeddings": {"model.scale_embeddings"},
    "unscaled-attention": {"model.scale_attention"},
    "rms-norm": {"model.normalization"},
    "pre-norm": {"model.norm"},
    "swiglu": {"model.activation", "model.d_ff"},
    "sgd": {f"train.optimizer.{key}" for key in ("name", "betas", "eps", "momentum")}
    | {f"{SCHEDULE}.lr"},
    "no-warmup": {f"{SCHEDULE}.lr", f"{SCHEDULE}.warmup_updates"},
    "sentences": {"train.tokens_per_update", "train.sentences_per_update"},
    "average-last-5": {"average.last"},
    "average-ema": {"average.last", "average.ema"},
}


def test_a_row_differs_from_base_in_what_its_name_says():
    base, *rows = SYSTEMS
    assert {row: changes(SYSTEMS[base], SYSTEMS[row]) for row in rows} == CHANGES


def test_without_warmup_learning_rates_are_those_of_base_after_its_warmup():
    base, row = (SYSTEMS[name].train.lr_schedule for name in ("base", "no-warmup"))
    for update in (200, 500, 1000):
        assert learning_rate(row, update, 96) == pytest.approx(
            learning_rate(base, update, 96), rel=1e-3
        )
    assert learning_rate(row, 1, 96) > 10 * learning_rate(base, 200, 96)


def test_swiglu_has_as_many_parameters_as_base():
    with torch.device("meta"):
        base, swiglu = (
            count_parameters(Transformer(SYSTEMS[row].model, 4000, 4000))
            for row in ("base", "swiglu")
        )
    assert swiglu == pytest.approx(base, rel=0.005)
