"""The section of scores: systems on test sets, with intervals, tests, and what training cost."""

import base64
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bleuprint.report import cost_columns
from bleuprint.report.main_table import tex
from bleuprint.report.page.chart import chart, line_styles
from bleuprint.report.page.html import Entry, counted, details, escape, figure, paragraph, table
from bleuprint.report.page.material import Material, Section
from bleuprint.report.published import literature
from bleuprint.report.recordcsv import csv_text
from bleuprint.report.system_results import SIGNIFICANT, Difference, Score, Standing
from bleuprint.tracking.timings import Training

_COSTS = ("Parameters", "FLOPs, counted", "FLOPs, by time", "Time", "Target tokens")
_MARKERS = "osD^vP"


class _Column(NamedTuple):
    """A corpus: its pair of languages, its test sets, and its systems by name and test set."""

    corpus: str
    pair: str
    tests: list[str]
    systems: dict[str, dict[str, Standing]]


def scores(material: Material) -> Section:
    columns = list(_columns(material.standings))
    body = _downloads(material)
    body += "".join(_column(material, number, one) for number, one in enumerate(columns))
    body += '<ul class="notes">\n' + "".join(f"<li>{note}</li>\n" for note in _notes(material))
    return Section("scores", "Scores", body + "</ul>\n")


def score_text(score: Score) -> str:
    """91.2 [89.5, 92.9] of one seed; 91.2 ± 0.4 of several."""
    if score.deviation is not None:
        return f"{score.mean:.1f} ± {score.deviation:.1f}"
    return f"{score.mean:.1f} [{score.low:.1f}, {score.high:.1f}]"


def verdict(difference: Difference) -> str:
    """+8.7 ‡ p=0.001, or -0.2 n.s. p=0.410; both tests where they disagree."""
    second = disagreement(difference)
    text = f"{difference.bleu:+.1f} {difference.mark or 'n.s.'} {p_text(difference.p)}"
    return f"{text} ({second})" if second else text


def disagreement(difference: Difference) -> str:
    """randomisation p=0.061, where that test is on the other side; empty where both agree."""
    second = difference.randomisation
    if second is None or (second < SIGNIFICANT) == difference.significant:
        return ""
    return f"randomisation {p_text(second)}"


def p_text(p: float) -> str:
    """p=0.012; what would be 0.000 is p<0.001."""
    return "p<0.001" if p < 0.0005 else f"p={p:.3f}"


def _columns(standings: Sequence[Standing]) -> Iterator[_Column]:
    for corpus in dict.fromkeys(one.corpus for one in standings):
        of_corpus = [one for one in standings if one.corpus == corpus]
        systems: dict[str, dict[str, Standing]] = {}
        for one in of_corpus:
            systems.setdefault(one.system, {})[one.test] = one
        tests = list(dict.fromkeys(one.test for one in of_corpus))
        yield _Column(corpus, of_corpus[0].records[0].pair, tests, systems)


def _column(material: Material, number: int, column: _Column) -> str:
    rows, marks = [], []
    for by_test in column.systems.values():
        rows.append([_name(by_test), *_scores(by_test, column.tests)])
        rows[-1] += _costs(material, next(iter(by_test.values())))
        marks.append(_mark(by_test))
    for published in _published(material, column):
        rows.append(published)
        marks.append("published")
    heads = ["System"]
    for test in column.tests:
        name = f" {escape(test)}" if len(column.tests) > 1 else ""
        heads += [f"BLEU{name}", f"Against the baseline{name}", f"chrF2{name}"]
    caption = f"Test set{'s' * (len(column.tests) > 1)}: " + ", ".join(
        f"{test} ({counted(_lines(column, test), 'sentence')})" for test in column.tests
    )
    return (
        f"<h3>{escape(column.corpus)}</h3>\n"
        + table([*heads, *_COSTS], rows, escape(caption), sortable=True, marks=marks)
        + _of_seeds(material, column)
        + _chart(number, column)
    )


def _name(by_test: dict[str, Standing]) -> Entry:
    one = next(iter(by_test.values()))
    name = escape(one.system)
    baseline = one.difference is None
    return Entry(f"{name} <small>(baseline)</small>" if baseline else name, one.system)


def _scores(by_test: dict[str, Standing], tests: Sequence[str]) -> Iterator[Entry]:
    for test in tests:
        one = by_test[test]
        yield Entry.number(one.bleu.mean, score_text(one.bleu))
        if one.difference is None:
            yield Entry.number(None, "")
        else:
            kind = {"‡": "sure", "†": "alone"}.get(one.difference.mark, "unsure")
            html = f'<span class="{kind}">{escape(verdict(one.difference))}</span>'
            yield Entry(html, one.difference.bleu)
        yield Entry.number(one.chrf.mean, score_text(one.chrf))


def _of_seeds(material: Material, column: _Column) -> str:
    """Where there are several seeds: the score of each with its interval, folded away."""
    if len(material.settings.seeds) == 1:
        return ""
    rows = [
        [Entry.text(name), Entry.text(test), Entry.number(seed.seed, str(seed.seed))]
        + [
            Entry.number(of.score, score_text(Score(of.score, None, of.low, of.high)))
            for of in (seed.bleu, seed.chrf)
        ]
        for name, by_test in column.systems.items()
        for test in column.tests
        for seed in by_test[test].records
    ]
    caption = "In brackets: the 95 % interval (1,000 bootstrap resamples of the test set)"
    heads = "System", "Test set", "Seed", "BLEU", "chrF2"
    return details("Of each seed", table(heads, rows, caption, left=2, sortable=True))


def _costs(material: Material, one: Standing) -> Iterator[Entry]:
    parameters, _, tokens, flops = cost_columns.counted(one.records)
    yield Entry.number(statistics.mean(r.parameters for r in one.records), parameters)
    yield Entry.number(statistics.mean(r.training_flops for r in one.records), flops)
    trained = trainings(material, one)
    by_time = [t.flops_by_time for t in trained if t.flops_by_time is not None]
    mean = statistics.mean(by_time) if by_time else None
    yield Entry.number(mean, cost_columns.flops_by_time(trained))
    seconds = statistics.mean(t.seconds for t in trained) if trained else None
    yield Entry.number(seconds, cost_columns.measured(trained)[0])
    yield Entry.number(statistics.mean(r.target_tokens for r in one.records), tokens)


def trainings(material: Material, one: Standing) -> list[Training]:
    """What was measured of the trainings behind a standing, as far as it is there."""
    timings = (material.timings.get(record.cell) for record in one.records)
    return [found.training for found in timings if found is not None and found.training is not None]


def _mark(by_test: dict[str, Standing]) -> str:
    """The row's class: whether it is the baseline, or nowhere significantly different from it."""
    differences = [one.difference for one in by_test.values()]
    if None in differences:
        return "baseline"
    return "" if any(one and one.significant for one in differences) else "weak"


def _published(material: Material, column: _Column) -> Iterator[list[Entry]]:
    """Rows of papers, as literature.py has them: a row a name, a number below each test set."""
    of_corpus = [record for record in material.records if record.corpus == column.corpus]
    for row in literature.rows(of_corpus, material.settings.published):
        cells = [Entry.number(None, "")] * (1 + 3 * len(column.tests) + len(_COSTS))
        ways = dict.fromkeys(row.scored.values())
        cells[0] = _of_paper(row.name, row.source, ", ".join(ways))
        for place, test in enumerate(column.tests):
            if bleu := row.bleu.get((column.corpus, test)):
                cells[1 + 3 * place] = Entry.number(float(bleu), bleu)
        if flops := row.flops.get(column.corpus):
            cells[_COSTS.index("FLOPs, by time") - len(_COSTS)] = Entry.number(float(flops), flops)
        yield cells


def _of_paper(name: str, source: str, scored: str) -> Entry:
    small = escape(f"(published: {source}; BLEU {scored})")
    return Entry(f"{escape(name)} <small>{small}</small>", name)


def _lines(column: _Column, test: str) -> int:
    return next(iter(column.systems.values()))[test].records[0].lines


def _chart(number: int, column: _Column) -> str:
    """BLEU as a dot and its interval, a row for each system; the baseline's as a dashed line."""
    names, tests = list(column.systems), column.tests
    styles = line_styles(tests)
    title = f"BLEU of the systems on {column.corpus}"
    with chart(f"scores-{number}", title, 5.0, 0.9 + 0.26 * len(names) * len(tests) ** 0.5) as made:
        for at, test in enumerate(tests):
            shift = (at - (len(tests) - 1) / 2) * 0.7 / len(tests)
            found = [column.systems[name][test].bleu for name in names]
            colour, marker = styles[test]["color"], _MARKERS[at % len(_MARKERS)]
            made.axes.axvline(found[0].mean, color=colour, linestyle="--", linewidth=0.8)
            made.axes.errorbar(
                *([one.mean for one in found], [row + shift for row in range(len(names))]),
                xerr=list(zip(*map(_reach, found), strict=True)),
                **{"fmt": marker, "color": colour, "capsize": 3, "markersize": 5, "label": test},
            )
        made.axes.set_yticks(range(len(names)), names)
        made.axes.set_ylim(len(names) - 0.5, -0.5)
        made.axes.set_xlabel("BLEU")
        if len(tests) > 1:
            made.axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    what = "95 % interval" if found[0].deviation is None else "standard deviation over seeds"
    text = f"BLEU with its {what}; dashed: the baseline. The axis does not begin at 0."
    return figure(made.svg(), text)


def _reach(score: Score) -> tuple[float, float]:
    """How far the interval reaches below and above the score."""
    if score.deviation is not None:
        return score.deviation, score.deviation
    assert score.low is not None and score.high is not None
    return max(0.0, score.mean - score.low), max(0.0, score.high - score.mean)


def _downloads(material: Material) -> str:
    files = {
        "table.csv": (
            "CSV, every figure in full",
            csv_text(material.records, material.timings, material.settings.published),
        ),
        "table.tex": (
            "LaTeX (booktabs)",
            tex(material.settings, material.records, material.timings),
        ),
    }
    links = [
        f'<a download="{name}" href="data:text/plain;charset=utf-8;base64,'
        f'{base64.b64encode(text.encode()).decode()}">{what}</a>'
        for name, (what, text) in files.items()
    ]
    return paragraph(f"Download all tables of scores: {', '.join(links)}.", "screen")


def _notes(material: Material) -> Iterator[str]:
    """What a reader must know to read the table; HTML."""
    seeds = material.settings.seeds
    yield (
        "BLEU is sacreBLEU's, with upper and lower case, on detokenised text; chrF2 compares "
        "letters in place of words. Of both, higher is better, and 100 is the most."
    )
    if len(seeds) > 1:
        yield (
            f"Mean ± standard deviation over {len(seeds)} trainings, with the seeds "
            f"{', '.join(map(str, seeds))}; each one's score and interval: under Of each seed. "
            "p: paired t-test over the seeds. It says how much is the luck of a training, and "
            "nothing of how few sentences the test set has: for that, see the intervals."
        )
    else:
        yield (
            "In brackets: the 95 % interval (1,000 bootstrap resamples of the test set). p: paired "
            "bootstrap of the difference, over the test set's sentences. Where approximate "
            "randomisation, another test, says otherwise, its p stands beside it: count such "
            "systems as equal."
        )
    yield (
        "p is how often a difference so large would come about by chance, were the systems equally "
        f"good. <b>n.s.</b>: not significant (p of {SIGNIFICANT} or more), count these as equal. "
        f"<b>†</b>: p below {SIGNIFICANT}. <b>‡</b>: also when corrected for the number of systems "
        "that were tested (Holm). Differences are of scores in full, so that their last digit may "
        "not be that of the rounded scores."
    )
    yield (
        "FLOPs of training: counted from the shapes of the matrices, and by time as papers do "
        "(seconds x devices x sustained FLOPS). More under <a href='#cost'>Cost</a>."
    )
    if any(literature.reports_on(one.corpus, one.test) for one in material.standings):
        yield escape(f"{literature.SOURCE}: {literature.HOW_SCORED}")
    if material.settings.published:
        yield "Published scores are as printed; how they were counted stands beside them."
