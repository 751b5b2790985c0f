"""The parameters of the model by part."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import result_rows
import result_trees as trees
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.model import parameters, parameters_by_part
from result_rows import rows_of
from systems import MODEL


def test_parameters_are_counted_without_normal_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """For these, on the device meta, torch loads its compiler, which takes seconds."""
    monkeypatch.setattr(torch.Tensor, "normal_", None)
    assert parameters_by_part(MODEL, 90, 90).total() > 0


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
def test_parameters_by_part(tie: str) -> None:
    settings = replace(MODEL, tie_embeddings=tie, positional_encoding="learned")
    source, target = (90, 90) if tie == "all" else (90, 70)
    counts = parameters_by_part(settings, source, target)
    assert counts.total() == count_parameters(Transformer(settings, source, target))
    heads = settings.heads * settings.d_k
    attention = 4 * settings.d_model * heads + 3 * heads + settings.d_model
    layers = settings.encoder_layers
    assert counts["encoder self-attention"] == layers * attention
    for side in ("source", "target"):
        assert counts[f"{side} positions"] == settings.max_positions * settings.d_model
    shared = {"all": (90, 0), "decoder": (90, 0), "none": (90, 70)}[tie]
    assert counts["source embedding"] == shared[0] * settings.d_model
    assert counts["projection"] == shared[1] * settings.d_model


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = trees.settings_in(tmp_path, ("base", "big"), {"news-en-de": ("first",)})
    trees.write_texts(tmp_path, settings)
    monkeypatch.chdir(tmp_path)
    records = result_rows.frame(
        *(result_rows.record(n, "news-en-de", "first", 20.0) for n in settings.systems)
    )
    table = rows_of(parameters(ReportContext(settings, records)))
    assert table["big"]["encoder feed-forward"] == "4,192"
    assert table["base"]["all"] == "24,576"
