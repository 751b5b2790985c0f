"""Scores by document in the report, of outputs whose documents differ and whose lines do not."""

import re
from pathlib import Path

import pandas as pd
import pytest

import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell, folder, given
from bleuprint.report import document_tables
from bleuprint.report.frame import RESULTS, csv_text, load, save
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.summary import summary
from bleuprint.report.records import collect
from bleuprint.report.report import table_md
from bleuprint.runtime.errors import UserError
from bleuprint.scoring.score import score_cell
from result_rows import frame, record, rows_of

CORPUS, TEST = "news-en-de", "first"
# Eight documents of five lines, of which the baseline has these wrong in part; small has the last
# one of them right. The first is named so that HTML has to escape it.
WRONG = {"tiny": (4, 5, 6, 7), "small": (4, 5, 6)}
IDS = ["<i>\u2028&", *(f"talk.{number}" for number in range(1, 8))]


def translated(root: Path, settings: Settings, system: str) -> None:
    references = (folder(CORPUS, "split", root) / f"test.{TEST}.de").read_text("utf-8")
    lines = [
        " ".join("x" if line // 5 in WRONG[system] and n % 4 == 2 else w for n, w in enumerate(of))
        for line, of in enumerate(line.split(" ") for line in references.split("\n")[:-1])
    ]
    cell = Cell(system, CORPUS, 1)
    trees.write_lines(root / cell.results / "hypotheses" / f"test.{TEST}.de", lines)
    trees.write_translation(root, settings, cell)
    trees.write_maps(root, settings, cell)
    score_cell(settings, *cell, root)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings, pd.DataFrame]:
    root = tmp_path_factory.mktemp("documents")
    with pytest.MonkeyPatch.context() as patch:
        trees.few_samples(patch)
        settings = trees.settings_in(root, corpora={CORPUS: (TEST,)})
        ids = [IDS[line // 5] for line in range(40)]
        trees.write_lines(given(CORPUS, root) / f"test.{TEST}.documents", ids)
        trees.write_all(root, settings)
        for system in WRONG:
            translated(root, settings, system)
        save(collect(settings, root), root / RESULTS)
    return root, settings, load(root)


def test_records_and_csv_have_the_interval_by_document(
    made: tuple[Path, Settings, pd.DataFrame],
) -> None:
    records = made[2].set_index("system")
    for system, row in records.iterrows():
        assert [each["document"] for each in row.by_document] == IDS
        right = [each["bleu"] == pytest.approx(100) for each in row.by_document]
        assert right == [number not in WRONG[system] for number in range(8)]
        width = row.bleu_document_high - row.bleu_document_low
        assert width > 1.3 * (row.bleu_high - row.bleu_low)
    assert pd.isna(records.document_p_bootstrap["tiny"])
    # five of 40 lines are better, and one of eight documents
    assert records.p_bootstrap["small"] < 0.05 < records.document_p_bootstrap["small"]
    line = dict(zip(*(r.split(",") for r in csv_text(made[2]).split("\n")[:2]), strict=False))
    assert float(line["bleu_document_low"]) == records.bleu_document_low["tiny"]
    assert trees.WORD not in (made[0] / RESULTS).read_text("utf-8")


def test_table_and_page_say_how_much_wider_it_is(
    made: tuple[Path, Settings, pd.DataFrame],
) -> None:
    root, settings, records = made
    tiny = records.iloc[0]
    grid = document_tables.scores(records)
    assert grid is not None
    rows = rows_of(grid)
    low, high = tiny.bleu_document_low, tiny.bleu_document_high
    assert rows["tiny"]["BLEU by document"] == f"{tiny.bleu:.1f} [{low:.1f}, {high:.1f}]"
    times = f"{(high - low) / (tiny.bleu_high - tiny.bleu_low):.1f}"
    assert rows["tiny"]["BLEU times as wide"] == times and rows["tiny"]["Documents"] == "8"
    assert re.fullmatch(r"p=0\.\d{3} n\.s\. \(by line p=0\.0\d\d\)", rows["small"]["BLEU p"])
    first, lost = document_tables.findings(records)
    assert f"by document [{low:.1f}, {high:.1f}]" in first and f"{times}" in first
    assert "fewer than 20 documents" in first
    assert "small from tiny in BLEU is significant by line" in lost
    table = table_md(settings, records, root)
    assert "## By document" in table and first in table and lost in table
    assert f"d-BLEU, of documents in one line each: `{tiny.dbleu_signature}`" in table
    context = ReportContext(settings, records, root)
    assert first in summary(context).body


def test_means_over_seeds_have_no_test_by_document() -> None:
    by_document = {
        "by_document": [{"document": "a", "lines": 9, "bleu": 10, "chrf": 20}] * 2,
        **{"dbleu": 40.0, "dbleu_low": 30.0, "dbleu_high": 50.0},
    }
    for metric, score in (("bleu", 30), ("chrf2", 50)):
        by_document[f"{metric}_document_low"] = score - 3
        by_document[f"{metric}_document_high"] = score + 3
    records = frame(
        record("tiny", "news-en-de", "first", 30, **by_document),
        record("tiny", "news-en-de", "first", 31, **{**by_document, "dbleu": 42.0}, seed=2),
        record("tiny", "news-en-de", "second", 31),
    )
    grid = document_tables.scores(records)
    assert grid is not None and len(grid.rows) == 1
    row = rows_of(grid)["tiny"]
    assert row["d-BLEU"] == "41.0 ± 1.4 [30.0, 50.0]" and row["BLEU times as wide"] == "2.0"
    assert not any(head.endswith(" p") for head in row)


def test_nothing_is_shown_where_no_document_is_said() -> None:
    records = frame(record("tiny", "news-en-de", "first", 30))
    assert document_tables.scores(records) is None
    assert list(document_tables.parts(records)) == list(document_tables.findings(records)) == []


def test_scores_of_before_the_documents_were_known_are_refused(
    tmp_path: Path,
) -> None:
    settings = trees.settings_in(tmp_path, corpora={CORPUS: (TEST,)})
    trees.write_all(tmp_path, settings)
    path = given(CORPUS, tmp_path) / f"test.{TEST}.documents"
    trees.write_lines(path, ["one"] * 39)
    with pytest.raises(UserError, match=rf"{path} has 39 lines and the test set has 40; run: dvc"):
        trees.describe(tmp_path, settings, CORPUS)
    trees.write_lines(path, ["one"] * 40)
    trees.describe(tmp_path, settings, CORPUS)
    with pytest.raises(
        UserError, match=r"scores\.json: documents of first are not those .* score@"
    ):
        collect(settings, tmp_path)
