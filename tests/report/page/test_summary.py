"""The summary: the scores drawn to scale, verdicts no stronger than their evidence, cautions."""

import re
from dataclasses import replace
from functools import partial

import pytest

import result_rows
import result_trees as trees
from bleuprint.config.corpus_files import File
from bleuprint.corpus.misalignment import Misfit
from bleuprint.corpus.set_findings import FINDINGS, Overlap, SetFindings
from bleuprint.report.page.cautions import cautions
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.findings import best_systems
from bleuprint.report.page.summary import summary
from bleuprint.report.score_frame import score_frame
from pages import page_of

# The sum of the references of all rows.
REFERENCES_SHA256 = "4e" * 32


def record(corpus, system, bleu, p_value=None, **changes):
    """Make the record of a system, tested against the system `base` if it has a p-value."""
    tested = {} if p_value is None else result_rows.against("base", p_value)
    tested.update(changes)
    return result_rows.record(system, corpus, "first", bleu, **tested)


def findings(*rows, deviations=None):
    """Return what the summary says of the best system of each test set.

    Args:
        rows: The records.
        deviations: The standard deviation over seeds, by the sum of the references, if known.
    """
    scores = score_frame(result_rows.frame(*rows))
    texts = []
    for finding in best_systems(scores, deviations or {}):
        texts.append(f"{finding.title}. {finding.text}")
    return texts


def test_a_significant_difference_is_reported_for_its_test_set():
    (text,) = findings(
        record("news-en-de", "base", 20.0), record("news-en-de", "big", 22.0, p_value=0.001)
    )

    assert text == (
        "news-en-de: big is 2.0 BLEU better than base in these two trainings. Significant over the "
        "test lines (p=0.001); how much another seed would change it is not known."
    )


def test_a_difference_that_is_not_significant_is_called_uncertain():
    (text,) = findings(
        record("news-en-fr", "base", 20.0), record("news-en-fr", "big", 23.0, p_value=0.2)
    )

    assert text == (
        "news-en-fr: big is best, but perhaps not better than base. 3.0 BLEU above the baseline in "
        "these two trainings: not significant (p=0.200): this test does not tell them apart."
    )


def test_a_baseline_that_no_system_beats_is_reported():
    (text,) = findings(
        record("news-en-fr", "base", 20.0), record("news-en-fr", "big", 17.0, p_value=0.001)
    )

    assert text.startswith("news-en-fr: no system is better than the baseline base. BLEU 20.0")


def test_each_test_set_has_a_finding():
    first, second = findings(
        record("news-en-de", "base", 20.0),
        record("news-en-fr", "base", 20.0),
        record("news-en-de", "big", 22.0, p_value=0.001),
        record("news-en-fr", "big", 23.0, p_value=0.2),
    )

    assert first.startswith("news-en-de: big is 2.0 BLEU better than base")
    assert second.startswith("news-en-fr: big is best, but perhaps not better than base.")


def test_the_finding_says_how_much_more_the_better_system_costs():
    base = record("news-en-de", "base", 20.0, training_flops=1e10)
    big = record("news-en-de", "big", 22.0, p_value=0.001, training_flops=2e10)

    (text,) = findings(base, big)

    assert text.endswith(" Training big costs 2 times the FLOPs of base.")


def test_a_metric_that_contradicts_a_significant_difference_is_named():
    """chrF2 of the baseline is 40.0, 20 above its BLEU."""
    base = record("news-en-de", "base", 20.0)
    big = record("news-en-de", "big", 22.0, p_value=0.001, chrf2=33.0)

    (text,) = findings(base, big)

    assert text.endswith(" Metrics that favor the baseline: chrF2 -7.0‡.")


def test_a_metric_that_is_not_significantly_worse_is_not_named():
    base = record("news-en-de", "base", 20.0)
    big = record("news-en-de", "big", 22.0, p_value=0.2, chrf2=33.0)

    (text,) = findings(base, big)

    assert "favor" not in text


def test_an_only_system_is_reported_without_comparison():
    (text,) = findings(record("news-en-de", "base", 20.0))

    assert text == "news-en-de: base is the only system. BLEU 20.0 [19.0, 22.0]"


@pytest.mark.parametrize(
    ("deviation", "verdict", "is_chance"),
    [
        pytest.param(0.7, "and beyond seed variance", False, id="1.9 of 2.0 BLEU"),
        pytest.param(0.8, "but within seed variance", True, id="2.2 of 2.0 BLEU"),
    ],
)
def test_a_difference_is_compared_with_the_seed_variance_of_committed_reports(
    deviation, verdict, is_chance
):
    """Two trainings that differ in their seed alone differ by less than this in 95 % of cases."""
    (text,) = findings(
        record("news-en-de", "base", 20.0),
        record("news-en-de", "big", 22.0, p_value=0.001),
        deviations={REFERENCES_SHA256: deviation},
    )

    seed_variance = 1.96 * 2**0.5 * deviation
    assert (
        f"Significant over the test lines (p=0.001), {verdict}, as estimated from reports/ "
        f"({seed_variance:.1f} BLEU)"
    ) in text
    assert text.endswith(": it may be chance.") == is_chance


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        pytest.param(1.0, "and beyond", id="larger than 0.98"),
        pytest.param(0.96, "but within", id="smaller than 0.98"),
    ],
)
def test_systems_with_several_seeds_are_compared_by_their_means(difference, verdict):
    """The standard error of each difference over the test lines is 0.5, so 95 % lie within 0.98."""
    rows = []
    for seed in range(3):
        rows.append(record("news-en-de", "base", 20.0 + seed / 10, seed=seed))
    for seed in range(3):
        bleu = 20.0 + seed / 9 + difference
        rows.append(record("news-en-de", "big", bleu, p_value=0.01, seed=seed, lines=500))

    (text,) = findings(*rows)

    assert "big is 1.0 BLEU better than base. Significant over 3 seeds (p<0.001), " in text
    assert f"{verdict} the sampling error of 500 test lines (1.0 BLEU)" in text


def test_an_external_system_is_compared_without_seed_variance():
    """Its translations come from a file, so there is no training that another seed would change."""
    base = record("news-en-de", "base", 20.0)
    online = record("news-en-de", "online", 25.0, p_value=0.001, about="A service.")

    (text,) = findings(base, online, deviations={REFERENCES_SHA256: 9.0})

    assert text == (
        "news-en-de: online (external) is 5.0 BLEU better than base in these two "
        "translations. Significant over the test lines (p=0.001)."
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Settings, and a folder with filtering and corpus statistics."""
    root = tmp_path_factory.mktemp("tree")
    settings = trees.settings_in(root, ("base", "big"), {"news-en-de": ("first",)})
    trees.write_texts(root, settings)
    return settings, root


def warned(tree, *rows, change=None, **settings):
    """The cautions by the first words of their titles."""
    context = ReportContext(replace(tree[0], **settings), result_rows.frame(*rows), tree[1])
    if change:
        change(context)
    return {each.title.split(":")[0].split(",")[0]: each.text for each in cautions(context)}


@pytest.mark.parametrize(
    ("bleu", "lines", "expected"),
    [(15.0, 200, []), (14.9, 200, ["Low scores"]), (15.0, 199, ["Few test lines"])],
)
def test_low_scores_and_few_lines_come_first(tree, bleu, lines, expected):
    found = warned(tree, record("news-en-de", "base", bleu, lines=lines))
    assert [*found] == [*expected, "Few sentence pairs to train on"]


def test_pairs_errors_unseen_words_and_overlap_are_said(tree):
    def more(context):
        context.pair_counts["news-en-de"] = replace(context.pair_counts["news-en-de"], kept=10_000)

    def unseen(words):  # beside 1,200 that are seen
        return {("word_accuracy", "count 0"): result_rows.measured("word_accuracy", 0, units=words)}

    row = partial(record, "news-en-de", "base", 20.0)
    found = warned(
        tree, row(**{"any error": 100, "repetition": 60, "numbers": 50}, metrics=unseen(64))
    )
    assert found["Few sentence pairs to train on"] == "9,993 of news-en-de"
    assert found["Many lines with output errors"] == (
        "10% of base on news-en-de, first, mostly repetition"
    )
    assert found["Words of the references that the training text lacks"] == (
        "5% of news-en-de, first"
    )
    assert not warned(tree, row(**{"any error": 99}, metrics=unseen(63)), change=more)
    corpus = tree[0].corpora["news-en-de"]
    unsearched = replace(corpus, dedup=replace(corpus.dedup, decontaminate="none"))
    found = warned(tree, row(), change=more, corpora={"news-en-de": unsearched})
    assert found == {"Scores may be too high": "news-en-de"}
    texts = {
        part: replace(text, source=File(url="copy:train.src"), target=File(url="copy:train.tgt"))
        for part, text in corpus.files.train.items()
    }
    generated = replace(corpus, files=replace(corpus.files, train=texts))
    found = warned(tree, row(), change=more, corpora={"news-en-de": generated})
    assert found == {"Generated text": "news-en-de"}


@pytest.mark.parametrize(
    ("systems", "end"), [(6, "s6 on news-en-de, first, mostly repetition"), (7, "and 1 more")]
)
def test_of_many_places_six_are_named(tree, systems, end):
    rows = [
        record("news-en-de", f"s{number}", 20.0, **{"any error": 100, "repetition": 60})
        for number in range(1, systems + 1)
    ]
    places = warned(tree, *rows)["Many lines with output errors"].split("; ")
    assert len(places) == systems
    assert places[5] == "10% of s6 on news-en-de, first, mostly repetition"
    assert places[-1].endswith(end)


def test_a_clone_without_data_counts_no_pairs(tree, tmp_path):
    """It has the committed report and neither text nor filtering statistics."""
    rows = result_rows.frame(record("news-en-de", "base", 20.0))
    context = ReportContext(tree[0], rows, tmp_path)
    assert list(cautions(context)) == []


def test_misaligned_lines_and_overlaps_are_said(tree):
    misfits = {"train": (Misfit(10, 81, 1),), "test.first": (Misfit(1, 500, None),)}
    overlap = Overlap("first", "valid", 3, 200)
    folder = tree[1] / "data" / "test_stats" / "news-en-de"
    SetFindings(misfits, (overlap,)).write(folder)
    try:
        found = warned(tree, record("news-en-de", "base", 20.0))
    finally:
        (folder / FINDINGS).unlink()
    assert found["Lines that do not fit their translations"] == (
        "news-en-de, train: lines 10 to 81 fit the target 1 line later; "
        "news-en-de, test.first: lines 1 to 500 do not fit at all"
    )
    assert found["Test sentences in another held-out set"] == (
        "3 of 200 sentences of test set first are in the validation set (news-en-de)"
    )


def test_scores_are_drawn_to_scale(tree):
    """base: 20 [19, 22], big: 27 [26, 29]; between multiples of five, 15 and 30."""
    made = [record("news-en-de", "base", 20.0), record("news-en-de", "big", 27.0, 0.2)]
    section = summary(ReportContext(tree[0], result_rows.frame(*made), tree[1]))
    drawn = re.findall(r'x1="(.*?)%" x2="(.*?)%"', section.body)
    assert drawn == [("26.7", "46.7"), ("73.3", "93.3")]
    table, *_ = page_of(section).tables["summary"]
    assert table.rows[0][:2] == ["news-en-de, test set first (1,000 sentences)", "15 30"]
    assert table.row("big")["BLEU"] == "27.0 [26.0, 29.0]"
    assert table.marks == ["group", "baseline", ""]


def test_of_seeds_the_deviation_is_drawn(tree):
    """22.5 ± 3 / sqrt(2), from 20 to 25."""
    made = [
        record("news-en-de", "base", bleu, seed=seed) for seed, bleu in enumerate((21.0, 24.0), 1)
    ]
    settings = replace(tree[0], seeds=(1, 2))
    body = summary(ReportContext(settings, result_rows.frame(*made), tree[1])).body
    ends = [(22.5 + side * 3 / 2**0.5 - 20) / 5 for side in (-1, 1)]
    (drawn,) = re.findall(r'x1="(.*?)%" x2="(.*?)%".*cx="50.0%"', body)
    assert list(drawn) == [f"{100 * end:.1f}" for end in ends]
