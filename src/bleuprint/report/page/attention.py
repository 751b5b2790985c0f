"""The page's maps of attention: one of each sentence, and all layers and heads to choose."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bleuprint.config.paths import Cell
from bleuprint.decoding.attention import ATTENTION, Attended, read_attention
from bleuprint.report.page.html import details, escape, paragraph
from bleuprint.report.page.material import Material, Section
from bleuprint.report.system_results import Standing
from bleuprint.serving.attention_html import last_layer, shades, shown

# What the maps may take of the page together, in bytes: the page has 5 MB in all.
BUDGET = 800_000

_EXPLAINED = (
    "For each unit (a word, or a part of one) on the left, a row of the map says how much the "
    "model took from each unit above, in per cent; the darker, the more. "
    "<code>&lt;/s&gt;</code> is an end, <code>&lt;s&gt;</code> a begin. The sentences are the "
    "first of their test set that are neither short nor long. Attention shows where a model "
    "looked, and only hints at why it wrote what it did."
)


@dataclass(frozen=True)
class _Map:
    """A sentence as a system read and translated it."""

    standing: Standing
    languages: tuple[str, str]
    sentence: Attended

    @property
    def place(self) -> str:
        return f"{self.standing.corpus}, test set {self.standing.test}, line {self.sentence.line}"

    def as_json(self) -> str:
        maps = {kind: _shown(one.as_json()) for kind, one in self.sentence.maps.items()}
        entry = {
            "sentence": self.place,
            "system": self.standing.system,
            "languages": self.languages,
            "maps": maps,
        }
        # no end of the script that holds it
        return json.dumps(entry, ensure_ascii=False).replace("<", "\\u003c")


def attention(material: Material) -> Section | None:
    """Maps of the first seed; None where no sentence has one."""
    found = [one for standing in material.standings for one in _maps(material, standing)]
    if not found:
        return None
    kept: list[_Map] = []
    texts: list[str] = []
    size = 0
    for one in sorted(found, key=_Ranks(material.standings).rank):
        text = one.as_json()
        size += len(text.encode())
        if kept and size > BUDGET:
            break
        kept.append(one)
        texts.append(text)
    # the first one of a sentence is the baseline's
    first = {one.place: one for one in reversed(kept)}
    static = "".join(details(escape(one.place), _static(one)) for one in reversed(first.values()))
    body = (
        paragraph(_EXPLAINED, "hint")
        + (paragraph(_left_out(kept, found), "hint") if len(kept) < len(found) else "")
        + f"<style>{shades()}</style>\n"
        + '<div id="maps" hidden></div>\n<h3>Decoder to source, last layer</h3>\n'
        + static
        + f'<script type="application/json" id="maps-data">[{",".join(texts)}]</script>\n'
    )
    return Section("attention", "Attention", body, ("attention.css", "attention.js"))


class _Ranks:
    """The order in which maps are kept: of every sentence the baseline's, the best's, the rest."""

    def __init__(self, standings: Sequence[Standing]) -> None:
        best: dict[tuple[str, str], Standing] = {}
        for one in standings:
            before = best.setdefault((one.corpus, one.test), one)
            if one.bleu.mean > before.bleu.mean:
                best[one.corpus, one.test] = one
        self._best = best

    def rank(self, one: _Map) -> int:
        if one.standing.difference is None:
            return 0
        best = self._best[one.standing.corpus, one.standing.test]
        return 1 if one.standing is best else 2


def _maps(material: Material, standing: Standing) -> Iterator[_Map]:
    corpus = material.settings.corpus(standing.corpus)
    cell = Cell(standing.system, standing.corpus, material.settings.seeds[0])
    (record,) = (one for one in standing.records if one.cell == cell)
    path = material.root / cell.results / ATTENTION
    for sentence in read_attention(path, standing.test, record.data.hypotheses):
        yield _Map(standing, (corpus.source, corpus.target), sentence)


def _left_out(kept: Sequence[_Map], found: Sequence[_Map]) -> str:
    return (
        f"The page has room for {len(kept)} of {len(found)} maps: the baseline's first, "
        "then the best system's."
    )


def _static(one: _Map) -> str:
    system = escape(one.standing.system)
    says = f"Rows: what {system} wrote. Columns: the source."
    return paragraph(says, "hint") + "".join(last_layer(one.sentence.maps["cross"], one.languages))


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    sides = {side: list(map(shown, entry[side])) for side in ("rows", "columns")}
    return {**entry, **sides}
