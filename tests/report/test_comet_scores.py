"""COMET in records, tables and comparisons, with made-up scores of lines.

COMET is a neural metric. The stage comet writes comet.json with a score for each line.
"""

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
from bleuprint.runtime.json_files import read_json, write_json
from bleuprint.scoring.comet_metric import COMET_METRIC
from bleuprint.scoring.metric import parse_statistics
from bleuprint.scoring.significance import evaluate_metric, paired_test
from result_rows import changed, labels_of, metric_values, score_of
from result_trees import Experiment

MODEL_SHA256 = "c0" * 32
MODELS = {"wmt22-comet-da": Comet("comet/bin/python", "comet/model", MODEL_SHA256)}
TINY = Run("tiny", "news-en-de", 1)
SMALL = Run("small", "news-en-de", 1)


def signature(model):
    """Return the signature of COMET scores, which names the model."""
    return f"Python3.11.2|Comet2.2.7|fp32|{model}|r1"


def line_counts(scores):
    """Return COMET's counts of lines: the score in millionths, and 1 for the line."""
    return np.stack([(10**6 * scores).round(), np.ones(len(scores))], axis=1)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Return results with comet.json of each run, in which small is a little better on most lines.

    Tests must not change its files.
    """
    root = tmp_path_factory.mktemp("comet")
    settings = trees.settings_in(root, corpora={"news-en-de": ("first",)})
    trees.write_all(root, settings)
    for run in trained_runs(settings):
        other_scores = read_json(root / run.results_folder / "scores.json")
        rng = np.random.default_rng(run.seed)
        tests = {}
        for test, test_scores in other_scores.items():
            tiny_scores, noise = rng.normal(0.8, 0.05, (2, test_scores["lines"]))
            if run.system == "tiny":
                scores = tiny_scores
            else:
                scores = tiny_scores + 0.004 + (noise - 0.8) / 8
            entry = evaluate_metric(COMET_METRIC, line_counts(scores), signature("wmt22-comet-da"))
            tests[test] = {**test_scores, "scored_with": MODEL_SHA256, "metrics": [entry]}
        write_json(root / run.results_folder / "comet.json", tests)
    return Experiment(root, replace(settings, comet=MODELS))


@pytest.fixture
def experiment_copy(experiment, tmp_path):
    """Return a copy of the experiment, which a test may change."""
    root = shutil.copytree(experiment.root, tmp_path / "copy")
    return Experiment(root, experiment.settings)


@pytest.fixture(scope="module")
def records(experiment):
    """Return the records of the experiment with COMET."""
    return collect(experiment.settings, experiment.root)


@pytest.fixture(scope="module")
def tiny_counts(experiment):
    """Return COMET's counts of the 100 lines that tiny translates."""
    results = Results.open(experiment.settings, TINY, experiment.root)
    return parse_statistics(results.metrics("first")["comet", ""])


@pytest.fixture(scope="module")
def tiny_percentages(tiny_counts):
    """Return COMET's scores of the 100 lines that tiny translates, times 100 as in papers."""
    return tiny_counts[:, 0] / 10**4


@pytest.mark.usefixtures("all_samples")
def test_comet_is_the_mean_of_the_lines_with_a_bootstrap_interval(tiny_counts, tiny_percentages):
    """The interval contains the middle 95 % of the means of 1,000 resamples of the 100 lines."""
    sacrebleu_seed = 12345
    rng = np.random.default_rng(sacrebleu_seed)
    resamples = rng.choice(tiny_percentages, size=(1000, 100))
    means = np.sort(resamples.mean(axis=1))
    half_width = (means[974] - means[25]) / 2  # 25 means are lower, and 25 are higher.

    score = evaluate_metric(COMET_METRIC, tiny_counts, "")

    assert score["value"] == pytest.approx(tiny_percentages.mean(), abs=1e-4)
    assert score["ci_low"] == pytest.approx(means.mean() - half_width, abs=1e-5)
    assert score["ci_high"] == pytest.approx(means.mean() + half_width, abs=1e-5)


@pytest.mark.usefixtures("all_samples")
def test_the_interval_of_comet_spans_about_two_standard_errors(tiny_counts, tiny_percentages):
    """By the central limit theorem, a bootstrap interval of a mean is close to 1.96 errors."""
    score = evaluate_metric(COMET_METRIC, tiny_counts, "")

    lines = len(tiny_percentages)
    standard_error = tiny_percentages.std(ddof=1) / lines**0.5
    half_width = (score["ci_high"] - score["ci_low"]) / 2
    assert half_width == pytest.approx(1.96 * standard_error, rel=0.1)


@pytest.mark.usefixtures("all_samples")
def test_comet_may_exceed_100(tiny_counts):
    """Older COMET models score lines above 1, which is 100 in reports.

    The first count of a line is its score in millionths. Adding 0.6 to scores around 0.8 makes them
    1.4 on average, and nothing may cut the interval at 100 as for BLEU.
    """
    scores_above_1 = np.add(tiny_counts, [600_000, 0])

    score = evaluate_metric(COMET_METRIC, scores_above_1, "")

    assert score["ci_low"] < score["value"] < score["ci_high"]
    assert score["ci_high"] > 100


@pytest.mark.usefixtures("all_samples")
def test_the_test_of_comet_agrees_with_students_t_test(tiny_counts, tiny_percentages):
    """COMET is a mean over lines, and for means randomization gives about the p of the t-test.

    The second system is the first with noise on each of its 100 lines: 0.8 better on average.
    """
    noise = np.random.default_rng(7).normal(0.8, 4.0, 100)
    other_percentages = (tiny_percentages + noise).round(4)

    test = paired_test(COMET_METRIC, tiny_counts, line_counts(other_percentages / 100))

    p_value = ttest_rel(tiny_percentages, other_percentages).pvalue
    assert test.randomization == pytest.approx(p_value, abs=0.03)
    differences = other_percentages - tiny_percentages
    standard_error = differences.std(ddof=1) / 100**0.5
    assert test.standard_error == pytest.approx(standard_error, rel=0.1)


def test_p_values_of_comet_are_saved_and_read_again(records, tmp_path):
    """The baseline has no p-value, which is NaN in both lists."""
    records.save(tmp_path / "reports" / "results.json")
    saved_records = load(tmp_path)

    saved_p_values = metric_values(saved_records, "comet", "p")

    assert saved_p_values == pytest.approx(metric_values(records, "comet", "p"), nan_ok=True)


def comet_agreement(difference):
    """Return the percentage of people who prefer a system that is better by this difference.

    The coefficients are those of wmt22-comet-da in Kocmi et al. (2024).
    """
    return 96.22374133884283 / (1 + np.exp(-2.8359194570556636 * difference))


def test_human_agreement_has_the_coefficients_of_the_comet_model(records):
    """Human agreement: the percentage of people who would also prefer the better system.

    Kocmi et al. (2024) fitted a curve for each metric and COMET model. Here `small` is about 0.4
    better than the baseline, for which the curve of this model gives 76 %.
    """
    score = score_of(records, "small", "comet")

    assert 0.2 < score.difference < 0.6
    assert score.p < 0.05
    assert 60 < score.agreement < 85
    assert score.agreement == pytest.approx(comet_agreement(score.difference))


def test_human_agreement_is_unknown_for_a_model_that_no_study_covers(records):
    """The same scores, said to be by `own-model`, keep their p-value."""
    by_other_model = changed(records, {"metric": "comet"}, signature=signature("own-model"))

    score = score_of(by_other_model, "small", "comet")

    assert np.isnan(score.agreement)
    assert score.p == score_of(records, "small", "comet").p


def test_table_md_shows_comet_with_human_agreement_and_signature(experiment, records):
    text = table_md(experiment.settings, records, experiment.root)

    _, _, after_title = text.partition("## Other scores\n")
    other_scores, _, _ = after_title.partition("\n## ")
    difference = score_of(records, "small", "comet").difference
    agreement = f"{comet_agreement(difference):.0f}%"
    # Two cells, such as "| +0.4‡ p=0.001 | 76% |".
    assert re.search(rf"[+]{difference:.1f}‡ p=\S+ \| +{agreement} \|", other_scores)
    assert f"COMET: `{signature('wmt22-comet-da')}`" in text


@pytest.mark.parametrize("view", [one_screen, everything])
def test_the_terminal_shows_comet(records, view):
    scores, *_ = view(records)

    assert {"COMET", "Δ COMET", "COMET human agreement"} <= set(labels_of(scores))


@pytest.fixture(scope="module")
def settings_without_comet(experiment):
    """Return the settings of the experiment if params.yaml names no COMET model."""
    return replace(experiment.settings, comet=None)


@pytest.fixture(scope="module")
def records_without_comet(experiment, settings_without_comet):
    """Return the records that are collected if params.yaml names no COMET model."""
    return collect(settings_without_comet, experiment.root)


def test_a_report_belongs_to_settings_with_the_same_comet_model(
    experiment, records, settings_without_comet, records_without_comet
):
    check_settings(records, experiment.settings, RESULTS)
    check_settings(records_without_comet, settings_without_comet, RESULTS)


def test_a_report_without_comet_is_refused_for_settings_with_comet(
    experiment, records_without_comet
):
    with pytest.raises(UserError, match="was computed with another params"):
        check_settings(records_without_comet, experiment.settings, RESULTS)


def test_a_report_with_comet_is_refused_for_settings_without_comet(records, settings_without_comet):
    with pytest.raises(UserError, match="was computed with another params"):
        check_settings(records, settings_without_comet, RESULTS)


def test_the_terminal_does_not_mention_comet_if_no_model_is_named(records_without_comet):
    assert not any("COMET" in str(part) for part in everything(records_without_comet))


def test_compare_shows_the_difference_in_comet_with_its_p_value_and_agreement(
    experiment, records, monkeypatch
):
    """`bleuprint compare tiny small` must show what the report shows of the same two systems."""
    monkeypatch.chdir(experiment.root)
    settings = experiment.settings
    tiny = ReportedSystem("tiny", None, "", settings, records, are_corpora_different=False)
    small = ReportedSystem("small", None, "", settings, records, are_corpora_different=False)
    (tiny_scores,) = tiny.scores((1,)).values()
    (small_scores,) = small.scores((1,)).values()
    pair = ScoresPair(tiny_scores, small_scores)

    p_value = p_values_by_metric(tiny, small, pair)["comet"]
    texts = score_texts("comet", pair, p_value)

    in_report = score_of(records, "small", "comet")
    assert p_value == pytest.approx(in_report.p, abs=1e-4)
    assert texts.corpora == "news-en-de"
    assert texts.test == "first"
    assert texts.metric == "COMET"
    assert texts.first_score == tiny_scores.scores["comet"].value_text
    assert texts.second_score == small_scores.scores["comet"].value_text
    assert texts.difference == f"{in_report.difference:+.1f}"
    assert texts.p_value == f"{p_value:.3f}"
    assert texts.agreement == f"{in_report.agreement:.0f}%"


@pytest.mark.parametrize(
    "fact",
    [
        pytest.param("scored_with", id="another COMET model"),
        pytest.param("hypotheses", id="other translations"),
    ],
)
def test_comet_scores_of_another_model_or_other_translations_are_refused(experiment_copy, fact):
    """Comet.json names the model and the translations by SHA-256; here one of them is replaced.

    If both did not have to agree, the report would show COMET of one text beside BLEU of another.
    """
    root, settings = experiment_copy
    path = root / SMALL.results_folder / "comet.json"
    content = read_json(path)
    other_sha256 = "ab" * 32
    content["first"][fact] = other_sha256
    write_json(path, content)

    message = f"{fact} of first differs from scores.json or params.yaml.*Run: "
    with pytest.raises(UserError, match=message):
        _ = Results.open(settings, SMALL, root).scores


def test_missing_comet_scores_are_refused_with_the_command_that_makes_them(experiment_copy):
    """Params.yaml names a COMET model, so each run needs a comet.json beside scores.json."""
    root, settings = experiment_copy
    (root / SMALL.results_folder / "comet.json").unlink()

    with pytest.raises(UserError, match=r"comet\.json: no such file. Run: make reproduce"):
        _ = Results.open(settings, SMALL, root).scores


def test_comet_scores_of_two_versions_are_not_compared(experiment_copy):
    """All scores are by version 2.2.7 of the package, except those of `small`: by 2.2.2."""
    root, settings = experiment_copy
    path = root / SMALL.results_folder / "comet.json"
    path.write_text(path.read_text().replace("Comet2.2.7", "Comet2.2.2"))

    with pytest.raises(UserError) as error:
        collect(settings, root)

    message = str(error.value)
    assert re.search(r"different versions: .*Comet2\.2\.7.* and .*Comet2\.2\.2", message)
    assert message.endswith("for each of the stages comet of dvc.yaml")
