"""The section of scores: systems on test sets, with intervals, tests, and training cost."""

import base64
from collections.abc import Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from bleuprint.report import main_table
from bleuprint.report.cost_columns import COUNTED, MEASURED
from bleuprint.report.frame import csv_text
from bleuprint.report.grid import Grid, Number, grid
from bleuprint.report.page.chart import chart, line_styles
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.section import Section
from bleuprint.report.system_results import Score, SystemResult
from bleuprint.runtime.html import counted

_COSTS = {
    "Parameters": COUNTED["Parameters"],
    **main_table.COSTS,
    "Time": MEASURED["Time"],
    "Target tokens": COUNTED["Target tokens"],
}
_MARKERS = "osD^vP"


def scores(context: ReportContext) -> Section:
    settings, records = context.settings, context.records
    texts = {
        "table.csv": csv_text(records, settings.published),
        "table.tex": main_table.tex(settings, records),
    }
    data = {
        "corpora": [
            _corpus(context, name, f"scores-{number}")
            for number, name in enumerate(settings.corpora)
        ],
        "several_seeds": len(settings.seeds) > 1,
        "notes": main_table.notes(records, settings.published),
        "files": {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()},
    }
    return Section("scores", "Scores", data)


def _corpus(context: ReportContext, name: str, chart_name: str) -> dict[str, Any]:
    records = context.records[context.records.corpus == name]
    results = [result for result in context.results if result.corpus == name]
    lines = dict(zip(records.test, records.lines, strict=True))
    return {
        "name": name,
        "tests": [f"{test} ({counted(count, 'sentence')})" for test, count in lines.items()],
        "grid": main_table.scores(records, ["bleu", "chrf2"], _COSTS, context.settings.published),
        "by_seed": _by_seed(records),
        "chart": _chart(chart_name, f"BLEU of the systems on {name}", results),
    }


def _by_seed(records: pd.DataFrame) -> Grid:
    rows = (
        (
            *(record.system, record.test, Number(record.seed, record.seed)),
            Number(Score(record.bleu, None, record.bleu_low, record.bleu_high), record.bleu),
            Number(Score(record.chrf2, None, record.chrf2_low, record.chrf2_high), record.chrf2),
        )
        for record in records.itertuples()
    )
    return grid(("System", "Test set"), ("Seed", "BLEU", "chrF2"), rows)


def _chart(name: str, title: str, results: Sequence[SystemResult]) -> Markup:
    """BLEU as a dot and its interval, a row per system; the baseline's as a dashed line."""
    systems = list(dict.fromkeys(result.system for result in results))
    tests = list(dict.fromkeys(result.test for result in results))
    styles = line_styles(tests)
    height = 0.9 + 0.26 * len(systems) * len(tests) ** 0.5
    with chart(name, title, 5.0, height) as drawing:
        for place, test in enumerate(tests):
            shift = (place - (len(tests) - 1) / 2) * 0.7 / len(tests)
            bleu = [result.bleu for result in results if result.test == test]
            color, marker = styles[test]["color"], _MARKERS[place % len(_MARKERS)]
            drawing.axes.axvline(bleu[0].mean, color=color, linestyle="--", linewidth=0.8)
            drawing.axes.errorbar(
                *([score.mean for score in bleu], [row + shift for row in range(len(systems))]),
                xerr=list(zip(*map(_error_bar, bleu), strict=True)),
                **{"fmt": marker, "color": color, "capsize": 3, "markersize": 5, "label": test},
            )
        drawing.axes.set_yticks(range(len(systems)), systems)
        drawing.axes.set_ylim(len(systems) - 0.5, -0.5)
        drawing.axes.set_xlabel("BLEU")
        if len(tests) > 1:
            drawing.axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return drawing.svg


def _error_bar(score: Score) -> tuple[float, float]:
    """How far the interval extends below and above the score."""
    if score.deviation is not None:
        return score.deviation, score.deviation
    assert score.low is not None and score.high is not None
    return max(0.0, score.mean - score.low), max(0.0, score.high - score.mean)
