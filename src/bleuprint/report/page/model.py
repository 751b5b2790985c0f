"""The section of the model: the parameters of each system by part."""

from collections import Counter
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from bleuprint.config.paths import STATISTICS, folder
from bleuprint.config.system import Model
from bleuprint.dataset.statistics import CorpusStatistics
from bleuprint.dataset.subwords.vocabulary import SPECIALS
from bleuprint.model.transformer import Transformer
from bleuprint.report.grid import NONE, Grid, Number, grid
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section

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
    return Section("model", "The model", {"parameters": _parameters(context)})


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
