"""The section of attention maps: one of each sentence, and all layers and heads to choose."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from bleuprint.config.paths import Cell
from bleuprint.decoding.attention import ATTENTION, SentenceAttention, read_attention
from bleuprint.report.page.material import Material
from bleuprint.report.page.section import Section
from bleuprint.report.system_results import Standing
from bleuprint.serving.attention_html import printable

# Bytes that all maps together may take of the page: the page has 5 MB in all.
BUDGET = 800_000


@dataclass(frozen=True)
class _Map:
    """A sentence as a system read and translated it."""

    standing: Standing
    languages: tuple[str, str]
    sentence: SentenceAttention

    @property
    def place(self) -> str:
        return f"{self.standing.corpus}, test set {self.standing.test}, line {self.sentence.line}"

    @cached_property
    def json(self) -> Markup:
        """What attention.js draws maps from."""
        entry = {
            "sentence": self.place,
            "system": self.standing.system,
            "languages": self.languages,
            "maps": {kind: _printable(map.as_json()) for kind, map in self.sentence.maps.items()},
        }
        return htmlsafe_json_dumps(entry, ensure_ascii=False)


def attention(material: Material) -> Section | None:
    """Maps of the first seed; None if no sentence has one."""
    maps = [each for standing in material.standings for each in _maps(material, standing)]
    if not maps:
        return None
    kept = list(_kept(_ranked(maps)))
    # the first one of a sentence is the baseline's
    first = {each.place: each for each in reversed(kept)}
    data = {"found": len(maps), "kept": kept, "first": list(reversed(first.values()))}
    return Section("attention", "Attention", data)


def _ranked(maps: Sequence[_Map]) -> list[_Map]:
    """Of every sentence the baseline's map, then the best system's, then the others."""
    best: dict[tuple[str, str], Standing] = {}
    for standing in (each.standing for each in maps):
        before = best.setdefault((standing.corpus, standing.test), standing)
        if standing.bleu.mean > before.bleu.mean:
            best[standing.corpus, standing.test] = standing

    def rank(each: _Map) -> int:
        if each.standing.difference is None:
            return 0
        return 1 if each.standing is best[each.standing.corpus, each.standing.test] else 2

    return sorted(maps, key=rank)


def _kept(ranked: Sequence[_Map]) -> Iterator[_Map]:
    """The first of them that there is room for, one at least."""
    size = 0
    for number, each in enumerate(ranked):
        size += len(each.json.encode())
        if number and size > BUDGET:
            return
        yield each


def _maps(material: Material, standing: Standing) -> Iterator[_Map]:
    corpus = material.settings.corpus(standing.corpus)
    cell = Cell(standing.system, standing.corpus, material.settings.seeds[0])
    (record,) = (each for each in standing.records if each.cell == cell)
    path = material.root / cell.results / ATTENTION
    for sentence in read_attention(path, standing.test, record.data.hypotheses):
        yield _Map(standing, (corpus.source, corpus.target), sentence)


def _printable(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, **{side: list(map(printable, entry[side])) for side in ("rows", "columns")}}
