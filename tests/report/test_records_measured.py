"""Measured columns: of the same training and settings, here or at a colleague's."""

import re
import shutil

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.paths import Run
from bleuprint.report.frame import RUN_COLUMNS, load
from bleuprint.report.records import collect
from bleuprint.report.training_costs import COSTS, costs_csv, with_training_costs
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import write_json


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1 is not JSON: Expecting"),
        ("{}", "field seconds is missing, as in a file that another version wrote; remove it"),
    ],
)
def test_a_damaged_timing_names_the_file(copy, content, message):
    root, settings = copy
    path = trees.timing_file(root, Run("tiny", "news-en-de", 1))
    path.write_text(content)
    with pytest.raises(UserError, match=rf"/{re.escape(path.name)} is damaged: {message}"):
        collect(settings, root)


def test_measured_columns_are_of_the_same_training(saved):
    root, _ = saved
    training = trees.timing_file(root, Run("tiny", "news-en-de", 3))
    columns = ["train_seconds", "device", "peak_memory"]
    assert load(root).runs.iloc[0][columns].tolist() == [3725.0, "Test CPU", 1_500_000_000]
    training.rename(training.with_name("train-of-other-code.json"))
    assert load(root).runs.iloc[0][columns].isna().all()


def test_names_that_look_like_numbers_are_read_again(saved):
    root, _ = saved
    there = load(root).runs.replace({"tiny": "NA", "small": "007", "news-en-de": "4000"})
    (root / COSTS).write_text(costs_csv(there))
    assert [*with_training_costs(there[RUN_COLUMNS], root).train_seconds] == [*there.train_seconds]


def test_what_a_colleague_measured_is_shown_until_it_is_measured_here(saved):
    root, _ = saved
    resumed = trees.timing_file(root, Run("small", "news-en-de", 3))
    write_json(resumed, {**trees.timing_of(Run("small", "news-en-de", 3)), "threads": "1 + 2"})
    there = load(root).runs
    assert set(there.threads) == {"2", "1 + 2"}
    (root / COSTS).write_text(costs_csv(there))
    shutil.rmtree(root / "timings")
    pulled = load(root).runs
    columns = list(there.columns)
    assert_frame_equal(pulled[columns], there[columns])
    run = Run("tiny", "news-en-de", 3)
    training = trees.timing_file(root, run)
    write_json(training, {**trees.timing_of(run), "seconds": 1.0, "device": "Here"})
    here = load(root).runs
    assert list(here.train_seconds[:2]) == [1.0, 1.0] and here.device[0] == "Here"
    assert list(here.train_seconds[2:]) == list(there.train_seconds[2:])
    # what another machine measured is not mixed with it
    (root / COSTS).write_text(costs_csv(there.assign(mfu=0.35)))
    assert load(root).runs.mfu.tolist()[0] != 0.35 and load(root).runs.mfu.tolist()[2] == 0.35
    (root / COSTS).write_text(costs_csv(there))
    # of another training there is nothing to show
    text = (root / COSTS).read_text()
    (root / COSTS).write_text(text.replace(there.training_sha256.iloc[-1], "0" * 64))
    assert pd.isna(load(root).runs.train_seconds.iloc[-1])
