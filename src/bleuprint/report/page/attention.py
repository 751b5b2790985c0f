"""The section of attention maps: one of each sentence, and all layers and heads to choose."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

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
        maps = {kind: of.as_json() for kind, of in self.sentence.maps.items()}
        for of in maps.values():
            of |= {side: [*map(printable, of[side])] for side in ("rows", "columns")}
        entry = {"sentence": self.place, "system": self.result.system, "maps": maps}
        return htmlsafe_json_dumps({**entry, "languages": self.languages}, ensure_ascii=False)


def attention(context: ReportContext) -> Section | None:
    """Maps of the first seed, as many as fit, the baseline's first; None if there are none."""
    ranked = sorted(_maps(context), key=lambda each: each.result.difference is not None)
    if not ranked:
        return None
    kept, room = list[_Map](), BUDGET
    for each in ranked:
        room -= len(each.json.encode())
        if kept and room < 0:
            break
        kept.append(each)
    first = {each.place: each for each in reversed(kept)}
    data = {"found": len(ranked), "kept": kept, "first": list(reversed(first.values()))}
    return Section("attention", "Attention", data)


def _maps(context: ReportContext) -> Iterator[_Map]:
    for result in (result for result in context.results if not result.outside):
        corpus = context.settings.corpus(result.corpus).of_test(result.test)
        cell = Cell(result.system, result.corpus, result.first.seed)
        for sentence in read_attention(context.root / cell.results / ATTENTION, result.test):
            yield _Map(result, corpus.languages, sentence)
