"""Two systems of a test set: their difference and lines."""

import dataclasses
from itertools import combinations

import pandas as pd
import pytest

import result_rows
import result_trees as trees
from bleuprint.report.page.context import ReportContext
from bleuprint.report.page.lines import SetLines, lines_of_sets
from bleuprint.report.page.pairs import matrix, pair_differences
from bleuprint.report.page.sentences import sentences
from bleuprint.report.paired import paired_t
from bleuprint.report.records import collect
from bleuprint.report.system_results import system_results


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
        (result,) = (each for each in context.results if each.system == system)
        assert result.difference
        assert tested["tiny", system] == (
            pytest.approx(result.difference.value, abs=1e-5),
            result.difference.p,
        )
    _, small, big = (result.bleu.mean for result in context.results)
    assert tested["small", "big"][0] == pytest.approx(big - small, abs=1e-5)
    assert 0 < tested["small", "big"][1] <= 1


def test_every_pair_is_on_the_page(context: ReportContext) -> None:
    section = sentences(context)
    assert section is not None
    assert section.body.count("BLEU of the row&#39;s system minus that of the column&#39;s") == 2


def test_with_several_seeds_the_t_test_is_of_all_systems() -> None:
    by_seed = {"base": (1.0, 2.0, 4.0), "a": (2.0, 4.0, 5.0), "b": (1.0, 2.0, 4.0)}
    rows = [
        result_rows.record(name, "c-en-de", "t", bleu, seed=seed)
        for name, scores in by_seed.items()
        for seed, bleu in enumerate(scores, 1)
    ]
    lines = SetLines("c", "t", ("en", "de"), [], [], {}, pd.DataFrame(), {}, 0)
    tested = pair_differences(lines, system_results(result_rows.frame(*rows)))
    assert tested["base", "a"] == (pytest.approx(4 / 3), paired_t([1.0, 2.0, 1.0]))
    assert tested["base", "b"] == (0.0, 1.0)
    grid = matrix(tested)
    assert grid is not None
    first, second, _ = (row.cells for row in grid.rows)
    assert first[:2] == ("base", "–") and first[2].startswith("-1.3 ")
    assert second[1].startswith("+1.3 ") and "n.s." in grid.rows[2].cells[1]
    assert matrix({("a", "b"): (1.0, 0.5)}) is None


def test_identical_outputs_do_not_differ(context: ReportContext) -> None:
    (lines,) = lines_of_sets(context)
    same = dataclasses.replace(
        lines,
        outputs=dict.fromkeys(("a", "b"), lines.outputs["tiny"]),
        measured=dict.fromkeys(("a", "b"), lines.measured["tiny"]),
    )
    tested = pair_differences(same, context.results)
    assert tested == {("a", "b"): (0.0, 1.0)}
