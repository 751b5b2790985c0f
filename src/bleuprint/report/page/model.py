"""The parameters of each system's model by part."""

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
        first, *words = [word.replace("_", " ") for word in name.split(".") if not word.isdigit()]
        if first in ("encoder", "decoder"):
            first += f" {words[0].replace(' ', '-')}"
        counts["norms" if "norm" in name else first] += parameter.numel()
    return counts


def parameters(context: ReportContext) -> Grid:
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
    parts = dict.fromkeys(part for counts in counted.values() for part in counts)
    rows = [
        (*place, *(_count(counts[part]) for part in parts), _count(counts.total()))
        for place, counts in counted.items()
    ]
    return grid(("System", "Corpus"), (*parts, "all"), rows)


def _count(number: int) -> Number:
    return Number(f"{number:,}" if number else NONE, number)
