"""Corpora with the same test sets are rows of one table, tested across preparations."""

import shutil

import pandas as pd
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report import report
from bleuprint.report.compare import compare
from bleuprint.report.frame import RESULTS
from bleuprint.report.page.differences import describe_rows
from bleuprint.report.page.lines import lines_of_sets
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.paired import holm_correction
from bleuprint.report.records import collect
from bleuprint.report.score_frame import bleu_rows, score_frame
from bleuprint.report.score_tables import wide_bleu_table
from bleuprint.report.score_texts import format_difference
from bleuprint.report.table import NONE, Table
from bleuprint.report.tasks import table_row_name, task_names
from bleuprint.text.parallel import read_lines
from recipes import SETTINGS
from result_rows import against, frame, record, rows_of

SYSTEMS, CORPORA = ("tiny", "small"), ("bpe-en-de", "words-en-de")
# The share of wrong words: the second preparation is better for one system, worse for the other.
ERRORS = {
    ("tiny", "bpe-en-de"): 0.25,
    ("tiny", "words-en-de"): 0.15,
    ("small", "bpe-en-de"): 0.1,
    ("small", "words-en-de"): 0.2,
}
BASELINE, *OTHERS = ERRORS


def write_runs(root, settings, corpora=CORPORA):
    for (system, corpus), errors in ERRORS.items():
        if corpus in corpora:
            trees.write_run(root, settings, Run(system, corpus, 1), errors)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Two systems on two corpora with one test set, and a corpus of another."""
    root = tmp_path_factory.mktemp("task")
    corpora = {**dict.fromkeys(CORPORA, ("only",)), "talks-en-de": ("only",)}
    settings = trees.settings_in(root, SYSTEMS, corpora)
    trees.write_texts(root, settings)
    split = root / "data" / "split"
    for file in ("test.only.en", "test.only.de"):
        shutil.copy(split / CORPORA[0] / file, split / CORPORA[1] / file)
    write_runs(root, settings)
    for system in SYSTEMS:
        trees.write_run(root, settings, Run(system, "talks-en-de", 1), 0.2)
    return root, settings


@pytest.fixture
def copy(tree, tmp_path):
    return shutil.copytree(tree[0], tmp_path / "copy"), tree[1]


def bleu_of(records, system, corpus):
    found = records.metrics[records.metrics.metric == "bleu"].set_index(
        ["system", "corpus", "group"]
    )
    return found.loc[(system, corpus, "")]


@pytest.mark.usefixtures("all_samples")
def test_differences_and_p_are_those_of_sacrebleu_on_the_same_lines(tree):
    root, settings = tree
    records = collect(settings, root)
    file = "test.only.de"
    references = [*read_lines(root / "data/split/bpe-en-de" / file)]
    outputs = {
        place: [*read_lines(root / Run(*place, 1).results_folder / "hypotheses" / file)]
        for place in ERRORS
    }
    named = [(", ".join(place), lines) for place, lines in outputs.items()]
    test = PairedTest(named, {"BLEU": BLEU()}, [references], "bs", n_samples=1000)
    _, scores = test()
    baseline, *others = scores["BLEU"]
    expected_holm = holm_correction([each.p_value for each in others])
    for (system, corpus), of, p_holm in zip(OTHERS, others, expected_holm, strict=True):
        found = bleu_of(records, system, corpus)
        assert found.baseline == "tiny, bpe-en-de"
        assert found.difference == pytest.approx(of.score - baseline.score, abs=1e-5)
        assert (found.p, found.p_holm) == pytest.approx((of.p_value, p_holm), abs=1e-6)
    assert bleu_of(records, *BASELINE).isna()["difference"]
    # the corpus of other text has its own baseline
    assert bleu_of(records, "small", "talks-en-de").baseline == "tiny"


def test_each_preparation_is_a_row(tree):
    root, settings = tree
    records = collect(settings, root)
    rows = rows_of(wide_bleu_table(score_frame(records)))
    group = "en-de (bpe-en-de, …), only"
    assert [*rows] == [
        *("Baseline: tiny, bpe-en-de", "tiny, words-en-de", "Baseline: tiny"),
        *("small, bpe-en-de", "small, words-en-de", "small"),
    ]
    for result in bleu_rows(score_frame(records)):
        row = rows[
            next(name for name in rows if name.removeprefix("Baseline: ") == result.row_name)
        ]
        column = "talks-en-de, only" if result.corpus == "talks-en-de" else group
        assert row[f"{column} BLEU"] == result.score_text
        assert row[f"{column} Δ BLEU"] == (result.difference_text or NONE)
        assert row[f"{column} FLOPs"] == ("4.2e12" if result.system == "tiny" else "9.9e13")
    assert {row[f"{group} BLEU"] for name, row in rows.items() if "," not in name} == {"–"}


def test_one_line_of_the_references_makes_another_task(copy):
    root, settings = copy
    path = root / "data/split/words-en-de/test.only.de"
    first, *rest = path.read_text("utf-8").split("\n")
    path.write_text("\n".join((f"{first} ", *rest)), encoding="utf-8")
    write_runs(root, settings, CORPORA[1:])
    records = collect(settings, root)
    assert {*records.metrics.baseline.dropna()} == {"tiny"}
    groups = [column.group for column in wide_bleu_table(score_frame(records)).columns[1:]]
    assert [*dict.fromkeys(groups)] == [f"{corpus}, only" for corpus in (*CORPORA, "talks-en-de")]
    assert [*rows_of(wide_bleu_table(score_frame(records)))] == ["Baseline: tiny", "small"]


def test_files_and_page_have_the_rows(copy):
    root, settings = copy
    report.write_reports(settings, root)
    texts = {
        name: (root / "reports" / name).read_text("utf-8") for name in ("table.md", "table.tex")
    }
    page = (root / "reports/index.html").read_text("utf-8")
    for text in (*texts.values(), page):
        assert "Baseline: tiny, bpe-en-de" in text and "small, words-en-de" in text
        assert "bpe-en-de, words-en-de have the same test sets" in text
    assert "<h3>en-de (bpe-en-de, …), test set only" in page  # lines of all preparations
    assert "<b>small, words-en-de</b> " in page
    assert report.table_md(settings, collect(settings, root), root) == texts["table.md"]


def test_lines_are_shown_with_the_outputs_of_all_rows(tree):
    root, settings = tree
    shown, _ = lines_of_sets(ReportData(settings, collect(settings, root), root))
    assert [*shown.outputs] == ["tiny, bpe-en-de", "tiny, words-en-de", *map(", ".join, OTHERS[1:])]
    for place in ERRORS:
        file = root / Run(*place, 1).results_folder / "hypotheses/test.only.de"
        assert shown.outputs[", ".join(place)] == [*read_lines(file)]


@pytest.mark.usefixtures("all_samples")
def test_two_preparations_are_compared(copy, monkeypatch):
    root, settings = copy
    records = collect(settings, root)
    records.save(root / RESULTS)
    monkeypatch.chdir(root)
    parts = [*compare("tiny, bpe-en-de", "tiny,words-en-de", sentences=1)]
    assert parts[0] == "tiny, bpe-en-de and tiny, words-en-de"
    scores = [part for part in parts if isinstance(part, Table)][-1]
    (row,) = [texts for texts in map(scores.texts, scores.rows) if texts[2] == "BLEU"]
    found = bleu_of(records, "tiny", "words-en-de")
    assert row[5] == f"{found.difference:+.1f}" and row[6].split()[0] == f"{found.p:.3f}"
    assert any("line " in part for part in parts if isinstance(part, str))
    # a system on other lines is not tested, nor are lines set beside each other
    other = [*compare("tiny, bpe-en-de", "small, talks-en-de")]
    scores = [part for part in other if isinstance(part, Table)][-1]
    assert {scores.texts(row)[6] for row in scores.rows} == {"–"}
    assert not any("line " in part for part in other if isinstance(part, str))


def test_a_row_says_what_differs_in_its_preparation():
    settings = SETTINGS["ablations-multi30k"]
    about = describe_rows(settings, dict.fromkeys(settings.corpora, "en-de"))
    assert about["small, bpe-4000"] == about["small"] and about["small"].startswith("1 + 1 layers")
    assert about["small, bpe-2000"] == "bpe.num_merges 2000"
    assert about["small, words"].startswith("words.joint true, ")
    own = "bpe_dropout 0.1, corpora bpe-4000"
    assert about["small-bpe-dropout, bpe-4000"] == own
    assert about["small-bpe-dropout, lower"] == f"{own}; tokenize.lowercase true"


@pytest.mark.parametrize(
    ("value", "significant", "text"),
    [
        (0.04, True, "+0.04"),
        (-0.0049, True, "-0.005"),
        (0.06, True, "+0.1"),
        (0.04, False, "+0.0"),
        (-0.04, False, "+0.0"),
        (0.0, True, "+0.0"),
        (-12.34, True, "-12.3"),
    ],
)
def test_a_significant_difference_does_not_read_as_nothing(value, significant, text):
    assert format_difference(value, significant) == text


def test_no_mark_stands_on_a_difference_of_nothing():
    def small(bleu, p):
        rows = (
            record("tiny", "news-en-de", "only", 40.0),
            record("small", "news-en-de", "only", bleu, **against("tiny", p)),
        )
        return frame(*rows)

    def shown(records):
        return rows_of(wide_bleu_table(score_frame(records)))["small"]["news-en-de, only Δ BLEU"]

    assert shown(small(40.04, 0.001)) == "+0.04‡ p=0.001"
    assert shown(small(39.97, 0.001)) == "-0.03‡ p=0.001"
    assert shown(small(40.04, 0.2)) == "+0.0 n.s. p=0.200"
    assert shown(small(40.0, 0.001)) == "+0.0 n.s. p=0.001"


def runs_of(*tests):
    """Cells with the texts of a test set: its corpus, name, languages and content."""
    names = ["corpus", "test", "source", "target", "sources_sha256", "references_sha256"]
    return pd.DataFrame([(*test, "50", test[1]) for test in tests], columns=names)


def test_tasks_are_named():
    tasks = task_names(
        runs_of(
            ("own", "only", "en", "de"),
            ("bpe", "news", "en", "de"),
            ("words", "news", "en", "de"),
            ("talks-en-fr", "talks", "en", "fr"),
        )
    )
    assert tasks == {
        "own": "own (en-de)",
        "bpe": "en-de (bpe, …)",
        "words": "en-de (bpe, …)",
        "talks-en-fr": "talks-en-fr",
    }
    assert table_row_name("small", "own", tasks) == "small"
    assert table_row_name("small", "words", tasks) == "small, words"


def test_a_corpus_of_several_pairs_is_a_task_without_a_pair():
    tests = [("many", "en-de-news", "en", "de"), ("many", "de-fr-news", "de", "fr")]
    assert task_names(runs_of(*tests)) == {"many": "many"}
    others = [("more", *test[1:]) for test in tests]
    assert task_names(runs_of(*tests, *others)) == dict.fromkeys(("many", "more"), "many, …")
