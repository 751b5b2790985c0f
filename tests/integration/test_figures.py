"""The figures of docs/figures.md: published numbers, and the committed files."""

import importlib.util
import math
import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from root import ROOT

IMAGES = ROOT / "docs" / "images"
NAMES = (
    "subsequent-mask",
    "sinusoids",
    "learning-rates",
    "smoothed-targets",
    "confidence-loss",
    "untrained-predictions",
    "worked-attention",
)
NUMBER = re.compile(r"-?\d+\.?\d*")


@pytest.fixture(scope="module")
def figures():
    """The script docs/figures.py as a module."""
    spec = importlib.util.spec_from_file_location("figures", ROOT / "docs" / "figures.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["figures"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["figures"]


def test_the_mask_is_the_lower_triangle(figures):
    assert np.array_equal(figures.subsequent_mask().numpy(), np.tri(20, dtype=bool))


def test_sinusoids_are_the_formula_of_section_3_5(figures):
    encoding = figures.sinusoids()
    assert encoding.shape == (100, 20)
    for position in (0, 1, 57, 99):
        for pair in range(10):
            angle = position / 10000 ** (2 * pair / 20)
            expected = pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-4)
            assert encoding[position, 2 * pair : 2 * pair + 2].tolist() == expected


# d_model^-0.5 * min(update^-0.5, update * warmup^-1.5), worked out with a pocket calculator
@pytest.mark.parametrize(
    ("d_model", "warmup_updates", "update", "rate"),
    [
        (512, 4000, 1, 1.7469e-7),
        (512, 4000, 4000, 6.9877e-4),
        (512, 4000, 20000, 3.1250e-4),
        (512, 8000, 4000, 2.4705e-4),
        (512, 8000, 8000, 4.9411e-4),
        (256, 4000, 4000, 9.8821e-4),
        (256, 4000, 16000, 4.9411e-4),
    ],
)
def test_learning_rates_rise_and_fall_as_published(figures, d_model, warmup_updates, update, rate):
    rates = figures.learning_rates(d_model, warmup_updates)
    assert len(rates) == 20_000
    assert rates[update - 1] == pytest.approx(rate, rel=1e-4)


def test_smoothed_targets_are_those_that_the_annotated_transformer_prints(figures):
    other = 0.4 / 3
    assert figures.smoothed_targets().numpy() == pytest.approx(
        np.array(
            [
                [0, other, 0.6, other, other],
                [0, 0.6, other, other, other],
                [0, 0, 0, 0, 0],
                [0, other, other, 0.6, other],
                [0, other, other, 0.6, other],
            ]
        ),
        abs=1e-6,
    )


@pytest.mark.parametrize("ratio", [1, 27, 99])
def test_the_loss_of_a_confident_prediction_is_the_notebooks_and_a_constant(figures, ratio):
    # the notebook: KLDivLoss of a prediction (x, 1, 1, 1) / (x + 3) and (0.9, 0.1 / 3, ...)
    prediction = np.array([ratio, 1, 1, 1]) / (ratio + 3)
    target = np.array([0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3])
    divergence = (target * np.log(target / prediction)).sum()
    entropy = 0.435  # of the target, as docs/figures.md says
    smoothed = figures.confidence_loss(ratio, smoothing=0.1)
    assert smoothed == pytest.approx(divergence + entropy, abs=1e-3)
    plain = figures.confidence_loss(ratio, smoothing=0.0)
    assert plain == pytest.approx(-math.log(ratio / (ratio + 3)), abs=1e-5)


def test_the_loss_is_lowest_where_the_page_says(figures):
    losses = {ratio: figures.confidence_loss(ratio, 0.1) for ratio in figures.CONFIDENCE_RATIOS}
    assert min(losses, key=losses.__getitem__) == 27
    assert losses[27] == pytest.approx(0.43, abs=0.005)


def test_untrained_models_do_not_copy(figures):
    predictions = figures.untrained_predictions()
    source = [str(number) for number in range(1, 11)]
    assert [len(prediction) for prediction in predictions] == [10] * 10
    assert {token for prediction in predictions for token in prediction} <= set(source)
    assert source not in predictions
    # a model's seed decides what it says
    assert len({tuple(prediction) for prediction in predictions}) > 5


def test_self_attention_has_the_numbers_of_the_published_example(figures):
    worked = figures.worked_attention()
    assert worked.queries.tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert worked.keys.tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert worked.values.tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]]
    assert worked.scores.numpy() == pytest.approx(
        np.array([[2, 4, 4], [4, 16, 12], [4, 12, 10]]), abs=1e-5
    )
    assert worked.weights.numpy() == pytest.approx(
        np.array(
            [
                [6.3379e-02, 4.6831e-01, 4.6831e-01],
                [6.0337e-06, 9.8201e-01, 1.7986e-02],
                [2.9539e-04, 8.8054e-01, 1.1917e-01],
            ]
        ),
        abs=1e-5,
    )
    assert worked.outputs.numpy() == pytest.approx(
        np.array([[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]]),
        abs=1e-4,
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_figures_are_what_the_code_draws(figures, name):
    committed = (IMAGES / f"{name}.svg").read_text("utf-8")
    drawn = figures.FIGURES[name]()
    advice = "run: python docs/figures.py"
    assert NUMBER.split(drawn) == NUMBER.split(committed), advice
    # processors round the last digit of a coordinate differently
    numbers = [float(number) for number in NUMBER.findall(committed)]
    assert [float(number) for number in NUMBER.findall(drawn)] == pytest.approx(numbers, abs=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_a_title_follow_the_theme_and_request_nothing(name):
    text = (IMAGES / f"{name}.svg").read_text("utf-8")
    root = ET.fromstring(text)
    assert root.findtext("{http://www.w3.org/2000/svg}title")
    assert "@media (prefers-color-scheme: dark)" in text
    assert "<script" not in text and "<image" not in text
    assert not re.findall(r"(?:href|src|url)\W+https?:", text)


def test_the_page_shows_every_figure(figures):
    page = (ROOT / "docs" / "figures.md").read_text("utf-8")
    shown = re.findall(r"\]\(images/([\w-]+)\.svg\)", page)
    assert sorted(shown) == sorted(NAMES) == sorted(figures.FIGURES)
