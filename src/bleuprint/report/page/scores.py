"""The section of scores: systems on test sets, with intervals, tests, and training cost."""

import base64
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from bleuprint.report import cost_columns
from bleuprint.report.frame import csv_text
from bleuprint.report.main_table import tex
from bleuprint.report.page.chart import chart, line_styles
from bleuprint.report.page.material import Material
from bleuprint.report.page.section import Section
from bleuprint.report.published import literature
from bleuprint.report.published.literature import Literature
from bleuprint.report.system_results import SIGNIFICANT, Score, Standing
from bleuprint.tracking.timings import Training

_COSTS = ("Parameters", "FLOPs, counted", "FLOPs, by time", "Time", "Target tokens")
_BY_TIME = _COSTS.index("FLOPs, by time")
_MARKERS = "osD^vP"


@dataclass(frozen=True)
class _Row:
    """A system: its results by test set, and each of _COSTS as a sort key with its text.

    `mark` says whether it is the baseline, or differs significantly from it nowhere ("weak").
    """

    system: str
    mark: str
    by_test: dict[str, Standing]
    costs: list[tuple[float | None, str]]


@dataclass(frozen=True)
class _Table:
    """A corpus: its test sets with their number of lines, its systems, published numbers."""

    corpus: str
    tests: dict[str, int]
    rows: list[_Row]
    published: list[Literature]
    chart: Markup


def scores(material: Material) -> Section:
    seeds = material.settings.seeds
    standings = material.standings
    files = {
        "table.csv": csv_text(material.records, material.timings, material.settings.published),
        "table.tex": tex(material.settings, material.records, material.timings),
    }
    data = {
        "tables": list(_tables(material)),
        "costs": _COSTS,
        "by_time": _BY_TIME,
        "seeds": seeds,
        "one_seed": _one_seed,
        "significant": SIGNIFICANT,
        "files": {name: base64.b64encode(text.encode()).decode() for name, text in files.items()},
        "has_literature": any(literature.reports_on(s.corpus, s.test) for s in standings),
        "literature": f"{literature.SOURCE}: {literature.HOW_SCORED}",
        "published": bool(material.settings.published),
    }
    return Section("scores", "Scores", data)


def trainings(material: Material, standing: Standing) -> list[Training]:
    """What was measured of the trainings of a system, as far as it is there."""
    timings = (material.timings.get(record.cell) for record in standing.records)
    return [timing.training for timing in timings if timing is not None and timing.training]


def mean_or_none(values: list[float | None]) -> float | None:
    """The mean of the known values; None if there is none."""
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def _tables(material: Material) -> Iterator[_Table]:
    for number, corpus in enumerate(dict.fromkeys(each.corpus for each in material.standings)):
        systems: dict[str, dict[str, Standing]] = {}
        for each in material.standings:
            if each.corpus == corpus:
                systems.setdefault(each.system, {})[each.test] = each
        records = [record for record in material.records if record.corpus == corpus]
        tests = {record.test: record.lines for record in records}
        rows = [
            _Row(
                system,
                _mark(by_test),
                by_test,
                list(_costs(material, next(iter(by_test.values())))),
            )
            for system, by_test in systems.items()
        ]
        published = literature.rows(records, material.settings.published)
        yield _Table(corpus, tests, rows, published, _chart(number, corpus, list(tests), systems))


def _mark(by_test: dict[str, Standing]) -> str:
    differences = [each.difference for each in by_test.values()]
    if None in differences:
        return "baseline"
    return "" if any(each and each.significant for each in differences) else "weak"


def _costs(material: Material, standing: Standing) -> Iterator[tuple[float | None, str]]:
    records, trained = standing.records, trainings(material, standing)
    parameters, _, tokens, flops = cost_columns.counted(records)
    yield statistics.mean(record.parameters for record in records), parameters
    yield statistics.mean(record.training_flops for record in records), flops
    by_time = mean_or_none([training.flops_by_time for training in trained])
    yield by_time, cost_columns.flops_by_time(trained)
    seconds = mean_or_none([training.seconds for training in trained])
    yield seconds, cost_columns.measured(trained)[0]
    yield statistics.mean(record.target_tokens for record in records), tokens


def _one_seed(score: float, low: float, high: float) -> Score:
    return Score(score, None, low, high)


def _chart(
    number: int, corpus: str, tests: list[str], systems: dict[str, dict[str, Standing]]
) -> Markup:
    """BLEU as a dot and its interval, a row per system; the baseline's as a dashed line."""
    names, styles = list(systems), line_styles(tests)
    title = f"BLEU of the systems on {corpus}"
    height = 0.9 + 0.26 * len(names) * len(tests) ** 0.5
    with chart(f"scores-{number}", title, 5.0, height) as made:
        for place, test in enumerate(tests):
            shift = (place - (len(tests) - 1) / 2) * 0.7 / len(tests)
            bleu = [systems[name][test].bleu for name in names]
            color, marker = styles[test]["color"], _MARKERS[place % len(_MARKERS)]
            made.axes.axvline(bleu[0].mean, color=color, linestyle="--", linewidth=0.8)
            made.axes.errorbar(
                *([score.mean for score in bleu], [row + shift for row in range(len(names))]),
                xerr=list(zip(*map(_error_bar, bleu), strict=True)),
                **{"fmt": marker, "color": color, "capsize": 3, "markersize": 5, "label": test},
            )
        made.axes.set_yticks(range(len(names)), names)
        made.axes.set_ylim(len(names) - 0.5, -0.5)
        made.axes.set_xlabel("BLEU")
        if len(tests) > 1:
            made.axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return made.svg


def _error_bar(score: Score) -> tuple[float, float]:
    """How far the interval extends below and above the score."""
    if score.deviation is not None:
        return score.deviation, score.deviation
    assert score.low is not None and score.high is not None
    return max(0.0, score.mean - score.low), max(0.0, score.high - score.mean)
