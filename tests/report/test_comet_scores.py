"""COMET in the records and tables, by scores of lines that are made up."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel

import result_trees as trees
from bleuprint.config.comet import Comet
from bleuprint.config.paths import Run
from bleuprint.config.runs import trained_runs
from bleuprint.report.compare import p_values_by_metric, score_texts
from bleuprint.report.compared_systems import ReportedSystem, ScoresPair
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.overview import everything, one_screen
from bleuprint.report.records import check_settings, collect
from bleuprint.report.report import table_md
from bleuprint.runs.results import Results
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import read_json, write_json
from bleuprint.scoring.comet_metric import COMET_METRIC
from bleuprint.scoring.metric import parse_statistics
from bleuprint.scoring.significance import evaluate_metric, paired_test
from result_rows import changed, labels_of, score_of, values

SHA256 = "c0" * 32
MODEL = {"wmt22-comet-da": Comet("comet/bin/python", "comet/model", SHA256)}
TINY, SMALL = (Run(system, "news-en-de", 1) for system in ("tiny", "small"))


def signature(name, version="2.2.7"):
    return f"Python3.11.2|Comet{version}|fp32|{name}|r1"


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory):
    """With comet.json of all runs: the second system is a little better on most lines."""
    root = tmp_path_factory.mktemp("comet")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)})
    trees.write_all(root, settings)
    for run in trained_runs(settings):
        scored = read_json(root / run.results_folder / "scores.json")
        drawn = np.random.default_rng(run.seed)
        content = {}
        for test, of_test in scored.items():
            quality = drawn.normal(0.8, 0.05, (2, of_test["lines"]))
            better = 0.004 + (quality[1] - 0.8) / 8
            segments = quality[0] + better * (run.system == "small")
            statistics = np.stack([(10**6 * segments).round(), np.ones(len(segments))], axis=1)
            found = evaluate_metric(COMET_METRIC, statistics, signature("wmt22-comet-da"))
            content[test] = {**of_test, "scored_with": SHA256, "metrics": [found]}
        write_json(root / run.results_folder / "comet.json", content)
    return root, replace(settings, comet=MODEL)


@pytest.mark.usefixtures("all_samples")
def test_interval_and_tests_are_those_of_means(one_seed):
    root, settings = one_seed
    counted = parse_statistics(Results.open(settings, TINY, root).metrics("first")["comet", ""])
    tiny = evaluate_metric(COMET_METRIC, counted, "")  # with all samples
    first = counted[:, 0] / 10**4
    assert tiny["value"] == pytest.approx(first.mean(), abs=1e-4)
    means = np.sort(np.random.default_rng(12345).choice(first, size=(1000, 100)).mean(1))
    half = (means[974] - means[25]) / 2
    expected = means.mean() - half, means.mean() + half
    assert (tiny["ci_low"], tiny["ci_high"]) == pytest.approx(expected, abs=1e-5)
    over = evaluate_metric(COMET_METRIC, np.add(counted, [600_000, 0]), "")  # older models exceed 1
    assert over["ci_low"] < over["value"] < over["ci_high"] and over["ci_high"] > 100
    # about 1.96 standard errors of a mean
    assert half == pytest.approx(1.96 * first.std(ddof=1) / 100**0.5, rel=0.1)
    # about Student's test; test_significance.py compares both p with sacreBLEU's
    noisy = (first + np.random.default_rng(7).normal(0.8, 4.0, 100)).round(4)
    of_noisy = np.stack([(10**4 * noisy).round(), np.ones(100)], axis=1)
    tested, p = paired_test(COMET_METRIC, counted, of_noisy), ttest_rel(first, noisy).pvalue
    assert tested.randomization == pytest.approx(p, abs=0.03)
    error = (noisy - first).std(ddof=1) / 100**0.5
    assert tested.standard_error == pytest.approx(error, rel=0.1)


def test_agreement_of_people_is_by_the_coefficients_of_the_model(one_seed, tmp_path):
    root, settings = one_seed
    records = collect(settings, root)
    records.save(tmp_path / "reports" / "results.json")
    assert values(load(tmp_path), "comet", "p") == pytest.approx(
        values(records, "comet", "p"), nan_ok=True
    )
    small = score_of(records, "small", "comet")
    a, b = 96.22374133884283, 2.8359194570556636  # those of wmt22-comet-da
    expected = a / (1 + np.exp(-b * small.difference))
    assert 0.2 < small.difference < 0.6 and small.p < 0.05
    assert 60 < expected < 85
    assert small.agreement == pytest.approx(expected)
    table = table_md(settings, records, root)
    part = table.partition("## Other scores\n")[2].partition("\n## ")[0]
    assert re.search(rf"[+]{small.difference:.1f}‡ p=\S+ \| +{expected:.0f}% \|", part)
    assert f"COMET: `{signature('wmt22-comet-da')}`" in table
    for scores, *_ in (one_screen(records), everything(records)):
        assert {"COMET", "Δ COMET", "COMET human agreement"} <= {*labels_of(scores)}
    # that of a model that they did not look at is not known
    other = changed(records, {"metric": "comet"}, signature=signature("own-model"))
    unknown = score_of(other, "small", "comet")
    assert np.isnan(unknown.agreement) and unknown.p == small.p


def test_a_report_without_comet_is_not_that_of_settings_with_it(one_seed):
    root, settings = one_seed
    records = collect(settings, root)
    check_settings(records, settings, RESULTS)
    without = collect(replace(settings, comet=None), root)
    check_settings(without, replace(settings, comet=None), RESULTS)
    for each, of in ((without, settings), (records, replace(settings, comet=None))):
        with pytest.raises(UserError, match="was made with another params"):
            check_settings(each, of, RESULTS)
    assert not any("COMET" in str(part) for part in everything(without))


def test_compare_has_a_row_of_comet(one_seed, monkeypatch):
    root, settings = one_seed
    monkeypatch.chdir(root)
    records = collect(settings, root)
    tiny, small = (
        ReportedSystem(name, None, "", settings, records, False) for name in ("tiny", "small")
    )
    (before,), (after,) = (side.scores((1,)).values() for side in (tiny, small))
    p = p_values_by_metric(tiny, small, ScoresPair(before, after))["comet"]
    tested = score_of(records, "small", "comet")
    assert p == pytest.approx(tested.p, abs=1e-4)
    corpus, test, label, *scores, delta, shown_p, agree = score_texts(
        "comet", ScoresPair(before, after), p
    )
    assert (corpus, test, label) == ("news-en-de", "first", "COMET")
    assert scores == [each.scores["comet"].value_text for each in (before, after)]
    assert delta == f"{tested.difference:+.1f}"
    assert shown_p == f"{p:.3f}"
    assert agree == f"{tested.agreement:.0f}%"


@pytest.mark.parametrize("fact", ["scored_with", "hypotheses"])
def test_scores_that_do_not_belong_here(one_seed, fact):
    root, settings = one_seed
    path = root / SMALL.results_folder / "comet.json"
    before = path.read_bytes()
    content = read_json(path)
    content["first"][fact] = "ab" * 32
    write_json(path, content)
    message = f"first has other {fact} than scores.json or params.yaml.*run: "
    with pytest.raises(UserError, match=message):
        _ = Results.open(settings, SMALL, root).scores
    path.unlink()
    with pytest.raises(UserError, match=r"comet\.json: no such file; run: make reproduce"):
        _ = Results.open(settings, SMALL, root).scores
    path.write_bytes(before)


def test_scores_of_two_versions_of_comet(one_seed, tmp_path):
    root = shutil.copytree(one_seed[0], tmp_path / "copy")
    path = root / SMALL.results_folder / "comet.json"
    path.write_text(path.read_text().replace("Comet2.2.7", "Comet2.2.2"))
    with pytest.raises(UserError) as error:
        collect(one_seed[1], root)
    assert re.search(r"different versions: .*Comet2\.2\.7.* and .*Comet2\.2\.2", str(error.value))
    assert str(error.value).endswith("for each of the stages comet of dvc.yaml")
