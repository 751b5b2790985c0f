"""The figures of docs/figures.md: published numbers, and the committed files."""

import importlib
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from root import ROOT

IMAGES = ROOT / "docs" / "images"
FIGURE_NAMES = (
    "subsequent-mask",
    "sinusoids",
    "learning-rates",
    "smoothed-targets",
    "confidence-loss",
    "untrained-predictions",
    "worked-attention",
)


@pytest.fixture(scope="module")
def figures():
    """Return the script docs/figures.py as a module."""
    return importlib.import_module("figures")


@pytest.fixture(scope="module")
def figure_values():
    """Return the module docs/figure_values.py, which computes what the figures show."""
    return importlib.import_module("figure_values")


def test_the_mask_of_subsequent_positions_is_a_lower_triangle(figure_values):
    """A position may attend to itself and to those before it."""
    lower_triangle = np.tri(20, dtype=bool)

    assert np.array_equal(figure_values.subsequent_mask().numpy(), lower_triangle)


@pytest.mark.parametrize("position", [0, 1, 57, 99])
def test_sinusoids_follow_the_formula_of_the_transformer_paper(figure_values, position):
    """Section 3.5: dimension 2i has the sine of position / 10000^(2i / d_model), 2i + 1 the cosine.

    The figure has 100 positions and a d_model of 20.
    """
    d_model = 20

    encoding = figure_values.sinusoids()

    assert encoding.shape == (100, d_model)
    for i in range(d_model // 2):
        angle = position / 10000 ** (2 * i / d_model)
        sine = encoding[position, 2 * i].item()
        cosine = encoding[position, 2 * i + 1].item()
        assert sine == pytest.approx(math.sin(angle), abs=1e-4)
        assert cosine == pytest.approx(math.cos(angle), abs=1e-4)


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
def test_learning_rates_rise_and_fall_as_published(
    figure_values, d_model, warmup_updates, update, rate
):
    """The paper gives d_model^-0.5 * min(update^-0.5, update * warmup_updates^-1.5).

    The expected rates were worked out with a pocket calculator. Updates are counted from 1.
    """
    rates = figure_values.learning_rates(d_model, warmup_updates)

    assert len(rates) == 20_000
    assert rates[update - 1] == pytest.approx(rate, rel=1e-4)


def test_smoothed_targets_are_those_that_the_annotated_transformer_prints(figure_values):
    """Each row is the smoothed distribution of a target token over five tokens.

    The right token has 0.6. Three others share the smoothing of 0.4; token 0, padding, has none.
    The third target is padding itself, so its row is empty.
    """
    other = 0.4 / 3
    published_targets = np.array(
        [
            [0, other, 0.6, other, other],
            [0, 0.6, other, other, other],
            [0, 0, 0, 0, 0],
            [0, other, other, 0.6, other],
            [0, other, other, 0.6, other],
        ]
    )

    assert figure_values.smoothed_targets().numpy() == pytest.approx(published_targets, abs=1e-6)


@pytest.mark.parametrize("ratio", [1, 27, 99])
def test_the_smoothed_loss_is_that_of_the_annotated_transformer_and_a_constant(
    figure_values, ratio
):
    """Its notebook computes a Kullback-Leibler divergence; bleuprint computes the cross-entropy.

    The cross-entropy is the divergence plus the entropy of the target, a constant. The model gives
    the right token `ratio` times the probability of each of three other tokens.
    """
    prediction = np.array([ratio, 1, 1, 1]) / (ratio + 3)
    smoothed_target = np.array([0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3])
    divergence = (smoothed_target * np.log(smoothed_target / prediction)).sum()
    entropy_of_target = 0.435  # as docs/figures.md says

    loss = figure_values.confidence_loss(ratio, smoothing=0.1)

    assert loss == pytest.approx(divergence + entropy_of_target, abs=1e-3)


@pytest.mark.parametrize("ratio", [1, 27, 99])
def test_without_smoothing_the_loss_is_the_negative_log_probability(figure_values, ratio):
    """The model gives the right token `ratio` times the probability of each of three others."""
    probability = ratio / (ratio + 3)

    loss = figure_values.confidence_loss(ratio, smoothing=0.0)

    assert loss == pytest.approx(-math.log(probability), abs=1e-5)


def test_the_smoothed_loss_is_lowest_where_docs_figures_says(figure_values):
    """With smoothing, a model that is too sure of the right token gets a higher loss again.

    docs/figures.md says that the lowest loss is 0.43, where the model gives the right token 27
    times the probability of each of three other tokens.
    """
    losses = {}
    for ratio in figure_values.CONFIDENCE_RATIOS:
        losses[ratio] = figure_values.confidence_loss(ratio, smoothing=0.1)

    ratio_of_lowest_loss = min(losses, key=losses.__getitem__)
    assert ratio_of_lowest_loss == 27
    assert losses[27] == pytest.approx(0.43, abs=0.005)


# Ten models that are to copy their source, with the seeds 1 to 10, before any training.
SOURCE_OF_UNTRAINED_MODELS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]


@pytest.fixture(scope="module")
def untrained_predictions(figure_values):
    """Return the tokens that each of the ten untrained models predicts."""
    return figure_values.untrained_predictions()


def test_ten_untrained_models_predict_ten_tokens_each(untrained_predictions):
    lengths = [len(prediction) for prediction in untrained_predictions]

    assert lengths == [10] * 10


def test_untrained_models_predict_tokens_of_their_vocabulary(untrained_predictions):
    for prediction in untrained_predictions:
        assert set(prediction) <= set(SOURCE_OF_UNTRAINED_MODELS)


def test_untrained_models_do_not_copy_their_source(untrained_predictions):
    assert SOURCE_OF_UNTRAINED_MODELS not in untrained_predictions


def test_untrained_models_of_different_seeds_predict_different_tokens(untrained_predictions):
    different_predictions = {tuple(tokens) for tokens in untrained_predictions}

    assert len(different_predictions) > 5  # of 10


# Self-attention worked out by hand, in an article that docs/figures.md names.


def test_worked_attention_has_the_published_queries_keys_and_values(figure_values):
    """docs/figures.md names an article that works self-attention out by hand, for three inputs."""
    worked = figure_values.worked_attention()

    assert worked.queries.tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert worked.keys.tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert worked.values.tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]]


def test_worked_attention_has_the_published_scores(figure_values):
    published_scores = np.array([[2, 4, 4], [4, 16, 12], [4, 12, 10]])

    assert figure_values.worked_attention().scores.numpy() == pytest.approx(
        published_scores, abs=1e-5
    )


def test_worked_attention_has_the_published_weights(figure_values):
    """docs/figures.md names an article that works self-attention out by hand, for three inputs.

    The weights of an input are the softmax of its scores.
    """
    published_weights = np.array(
        [
            [6.3379e-02, 4.6831e-01, 4.6831e-01],
            [6.0337e-06, 9.8201e-01, 1.7986e-02],
            [2.9539e-04, 8.8054e-01, 1.1917e-01],
        ]
    )

    assert figure_values.worked_attention().weights.numpy() == pytest.approx(
        published_weights, abs=1e-5
    )


def test_worked_attention_has_the_published_outputs(figure_values):
    """docs/figures.md names an article that works self-attention out by hand, for three inputs."""
    published_outputs = np.array(
        [[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]]
    )

    assert figure_values.worked_attention().outputs.numpy() == pytest.approx(
        published_outputs, abs=1e-4
    )


NUMBER = re.compile(r"-?\d+\.?\d*")


@pytest.mark.parametrize("name", FIGURE_NAMES)
def test_a_committed_figure_is_what_the_code_draws(figures, name):
    """A figure is an SVG file: text with coordinates. The text between the numbers must be equal.

    Processors round the last digit of a coordinate differently, so numbers may differ by 0.02.
    """
    committed_svg = (IMAGES / f"{name}.svg").read_text("utf-8")

    drawn_svg = figures.FIGURES[name]()

    text_between_numbers = NUMBER.split(drawn_svg)
    assert text_between_numbers == NUMBER.split(committed_svg), "run: python docs/figures.py"
    numbers = [float(number) for number in NUMBER.findall(drawn_svg)]
    committed_numbers = [float(number) for number in NUMBER.findall(committed_svg)]
    assert numbers == pytest.approx(committed_numbers, abs=0.02)


@pytest.fixture(params=FIGURE_NAMES)
def committed_svg(request):
    """Return the text of a committed figure, an SVG file."""
    return (IMAGES / f"{request.param}.svg").read_text("utf-8")


def test_a_figure_has_a_title(committed_svg):
    assert ET.fromstring(committed_svg).findtext("{http://www.w3.org/2000/svg}title")


def test_a_figure_has_colors_for_a_dark_theme(committed_svg):
    assert "@media (prefers-color-scheme: dark)" in committed_svg


def test_a_figure_runs_no_script_and_requests_nothing(committed_svg):
    assert "<script" not in committed_svg
    assert "<image" not in committed_svg
    assert not re.findall(r"(?:href|src|url)\W+https?:", committed_svg)


def test_docs_figures_shows_every_figure_that_the_code_draws(figures):
    page = (ROOT / "docs" / "figures.md").read_text("utf-8")
    shown_names = re.findall(r"\]\(images/([\w-]+)\.svg\)", page)

    assert sorted(shown_names) == sorted(figures.FIGURES) == sorted(FIGURE_NAMES)
