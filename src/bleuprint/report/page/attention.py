"""The section of attention maps: one of each sentence, and all layers and heads to choose."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from bleuprint.config.paths import Cell
from bleuprint.decoding.attention import ATTENTION, SentenceAttention, read_attention
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.report.system_results import SystemResult
from bleuprint.serving.attention_html import printable

# Bytes that all maps together may take of the page: the page has 5 MB in all.
BUDGET = 800_000


@dataclass(frozen=True)
class _Map:
    """A sentence as a system read and translated it."""

    result: SystemResult
    languages: tuple[str, str]
    sentence: SentenceAttention

    @property
    def place(self) -> str:
        return f"{self.result.corpus}, test set {self.result.test}, line {self.sentence.line}"

    @cached_property
    def json(self) -> Markup:
        """What attention.js draws maps from."""
        entry = {
            "sentence": self.place,
            "system": self.result.system,
            "languages": self.languages,
            "maps": {kind: _printable(map.as_json()) for kind, map in self.sentence.maps.items()},
        }
        return htmlsafe_json_dumps(entry, ensure_ascii=False)


def attention(context: ReportContext) -> Section | None:
    """Maps of the first seed; None if no sentence has one."""
    results = (result for result in context.results if not result.outside)
    maps = [each for result in results for each in _maps(context, result)]
    if not maps:
        return None
    kept = list(_kept(sorted(maps, key=lambda each: each.result.difference is not None)))
    # the first one of a sentence is the baseline's
    first = {each.place: each for each in reversed(kept)}
    data = {"found": len(maps), "kept": kept, "first": list(reversed(first.values()))}
    return Section("attention", "Attention", data)


def _kept(ranked: Iterable[_Map]) -> Iterator[_Map]:
    """The first maps whose JSON fits into the budget; at least one."""
    size = 0
    for number, each in enumerate(ranked):
        size += len(each.json.encode())
        if number and size > BUDGET:
            return
        yield each


def _maps(context: ReportContext, result: SystemResult) -> Iterator[_Map]:
    corpus = context.settings.corpus(result.corpus)
    cell = Cell(result.system, result.corpus, result.first.seed)
    path = context.root / cell.results / ATTENTION
    for sentence in read_attention(path, result.test):
        yield _Map(result, (corpus.source, corpus.target), sentence)


def _printable(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, **{side: list(map(printable, entry[side])) for side in ("rows", "columns")}}
