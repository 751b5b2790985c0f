"""What DVC's commands show: few numbers, and points of any set of systems."""

import csv
import io
import json
import subprocess

import pytest

from bleuprint.config.paths import Run
from bleuprint.report import dvc_plots
from bleuprint.training.history import Curves, Point, Validation
from result_rows import against, frame, record
from root import ROOT


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_metrics_are_few_and_by_name():
    records = [
        record(system, corpus, test, bleu + more, seed=seed, **tested)
        for system, more, tested in (("tiny", 0.0, {}), ("small", 1.0, against("tiny", 0.01)))
        for corpus, test, bleu, seed in (
            ("news-en-de", "first", 30.111, 1),
            ("news-en-de", "second", 20.0, 1),
            ("talks-en-fr", "only", 39.0, 1),
            ("talks-en-fr", "only", 41.0, 2),
        )
    ]
    assert dvc_plots.bleu_metrics(frame(*records)) == {
        "BLEU": {
            "tiny": {"news-en-de": {"first": 30.11, "second": 20.0}, "talks-en-fr": 40.0},
            "small": {"news-en-de": {"first": 31.11, "second": 21.0}, "talks-en-fr": 41.0},
        }
    }


def test_points_of_curves():
    short, long = Run("tiny", "own", 1), Run("wide", "own", 7)
    curves = {
        run: Curves(
            tuple(Point(n, 10 * n, float(n), 1.0, 1.0) for n in range(1, count + 1)),
            (Validation(count, 1.23456, 7.77777),),
        )
        for run, count in ((short, 2), (long, 250))
    }
    points = rows(dvc_plots.training_curves_csv(curves))
    of_short = {"system": "tiny", "corpus": "own", "seed": "1"}
    assert points[:2] == [
        {**of_short, "update": "1", "tokens": "10", "loss": "1.0"},
        {**of_short, "update": "2", "tokens": "20", "loss": "2.0"},
    ]
    # 250 points are averaged by three: 1 to 3 have a mean of 2, and the last one is alone
    of_long = points[2:]
    assert len(of_long) == 84 and {point["seed"] for point in of_long} == {"7"}
    assert (of_long[0]["update"], of_long[0]["loss"]) == ("3", "2.0")
    assert (of_long[-1]["update"], of_long[-1]["loss"]) == ("250", "250.0")
    assert rows(dvc_plots.validation_curves_csv(curves))[0] == {
        **of_short,
        **{"update": "2", "loss": "1.2346", "bleu": "7.7778"},
    }


def test_the_templates_are_for_dvc():
    from dvc_render.vega_templates import Template

    for name in ("curves", "scores"):
        content = json.loads((ROOT / ".dvc" / "plots" / f"{name}.json").read_text("utf-8"))
        assert Template(content, name).has_anchor("data")


def test_a_system_has_the_same_color_in_every_plot():
    encodings = []
    for name in ("curves", "scores"):
        content = json.loads((ROOT / ".dvc" / "plots" / f"{name}.json").read_text("utf-8"))
        encodings.append(content["encoding"])
    curves, scores = encodings
    assert curves["color"]["field"] == scores["color"]["field"] == "system"
    assert curves["color"]["scale"] == scores["color"]["scale"]
    # Vega cuts the names of test sets at 100 pixels otherwise.
    assert scores["facet"]["header"]["labelLimit"] == 0


@pytest.mark.parametrize("path", ["dvc_plots/index.html", ".dvc/config.local", ".dvc/tmp/lock"])
def test_what_dvcs_commands_write_is_ignored_by_git(path):
    command = ["git", "check-ignore", "--quiet", path]
    assert subprocess.run(command, cwd=ROOT).returncode == 0
