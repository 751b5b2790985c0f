"""The section of attention maps, which the reader chooses by sentence, system, layer and head."""

import pandas as pd
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from bleuprint.config.paths import Run
from bleuprint.decoding.attention_maps import ATTENTION_FILE, SentenceAttention, read_attention
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.section import Section
from bleuprint.report.score_frame import ScoreRow
from bleuprint.runtime.wording import counted
from bleuprint.serving.attention_html import printable

# The bytes that all maps together may take of the HTML report, which may have 5 MB.
BUDGET = 800_000


def attention_section(report: ReportData) -> Section | None:
    """Return the section of attention maps; None if no system stores any.

    Shown are the maps of the first seed of systems with `decode.attention`, as many as fit, those
    of the baseline first.

    Args:
        report: The experiment and its results.
    """
    maps = []
    sentence_names = []
    first_seed = report.settings.seeds[0]
    for row in _baselines_first(report.bleu_rows):
        if not _stores_attention(report, row):
            continue
        run = Run(row.system, row.corpus, first_seed)
        path = report.root / run.results_folder / "hypotheses" / ATTENTION_FILE
        for sentence in read_attention(path, row.test):
            name = f"{row.corpus}, test set {row.test}, line {sentence.line}"
            sentence_names.append(name)
            maps.append(_map_json(row, sentence, name))
    if not maps:
        return None
    shown_count = _fitting_count(maps)
    sentence_count = len(set(sentence_names[:shown_count]))
    data = {
        "map_count": len(maps),
        "maps": maps[:shown_count],
        "sentences": counted(sentence_count, "sentence"),
    }
    return Section("attention", "Attention", data)


def _baselines_first(rows: list[ScoreRow]) -> list[ScoreRow]:
    """Return the rows sorted so that those without a difference, the baselines, come first."""
    return sorted(rows, key=lambda row: pd.notna(row.difference))


def _stores_attention(report: ReportData, row: ScoreRow) -> bool:
    """Return whether a system is trained here with the setting `decode.attention`."""
    if not row.is_trained:
        return False
    return bool(report.settings.system_on(row.system, row.corpus).decode.attention)


def _fitting_count(maps: list[Markup]) -> int:
    """Return how many of the maps, at least one, fit into `BUDGET`."""
    size = 0
    count = 0
    for text in maps:
        size += len(text.encode())
        if size > BUDGET:
            break
        count += 1
    return max(count, 1)


def _map_json(row: ScoreRow, sentence: SentenceAttention, name: str) -> Markup:
    """Return the JSON from which attention.js draws the maps of a sentence.

    Args:
        row: The system.
        sentence: The attention maps, by kind.
        name: What the reader chooses the sentence by.
    """
    maps = {}
    for kind, attention_map in sentence.maps.items():
        content = attention_map.as_json()
        content["rows"] = list(map(printable, content["rows"]))
        content["columns"] = list(map(printable, content["columns"]))
        maps[kind] = content
    entry = {
        "sentence": name,
        "system": row.system,
        "maps": maps,
        "languages": [row.source, row.target],
    }
    return htmlsafe_json_dumps(entry, ensure_ascii=False)
