"""Scores by document in the report, of outputs whose documents differ and whose lines do not."""

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
from result_rows import frame, measured, record, rows_of, score_of

CORPUS, TEST = "news-en-de", "first"
# All lines, and those of each document.
GROUPS = ("", "document")
# Eight documents of thirteen lines, the last of nine. The baseline has these wrong in part;
# small has the last one of them right. The first is named so that HTML has to escape it.
WRONG = {"tiny": (4, 5, 6, 7), "small": (4, 5, 6)}
IDS = ["<i>\u2028&", *(f"talk.{number}" for number in range(1, 8))]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("documents")
    settings = trees.settings_in(root, corpora={CORPUS: (TEST,)})
    ids = [IDS[line // 13] for line in range(100)]
    trees.write_lines(download_folder(CORPUS, root) / f"test.{TEST}.documents", ids)
    trees.write_all(root, settings)
    references = [*read_lines(corpus_folder(CORPUS, "split", root) / f"test.{TEST}.de")]
    for system, wrong in WRONG.items():
        lines = [
            " ".join("x" if line // 13 in wrong and n % 4 == 2 else w for n, w in enumerate(of))
            for line, of in enumerate(line.split(" ") for line in references)
        ]
        trees.translate(root, settings, Run(system, CORPUS, 1), TEST, lines)
    collect(settings, root).save(root / RESULTS)
    return root, settings, load(root)


def test_records_have_intervals_and_tests_by_document(made):
    records = made[2]
    for system in ("tiny", "small"):
        by_line, by_document = (score_of(records, system, "bleu", group) for group in GROUPS)
        assert by_line.value == by_document.value
        assert by_document.ci_high - by_document.ci_low > 1.3 * (by_line.ci_high - by_line.ci_low)
    assert isnan(score_of(records, "tiny", "bleu", "document").difference)
    # nine of 100 lines are better, and one of eight documents
    of_lines, of_documents = (score_of(records, "small", "bleu", group) for group in GROUPS)
    assert of_lines.p < 0.05 < of_documents.p
    assert trees.WORD not in (made[0] / RESULTS).read_text("utf-8")


def test_table_and_page_say_how_much_wider_it_is(made):
    root, settings, records = made
    by_line, by_document = (score_of(records, "tiny", "bleu", group) for group in GROUPS)
    rows = rows_of(pivot_tables.document_table(score_frame(records)))
    assert rows[f"{CORPUS}, {TEST} (documents)"]["BLEU"] == "8"
    assert rows["tiny"]["BLEU"] == by_document.score_text and "[" in rows["tiny"]["d-BLEU"]
    times = f"{(by_document.ci_high - by_document.ci_low) / (by_line.ci_high - by_line.ci_low):.1f}"
    first, lost = document_notes(records)
    assert "the interval of BLEU is" in first and times in first
    assert "small from tiny in BLEU is significant by line" in lost
    table = table_md(settings, records, root)
    assert "## By document" in table and first in table and lost in table
    assert f"d-BLEU: `{score_of(records, 'tiny', 'dbleu', 'document').signature}`" in table
    assert first in summary_section(ReportData(settings, records, root)).body


def test_of_several_seeds_intervals_are_means():
    def row(seed, dbleu):
        by_document = {
            ("dbleu", "document"): measured("dbleu", dbleu, dbleu - 10, dbleu + 10, units=9),
            ("bleu", "document"): measured("bleu", 30, 27, 33, units=9),
        }
        return record("tiny", CORPUS, TEST, 30, seed=seed, metrics=by_document)

    other = record("tiny", CORPUS, "second", 31)
    grid = pivot_tables.document_table(score_frame(frame(row(1, 40.0), row(2, 42.0), other)))
    assert len(grid.rows) == 2  # with the name of the test set
    shown = rows_of(grid)["tiny"]
    assert (shown["d-BLEU"], shown["BLEU"]) == ("41.0 [31.0, 51.0]", "30.0 [27.0, 33.0]")


def test_nothing_is_shown_where_no_document_is_said():
    records = frame(record("tiny", CORPUS, TEST, 30))
    assert pivot_tables.document_table(score_frame(records)) is None and not list(
        document_notes(records)
    )


def test_a_single_document_has_a_score_and_no_finding():
    by_document = {("dbleu", "document"): measured("dbleu", 40, 40, 40, units=1)}
    records = frame(record("tiny", CORPUS, TEST, 30, metrics=by_document))
    shown = rows_of(pivot_tables.document_table(score_frame(records)))["tiny"]
    assert shown["d-BLEU"].startswith("40.0")
    assert "BLEU" not in shown
    assert list(document_notes(records)) == []
