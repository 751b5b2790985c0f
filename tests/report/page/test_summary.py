"""The summary: the result drawn to scale, and the best system on each test set."""

import re

import pytest

import result_rows
import result_trees as trees
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.findings import best_systems
from bleuprint.report.page.summary import glances, summary
from bleuprint.report.system_results import system_results
from pages import Page

CORPORA = "news-en-de", "news-en-fr"


def record(corpus, system, bleu, p=None, **more):
    tested = {} if p is None else result_rows.against("base", p)
    return result_rows.record(system, corpus, "first", bleu, **{**tested, **more})


def found(*rows):
    results = system_results(result_rows.frame(*rows))
    return [f"{each.title}. {each.text}" for each in best_systems(results)]


def rows(p, better=3.0, second=None):
    """The second corpus has another difference, and another p if `second` is given."""
    return [
        *(record(corpus, "base", 20.0) for corpus in CORPORA),
        record(CORPORA[0], "big", 22.0, p),
        record(CORPORA[1], "big", 20.0 + better, p if second is None else second),
    ]


def test_each_test_set_has_a_finding():
    first, second = found(*rows(0.001, second=0.2))
    assert first.startswith("big is better than the baseline base on news-en-de. It is 2.0 BLEU")
    assert second.startswith("big is best on news-en-fr, but perhaps not better than the baseline")
    assert "3.0 BLEU above it: not significant (p=0.200): count the two as equal." in second
    assert "People prefer" in first and "People prefer" not in second
    first, second = found(*rows(0.001, better=-3.0))
    assert second == "No system is better than the baseline base on news-en-fr. "


def test_one_system_has_nothing_to_be_compared_with():
    (text,) = found(record("news-en-de", "base", 20.0))
    assert text == "base is the only system on news-en-de. "


def test_scores_are_drawn_to_scale(tmp_path):
    """base: 20 [19, 22], big: 27 [26, 29]; between multiples of five, 15 and 30."""
    made = [record("news-en-de", "base", 20.0), record("news-en-de", "big", 27.0, 0.2)]
    (glance,) = glances(system_results(result_rows.frame(*made)))
    assert (glance.low, glance.high) == (15, 30)
    settings = trees.settings_in(tmp_path, ("base", "big"), {"news-en-de": ("first",)})
    trees.write_texts(tmp_path, settings)
    body = summary(ReportContext(settings, result_rows.frame(*made), tmp_path)).body
    assert re.findall(r'x1="(.*?)%" x2="(.*?)%"', body) == [("26.7", "46.7"), ("73.3", "93.3")]
    (table,) = Page(f'<section id="summary">{body}</section>').tables["summary"]
    assert table.caption == "news-en-de, test set first (1,000 sentences)"
    assert table.row("big")["BLEU"] == "27.0 [26.0, 29.0]" and table.rows[-1][1] == "1530"
    assert table.marks == ["baseline", "", "scale"]
    assert [table.row(name)["Difference"] for name in ("base", "big")] == ["–", "+7.0 n.s."]


def test_of_seeds_the_deviation_is_drawn():
    made = [record("news-en-de", "base", bleu, seed=s) for s, bleu in enumerate((21.0, 24.0), 1)]
    (glance,) = glances(system_results(result_rows.frame(*made)))
    low, high = glance.results[0].bleu.ends
    # 22.5 ± 3 / sqrt(2)
    assert (glance.low, glance.high, glance.place(22.5)) == (20, 25, "50.0%")
    assert (low, high) == pytest.approx((22.5 - 3 / 2**0.5, 22.5 + 3 / 2**0.5))
