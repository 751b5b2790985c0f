"""Scores by document: the bootstrap resamples whole documents instead of lines.

Lines of one document resemble each other, so an interval over documents is wider.
"""

from math import isnan

import pytest

import result_trees as trees
from bleuprint.config.paths import Run, corpus_folder, download_folder
from bleuprint.report import pivot_tables
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.notes import document_notes
from bleuprint.report.page.report_data import ReportData
from bleuprint.report.page.summary import summary_section
from bleuprint.report.records import collect
from bleuprint.report.report import table_md
from bleuprint.report.score_frame import score_frame
from bleuprint.text.parallel import read_lines
from result_rows import measured, record, records_from_rows, rows_of, score_of
from result_trees import Experiment

CORPUS = "news-en-de"
# The ids of eight documents. HTML has to escape the first one.
DOCUMENT_IDS = [
    "<i>\u2028&",
    "talk.1",
    "talk.2",
    "talk.3",
    "talk.4",
    "talk.5",
    "talk.6",
    "talk.7",
]
LINES_OF_A_DOCUMENT = 13


def replace_each_fourth_word(line):
    """Return a line in which the third word of each four is wrong."""
    words = line.split(" ")
    for number in range(2, len(words), 4):
        words[number] = "x"
    return " ".join(words)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Return results on 100 lines in eight documents: seven of 13 lines and the last of nine.

    Tiny translates the documents 4 to 7 with errors, and small the documents 4 to 6. So small is
    better in the nine lines of the last document, and equal in all other lines.
    """
    root = tmp_path_factory.mktemp("documents")
    settings = trees.settings_in(root, corpora={CORPUS: ("first",)})
    ids_by_line = [DOCUMENT_IDS[line // LINES_OF_A_DOCUMENT] for line in range(100)]
    trees.write_lines(download_folder(CORPUS, root) / "test.first.documents", ids_by_line)
    trees.write_all(root, settings)
    references = list(read_lines(corpus_folder(CORPUS, "split", root) / "test.first.de"))
    for system, damaged_documents in (("tiny", (4, 5, 6, 7)), ("small", (4, 5, 6))):
        translations = []
        for number, line in enumerate(references):
            if number // LINES_OF_A_DOCUMENT in damaged_documents:
                line = replace_each_fourth_word(line)
            translations.append(line)
        trees.translate(root, settings, Run(system, CORPUS, 1), "first", translations)
    collect(settings, root).save(root / RESULTS)
    return Experiment(root, settings)


@pytest.fixture(scope="module")
def records(experiment):
    """Return the saved records of the experiment."""
    return load(experiment.root)


def interval_width(score):
    """Return the width of the confidence interval of a score."""
    return score.ci_high - score.ci_low


@pytest.mark.parametrize("system", ["tiny", "small"])
def test_the_interval_over_documents_is_wider_than_the_one_over_lines(records, system):
    """Eight documents of about 13 lines are either translated correctly or with errors.

    Lines of one document resemble each other, so eight documents show less than 100 lines.
    """
    by_line = score_of(records, system, "bleu")
    by_document = score_of(records, system, "bleu", "document")

    assert by_line.value == by_document.value
    assert interval_width(by_document) > 1.3 * interval_width(by_line)


def test_a_difference_in_one_document_is_significant_over_lines_only(records):
    """Small is better than tiny in nine of 100 lines, but in one of eight documents."""
    assert score_of(records, "small", "bleu").p < 0.05
    assert score_of(records, "small", "bleu", "document").p > 0.05


def test_the_baseline_is_not_tested_over_documents(records):
    assert isnan(score_of(records, "tiny", "bleu", "document").difference)


def test_results_by_document_contain_no_sentence(experiment):
    """Each word of the corpus begins with WORD."""
    assert trees.WORD not in (experiment.root / RESULTS).read_text("utf-8")


def test_the_document_table_shows_the_number_of_documents_and_both_scores(records):
    """The test set has eight documents.

    d-BLEU is BLEU of whole documents, whose n-grams may cross the ends of lines.
    """
    rows = rows_of(pivot_tables.document_table(score_frame(records)))

    assert rows["news-en-de, first (documents)"]["BLEU"] == "8"
    bleu_with_interval = score_of(records, "tiny", "bleu", "document").score_text
    assert rows["tiny"]["BLEU"] == bleu_with_interval
    begin_of_interval = "["
    assert begin_of_interval in rows["tiny"]["d-BLEU"]


def test_a_note_says_how_much_wider_the_interval_over_documents_is(records):
    width_by_line = interval_width(score_of(records, "tiny", "bleu"))
    width_by_document = interval_width(score_of(records, "tiny", "bleu", "document"))

    width_note, _ = document_notes(records)

    assert "the interval of BLEU is" in width_note
    assert f"{width_by_document / width_by_line:.1f}" in width_note


def test_a_note_names_differences_that_are_significant_over_lines_only(records):
    _, significance_note = document_notes(records)

    assert "small from tiny in BLEU is significant by line" in significance_note


def test_table_md_contains_the_document_table_its_notes_and_the_signature(experiment, records):
    text = table_md(experiment.settings, records, experiment.root)

    assert "## By document" in text
    for note in document_notes(records):
        assert note in text
    signature_of_dbleu = score_of(records, "tiny", "dbleu", "document").signature
    assert f"d-BLEU: `{signature_of_dbleu}`" in text


def test_the_summary_of_the_page_says_how_much_wider_the_interval_is(experiment, records):
    data = ReportData(experiment.settings, records, experiment.root)

    width_note, _ = document_notes(records)
    assert width_note in summary_section(data).body


def document_record(dbleu, interval, documents, **changes):
    """Return a record with a score over documents.

    Args:
        dbleu: The value of d-BLEU.
        interval: How far the ends of its interval are from it.
        documents: The number of documents.
        changes: What else differs from the usual record, and other metrics by key and group.
    """
    entry = measured("dbleu", dbleu, dbleu - interval, dbleu + interval, units=documents)
    metrics = {("dbleu", "document"): entry}
    metrics.update(changes.pop("metrics", {}))
    return record("tiny", CORPUS, "first", bleu=30, metrics=metrics, **changes)


@pytest.fixture
def table_of_two_seeds():
    """Return the document table of tiny with two seeds; the test set `second` has no documents."""
    bleu = {("bleu", "document"): measured("bleu", 30, 27, 33, units=9)}
    rows = [
        document_record(40.0, interval=10, documents=9, seed=1, metrics=bleu),
        document_record(42.0, interval=10, documents=9, seed=2, metrics=bleu),
        record("tiny", CORPUS, "second", bleu=31),
    ]
    return pivot_tables.document_table(score_frame(records_from_rows(*rows)))


def test_scores_and_intervals_over_documents_are_means_over_seeds(table_of_two_seeds):
    cells = rows_of(table_of_two_seeds)["tiny"]

    assert cells["d-BLEU"] == "41.0 [31.0, 51.0]"
    assert cells["BLEU"] == "30.0 [27.0, 33.0]"


def test_a_test_set_without_documents_is_not_in_the_document_table(table_of_two_seeds):
    """The name of the test set `first` and its only system are the two rows."""
    assert len(table_of_two_seeds.rows) == 2


def test_without_documents_there_is_neither_table_nor_note():
    records = records_from_rows(record("tiny", CORPUS, "first", bleu=30))

    assert pivot_tables.document_table(score_frame(records)) is None
    assert list(document_notes(records)) == []


def test_a_single_document_has_a_score_but_no_note():
    """An interval needs several documents to draw from, and the notes compare intervals."""
    records = records_from_rows(document_record(40, interval=0, documents=1))

    cells = rows_of(pivot_tables.document_table(score_frame(records)))["tiny"]

    assert cells["d-BLEU"].startswith("40.0")
    assert "BLEU" not in cells  # This column would only show the interval.
    assert list(document_notes(records)) == []
