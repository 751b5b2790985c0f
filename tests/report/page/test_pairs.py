"""Two systems of a test set: their difference and lines."""

from itertools import combinations

import pandas as pd
import pytest

import result_rows
import result_trees as trees
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.lines import SetLines, lines_of_sets
from bleuprint.report.page.pairs import Difference, matrix, pair_differences, pairs
from bleuprint.report.page.sentences import sentences
from bleuprint.report.records import collect
from bleuprint.report.system_results import paired_t, system_results


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ReportContext:
    root = tmp_path_factory.mktemp("pairs")
    settings = trees.settings_in(root, ("tiny", "small", "big"), {"news-en-de": ("first",)})
    trees.write_all(root, settings)
    return ReportContext(settings, collect(settings, root), root)


def test_differences_are_those_of_the_scores(context: ReportContext) -> None:
    """Of the baseline's pairs value and p are sacreBLEU's, which the records hold."""
    (lines,) = lines_of_sets(context)
    tested = pair_differences(lines, context.results)
    assert list(tested) == list(combinations(("tiny", "small", "big"), 2))
    for system in ("small", "big"):
        (record,) = context.records[context.records.system == system].itertuples()
        assert tested["tiny", system].value == pytest.approx(record.difference, abs=1e-5)
        assert tested["tiny", system].p == record.p_bootstrap
    bleu = context.records.set_index("system").bleu
    assert tested["small", "big"].value == pytest.approx(bleu.big - bleu.small, abs=1e-5)
    assert 0 < tested["small", "big"].p <= 1


def test_every_pair_is_on_the_page(context: ReportContext) -> None:
    section = sentences(context)
    assert section is not None
    assert section.body.count("<details data-pair=") == 3
    assert section.body.count("BLEU of the row&#39;s system minus that of the column&#39;s") == 2


def test_with_several_seeds_the_t_test_is_of_all_systems() -> None:
    by_seed = {"base": (1.0, 2.0, 4.0), "a": (2.0, 4.0, 5.0), "b": (1.0, 2.0, 4.0)}
    rows = [
        result_rows.record(name, "c-en-de", "t", bleu, seed=seed)
        for name, scores in by_seed.items()
        for seed, bleu in enumerate(scores, 1)
    ]
    tested = pair_differences(made([0.0], [0.0]), system_results(result_rows.frame(*rows)))
    assert tested["base", "a"] == Difference(pytest.approx(4 / 3), paired_t([1.0, 2.0, 1.0]))
    assert tested["base", "b"] == Difference(0.0, 1.0)
    grid = matrix(tested)
    assert grid is not None
    first, second, _ = (row.cells for row in grid.rows)
    assert first[:2] == ("base", "–") and first[2].startswith("-1.3 ")
    assert second[1].startswith("+1.3 ") and "n.s." in grid.rows[2].cells[1]
    assert matrix({("a", "b"): Difference(1.0, 0.5)}) is None


def made(first: list[float], second: list[float]) -> SetLines:
    """Lines of two systems with these scores."""
    texts = ["x"] * len(first)
    outputs = {"base": texts, "a": [*texts[1:], "y"]}
    bleu = pd.DataFrame({"base": first, "a": second})
    return SetLines("c", "t", ("en", "de"), texts, texts, outputs, bleu, 0)


def test_lines_are_counted_by_their_scores() -> None:
    lines = made([0.0, 9.99, 10.0, 99.9, 100.0], [100.0, 5.0, 10.0, 100.0, 100.0])
    (pair,) = pairs(lines, {("base", "a"): Difference(1.0, 0.5)})
    assert (pair.better, pair.worse, pair.same) == (2, 1, 2)


def test_identical_outputs_do_not_differ(context: ReportContext) -> None:
    (lines,) = lines_of_sets(context)
    same = SetLines(**{**vars(lines), "outputs": dict.fromkeys(("a", "b"), lines.outputs["tiny"])})
    tested = pair_differences(same, context.results)
    assert tested == {("a", "b"): Difference(0.0, 1.0)}
