"""The section of attention maps: of sentences, systems, layers and heads to choose."""

from itertools import accumulate
from typing import Any

import pandas as pd
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from bleuprint.config.paths import Run
from bleuprint.decoding.attention_maps import ATTENTION_FILE, SentenceAttention, read_attention
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.runtime.wording import counted
from bleuprint.serving.attention_html import printable

# Bytes that all maps together may take of the page: the page has 5 MB in all.
BUDGET = 800_000


def attention(context: ReportContext) -> Section | None:
    """Show the maps of the systems with `decode.attention`: of the first seed, as many as fit.

    The baseline's are first. Returns None if no system has maps.
    """
    maps = list[Markup]()
    places = list[str]()
    for row in sorted(context.rows, key=lambda row: pd.notna(row.difference)):
        if not _has_attention(context, row):
            continue
        run = Run(row.system, row.corpus, context.settings.seeds[0])
        path = context.root / run.results_folder / "hypotheses" / ATTENTION_FILE
        for sentence in read_attention(path, row.test):
            place = f"{row.corpus}, test set {row.test}, line {sentence.line}"
            places.append(place)
            maps.append(_json(row, sentence, place))
    if not maps:
        return None
    sizes = accumulate(len(each.encode()) for each in maps)
    kept = max(1, sum(size <= BUDGET for size in sizes))
    sentences = counted(len({*places[:kept]}), "sentence")
    data = {"found": len(maps), "kept": maps[:kept], "places": sentences}
    return Section("attention", "Attention", data)


def _has_attention(context: ReportContext, row: Any) -> bool:
    if not row.is_trained:
        return False
    return bool(context.settings.system_on(row.system, row.corpus).decode.attention)


def _json(row: Any, sentence: SentenceAttention, place: str) -> Markup:
    """What attention.js draws maps from."""
    maps = {kind: of.as_json() for kind, of in sentence.maps.items()}
    for of in maps.values():
        of |= {side: [*map(printable, of[side])] for side in ("rows", "columns")}
    entry = {"sentence": place, "system": row.system, "maps": maps}
    languages = row.source, row.target
    return htmlsafe_json_dumps({**entry, "languages": languages}, ensure_ascii=False)
