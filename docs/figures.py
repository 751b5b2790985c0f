"""Draw the figures that courses on the Transformer print, computed by the functions that train.

    python docs/figures.py        writes docs/images/NAME.svg for each name in FIGURES

Each figure has one function that computes its values, which tests compare with the published
numbers, and one that draws them. The SVGs follow the reader's light or dark theme.
"""

import hashlib
import io
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from bleuprint.config.experiment import load_settings
from bleuprint.config.optimization import LrSchedule, Noam
from bleuprint.config.system import Decode, LengthPenalty, Model
from bleuprint.dataset.subwords.vocabulary import EOS, PAD, SPECIALS, Vocabulary
from bleuprint.decoding.beam_search import beam_search
from bleuprint.decoding.engine import SPECIAL_TOKENS
from bleuprint.model.attention import MultiHeadAttention
from bleuprint.model.layout import PaddedLayout
from bleuprint.model.linear import Linear
from bleuprint.model.positions import sinusoidal_positions
from bleuprint.model.transformer import Transformer
from bleuprint.training.loss import linear_cross_entropy
from bleuprint.training.lr_schedule import learning_rate

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"

# The sizes that The Annotated Transformer draws.
MASK_POSITIONS = 20
SINUSOID_POSITIONS = 100
SINUSOID_D_MODEL = 20
SINUSOID_DIMENSIONS = (4, 5, 6, 7)
SCHEDULE_UPDATES = 20_000
# Pairs of d_model and warm-up updates.
SCHEDULES = ((512, 4000), (512, 8000), (256, 4000))
SMOOTHING_VOCABULARY = 5
SMOOTHING_LABELS = (2, 1, PAD, 3, 3)
CONFIDENCE_RATIOS = tuple(range(1, 100))
UNTRAINED_MODELS = 10
COPY_LENGTH = 10

# Inputs and projections of the worked example in "Illustrated: Self-Attention" (Karim 2019):
# three inputs of four dimensions, queries, keys and values of three.
WORKED_INPUTS = ((1, 0, 1, 0), (0, 2, 0, 2), (1, 1, 1, 1))
WORKED_QUERY = ((1, 0, 1), (1, 0, 0), (0, 0, 1), (0, 1, 1))
WORKED_KEY = ((0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 1, 0))
WORKED_VALUE = ((0, 2, 0), (0, 3, 0), (1, 0, 3), (1, 1, 0))

# A masked-out token's logit: its probability is 0 in float32, and its logarithm is finite.
_IMPOSSIBLE = -1e4

_INK = "#1f2328"
_PAPER = "#ffffff"
_GRID = "#d1d9e0"
# Blue, vermilion, green and purple of Okabe and Ito (2008): distinct with any color vision.
_LINE_COLORS = ("#0072b2", "#d55e00", "#009e73", "#b0588f")
_DARK_THEME = {
    _INK: "#e6edf3",
    _PAPER: "#0d1117",
    _GRID: "#3d444d",
    "#0072b2": "#4493f8",
    "#d55e00": "#f0883e",
    "#009e73": "#3fb950",
    "#b0588f": "#db9bc6",
}
_DASHES = ("-", "--", ":", "-.")
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "axes.facecolor": _PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": _PAPER,
    "figure.constrained_layout.use": True,
    "grid.color": _GRID,
    "legend.edgecolor": _GRID,
    "legend.facecolor": _PAPER,
    "lines.linewidth": 1.6,
    # Text stays text: it can be searched, copied and read aloud.
    "svg.fonttype": "none",
    "xtick.color": _INK,
    "ytick.color": _INK,
}


# -- the values -----------------------------------------------------------------------------------


def copy_model_settings() -> Model:
    """Return the model settings of the copy task in its edition of 2018."""
    experiment = load_settings(ROOT / "recipes" / "copy.yaml")
    return experiment.system_on("edition-2018", "copy").model


def subsequent_mask() -> Tensor:
    """Compute which target positions each target position sees in the decoder.

    Returns:
        Booleans (T, T) for T = 20 positions: row t is True up to and including column t. They are
        read from the attention weights of a decoder: a weight above 0 is a position that is seen.
    """
    settings = replace(copy_model_settings(), encoder_layers=1, decoder_layers=1)
    torch.manual_seed(1)
    model = Transformer(settings, len(SPECIALS) + 1, len(SPECIALS) + 1).eval()
    token_ids = torch.full((1, MASK_POSITIONS), len(SPECIALS))
    weights = model.attention_weights(token_ids, token_ids).decoder[0]
    first_head = weights[0, 0]
    return first_head > 0


def sinusoids() -> Tensor:
    """Compute the positional encoding: sinusoids (T, D) for T = 100 positions and D = 20."""
    return sinusoidal_positions(torch.arange(SINUSOID_POSITIONS), SINUSOID_D_MODEL)


def learning_rates(d_model: int, warmup_updates: int) -> list[float]:
    """Compute the learning rate of section 5.3 at the updates 1 to 20,000."""
    schedule = LrSchedule(noam=Noam(factor=1.0, warmup_updates=warmup_updates))
    updates = range(1, SCHEDULE_UPDATES + 1)
    return [learning_rate(schedule, update, d_model) for update in updates]


def smoothed_targets() -> Tensor:
    """Compute the target distributions that label smoothing of 0.4 gives five labels.

    The gradient of the loss by the logits is the softmax minus the target distribution, so the
    difference of the two is what training compares a prediction with.

    Returns:
        Probabilities (label, token): 5 labels and a vocabulary of 5 tokens. The row of a label
        that is padding is 0, since training leaves padding out of the loss.
    """
    labels = torch.tensor(SMOOTHING_LABELS)
    logits = torch.zeros(len(labels), SMOOTHING_VOCABULARY, requires_grad=True)
    is_counted = labels != PAD
    loss = _cross_entropy(logits[is_counted], labels[is_counted], smoothing=0.4)
    (gradient,) = torch.autograd.grad(loss, logits)
    targets = torch.softmax(logits.detach(), dim=-1) - gradient
    targets[~is_counted] = 0.0
    # Rounding leaves numbers just below 0.
    return targets.clamp(min=0.0)


def confidence_loss(ratio: float, smoothing: float) -> float:
    """Compute the loss (nats) of a prediction of one word.

    Args:
        ratio: how many times as probable as each other word the label is. The vocabulary is the
            label, three other words and padding, which has the probability 0.
        smoothing: the label smoothing.
    """
    label = 1
    logits = torch.zeros(1, SMOOTHING_VOCABULARY)
    logits[0, label] = math.log(ratio)
    logits[0, PAD] = _IMPOSSIBLE
    return _cross_entropy(logits, torch.tensor([label]), smoothing).item()


def _cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return training's loss of given logits (N, V): the projection is the identity."""
    size = logits.size(1)
    identity = Linear(size, size, bias=False)
    with torch.no_grad():
        identity.weight.copy_(torch.eye(size))
    return linear_cross_entropy(logits, identity, labels, smoothing, smoothing_target="non_target")


def untrained_predictions() -> list[list[str]]:
    """Translate "1 2 ... 10" with ten copy models that have not been trained.

    Returns:
        Ten lists of ten tokens, by greedy search. The models differ in the seed of their initial
        weights, which is 1 to 10.
    """
    symbols = [str(number) for number in range(1, COPY_LENGTH + 1)]
    vocabulary = Vocabulary([(symbol, 1) for symbol in symbols])
    source = torch.tensor([[*vocabulary.encode(symbols), EOS]])
    length_with_eos = torch.tensor([COPY_LENGTH + 1])
    greedy = Decode(
        beam=1,
        length_penalty=LengthPenalty(alpha=0.0),
        # An untrained model ends at any time: ask for ten symbols.
        min_len=COPY_LENGTH,
        allow_unk=False,
    )
    predictions = []
    for seed in range(1, UNTRAINED_MODELS + 1):
        torch.manual_seed(seed)
        model = Transformer(copy_model_settings(), len(vocabulary), len(vocabulary)).eval()
        with torch.inference_mode():
            cache = model.init_cache(source)
            best = beam_search(model.step, cache, length_with_eos, SPECIAL_TOKENS, greedy)
        token_ids = best[0][0].tokens
        predictions.append([vocabulary.tokens[token_id] for token_id in token_ids[:COPY_LENGTH]])
    return predictions


@dataclass(frozen=True)
class WorkedAttention:
    """Self-attention of three inputs, step by step; each tensor has a row for each input.

    `queries`, `keys`, `values` and `outputs` are (3, 3), `scores` and `weights` are
    (query, key). A score is the product of a query and a key, without the division by the root of
    their dimensions, as in the published example.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    weights: Tensor
    outputs: Tensor


def worked_attention() -> WorkedAttention:
    """Compute the published example with the attention layer of the model."""
    inputs = torch.tensor(WORKED_INPUTS, dtype=torch.float32)
    settings = replace(
        copy_model_settings(),
        heads=1,
        d_model=4,
        d_k=3,
        d_v=3,
        bias=False,
        scale_attention=False,
    )
    layer = MultiHeadAttention(settings).eval()
    projections = [torch.tensor(matrix).t() for matrix in (WORKED_QUERY, WORKED_KEY, WORKED_VALUE)]
    with torch.no_grad():
        layer.in_proj.weight.copy_(torch.cat(projections))
        # The layer projects its result back to d_model: this keeps the three numbers as they are.
        layer.out_proj.weight.copy_(torch.eye(4, 3))
    recorded_weights: list[torch.Tensor] = []
    layout = PaddedLayout(size=(1, len(inputs)), fill=False, recorded_weights=recorded_weights)
    with torch.inference_mode():
        queries, keys, values = layer.project_qkv(layout.rows(inputs[None]), layout)
        outputs = layer(layout.rows(inputs[None]), layout)[: len(inputs), :3]
    # Attention divides by the root of the dimension; the layer has multiplied the queries by it.
    unscaled_queries = queries[0, 0] / layer.query_scale
    return WorkedAttention(
        queries=unscaled_queries,
        keys=keys[0, 0],
        values=values[0, 0],
        scores=unscaled_queries @ keys[0, 0].t(),
        weights=recorded_weights[0][0, 0],
        outputs=outputs,
    )


# -- the drawings ---------------------------------------------------------------------------------


def mask_svg() -> str:
    """Draw the subsequent mask: a filled cell is a position that is seen."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        mask = subsequent_mask().float()
        _draw_cells(axes, mask.tolist(), labels=None)
        axes.set_aspect("equal")
        axes.set_xticks(range(0, MASK_POSITIONS, 5))
        axes.set_yticks(range(0, MASK_POSITIONS, 5))
        axes.set_xlabel("position that is seen")
        axes.set_ylabel("position that sees")

    return _svg("subsequent-mask", "Subsequent mask of 20 positions", (3.6, 3.6), draw)


def sinusoids_svg() -> str:
    """Draw four dimensions of the positional encoding over the positions."""

    def draw(figure: Figure) -> None:
        positions = range(SINUSOID_POSITIONS)
        values = sinusoids()
        curves = {f"dimension {i}": values[:, i].tolist() for i in SINUSOID_DIMENSIONS}
        axes = figure.add_subplot()
        _draw_curves(axes, positions, curves)
        axes.set_xlabel("position")
        axes.set_ylabel("value")

    return _svg("sinusoids", "Sinusoids of d_model 20, dimensions 4 to 7", (7.5, 3.2), draw)


def learning_rates_svg() -> str:
    """Draw three learning-rate schedules over 20,000 updates."""

    def draw(figure: Figure) -> None:
        # Every hundredth update is enough for a curve of this width.
        step = 100
        updates = range(step, SCHEDULE_UPDATES + 1, step)
        curves = {}
        for d_model, warmup_updates in SCHEDULES:
            rates = learning_rates(d_model, warmup_updates)
            curves[f"{d_model}:{warmup_updates}"] = rates[step - 1 :: step]
        axes = figure.add_subplot()
        _draw_curves(axes, updates, curves)
        axes.set_xlabel("update")
        axes.set_ylabel("learning rate")
        axes.xaxis.set_major_formatter("{x:,.0f}")

    title = "Learning rates for d_model:warm-up of 512:4000, 512:8000 and 256:4000"
    return _svg("learning-rates", title, (7.5, 3.2), draw)


def smoothed_targets_svg() -> str:
    """Draw the target distribution of five labels under label smoothing of 0.4."""

    def draw(figure: Figure) -> None:
        targets = smoothed_targets().tolist()
        labels = [[f"{probability:.3f}" for probability in row] for row in targets]
        axes = figure.add_subplot()
        _draw_cells(axes, targets, labels)
        axes.set_xticks(range(SMOOTHING_VOCABULARY))
        axes.set_xlabel("word of the vocabulary (0 is padding)")
        axes.set_yticks(range(len(SMOOTHING_LABELS)), [str(label) for label in SMOOTHING_LABELS])
        axes.set_ylabel("label")

    title = "Target distribution for 5 words and a label smoothing of 0.4"
    return _svg("smoothed-targets", title, (4.8, 3.2), draw)


def confidence_loss_svg() -> str:
    """Draw the loss of a prediction that becomes more and more confident."""

    def draw(figure: Figure) -> None:
        curves = {}
        for smoothing in (0.1, 0.0):
            losses = [confidence_loss(ratio, smoothing) for ratio in CONFIDENCE_RATIOS]
            curves[f"label smoothing {smoothing}"] = losses
        axes = figure.add_subplot()
        _draw_curves(axes, CONFIDENCE_RATIOS, curves)
        axes.set_xlabel("probability of the label, as a multiple of each other word's")
        axes.set_ylabel("loss (nats)")

    title = "Loss of a confident prediction, with and without label smoothing"
    return _svg("confidence-loss", title, (7.5, 3.2), draw)


def untrained_predictions_svg() -> str:
    """Draw what ten untrained copy models predict for "1 2 ... 10"."""

    def draw(figure: Figure) -> None:
        symbols = [str(number) for number in range(1, COPY_LENGTH + 1)]
        rows = [symbols, *untrained_predictions()]
        is_correct = [[float(a == b) for a, b in zip(row, symbols, strict=True)] for row in rows]
        axes = figure.add_subplot()
        _draw_cells(axes, is_correct, rows)
        names = ["source"] + [f"seed {seed}" for seed in range(1, UNTRAINED_MODELS + 1)]
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks(range(COPY_LENGTH), symbols)
        axes.set_xlabel("output token")

    title = "Predictions of ten untrained copy models"
    return _svg("untrained-predictions", title, (6.0, 4.2), draw)


def worked_attention_svg() -> str:
    """Draw self-attention of three inputs, from the inputs to the outputs."""

    def draw(figure: Figure) -> None:
        worked = worked_attention()
        panels: dict[str, tuple[Sequence[Sequence[float]], str]] = {
            "inputs": (WORKED_INPUTS, "{:g}"),
            "queries": (worked.queries.tolist(), "{:g}"),
            "keys": (worked.keys.tolist(), "{:g}"),
            "values": (worked.values.tolist(), "{:g}"),
            "scores: query times key": (worked.scores.tolist(), "{:g}"),
            "weights: softmax of scores": (worked.weights.tolist(), "{:.4f}"),
            "outputs: weights times values": (worked.outputs.tolist(), "{:.4f}"),
        }
        grid = figure.add_gridspec(2, 12)
        places = [grid[0, 3 * i : 3 * i + 3] for i in range(4)]
        places += [grid[1, 4 * i : 4 * i + 4] for i in range(3)]
        for place, (title, (matrix, number_format)) in zip(places, panels.items(), strict=True):
            axes = figure.add_subplot(place)
            labels = [[number_format.format(value) for value in row] for row in matrix]
            shares = matrix if title.startswith("weights") else [[0.0] * len(row) for row in matrix]
            _draw_cells(axes, shares, labels)
            axes.set_title(title, fontsize=10)
            axes.set_xticks([])
            axes.set_yticks(range(len(matrix)), [f"{row + 1}" for row in range(len(matrix))])

    title = "Self-attention worked out for three inputs"
    return _svg("worked-attention", title, (7.5, 3.6), draw)


FIGURES: Mapping[str, Callable[[], str]] = {
    "subsequent-mask": mask_svg,
    "sinusoids": sinusoids_svg,
    "learning-rates": learning_rates_svg,
    "smoothed-targets": smoothed_targets_svg,
    "confidence-loss": confidence_loss_svg,
    "untrained-predictions": untrained_predictions_svg,
    "worked-attention": worked_attention_svg,
}


def _draw_curves(
    axes: Axes, positions: Sequence[int], curves: Mapping[str, Sequence[float]]
) -> None:
    """Draw a labeled line for each curve; neighbors differ in color and in dashes."""
    styles = zip(_LINE_COLORS, _DASHES, strict=True)
    for (name, values), (color, dashes) in zip(curves.items(), styles, strict=False):
        axes.plot(positions, values, label=name, color=color, linestyle=dashes)
    axes.grid(visible=True)
    axes.legend()


def _draw_cells(
    axes: Axes, shares: Sequence[Sequence[float]], labels: Sequence[Sequence[str]] | None
) -> None:
    """Draw a matrix as cells, row 0 at the top.

    Args:
        axes: where to draw; cell (row, column) is centered at x = column, y = row.
        shares: how strongly each cell is filled, from 0 to 1.
        labels: the text in each cell, on a fill that is half as strong, so that it can be read.
    """
    strength = 1.0 if labels is None else 0.5
    for row, values in enumerate(shares):
        column = 0
        # Neighbors that are filled alike are one rectangle, which keeps the file small. Processors
        # round the last digits of a share differently.
        rounded = [round(value, 3) for value in values]
        for share, group in itertools.groupby(rounded):
            width = len(list(group))
            if share > 0:
                corner = (column - 0.5, row - 0.5)
                opacity = strength * share
                color = _LINE_COLORS[0]
                fill = Rectangle(corner, width, 1, facecolor=color, alpha=opacity, linewidth=0)
                axes.add_patch(fill)
            column += width
    row_edges = [row - 0.5 for row in range(len(shares) + 1)]
    column_edges = [column - 0.5 for column in range(len(shares[0]) + 1)]
    axes.hlines(row_edges, column_edges[0], column_edges[-1], color=_GRID, linewidth=0.6)
    axes.vlines(column_edges, row_edges[0], row_edges[-1], color=_GRID, linewidth=0.6)
    if labels is not None:
        for row, texts in enumerate(labels):
            for column, text in enumerate(texts):
                axes.text(column, row, text, ha="center", va="center")
    axes.set_xlim(-0.5, len(shares[0]) - 0.5)
    axes.set_ylim(len(shares) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _svg(
    name: str, title: str, size_inches: tuple[float, float], draw: Callable[[Figure], None]
) -> str:
    """Return what `draw` draws as an SVG with a title, in the colors of the reader's theme."""
    # Ids of the file's parts come from this salt, so that the same values give the same bytes.
    salt = hashlib.sha256(name.encode()).hexdigest()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}):
        figure = Figure(figsize=size_inches)
        draw(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    text = file.getvalue()
    svg_without_prolog = text[text.index("<svg") :]
    themed = re.sub("<[^>]*>", lambda tag: _themed(tag[0]), svg_without_prolog)
    opening, end, body = themed.partition(">")
    return f"{opening}{end}\n <style>{_theme_css()}</style>{body}"


def _themed(tag: str) -> str:
    """Return a tag with its coordinates cut to two decimals and its colors as CSS variables."""
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    for color in _DARK_THEME:
        tag = tag.replace(color, f"var(--c{color[1:]})")
    return tag


def _theme_css() -> str:
    """Return the style sheet that gives the colors in both themes."""
    light = ";".join(f"--c{color[1:]}:{color}" for color in _DARK_THEME)
    dark = ";".join(f"--c{color[1:]}:{other}" for color, other in _DARK_THEME.items())
    return f"svg{{{light}}}@media (prefers-color-scheme: dark){{svg{{{dark}}}}}"


def main() -> None:
    """Write all figures to docs/images/."""
    for name, draw in FIGURES.items():
        (IMAGES / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
