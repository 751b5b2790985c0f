"""What DVC's commands show: few metrics, and curves of any set of systems."""

import csv
import io
import json
import subprocess

import pytest

from bleuprint.config.paths import Run
from bleuprint.report import dvc_plots
from bleuprint.training.history import Curves, Point, Validation
from result_rows import compared_with, record, records_from_rows
from root import ROOT


def csv_rows(text):
    """Return the rows of a CSV file as dictionaries."""
    return list(csv.DictReader(io.StringIO(text)))


def test_dvc_metrics_are_bleu_by_system_corpus_and_test_set():
    """`dvc metrics show` prints one number for each system, corpus and test set.

    A corpus with one test set, as talks-en-fr, has no level for it. Its two seeds are averaged.
    """
    test = compared_with("tiny", p=0.01)
    records = records_from_rows(
        record("tiny", "news-en-de", "first", bleu=30.111),
        record("tiny", "news-en-de", "second", bleu=20.0),
        record("tiny", "talks-en-fr", "only", bleu=39.0, seed=1),
        record("tiny", "talks-en-fr", "only", bleu=41.0, seed=2),
        record("small", "news-en-de", "first", bleu=31.111, **test),
        record("small", "news-en-de", "second", bleu=21.0, **test),
        record("small", "talks-en-fr", "only", bleu=40.0, seed=1, **test),
        record("small", "talks-en-fr", "only", bleu=42.0, seed=2, **test),
    )

    metrics = dvc_plots.bleu_metrics(records)

    mean_of_tiny = (39.0 + 41.0) / 2
    mean_of_small = (40.0 + 42.0) / 2
    assert metrics == {
        "BLEU": {
            "tiny": {"news-en-de": {"first": 30.11, "second": 20.0}, "talks-en-fr": mean_of_tiny},
            "small": {"news-en-de": {"first": 31.11, "second": 21.0}, "talks-en-fr": mean_of_small},
        }
    }


def training_points(count):
    """Return points of a training curve at the updates 1 to `count`, whose loss is the update."""
    points = []
    for update in range(1, count + 1):
        points.append(
            Point(
                update=update,
                tokens=10 * update,
                loss=float(update),
                learning_rate=1.0,
                gradient_norm=1.0,
            )
        )
    return tuple(points)


@pytest.fixture
def curves():
    """Return the curves of a run with 2 points and of one with 250, each with a validation."""
    return {
        Run("tiny", "own", 1): Curves(training_points(2), (Validation(2, 1.23456, 7.77777),)),
        Run("wide", "own", 7): Curves(training_points(250), (Validation(250, 1.23456, 7.77777),)),
    }


def test_a_short_training_curve_is_written_point_by_point(curves):
    """Points of `curves` have the number of the update as loss, and ten times as many tokens."""
    first_row, second_row, *_ = csv_rows(dvc_plots.training_curves_csv(curves))

    run = {"system": "tiny", "corpus": "own", "seed": "1"}
    assert first_row == {**run, "update": "1", "tokens": "10", "loss": "1.0"}
    assert second_row == {**run, "update": "2", "tokens": "20", "loss": "2.0"}


def test_a_long_training_curve_is_thinned_to_means_of_three_points(curves):
    """The system `wide` has 250 points, which are too many for a file in Git.

    The loss of each is the number of its update, so the mean of the updates 1, 2 and 3 is 2.
    """
    rows = csv_rows(dvc_plots.training_curves_csv(curves))

    wide_rows = [row for row in rows if row["system"] == "wide"]
    groups_of_three = 83  # and the last of the 250 points alone
    assert len(wide_rows) == groups_of_three + 1
    assert {row["seed"] for row in wide_rows} == {"7"}
    first_group, last_point = wide_rows[0], wide_rows[-1]
    assert first_group["update"] == "3"
    assert first_group["loss"] == "2.0"
    assert last_point["update"] == "250"
    assert last_point["loss"] == "250.0"


def test_validations_are_written_with_four_decimals(curves):
    """At update 2 of `curves`, tiny has a validation loss of 1.23456, and BLEU of 7.77777."""
    first_row, *_ = csv_rows(dvc_plots.validation_curves_csv(curves))

    assert first_row == {
        "system": "tiny",
        "corpus": "own",
        "seed": "1",
        "update": "2",
        "loss": "1.2346",
        "bleu": "7.7778",
    }


def read_template(name):
    """Return a template of DVC's plots, which describes a chart for Vega."""
    return json.loads((ROOT / ".dvc" / "plots" / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["curves", "scores"])
def test_dvc_can_put_data_into_our_templates(name):
    from dvc_render.vega_templates import Template

    assert Template(read_template(name), name).has_anchor("data")


def test_a_system_has_the_same_color_in_every_plot():
    """DVC draws plots by the Vega templates `curves` and `scores`; both must color by system."""
    curves_color = read_template("curves")["encoding"]["color"]
    scores_color = read_template("scores")["encoding"]["color"]

    assert curves_color["field"] == "system"
    assert scores_color["field"] == "system"
    assert curves_color["scale"] == scores_color["scale"]


def test_long_names_of_test_sets_are_not_cut():
    """Vega cuts titles at 100 pixels unless the limit is 0."""
    scores = read_template("scores")["encoding"]

    assert scores["facet"]["header"]["labelLimit"] == 0


@pytest.mark.parametrize("path", ["dvc_plots/index.html", ".dvc/config.local", ".dvc/tmp/lock"])
def test_git_ignores_what_dvcs_commands_write(path):
    process = subprocess.run(["git", "check-ignore", "--quiet", path], cwd=ROOT)

    assert process.returncode == 0
