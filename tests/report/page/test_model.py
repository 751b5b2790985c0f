"""The pictures of the model are of what the systems use."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import result_rows
import result_trees as trees
from bleuprint.model.transformer import Transformer, count_parameters
from bleuprint.report.page import model as page_model
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.model import (
    model,
    parameters_by_part,
    penalty,
    subsequent_mask,
    target_distribution,
)
from pages import Page
from systems import MODEL, only_systems


def test_no_position_sees_a_later_one() -> None:
    for settings in (MODEL, replace(MODEL, positional_encoding="rotary", norm="pre")):
        assert torch.equal(subsequent_mask(settings), torch.ones(20, 20).tril().bool())


def test_the_target_distribution_of_the_annotated_transformer() -> None:
    """Its figure: a vocabulary of 5, smoothing 0.4, no probability for padding (0)."""
    found = target_distribution(0.4, "non_target")
    assert len(found) == 4
    for label in (1, 2, 3, 4):
        row = [0.4 / 3] * 5
        row[0], row[label] = 0.0, 0.6
        assert found[label - 1].tolist() == pytest.approx(row, abs=1e-6)
    uniform = torch.full((4, 5), 0.08) + 0.6 * torch.eye(5)[1:]
    assert torch.allclose(target_distribution(0.4, "uniform"), uniform, atol=1e-6)


@pytest.mark.parametrize("x", [1, 5, 50, 100])
def test_the_penalty_of_an_overconfident_model(x: float) -> None:
    """The Annotated Transformer's: x / (x + 3) for the label, 1 / (x + 3) for three others; it
    subtracts the entropy of the target.
    """
    found = penalty(x, 0.1, "non_target")
    predicted = torch.tensor([1 / (x + 3)] * 3 + [x / (x + 3)]).log()
    target = torch.tensor([0.1 / 3] * 3 + [0.9])
    entropy = -(target * target.log()).sum()
    divergence = functional.kl_div(predicted, target, reduction="sum")
    assert found == pytest.approx(float(divergence + entropy), abs=1e-5)
    even = -(0.92 * math.log(x / (x + 4)) + 0.08 * math.log(1 / (x + 4)))
    assert penalty(x, 0.1, "uniform") == pytest.approx(even, abs=1e-5)


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
    assert counts["positions"] == 2 * settings.max_positions * settings.d_model
    shared = {"all": (90, 0), "decoder": (90, 0), "none": (90, 70)}[tie]
    assert counts["source embedding"] == shared[0] * settings.d_model
    assert counts["output projection"] == shared[1] * settings.d_model


def test_the_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = trees.settings_in(tmp_path, ("base", "big"), {"news-en-de": ("first",)})
    trees.write_texts(tmp_path, settings)
    monkeypatch.chdir(tmp_path)
    records = result_rows.frame(
        *(result_rows.record(n, "news-en-de", "first", 20.0) for n in settings.systems)
    )
    page = Page(f'<section id="model">{model(ReportContext(settings, records)).body}</section>')
    (table,) = page.tables["model"]
    assert table.row("big")["encoder feed-forward"] == "4,192"
    assert table.row("base")["all"] == "24,576"
    text = page.sections["model"]
    for caption in (
        "Subsequent mask",
        "Sinusoids, d_model 20",
        "Target distribution of base, big",
        "Loss (nats) of the label at x : 1",
        "Learning rate of the systems",
        "The paper's learning rate",
    ):
        assert caption in text
    assert "256:4000" in text


def test_a_system_without_smoothing_or_results(tmp_path: Path) -> None:
    """It has no curve of learning rates."""
    settings = trees.settings_in(tmp_path, ("base",), {"news-en-de": ("first",)})
    trees.write_texts(tmp_path, settings)
    base = settings.system("base")
    plain = replace(base, train=replace(base.train, label_smoothing=0.0))
    settings = only_systems(settings, {"base": plain})
    records = result_rows.frame(result_rows.record("other", "news-en-de", "first", 20.0))
    section = model(ReportContext(settings, records, tmp_path))
    text = Page(f'<section id="model">{section.body}</section>').sections["model"]
    assert "No system has label smoothing." in text and "Target distribution" not in text
    assert "Learning rate of the systems" in text


def test_learning_rates_end_where_the_trainings_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = trees.settings_in(tmp_path, ("base",), {"news-en-de": ("first",)})
    trees.write_texts(tmp_path, settings)
    ends = []
    rates = page_model._rates
    monkeypatch.setattr(page_model, "_rates", lambda *given: ends.append(given[2]) or rates(*given))
    rows = [result_rows.record("base", "news-en-de", "first", 20.0, updates=n) for n in (123, 456)]
    model(ReportContext(settings, result_rows.frame(*rows), tmp_path))
    assert ends == [456, 20_000, 20_000, 20_000]  # then the paper's
