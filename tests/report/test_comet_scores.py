"""COMET in the records and tables, by scores of lines that are made up."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp, ttest_rel

import result_trees as trees
from bleuprint.config.comet import Comet
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report import compare_tables, main_table
from bleuprint.report.comet_scores import (
    check_one_signature,
    comet_columns,
    comet_scores,
    paired_comet,
)
from bleuprint.report.frame import RESULTS, load, save
from bleuprint.report.paired_runs import PairedRuns, PairedScores
from bleuprint.report.records import check_settings, collect
from bleuprint.report.report import table_md
from bleuprint.report.system_results import (
    METRICS,
    holm,
    of_metric,
    system_results,
    with_differences,
)
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, sha256_of, write_json
from bleuprint.scoring.human_agreement import COEFFICIENTS, human_agreement
from bleuprint.scoring.significance import PairedTest, paired_test_of_means
from bleuprint.serving.score_outside import score_outside
from bleuprint.tracking.cell_results import CellResults, cells_of
from result_rows import against, frame, record

SHA256 = "c0" * 32
TINY, SMALL = (Cell(system, "news-en-de", 1) for system in ("tiny", "small"))

_DIFFERENCES = [
    name
    for metric in METRICS
    for column in ("difference", "p", "p_holm", "human_agreement")
    if (name := of_metric(metric, column)) not in ("chrf2pp_human_agreement", "ter_human_agreement")
]


def signature(name: str, version: str = "2.2.7") -> str:
    return f"Python3.11.2|Comet{version}|fp32|{name}|r1"


def with_comet(root: Path, settings: Settings, name: str = "wmt22-comet-da") -> Settings:
    """Write comet.json of all cells: the second system is a little better on most lines."""
    for cell in cells_of(settings):
        scored = read_json(root / cell.results / "scores.json")
        drawn = np.random.default_rng(cell.seed)
        content = {}
        for test, of_test in scored.items():
            quality = drawn.normal(0.8, 0.05, (2, of_test["lines"])).round(6)
            better = 0.004 + (quality[1] - 0.8) / 8
            segments = (quality[0] + better * (cell.system == "small")).round(6)
            content[test] = {
                "score": round(float(segments.mean()), 6),
                "signature": signature(name),
                "model": SHA256,
                "segments": segments.tolist(),
                **{side: of_test[side] for side in ("sources", "references", "hypotheses")},
            }
        write_json(root / cell.results / "comet.json", content)
    return replace(settings, comet={name: Comet("comet/bin/python", "comet/model", SHA256)})


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Settings]:
    root = tmp_path_factory.mktemp("comet")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)})
    trees.write_all(root, settings)
    return root, with_comet(root, settings)


def opened(root: Path, settings: Settings, cell: Cell) -> CellResults:
    return CellResults.open(settings, cell, root)


@pytest.mark.usefixtures("all_samples")
def test_interval_and_tests_are_those_of_resamples_by_hand(
    one_seed: tuple[Path, Settings],
) -> None:
    root, settings = one_seed
    tiny, small = (opened(root, settings, cell) for cell in (TINY, SMALL))
    first, second = (
        100 * np.array(comet_scores(run, "first")["segments"]) for run in (tiny, small)
    )
    columns = comet_columns(tiny, "first")
    assert columns["comet"] == pytest.approx(first.mean(), abs=1e-4)
    drawn = np.random.default_rng(12345).choice(40, size=(1000, 40))
    means = np.sort([first[row].mean() for row in drawn])
    half = (means[974] - means[25]) / 2
    expected = means.mean() - half, means.mean() + half
    assert (columns["comet_low"], columns["comet_high"]) == pytest.approx(expected, abs=1e-5)
    # about 1.96 standard errors of a mean
    assert half == pytest.approx(1.96 * first.std(ddof=1) / 40**0.5, rel=0.1)

    signs = np.random.default_rng(12345).integers(2, size=(10_000, 40), dtype=bool)
    noisy = first + np.random.default_rng(7).normal(0.8, 4.0, 40)
    for other, tested in (
        (second, paired_comet(small, tiny, "first")),
        (noisy, paired_test_of_means(list(first), list(noisy))),
    ):
        deltas = np.array([other[row].mean() - first[row].mean() for row in drawn])
        difference = abs(other.mean() - first.mean())
        above = np.abs(deltas) - np.abs(deltas).mean() > difference
        assert tested.bootstrap == pytest.approx((above.sum() + 1) / 1001, abs=1e-6)
        assert tested.standard_error == pytest.approx(deltas.std(ddof=1), abs=1e-5)
        swapped = np.abs(np.where(signs, other - first, first - other).mean(1))
        p = ((swapped > difference + 1e-12).sum() + 1) / 10_001
        assert tested.randomization == pytest.approx(p, abs=1e-6)
    assert 0.02 < tested.bootstrap < 0.9 and 0.02 < tested.randomization < 0.9
    # about that of a two-sided t-test
    t_test = ttest_rel(first, noisy).pvalue
    assert tested.randomization == pytest.approx(t_test, abs=0.03)
    assert paired_comet(tiny, tiny, "first") == PairedTest(1.0, 1.0, 0.0)


def test_agreement_of_people_is_by_the_coefficients_of_the_model(
    one_seed: tuple[Path, Settings], tmp_path: Path
) -> None:
    root, settings = one_seed
    records = collect(settings, root)
    save(records, tmp_path / "reports" / "results.json")
    assert load(tmp_path).comet_p.equals(records.comet_p)
    (difference,) = (
        result.differences["comet"] for result in system_results(records) if result.differences
    )
    a, b, _ = COEFFICIENTS["wmt22-comet-da"]
    expected = a / (1 + np.exp(-b * difference.value))
    assert 0.2 < difference.value < 0.6 and difference.p < 0.05
    assert difference.agreement == pytest.approx(expected) and 60 < expected < 85
    row = records[records.system == "small"].iloc[0]
    assert row.comet_human_agreement == pytest.approx(expected, abs=1e-4)
    table = table_md(settings, records, root)
    part = table.partition("## COMET\n")[2].partition("\n## ")[0]
    assert f"{expected:.0f} % |" in part and f"{difference.value:+.1f}" in part
    assert f"COMET: `{signature('wmt22-comet-da')}`" in table
    grid = main_table.scores(records, ["comet"], {})
    assert grid in main_table.parts(records)  # on the terminal
    labels = [column.label for column in grid.columns]
    assert labels == ["System", "COMET", "COMET difference", "COMET people agree"]
    # that of a model that they did not look at is not known
    names = {"comet_signature": signature("own-model")}
    other = with_differences(records.drop(columns=_DIFFERENCES).assign(**names))
    assert other.comet_human_agreement.isna().all() and other.comet_p.equals(records.comet_p)


def test_over_seeds_the_difference_is_tested_by_t() -> None:
    named = {"comet_signature": signature("wmt22-comet-da")}
    rows = [
        record(system, "news-en-de", "first", 20, seed=seed, comet=comet, **named, **tested)
        for system, tested, scores in (
            ("base", {}, (80.0, 80.4, 80.2)),
            ("big", against("base", 0.4), (81.0, 81.3, 81.5)),
        )
        for seed, comet in enumerate(scores)
    ]
    _, result = system_results(frame(*rows))
    assert str(result.scores["comet"]) == "81.3 ± 0.3"
    difference = result.differences["comet"]
    assert difference.p == pytest.approx(ttest_1samp([1.0, 0.9, 1.3], 0).pvalue, abs=1e-5)
    assert difference.randomization is None and difference.agreement_text == "92 %"


def test_rows_without_comet_are_not_counted_by_holm() -> None:
    assert holm([0.04, float("nan"), 0.01]) == pytest.approx(
        [0.04, float("nan"), 0.02], nan_ok=True
    )


def test_compare_has_a_row_of_comet(one_seed: tuple[Path, Settings]) -> None:
    root, settings = one_seed
    tiny, small = (opened(root, settings, cell) for cell in (TINY, SMALL))
    runs = PairedRuns([tiny], [small], "first")
    *_, scores = runs.scores()
    row = compare_tables.score_row(runs, scores)
    means = [fmean(comet_scores(run, "first")["segments"]) for run in (tiny, small)]
    difference = 100 * (means[1] - means[0])
    p = paired_comet(small, tiny, "first").bootstrap
    people = human_agreement("wmt22-comet-da", difference)
    shown = [f"{100 * mean:.1f}" for mean in means]
    assert row.cells[2:] == ("COMET", *shown, f"{difference:+.1f}", f"{p:.3f}", f"{people:.0f} %")
    # but not beside a side that has none
    without = opened(root, replace(settings, comet=None), SMALL)
    *_, scores = PairedRuns([tiny], [without], "first").scores()
    assert scores.label == "TER"


def test_compare_tells_what_people_say_of_significant_differences_between_languages(
    one_seed: tuple[Path, Settings],
) -> None:
    root, settings = one_seed

    def agreement(settings: Settings, p: float) -> str:
        tiny, small = ([opened(root, settings, cell)] for cell in (TINY, SMALL))
        scores = PairedScores("BLEU", "BLEU", [20.0], [20.4], [p])
        return str(compare_tables.score_row(PairedRuns(tiny, small, "first"), scores).cells[-1])

    assert (agreement(settings, 0.04), agreement(settings, 0.06)) == ("53 %", "–")
    corpus = replace(settings.corpora["news-en-de"], target="sym")
    symbols = replace(settings, corpora={"news-en-de": corpus})
    assert agreement(symbols, 0.04) == "–"


def test_a_row_from_outside_has_the_scores_of_equal_translations(
    one_seed: tuple[Path, Settings], tmp_path: Path
) -> None:
    root = shutil.copytree(one_seed[0], tmp_path / "copy")
    made, path = root / SMALL.results / "hypotheses/test.first.de", "inputs/outside/a.de"
    (root / "inputs/outside").mkdir(parents=True)
    shutil.copyfile(made, root / path)
    tests = {"first": {"path": path, "sha256": sha256_of(made)}}
    rows = {"news-en-de": {"online-a": {"about": "system A", "tests": tests}}}
    made_here = trees.settings_in(root, corpora={"news-en-de": ("first",)}, outside=rows)
    settings = replace(made_here, comet=one_seed[1].comet)
    score_outside(settings, "news-en-de", root)
    stage = "comet_outside@wmt22-comet-da-news-en-de"
    with pytest.raises(UserError, match=r"online-a\.json: no such file; run: dvc repro"):
        collect(settings, root)
    file = root / "results/outside/news-en-de.comet/online-a.json"
    file.parent.mkdir()
    shutil.copyfile(root / SMALL.results / "comet.json", file)
    small, online = (
        dict(row)
        for system in ("small", "online-a")
        for _, row in collect(settings, root).query(f"system == '{system}'").iterrows()
    )
    columns = [name for name in small if name.startswith("comet") and "holm" not in name]
    assert [online[name] for name in columns] == [small[name] for name in columns]
    assert 0 < online["comet_p"] < 0.05 and online["comet_difference"] > 0
    write_json(file, {"first": read_json(file)["first"] | {"model": "ab" * 32}})
    with pytest.raises(UserError, match=f"of a model with .*{stage}"):
        collect(settings, root)


def test_a_report_without_comet_is_not_that_of_settings_with_it(
    one_seed: tuple[Path, Settings],
) -> None:
    root, settings = one_seed
    records = collect(settings, root)
    check_settings(records, settings, RESULTS)
    without = records.assign(comet=None)
    check_settings(without, replace(settings, comet=None), RESULTS)
    for each, of in ((without, settings), (records, replace(settings, comet=None))):
        with pytest.raises(UserError, match="was made with another params"):
            check_settings(each, of, RESULTS)


def test_without_a_model_nothing_is_shown(one_seed: tuple[Path, Settings]) -> None:
    root, settings = one_seed
    run = opened(root, replace(settings, comet=None), TINY)
    assert set(comet_columns(run, "first").values()) == {None}
    records = frame(record("base", "news-en-de", "first", 20))
    assert records.filter(regex="^comet").isna().all(axis=None)
    assert len(main_table.scores(records, ["comet"], {}).columns) == 1
    assert not any("COMET" in str(part) for part in main_table.parts(records))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda of: of.update(model="ab" * 32), "of a model with SHA-256 abab"),
        (lambda of: of.update(hypotheses="ab" * 32), "of other hypotheses of first than scores"),
        (lambda of: of.update(score=0.9), "0.9 on first is not that of its lines"),
        (lambda of: of["segments"].pop(), "is not that of its lines"),
        (lambda of: of.pop("signature"), "damaged, or of another version"),
    ],
)
def test_scores_that_do_not_belong_here(
    one_seed: tuple[Path, Settings], change: Callable[[dict[str, Any]], None], message: str
) -> None:
    root, settings = one_seed
    run = opened(root, settings, SMALL)
    path = run.path / "comet.json"
    before = path.read_bytes()
    content = read_json(path)
    change(content["first"])
    write_json(path, content)
    with pytest.raises(UserError, match=f"{message}.*run: dvc repro"):
        comet_scores(run, "first")
    path.unlink()
    with pytest.raises(UserError, match=r"comet\.json: no such file; run: dvc repro"):
        comet_scores(run, "first")
    path.write_bytes(before)


def test_scores_of_two_versions_of_comet() -> None:
    signatures = [signature("own", version) for version in ("2.2.7", "2.2.2")]
    records = pd.DataFrame({"comet_signature": [*signatures, None]})
    check_one_signature(records[1:])
    with pytest.raises(UserError, match=r"different versions: .*Comet2\.2\.7.* and .*Comet2\.2\.2"):
        check_one_signature(records)
