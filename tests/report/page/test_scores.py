"""Figures in the report page against the records, and against numbers made by hand."""

import csv
import dataclasses
import io
import math
from itertools import pairwise
from pathlib import Path

import pytest

import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.config.published import Published
from bleuprint.report.page.chart import line_styles
from bleuprint.report.page.curves import curves
from bleuprint.report.page.history import history, thinned
from bleuprint.report.page.material import Material
from bleuprint.report.page.scores import scores
from bleuprint.report.page.section import Section
from bleuprint.report.page.summary import summary
from bleuprint.report.published import literature
from bleuprint.report.records import Metric, Record, collect
from bleuprint.tracking.timings import timing
from pages import Page

CORPUS = "wmt14-en-de"
TEST = "newstest2014"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root = tmp_path_factory.mktemp("settings")
    return trees.settings_in(root, ("base", "big", "odd"), {CORPUS: (TEST,)})


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page made by hand finds ledgers."""
    trees.write_texts(tmp_path, settings)
    monkeypatch.chdir(tmp_path)


def record(system: str, bleu: float, p: float | None = None, seed: int = 1) -> Record:
    paired = None if p is None else trees.against("base", p)
    return trees.record(system, CORPUS, TEST, bleu, paired=paired, seed=seed)


def material(settings: Settings, *records: Record) -> Material:
    return Material(settings, records, trees.timings(list(records)))


def parsed(section: Section | None) -> Page:
    assert section is not None
    return Page(f'<section id="{section.anchor}">{section.body}</section>')


def test_a_row_has_the_scores_and_the_cost(settings: Settings) -> None:
    made = material(settings, record("base", 20.0), record("big", 22.5, 0.001))
    table = parsed(scores(made)).tables["scores"][0]
    assert table.row("big") == {
        "System": "big",
        "BLEU": "22.5 [21.5, 24.5]",
        "Against the baseline": "+2.5 ‡ p=0.001",
        "chrF2": "42.5 [41.5, 43.5]",
        "Parameters": "2.57M",
        "FLOPs, counted": "3.3e18",
        "FLOPs, by time": "2.3e15",  # 61 s x 4 x 9.5e12
        "Time": "0:01:01",
        "Target tokens": "8.12M",
    }
    assert table.row("base (baseline)")["Against the baseline"] == "–"
    assert table.caption == "Test set: newstest2014 (1,000 sentences)"


def test_what_is_not_significant_is_said_so(settings: Settings) -> None:
    """Two are tested: 0.03 is significant, and is not when doubled."""
    found = record("base", 20.0), record("big", 21.0, 0.03), record("odd", 19.8, 0.41)
    page = parsed(scores(material(settings, *found)))
    (table,) = page.tables["scores"]
    assert table.row("big")["Against the baseline"] == "+1.0 † p=0.030"
    assert table.row("odd")["Against the baseline"] == "-0.2 n.s. p=0.410"
    assert table.marks[:3] == ["baseline", "", "weak"]
    text = parsed(summary(material(settings, *found))).sections["summary"]
    assert "significant when tested alone (p=0.030), but not when corrected" in text
    assert "Second is base, 1.0 below" not in text  # which has just been said
    assert "odd, wmt14-en-de, newstest2014: -0.2 BLEU against base, p=0.410" in text


def test_the_best_against_the_second(settings: Settings) -> None:
    one = record("base", 20.0), record("big", 21.0, 0.001), record("odd", 20.9, 0.001)
    text = parsed(summary(material(settings, *one))).sections["summary"]
    assert "big is best, with BLEU 21.0 [20.0, 23.0]. That is 1.0 above the baseline base" in text
    assert "Second is odd, 0.1 below; that difference is not tested" in text
    below = record("base", 20.0), record("big", 19.0, 0.2)
    text = parsed(summary(material(settings, *below))).sections["summary"]
    assert "the baseline base is best" in text
    assert "Second is big, 1.0 below: not significant (p=0.200): it may be chance" in text


def test_the_second_is_tested_over_seeds(settings: Settings) -> None:
    """Differences 1, 2, 3: t = 2 / (1 / sqrt(3)) = 3.464, of 2 degrees of freedom p = 0.0742."""
    systems = {"base": (10, 10, 10), "big": (21, 22, 23), "odd": (20, 20, 20)}
    found = [
        record(system, score, None, seed)
        for system, of in systems.items()
        for seed, score in enumerate(of, 1)
    ]
    t = 2 / math.sqrt(1 / 3)
    p = 1 - t / math.sqrt(2 + t * t)  # Student's distribution in closed form, two sides
    assert round(p, 3) == 0.074
    several = dataclasses.replace(settings, seeds=(1, 2, 3))
    text = parsed(summary(material(several, *found))).sections["summary"]
    assert "Second is odd, 2.0 below: not significant: it may be chance (p=0.074, not" in text
    table, _ = parsed(scores(material(several, *found))).tables["scores"]
    assert table.row("big")["BLEU"] == "22.0 ± 1.0"


def test_each_seed_has_its_interval(settings: Settings) -> None:
    systems = {"base": (10, 10), "big": (21, 22.5)}
    found = [
        record(system, score, None, seed)
        for system, of in systems.items()
        for seed, score in enumerate(of, 1)
    ]
    several = dataclasses.replace(settings, seeds=(1, 2))
    _, table = parsed(scores(material(several, *found))).tables["scores"]
    assert table.rows[2:] == [
        ["big", TEST, "1", "21.0 [20.0, 23.0]", "41.0 [40.0, 42.0]"],
        ["big", TEST, "2", "22.5 [21.5, 24.5]", "42.5 [41.5, 43.5]"],
    ]


def test_tests_that_disagree_are_both_shown(settings: Settings) -> None:
    """Bootstrap and randomisation, one below 0.05 and one above, either way round."""
    for first, second, said in (
        (
            0.04,
            0.061,
            "significant by one test (p=0.040), not by the other (randomization p=0.061)",
        ),
        (0.061, 0.04, "not significant (p=0.061; by randomization p=0.040, it is)"),
    ):
        big = trees.record("big", CORPUS, TEST, 21, paired=trees.against("base", first, second))
        made = material(settings, record("base", 20.0), big)
        (table,) = parsed(scores(made)).tables["scores"]
        shown = table.row("big")["Against the baseline"]
        assert f"p={first:.3f} (randomization p={second:.3f})" in shown
        assert said in parsed(summary(made)).sections["summary"]


def test_few_sentences_are_said_so(settings: Settings) -> None:
    for lines, few in ((1, "1 sentence"), (29, "29 sentences"), (30, "")):
        of = [record("base", 20.0), record("big", 22.5, 0.001)]
        made = material(settings, *(dataclasses.replace(one, lines=lines) for one in of))
        text = parsed(summary(made)).sections["summary"]
        assert (f"With {few}, this says little." in text) == bool(few)
        assert ("Test on more sentences" in text) == bool(few)
        (table,) = parsed(scores(made)).tables["scores"]
        assert table.caption == f"Test set: newstest2014 ({few or '30 sentences'})"


def test_trainings_without_times_are_not_counted_as_timed(settings: Settings) -> None:
    """One of three took 61 s."""
    found = [record(name, 20.0, 0.5 if name != "base" else None) for name in ("base", "big", "odd")]
    made = material(settings, *found)
    all_of_them = "3 trainings took 1 min 01 s to 1 min 01 s each, 3 min 03 s together"
    assert all_of_them in parsed(summary(made)).sections["summary"]
    one = {cell: measured for cell, measured in made.timings.items() if cell.system == "big"}
    text = parsed(summary(dataclasses.replace(made, timings=one))).sections["summary"]
    assert "3 trainings took 3.3e18 FLOPs each; 1 was timed, and took 1 min 01 s." in text


def test_the_way_to_the_published_score_is_shown(settings: Settings) -> None:
    section = summary(material(settings, record("base", 20.0)))
    assert (
        "params.yaml names no published score to compare with"
        in parsed(section).sections["summary"]
    )
    assert '<a href="#variants">' in section.body


def test_published_rows_are_marked(settings: Settings) -> None:
    number = Published("Ours <before>", "A thesis", CORPUS, TEST, 25.5, "lower-cased")
    more = dataclasses.replace(settings, published=(number,))
    page = parsed(scores(material(more, record("base", 20.0))))
    (table,) = page.tables["scores"]
    names = [row[0] for row in table.rows]
    assert len(names) == 1 + 8 + 1 and set(table.marks[1:]) == {"published"}
    big = next(row for row in table.rows if row[0].startswith("Transformer (big) (published"))
    assert big[1] == "28.4" and big[table.heads.index("FLOPs, by time")] == "2.3e19"
    assert names[-1] == "Ours <before> (published: A thesis; BLEU lower-cased)"
    assert table.rows[-1][1] == "25.5" and set(table.rows[-1][2:]) == {"–"}
    assert "not comparable" in page.sections["scores"]


def test_a_published_score_stands_below_its_test_set(settings: Settings) -> None:
    found = [trees.record("base", CORPUS, test, 20.0) for test in ("newstest2013", TEST)]
    (table,) = parsed(scores(material(settings, *found))).tables["scores"]
    big = next(row for row in table.rows if row[0].startswith("Transformer (big)"))
    cells = dict(zip(table.heads, big, strict=True))
    assert (cells["BLEU newstest2013"], cells["BLEU newstest2014"]) == ("–", "28.4")
    assert cells["FLOPs, by time"] == "2.3e19" and list(cells.values()).count("–") == 9


def test_published_rows_are_those_of_the_table(tmp_path: Path) -> None:
    """A paper's number that is in Table 2 already is one row; of several test sets, one a name."""
    tests = "newstest2013", TEST
    table_2 = Published("Transformer (base)", literature.SOURCE, CORPUS, TEST, 27.3, "tokenised")
    thesis = [Published("Ours", "A thesis", CORPUS, test, 25.0, "intl") for test in tests]
    settings = trees.settings_in(tmp_path, ("base",), {CORPUS: tests})
    more = dataclasses.replace(settings, published=(table_2, *thesis))
    found = [trees.record("base", CORPUS, test, 20.0) for test in tests]
    (table,) = parsed(scores(material(more, *found))).tables["scores"]
    rows = [row for row in table.rows if "(published" in row[0]]
    assert [row[0].split(" (published")[0] for row in rows] == [
        row.name for row in literature.rows(found, more.published)
    ]
    base = "Transformer (base) (published: Vaswani et al. 2017, Table 2; BLEU compound-split)"
    assert [row[0] for row in rows].count(base) == 1
    ours = dict(zip(table.heads, rows[-1], strict=True))
    assert ours["System"] == "Ours (published: A thesis; BLEU intl)"
    assert ours["BLEU newstest2013"] == ours["BLEU newstest2014"] == "25.0"


def test_downloads_hold_every_figure(settings: Settings) -> None:
    found = record("base", 20.0), record("big", 22.5, 0.001)
    files = parsed(scores(material(settings, *found))).downloads()
    rows = list(csv.DictReader(io.StringIO(files["table.csv"])))
    ours = [(row["system"], float(row["bleu"])) for row in rows if not row["published"]]
    assert ours == [("base", 20.0), ("big", 22.5)] and len(rows) == 2 + 8
    assert "\\toprule" in files["table.tex"] and "22.5" in files["table.tex"]


def test_intervals_that_leave_out_the_score_can_be_drawn(settings: Settings) -> None:
    """A bootstrap's mean is not the score: on few lines its interval may lie beside it."""
    odd = dataclasses.replace(record("base", 20.0), bleu=Metric(20.0, 20.5, 21.0, "x"))
    assert parsed(scores(material(settings, odd))).tables["scores"]


def test_lines_are_told_apart() -> None:
    """Neighbours in colour and dashes, 28 in one of both; each 3:1 on white, as WCAG 2.1 counts."""
    styles = [
        (one["color"], one["linestyle"]) for one in line_styles([*map(str, range(28))]).values()
    ]
    assert len(set(styles)) == 28
    for one, other in pairwise(styles):
        assert one[0] != other[0] and one[1] != other[1]
    for colour in {colour for colour, _ in styles}:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        assert 1.05 / (luminance + 0.05) >= 3, colour


def test_lines_are_thinned_by_means() -> None:
    line = [(float(i), float(i * i)) for i in range(1, 6)]
    assert thinned(line, 5) == ((1, 2, 3, 4, 5), (1, 4, 9, 16, 25))
    assert thinned(line, 2) == ((1.5, 4.0), (2.5, 50 / 3))
    assert thinned([], 3) == ((), ())


def test_curves_have_a_line_for_each_training(tmp_path: Path) -> None:
    root = tmp_path / "made"
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)})
    trees.write_all(root, settings)
    records = collect(settings, root)
    timings = {one.cell: timing(one.cell, root) for one in records}
    made = Material(settings, records, timings, root)
    page = parsed(curves(made))
    # five quantities and the rate
    assert sorted(name for name in page.ids if "-of-" in name) == sorted(
        f"curves-0-{kind}-of-{system}.1" for kind in (*range(5), "rate") for system in range(2)
    )
    (table,) = page.tables["curves"]
    # nats 8 - 6.75, and e to that
    assert table.row("tiny") == {
        "System": "tiny",
        "Last update": "500",
        "Loss": "1.250",
        "Perplexity": "3.49",
        "BLEU": "30.0",
        "Best at update": "500",
        "Its loss": "1.250",
    }
    found = history(records[0].cell, root)
    assert found is not None and found.best is not None and found.best.update == 500
    text = parsed(summary(made)).sections["summary"]
    assert "fell from 3.000 (update 250) to 1.250 at the end (update 500)" in text
    # seven stages in the ledgers, each of which drops a pair
    assert "of 10,000 training pairs 9,993 are trained on" in text
