"""Contrastive tests in the report: intervals as scipy's, tests of pairs, refusals."""

import re
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.contrast.record import CONTRAST
from bleuprint.report import contrast_tables
from bleuprint.report.contrast_tables import wilson_interval
from bleuprint.report.frame import RESULTS, load, save
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.contrast import contrast as section_of
from bleuprint.report.records import collect
from bleuprint.report.report import table_md
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from result_rows import contrast, frame, record

CORPUS, TEST = "news-en-de", "first"


def write_contrast(
    root: Path, cell: Cell, failed: dict[str, list[int]], sha256: str = "ab", **changes: Any
) -> Path:
    """Outcomes of 100 pairs each."""
    phenomena = [{"name": n, "pairs": 100, "failed": pairs} for n, pairs in failed.items()]
    model = read_json(root / cell.results / "training.json")["fingerprint"]
    content = {"model": model, "tests": {TEST: {"sha256": sha256, "phenomena": phenomena}}}
    write_json(path := root / cell.results / CONTRAST, {**content, **changes})
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings]:
    """`small` fails 4 of the pairs of `case`, of which the baseline fails 20."""
    root = tmp_path_factory.mktemp("contrast")
    with pytest.MonkeyPatch.context() as patch:
        trees.few_samples(patch)
        settings = trees.settings_in(root, corpora={CORPUS: (TEST,)})
        trees.write_all(root, settings)
        for system, worse in (("tiny", 20), ("small", 4)):
            failed = {"number": [7], "case": [*range(1, worse + 1)]}
            write_contrast(root, Cell(system, CORPUS, 1), failed)
        save(collect(settings, root), root / RESULTS)
    return root, settings


@pytest.mark.parametrize(("correct", "of"), [(0, 9), (1, 3), (80, 100), (100, 100), (499, 1000)])
def test_intervals_are_scipys(correct: int, of: int) -> None:
    expected = binomtest(correct, of).proportion_ci(0.95, "wilson")
    assert wilson_interval(correct / of, of) == pytest.approx((expected.low, expected.high))


def test_outcomes_are_tested_pair_by_pair(made: tuple[Path, Settings]) -> None:
    records = load(made[0]).set_index("system")
    found = {s: {each["name"]: each for each in records.contrast[s]} for s in ("tiny", "small")}
    assert found["tiny"]["case"] == {
        "name": "case", "correct": 80, "low": 71.117083, "high": 86.663307, "of": 100, "p": None
    }  # fmt: skip
    # McNemar's exact test: all of 16 pairs that one of them fails are the baseline's
    assert found["small"]["case"]["p"] == round(2 * 0.5**16, 6)
    assert found["small"]["number"]["p"] == 1.0


def test_outcomes_are_in_every_table(made: tuple[Path, Settings]) -> None:
    root, settings = made
    records = load(root)
    table = contrast_tables.accuracies(records)
    assert table is not None and [column.label for column in table.columns[3:]] == [
        "number",
        "case",
    ]
    assert [row.cells for row in table.rows] == [
        ("tiny", CORPUS, TEST, "99 [95, 100]", "80 [71, 87]"),
        ("small", CORPUS, TEST, "99 [95, 100]", "96 [90, 98]‡"),
    ]
    (finding,) = contrast_tables.findings(records)
    assert finding == (
        "news-en-de, first: small tells 96 % of the pairs of 'case' apart, tiny 80 %: p<0.001‡"
    )
    assert finding in table_md(settings, records, root)
    assert finding in contrast_tables.parts(records)
    section = section_of(ReportContext(settings, records, root))
    assert section is not None and section.body.count("<svg") == 1
    # of the cell's color, not of the theme's, in which the cells stay as they are
    assert re.search(r'fill: #fefefe"[^>]*>96</text>', section.body)
    # the table, which says more, is folded below the picture
    assert section.body.index("<svg") < section.body.index("<details><summary>The figures with")
    assert section.body.index("<table") > section.body.index("<details><summary>The figures with")


def test_the_mean_over_seeds_has_the_interval_of_one_seeds_pairs() -> None:
    rows = [
        record("base", "news-en-de", "t", 30.0, seed=seed, contrast=[contrast("case", correct)])
        for seed, correct in ((1, 70), (2, 81))
    ]
    table = contrast_tables.accuracies(frame(*rows))
    low, high = wilson_interval(0.755, 100)
    assert table is not None
    assert table.rows[0].cells[3] == f"76 [{100 * low:.0f}, {100 * high:.0f}]" == "76 [66, 83]"


def test_results_without_outcomes_are_read(made: tuple[Path, Settings], tmp_path: Path) -> None:
    rows = [{n: v for n, v in r.items() if n != "contrast"} for r in read_json(made[0] / RESULTS)]
    write_json(tmp_path / RESULTS, rows)
    records = load(tmp_path)
    assert contrast_tables.means(records) is None and contrast_tables.findings(records) == []
    assert list(contrast_tables.parts(records)) == []
    records["contrast"] = [[] for _ in range(len(records))]  # no test set has a pair
    assert contrast_tables.accuracies(records) is None


def test_outcomes_that_do_not_belong_together_are_refused(
    made: tuple[Path, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, settings = made
    trees.few_samples(monkeypatch)
    cell = Cell("small", CORPUS, 1)
    before = (path := root / cell.results / CONTRAST).read_bytes()
    for changes, message in (
        ({"sha256": "cd"}, "tested on other pairs of first than other systems or seeds"),
        ({"model": "another"}, "of another training than that of training.json"),
        ({"tests": {}}, "no test set 'first' for system small"),
    ):
        write_contrast(root, cell, {"number": [7], "case": []}, **changes)  # type: ignore[arg-type]
        with pytest.raises(UserError, match=f"{CONTRAST}: {message}"):
            collect(settings, root)
    path.write_bytes(before)
