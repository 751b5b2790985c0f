"""Trainings fitted to a text: their lengths, the forecast, and recipe own."""

import math
from dataclasses import replace

import pytest
from ruamel.yaml import YAML

from bleuprint.config.system import System
from bleuprint.model.flops import training_flops
from bleuprint.runtime.schema import validate_document
from bleuprint.training import fitted_systems
from bleuprint.training.fitted_systems import TextSize, fitted_systems_yaml
from recipes import SETTINGS
from root import ROOT

OWN = (ROOT / "recipes" / "own.yaml").read_text(encoding="utf-8")


def rows(text, tmp_path):
    """The settings of both systems for a text."""
    content = YAML(typ="safe", pure=True).load(fitted_systems_yaml(text))["systems"]
    small, medium = content["small"], content["medium"]
    medium = {**small, "model": small["model"] | medium["model"]}
    medium["train"] = small["train"] | content["medium"]["train"]
    return [validate_document(System, row, tmp_path / "params.yaml") for row in (small, medium)]


def test_the_recipe_is_that_of_ten_thousand_pairs():
    assert OWN.endswith(f"\n{fitted_systems_yaml(TextSize(9000, 17.0, 17.0, 4000))}")
    assert list(SETTINGS["own"].runs) == ["small", "medium"]


def test_a_text_of_a_hundred_short_pairs_has_an_update(tmp_path):
    for system in rows(TextSize(120, 5.0, 5.0, 200), tmp_path):
        assert system.train.tokens_per_update == system.train.max_tokens == 300


@pytest.mark.parametrize("pairs", [100, 1000, 10_000, 100_000, 1_000_000, 50_000_000])
def test_the_operations_fit_into_half_an_hour(tmp_path, pairs):
    text = TextSize(pairs, 20.0, 18.0, 6000)
    for system, rate in zip(rows(text, tmp_path), (4.5e10, 5.5e10), strict=True):
        train = system.train
        trained = train.max_updates * train.tokens_per_update / 18
        assert trained * training_flops(system.model, 6000, 20, 18) / rate <= 1200 * 1.03
        # a short text is not read for ever; a long one uses the time
        assert trained <= 101.5 * pairs or train.max_updates == 20
        if pairs >= 100_000:
            assert trained * training_flops(system.model, 6000, 20, 18) / rate >= 1200 * 0.97
        assert train.max_updates == 20 * train.validate_interval
        assert train.lr_schedule.inverse_sqrt.warmup_updates < train.max_updates / 4
        assert (system.average.best, train.keep_best, train.patience) == (4, 4, 5)


def test_the_updates_and_passes_of_a_training(tmp_path):
    text = TextSize(1000, 20.0, 10.0, 500)
    system, _ = rows(text, tmp_path)
    for tokens, sentences, updates, epochs, number, passes in (
        (200, None, 100, None, 100, 2.0),
        (200, None, 100, 1, 50, 1.0),
        (None, 30, 1000, 3, 3 * 34, 3.0),  # 33 updates of 30 pairs, and one of 10
        (None, 30, None, None, None, None),
    ):
        size = {"tokens_per_update": tokens, "sentences_per_update": sentences}
        ends = {"max_updates": updates, "max_epochs": epochs, "patience": 1}
        train = type(system.train)(max_tokens=100, **size, **ends)
        assert train.update_limit(10_000, 1000) == number
        if number:
            assert fitted_systems.epochs_in_updates(train, text, number) == passes


def test_the_forecast_grows_with_what_is_trained(tmp_path, monkeypatch):
    text = TextSize(1000, 20.0, 10.0, 500)
    system, _ = rows(text, tmp_path)
    took = fitted_systems.seconds_per_pair(system, text, 1)
    assert math.isfinite(took) and took > 0
    monkeypatch.setattr(fitted_systems, "seconds_per_pair", lambda *_: 0.5)
    pairs = system.train.tokens_per_update / 10
    system = replace(system, arithmetic="native")
    once = fitted_systems.training_seconds(system, text, 0, 100, 1)
    assert once == pytest.approx(100 * pairs * 0.5)
    validated = fitted_systems.training_seconds(system, text, 50, 100, 1) - once
    assert validated == pytest.approx(100 / system.train.validate_interval * 50 * 1.3 * 0.5)


def test_a_gpu_is_used():
    text = TextSize(1000, 20.0, 10.0, 500)
    (line,) = set(fitted_systems_yaml(text).splitlines()) - set(
        fitted_systems_yaml(text, is_portable=False).splitlines()
    )
    assert line.startswith("    arithmetic: portable")
