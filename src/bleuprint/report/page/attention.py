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
from bleuprint.serving.attention_html import visible_token

# The bytes that all maps together may take of the HTML report, which may have 5 MB.
MAX_BYTES = 800_000


def attention_section(report: ReportData) -> Section | None:
    """Return the report's section of attention maps; None if no system stores attention.

    A system stores its attention when it translates if it has the setting `decode.attention`. Each
    entry of the section contains the maps of one sentence and one system. To keep the page small,
    only the first seed is shown, and entries are dropped once they exceed `MAX_BYTES`. Entries of
    the baseline come first, so that they are kept.

    Args:
        report: The settings and the results of the experiment.
    """
    entries = []
    sentence_labels = []
    first_seed = report.settings.seeds[0]
    for row in _baselines_first(report.bleu_rows):
        if not _stores_attention(report, row):
            continue
        run = Run(row.system, row.corpus, first_seed)
        path = report.root / run.results_folder / "hypotheses" / ATTENTION_FILE
        for sentence in read_attention(path, row.test):
            label = f"{row.corpus}, test set {row.test}, line {sentence.line}"
            sentence_labels.append(label)
            entries.append(_entry_json(row, sentence, label))
    if not entries:
        return None
    shown_count = _count_that_fit(entries)
    # Several systems translate the same sentence, so it may occur in several entries.
    shown_sentences = set(sentence_labels[:shown_count])
    data = {
        "map_count": len(entries),
        "maps": entries[:shown_count],
        "sentences": counted(len(shown_sentences), "sentence"),
    }
    return Section("attention", "Attention", data)


def _baselines_first(rows: list[ScoreRow]) -> list[ScoreRow]:
    """Return the rows with the baseline of each test set before all other systems.

    Other systems have a difference from their baseline; a baseline has none.
    """
    # The keys are False for baselines and True for other systems, and False is sorted first.
    return sorted(rows, key=lambda row: pd.notna(row.difference))


def _stores_attention(report: ReportData, row: ScoreRow) -> bool:
    """Return whether a system stores its attention when it translates.

    Args:
        report: The settings and the results of the experiment.
        row: Any score of the system.
    """
    if not row.is_trained:  # An external system: its translations come from elsewhere.
        return False
    system_settings = report.settings.system_on(row.system, row.corpus)
    return bool(system_settings.decode.attention)


def _count_that_fit(entries: list[Markup]) -> int:
    """Return how many entries, from the first on, have at most `MAX_BYTES` bytes together.

    The first entry counts even if it is longer, so that the section is never empty.
    """
    total_bytes = 0
    count = 0
    for entry in entries:
        total_bytes += len(entry.encode())
        if total_bytes > MAX_BYTES:
            break
        count += 1
    return max(count, 1)


def _entry_json(row: ScoreRow, sentence: SentenceAttention, label: str) -> Markup:
    """Return the attention maps of one sentence by one system as JSON, for the HTML report.

    The page's script attention.js reads the JSON and draws the maps.

    Args:
        row: The system and its languages.
        sentence: The attention maps of the sentence, by kind, such as `cross`.
        label: The entry of the menu in which the reader chooses the sentence, such as
            `wmt14, test set newstest2014, line 7`.
    """
    maps = {}
    for kind, attention_map in sentence.maps.items():
        map_json = attention_map.as_json()
        # Tokens label the rows and columns of a map. Invisible characters in them are escaped.
        row_tokens = list(map(visible_token, map_json["rows"]))
        column_tokens = list(map(visible_token, map_json["columns"]))
        maps[kind] = {**map_json, "rows": row_tokens, "columns": column_tokens}
    entry = {
        "sentence": label,
        "system": row.system,
        "maps": maps,
        "languages": [row.source, row.target],
    }
    return htmlsafe_json_dumps(entry, ensure_ascii=False)
