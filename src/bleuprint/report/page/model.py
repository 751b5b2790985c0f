"""The section of the model: the pictures that courses draw of it, computed by the code that trains,
and the parameters of each system by part.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from markupsafe import Markup
from torch.overrides import TorchFunctionMode

from bleuprint.config.experiment import Settings
from bleuprint.config.optimization import LrSchedule, Noam
from bleuprint.config.paths import STATISTICS, folder
from bleuprint.config.system import Model, System
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.dataset.subwords.vocabulary import PAD, SPECIALS
from bleuprint.model.linear import Linear
from bleuprint.model.positions import sinusoidal_positions
from bleuprint.model.transformer import Transformer
from bleuprint.report.grid import NONE, Grid, Number, grid
from bleuprint.report.page.chart import chart, heat_map, legend, line_id, line_styles
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.training.loss import SmoothingTarget, linear_cross_entropy
from bleuprint.training.lr_schedule import learning_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What The Annotated Transformer draws.
_MASK, _POSITIONS, _SINUSOIDS, _DIMENSIONS = 20, 100, 20, range(4, 8)
_RATES = ((512, 4000), (512, 8000), (256, 4000))
_UPDATES = 20_000
_PENALTY = range(1, 101)
_VOCABULARY = 5

# The part of the model by the first words of a parameter's name, without the number of its layer.
_PARTS = {
    "source_embedding": "source embedding",
    "target_embedding": "target embedding",
    "source_positions": "positions",
    "target_positions": "positions",
    "projection": "output projection",
    "encoder.self_attention": "encoder self-attention",
    "encoder.feed_forward": "encoder feed-forward",
    "decoder.self_attention": "decoder self-attention",
    "decoder.cross_attention": "decoder cross-attention",
    "decoder.feed_forward": "decoder feed-forward",
}
_NORMS = "norms"


def model(context: ReportContext) -> Section:
    systems = _systems(context.settings)
    updates = context.records.groupby("system").updates.max()
    data = {
        "legend": legend(list(systems)),
        "charts": list(_charts(systems, updates)),
        "smoothed": any(system.train.label_smoothing for system in systems.values()),
        "parameters": _parameters(context),
    }
    return Section("model", "The model", data)


def _systems(settings: Settings) -> dict[str, System]:
    """Each system with its settings on the first corpus that it is trained on."""
    first: dict[str, System] = {}
    for corpus in settings.corpora:
        first = settings.systems_on(corpus) | first
    return {name: first[name] for name in settings.systems if name in first}


def _charts(
    systems: Mapping[str, System], updates: Mapping[str, int]
) -> Iterator[tuple[Markup, str]]:
    """The charts with their captions; `updates` of each system's longest training."""
    models = [system.model for system in systems.values()]
    title = "Subsequent mask: what each target position sees of the target, by attention weights"
    yield _mask(models[0], title), title
    if any(each.positional_encoding == "sinusoidal" for each in models):
        title = f"Sinusoids, d_model {_SINUSOIDS}, dimensions 4 to 7"
        values = sinusoidal_positions(0, _POSITIONS, _SINUSOIDS, torch.device("cpu"))
        lines = {f"dimension {i}": list(enumerate(values[:, i].tolist())) for i in _DIMENSIONS}
        yield _lines("model-sinusoids", title, "Position", lines, list(lines), labeled=True), title
    trained = {name: system.train for name, system in systems.items()}
    smoothed = {
        name: (train.label_smoothing, train.label_smoothing_target)
        for name, train in trained.items()
        if train.label_smoothing
    }
    for place, way in enumerate(dict.fromkeys(smoothed.values())):
        names = ", ".join(name for name in smoothed if smoothed[name] == way)
        title = f"Target distribution of {names}, drawn for a vocabulary of {_VOCABULARY} tokens"
        yield _targets(f"model-targets-{place}", title, *way), title
    if smoothed:
        title = f"Loss (nats) of the label at x : 1 against each other token of {_VOCABULARY}"
        lines = {n: [(x, penalty(x, *way)) for x in _PENALTY] for n, way in smoothed.items()}
        yield _lines("model-penalty", title, "x", lines, list(systems)), title
    title = "Learning rate of the systems"
    rates = {
        name: _rates(train.lr_schedule, systems[name].model.d_model, int(updates[name]))
        for name, train in trained.items()
        if name in updates
    }
    yield _lines("model-rates", title, "Update", rates, list(systems)), title
    title = "The paper's learning rate, by d_model : warmup"
    paper = {
        f"{d_model}:{warmup}": _rates(LrSchedule(noam=Noam(1.0, warmup)), d_model, _UPDATES)
        for d_model, warmup in _RATES
    }
    yield _lines("model-paper", title, "Update", paper, list(paper), labeled=True), title


def subsequent_mask(settings: Model) -> torch.Tensor:
    """Whether a position (row) attends to another (column) in the decoder of these settings."""
    small = replace(settings, encoder_layers=1, decoder_layers=1, max_positions=_MASK)
    with torch.random.fork_rng(devices=[]):
        decoder = Transformer(small, _VOCABULARY, _VOCABULARY).eval()
    ids = torch.full((1, _MASK), len(SPECIALS))
    weights = decoder.attention_weights(ids, ids).decoder[0]
    return weights[0].amax(0) > 0


def target_distribution(smoothing: float, target: SmoothingTarget) -> torch.Tensor:
    """The probabilities (label, token) of the target that the loss compares a prediction with.

    A row for each label: every token but PAD.
    """
    labels = torch.arange(PAD + 1, _VOCABULARY)
    logits = torch.zeros(len(labels), _VOCABULARY, requires_grad=True)
    (gradient,) = torch.autograd.grad(_cross_entropy(logits, labels, smoothing, target), logits)
    # the gradient by the logits is the softmax less the target
    return logits.detach().softmax(-1) - gradient


def penalty(x: float, smoothing: float, target: SmoothingTarget) -> float:
    """The cross-entropy (nats) if the label has x times the probability of each other token.

    PAD is such a token in the target `uniform`, and has no probability in `non_target`. The
    Annotated Transformer's figure subtracts a constant, the entropy of the target.
    """
    logits = torch.zeros(1, _VOCABULARY)
    label = torch.tensor([_VOCABULARY - 1])
    logits[0, label] = torch.tensor(x).log()
    if target == "non_target":
        logits[0, PAD] = -30.0
    return _cross_entropy(logits, label, smoothing, target).item()


def _cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, smoothing: float, target: SmoothingTarget
) -> torch.Tensor:
    """The loss that trainings compute, of given logits."""
    identity = Linear(_VOCABULARY, _VOCABULARY, bias=False)
    with torch.no_grad():
        identity.weight.copy_(torch.eye(_VOCABULARY))
    return linear_cross_entropy(logits, identity, labels, smoothing, target)


def _mask(settings: Model, title: str) -> Markup:
    seen = subsequent_mask(settings)

    def draw(axes: "Axes") -> None:
        axes.grid(visible=False)
        axes.pcolormesh(seen.float().numpy(), cmap=heat_map(), vmin=0, vmax=1)
        axes.invert_yaxis()
        axes.locator_params(nbins=4)
        axes.set_aspect("equal")
        axes.set_xlabel("Position seen")
        axes.set_ylabel("Position")

    return chart("model-mask", title, draw)


def _targets(name: str, title: str, smoothing: float, target: SmoothingTarget) -> Markup:
    distribution = target_distribution(smoothing, target)

    def draw(axes: "Axes") -> None:
        axes.grid(visible=False)
        # cells are centered on the numbers of tokens and labels
        tokens, labels = range(_VOCABULARY), range(PAD + 1, _VOCABULARY)
        axes.pcolormesh(tokens, labels, distribution.numpy(), cmap=heat_map(), vmin=0, vmax=1)
        for (row, column), share in np.ndenumerate(distribution.numpy()):
            axes.text(column, labels[row], f"{share:.3g}", ha="center", va="center")
        axes.invert_yaxis()
        axes.set_yticks(labels)
        axes.set_xlabel(f"Token (padding: {PAD})")
        axes.set_ylabel("Label")

    return chart(name, title, draw)


def _rates(schedule: LrSchedule, d_model: int, end: int) -> list[tuple[float, float]]:
    """The learning rate at about 400 updates up to `end`."""
    updates = range(1, end + 1, max(1, end // 400))
    return [(update, learning_rate(schedule, update, d_model)) for update in updates]


def _lines(
    name: str,
    title: str,
    axis: str,
    lines: Mapping[str, Sequence[tuple[float, float]]],
    order: list[str],
    labeled: bool = False,
) -> Markup:
    """`order` gives the styles. Lines are labeled in the chart, or by the legend of the section."""
    styles = line_styles(order)

    def draw(axes: "Axes") -> None:
        for key, points in lines.items():
            gid = None if labeled else line_id(order.index(key))
            axes.plot(*zip(*points, strict=True), label=key, gid=gid, **styles[key])
        axes.set_xlabel(axis)
        axes.locator_params(axis="x", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        if labeled:
            axes.legend(frameon=True)

    return chart(name, title, draw)


class _NoDraws(TorchFunctionMode):
    """Leaves weights undrawn: for normal_ on the device meta, torch loads its compiler (2 s)."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__module__", "") == "torch.nn.init":
            return kwargs.get("tensor", *args[:1])
        return function(*args, **kwargs)


def parameters_by_part(settings: Model, source: int, target: int) -> Counter[str]:
    """The parameters of each part, for vocabularies of these sizes in tokens; shared ones once."""
    with torch.device("meta"), _NoDraws():
        transformer = Transformer(settings, source, target)
    counts = Counter[str]()
    for name, parameter in transformer.named_parameters():
        stack, *words = [word for word in name.split(".") if not word.isdigit()]
        by_layer = f"{stack}.{words[0]}" if stack in ("encoder", "decoder") else stack
        counts[_PARTS.get(by_layer, _NORMS)] += parameter.numel()
    return counts


def _parameters(context: ReportContext) -> Grid:
    """A row for each system on each corpus, a column for each part that any of them has."""
    counted: dict[tuple[str, str], Counter[str]] = {}
    for corpus, entry in context.settings.corpora.items():
        path = folder(corpus, "statistics", context.root) / STATISTICS
        sizes = CorpusStatistics.read(path).vocabularies
        source, target = (
            sizes[language].size + len(SPECIALS) for language in (entry.source, entry.target)
        )
        for name, system in context.settings.systems_on(corpus).items():
            counted[name, corpus] = parameters_by_part(system.model, source, target)
    together = sum(counted.values(), Counter[str]())
    parts = [part for part in dict.fromkeys((*_PARTS.values(), _NORMS)) if together[part]]
    rows = [
        (*place, *(_count(counts[part]) for part in parts), _count(counts.total()))
        for place, counts in counted.items()
    ]
    return grid(("System", "Corpus"), (*parts, "all"), rows)


def _count(number: int) -> Number:
    return Number(f"{number:,}" if number else NONE, number)
