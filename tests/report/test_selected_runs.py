"""Reports of experiments whose systems are not all trained on each corpus."""

import dataclasses

import pandas
import pytest
from ruamel.yaml import YAML

import result_trees as trees
from bleuprint.config.experiment import load_settings
from bleuprint.report import notes, report
from bleuprint.report.compare import compare
from bleuprint.report.frame import RESULTS, load
from bleuprint.report.records import check_settings
from bleuprint.report.score_frame import score_frame
from bleuprint.report.score_tables import wide_bleu_table
from bleuprint.report.table import DASH
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import read_json
from bleuprint.runtime.yaml_tree import load_yaml
from result_rows import rows_of
from result_trees import Experiment

# The runs of an experiment whose systems are not all trained on both corpora.
SELECTED_RUNS = {
    ("tiny", "news-en-de"),
    ("tiny", "talks-en-fr"),
    ("small", "news-en-de"),
    ("last", "talks-en-fr"),
}


@pytest.fixture(scope="module")
def experiment_of_selected_runs(tmp_path_factory):
    """Return an experiment with reports, whose params.yaml selects SELECTED_RUNS."""
    root = tmp_path_factory.mktemp("selected")
    settings = trees.settings_in(root, systems=("tiny", "small", "last"))
    trees.write_all(root, settings)
    params = root / "params.yaml"
    document = load_yaml(params)
    document["systems"]["small"]["corpora"] = {"news-en-de": {}}
    document["systems"]["last"]["corpora"] = {"talks-en-fr": {}}
    with params.open("w") as file:
        YAML().dump(document, file)
    settings = load_settings(params)
    report.write_reports(settings, root)
    return Experiment(root, settings)


def test_only_selected_runs_are_recorded(experiment_of_selected_runs):
    """Params.yaml selects news-en-de for small, talks-en-fr for last, and both for tiny."""
    root, settings = experiment_of_selected_runs
    records = load(root)

    runs = records.runs[["system", "corpus"]].drop_duplicates()
    assert list(runs.itertuples(index=False, name=None)) == [
        ("tiny", "news-en-de"),
        ("tiny", "talks-en-fr"),
        ("small", "news-en-de"),
        ("last", "talks-en-fr"),
    ]
    assert set(records.metrics.baseline.dropna()) == {"tiny"}
    check_settings(records, settings, RESULTS)  # raises an error if the records do not fit


@pytest.mark.parametrize(
    ("system", "missing_corpus"), [("small", "talks-en-fr"), ("last", "news-en-de")]
)
def test_a_table_has_a_dash_for_a_run_that_is_not_selected(
    experiment_of_selected_runs, system, missing_corpus
):
    """Params.yaml selects news-en-de for small, and talks-en-fr for last."""
    table = wide_bleu_table(score_frame(load(experiment_of_selected_runs.root)))
    cells_of_system = rows_of(table)[system]

    corpora_with_dash = set()
    corpora_with_value = set()
    for head, text in cells_of_system.items():
        if head == "System":
            continue
        corpus, _, _ = head.partition(",")
        if text == DASH:
            corpora_with_dash.add(corpus)
        else:
            corpora_with_value.add(corpus)
    assert corpora_with_dash == {missing_corpus}
    assert missing_corpus not in corpora_with_value


def test_metrics_json_contains_only_selected_runs(experiment_of_selected_runs):
    """Params.yaml selects news-en-de for small, talks-en-fr for last, and both for tiny."""
    metrics = read_json(experiment_of_selected_runs.root / "reports/metrics.json")

    runs = set()
    for system, corpora in metrics["BLEU"].items():
        for corpus in corpora:
            runs.add((system, corpus))
    assert runs == {
        ("tiny", "news-en-de"),
        ("tiny", "talks-en-fr"),
        ("small", "news-en-de"),
        ("last", "talks-en-fr"),
    }


def test_validation_csv_contains_only_selected_runs(experiment_of_selected_runs):
    table = pandas.read_csv(experiment_of_selected_runs.root / "reports/validation.csv")

    rows = table[["system", "corpus"]].itertuples(index=False, name=None)
    assert set(rows) == SELECTED_RUNS


def test_systems_without_a_common_corpus_are_not_compared(experiment_of_selected_runs, monkeypatch):
    monkeypatch.chdir(experiment_of_selected_runs.root)

    with pytest.raises(UserError, match=r"^small and last have no test set in common"):
        list(compare("small", "last"))


@pytest.fixture(scope="module")
def records_with_two_baselines(tmp_path_factory):
    """Return the records of an experiment whose first system has no run on talks-en-fr."""
    root = tmp_path_factory.mktemp("baselines")
    settings = trees.settings_in(root, systems=("tiny", "small", "last"))
    trees.write_all(root, settings)
    tiny_runs = {**settings.runs["tiny"], "talks-en-fr": None}
    settings = dataclasses.replace(settings, runs={**settings.runs, "tiny": tiny_runs})
    report.write_reports(settings, root)
    return load(root)


def test_the_baseline_of_a_corpus_is_its_first_system(records_with_two_baselines):
    """The systems are tiny, small and last; on talks-en-fr, there is no run of tiny."""
    metrics = records_with_two_baselines.metrics

    baselines = {}
    for corpus, rows in metrics.groupby("corpus"):
        baselines[corpus] = set(rows.baseline.dropna())
    assert baselines == {"news-en-de": {"tiny"}, "talks-en-fr": {"small"}}


def test_a_system_with_a_difference_on_any_corpus_is_not_titled_baseline(
    records_with_two_baselines,
):
    """Small is the baseline on talks-en-fr, but on news-en-de it is compared with tiny.

    In a table of both corpora, the title `Baseline: small` would be wrong for news-en-de.
    """
    table = wide_bleu_table(score_frame(records_with_two_baselines))

    assert list(rows_of(table)) == ["Baseline: tiny", "small", "last"]


def test_a_note_names_the_baseline_of_each_corpus(records_with_two_baselines):
    all_notes = notes.all_notes(records_with_two_baselines)

    (note,) = [note for note in all_notes if note.startswith("Δ is")]
    assert "from tiny, on corpora without it from small." in note
