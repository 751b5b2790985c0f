"""Records: every number comes from the run, corpus and test set that its row names."""

import math

import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.regular_files import sha256_of
from bleuprint.scoring.metrics import METRICS
from measuring import paired_tests
from result_rows import metric_values

# The columns that name a run and a test set.
KEY = ["system", "corpus", "seed", "test"]


def run_of(row):
    """Return the run that a row of records names."""
    return Run(row["system"], row["corpus"], row["seed"])


def run_rows(records):
    """Return the rows of the table of runs as dictionaries."""
    return records.runs.to_dict("records")


def metric_rows(records, run_row):
    """Return the rows of metrics of the same run and test set, with None for missing values."""
    rows = records.metrics
    for name in KEY:
        rows = rows[rows[name] == run_row[name]]
    rows = rows.astype(object)
    return rows.where(rows.notna(), None).to_dict("records")


def test_runs_are_in_the_order_of_the_settings(collected):
    """Params.yaml lists the systems tiny and small, two corpora, and the seeds 3 and 1.

    Rows are sorted by system, then corpus, then seed, then test set, each in that order.
    """
    keys = []
    for row in run_rows(collected):
        keys.append((row["system"], row["corpus"], row["seed"], row["test"]))

    assert keys == [
        ("tiny", "news-en-de", 3, "first"),
        ("tiny", "news-en-de", 3, "second"),
        ("tiny", "news-en-de", 1, "first"),
        ("tiny", "news-en-de", 1, "second"),
        ("tiny", "talks-en-fr", 3, "only"),
        ("tiny", "talks-en-fr", 1, "only"),
        ("small", "news-en-de", 3, "first"),
        ("small", "news-en-de", 3, "second"),
        ("small", "news-en-de", 1, "first"),
        ("small", "news-en-de", 1, "second"),
        ("small", "talks-en-fr", 3, "only"),
        ("small", "talks-en-fr", 1, "only"),
    ]


def test_metrics_are_those_of_the_scores_file_of_the_run(experiment, collected):
    """Each run has a scores.json; no metric may end up in the row of another run."""
    for run_row in run_rows(collected):
        folder = experiment.root / run_of(run_row).results_folder
        scores = read_json(folder / "scores.json")[run_row["test"]]

        rows = metric_rows(collected, run_row)

        for row, entry in zip(rows, scores["metrics"], strict=True):
            for name in ("metric", "group", "units", "value", "ci_low", "ci_high", "signature"):
                assert row[name] == entry[name], row["metric"]
        assert run_row["lines"] == 100


def test_each_run_has_all_metrics_that_are_computed_without_options(collected):
    """COMET needs a model, d-BLEU needs document ids, and "cut off" a cut translation."""
    for run_row in run_rows(collected):
        names = {row["metric"] for row in metric_rows(collected, run_row)}
        assert names >= {*METRICS} - {"comet", "dbleu", "cut off"}


def test_loss_and_perplexity_come_from_the_translation_record(collected):
    """The model scores the references when it translates: 100 nats for 80 tokens in each run."""
    for run_row in run_rows(collected):
        value_by_metric = {}
        for row in metric_rows(collected, run_row):
            value_by_metric[row["metric"], row["group"]] = row["value"]

        loss = 100 / 80
        assert value_by_metric["loss", ""] == loss
        assert value_by_metric["perplexity", ""] == round(math.exp(loss), 6)


def test_facts_of_a_training_come_from_its_own_record(experiment, collected):
    """A training writes training.json; its numbers of tokens depend on the seed here."""
    for row in run_rows(collected):
        run = run_of(row)
        training = read_json(experiment.root / run.results_folder / "training.json")

        assert row["parameters"] == training["parameters"]
        assert row["training_flops"] == training["flops"]
        assert row["source_tokens"] == 700_000 + run.seed
        assert row["target_tokens"] == 800_000 + run.seed
        assert row["updates"] == 500
        assert row["training_sha256"] == training["fingerprint"]
        assert row["binary_sha256"] == "b1" * 32


def test_the_training_time_is_that_of_the_same_run(collected):
    for row in run_rows(collected):
        assert row["train_seconds"] == trees.timing_of(run_of(row))["seconds"]


def test_engine_and_precision_are_those_of_the_settings(experiment, collected):
    for row in run_rows(collected):
        decode = experiment.settings.system_settings(row["system"]).decode
        assert row["engine"] == "pytorch"
        assert row["precision"] == decode.precision


def test_hashes_are_those_of_the_sources_references_and_translations(experiment, collected):
    """The SHA-256 of a file shows whether two reports are about the same text."""
    for row in run_rows(collected):
        split = experiment.root / "data" / "split" / row["corpus"]
        hypotheses = experiment.root / run_of(row).results_folder / "hypotheses"
        source_file = f"test.{row['test']}.{row['source']}"
        target_file = f"test.{row['test']}.{row['target']}"

        assert row["corpus"].endswith(f"-{row['source']}-{row['target']}")
        assert row["sources_sha256"] == sha256_of(split / source_file)
        assert row["references_sha256"] == sha256_of(split / target_file)
        assert row["hypotheses_sha256"] == sha256_of(hypotheses / target_file)


def test_systems_with_the_same_settings_have_the_same_fingerprint_of_settings(collected):
    """Tiny and small differ in their names only. Each was run on two corpora with two seeds."""
    by_corpus_and_seed = collected.runs.groupby(["corpus", "seed"])
    fingerprints_of_each = by_corpus_and_seed.settings_sha256.nunique().tolist()
    fingerprints_of_all = collected.runs.settings_sha256.nunique()

    assert fingerprints_of_each == [1, 1, 1, 1]
    assert fingerprints_of_all == 4


def test_no_two_runs_have_the_same_bleu(collected):
    """Otherwise a number in the wrong row could go unnoticed in the other tests."""
    assert len(set(metric_values(collected))) == len(collected.runs)


def test_the_baseline_is_not_tested(collected):
    baseline = collected.metrics[collected.metrics.system == "tiny"]

    assert baseline[["baseline", "difference", "p", "standard_error"]].isna().all(axis=None)


def sacrebleu_tests_of_small(experiment, run_row):
    """Test the translations of small against those of tiny with the same seed.

    Args:
        experiment: The experiment.
        run_row: The row of a run of small.

    Returns:
        The results of the tests by the key of the metric.
    """
    file = f"test.{run_row['test']}.{run_row['target']}"
    translations = {}
    for system in ("tiny", "small"):
        run = Run(system, run_row["corpus"], run_row["seed"])
        path = experiment.root / run.results_folder / "hypotheses" / file
        translations[system] = path.read_text("utf-8").splitlines()
    references = experiment.root / "data" / "split" / run_row["corpus"] / file
    reference_lines = references.read_text("utf-8").splitlines()
    return paired_tests(translations, reference_lines, run_row["target"])["small"]


def test_other_systems_are_tested_against_the_first_system_with_the_same_seed(
    experiment, collected
):
    """The first system is tiny. The helper computes what sacreBLEU's tests give for small."""
    small_runs = [row for row in run_rows(collected) if row["system"] == "small"]
    assert small_runs
    for run_row in small_runs:
        row_by_metric = {}
        for row in metric_rows(collected, run_row):
            if row["group"] == "":  # over all lines
                row_by_metric[row["metric"]] = row

        for metric, expected in sacrebleu_tests_of_small(experiment, run_row).items():
            row = row_by_metric[metric]
            assert row["baseline"] == "tiny"
            assert row["p_randomization"] == expected.randomization
            assert row["standard_error"] == expected.standard_error


def test_an_only_system_is_not_tested(experiment, tmp_path):
    """The settings name small alone, so results of tiny, which exist, are not a baseline."""
    settings = trees.settings_in(tmp_path, systems=("small",), seeds=(1,))

    records = collect(settings, experiment.root)

    assert list(records.runs.system) == ["small"] * 3  # on three test sets
    tested = records.metrics[["baseline", "difference", "p", "p_holm", "standard_error"]]
    assert tested.isna().all(axis=None)


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param("gone/news-en-de/1", id="removed system"),
        pytest.param("tiny/news-en-de/9", id="removed seed"),
        pytest.param("tiny/old-en-de", id="removed corpus"),
    ],
)
def test_results_that_the_settings_no_longer_name_are_ignored(experiment_copy, collected, folder):
    """Users remove a system from params.yaml, and its folder in results/ stays."""
    root, settings = experiment_copy
    (root / "results" / folder).mkdir(parents=True)

    records = collect(settings, root)

    assert_frame_equal(records.runs, collected.runs)
    assert_frame_equal(records.metrics, collected.metrics)


def test_saved_records_are_read_again(saved_experiment, collected):
    records = load(saved_experiment.root)

    assert_frame_equal(records.runs, collected.runs, check_like=True)
    assert_frame_equal(records.metrics, collected.metrics)


def test_records_that_are_saved_again_have_the_same_bytes(saved_experiment):
    """Results.json is in Git: the same results must not appear as a change."""
    root, settings = saved_experiment
    content = (root / RESULTS).read_bytes()

    collect(settings, root).save(root / RESULTS)

    assert (root / RESULTS).read_bytes() == content


def test_saved_records_contain_nothing_that_was_measured(saved_experiment, tmp_path):
    """Times differ from run to run, and results.json must not, so they are stored elsewhere.

    A folder with results.json alone therefore gives records without times.
    """
    content = (saved_experiment.root / RESULTS).read_text("utf-8")
    (tmp_path / "reports").mkdir()
    (tmp_path / RESULTS).write_text(content, "utf-8")

    records_without_timings = load(tmp_path)

    assert records_without_timings.runs.train_seconds.isna().all()
    measured_facts = ["train_seconds", *trees.timing_of(Run("tiny", "news-en-de", 1))]
    for name in measured_facts:
        assert f'"{name}"' not in content


def test_saved_metrics_begin_with_what_they_measure(saved_experiment):
    metrics = read_json(saved_experiment.root / RESULTS)["metrics"]

    assert list(metrics[0])[:6] == ["system", "corpus", "seed", "test", "metric", "group"]


def test_saved_metrics_name_their_baseline(saved_experiment):
    metrics = read_json(saved_experiment.root / RESULTS)["metrics"]

    assert {row["baseline"] for row in metrics} == {"tiny", None}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(
            '{"runs": [{"system": "tiny"}], "metrics": []}',
            "runs.0.corpus is missing, as in",
            id="missing fact, as an older version wrote it",
        ),
        pytest.param("[3]", "its content is not a JSON object", id="list"),
        pytest.param("{", "line 1 is not JSON", id="not JSON"),
    ],
)
def test_incomplete_results_are_refused(tmp_path, content, problem):
    """The message names the file and the field, so that users know what to make again."""
    (tmp_path / "reports").mkdir()
    (tmp_path / RESULTS).write_text(content)

    with pytest.raises(UserError, match=rf"results\.json is damaged: .*{problem}"):
        load(tmp_path)


def test_a_missing_report_is_refused_with_the_command_that_makes_it(tmp_path):
    with pytest.raises(UserError, match=r"reports/results\.json: no such file. Run: make rep"):
        load(tmp_path)
