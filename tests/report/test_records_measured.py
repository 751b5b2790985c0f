"""Measured costs, such as times: of the same training, measured here or by a colleague.

Files in timings/ contain what this machine measured. Git stores costs.csv, so that a colleague's
figures are shown where nothing was measured.
"""

import math
import re
import shutil

import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.paths import COSTS_CSV, Run
from bleuprint.report.frame import RUN_COLUMNS, load
from bleuprint.report.records import collect
from bleuprint.report.training_costs import costs_csv, with_training_costs
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.json_files import write_json


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("{", "line 1 is not JSON: Expecting", id="cut off"),
        pytest.param(
            "{}",
            "field seconds is missing, as in a file that another version wrote. Remove it",
            id="missing fact",
        ),
    ],
)
def test_a_damaged_timing_is_refused_with_its_path(experiment_copy, content, message):
    """A timing is the file in timings/ with the costs that were measured for a training."""
    root, settings = experiment_copy
    path = trees.timing_file(root, Run("tiny", "news-en-de", 1))
    path.write_text(content)

    with pytest.raises(UserError, match=rf"/{re.escape(path.name)} is damaged: {message}"):
        collect(settings, root)


def test_costs_are_those_that_were_measured_for_the_run(saved_experiment):
    """The first run is that of tiny, whose timing says 3,725 s, 1.5 GB and "Test CPU"."""
    costs = load(saved_experiment.root).runs.iloc[0]

    assert costs.train_seconds == 3725.0
    assert costs.device == "Test CPU"
    assert costs.peak_memory == 1_500_000_000


def test_costs_of_another_training_are_not_shown(saved_experiment):
    """The name of a timing contains the fingerprint of its training.

    After a change of the code, the file of the old training is still there, and does not count.
    """
    root = saved_experiment.root
    timing = trees.timing_file(root, Run("tiny", "news-en-de", 3))
    timing.rename(timing.with_name("train-of-other-code.json"))

    costs = load(root).runs.iloc[0]

    assert costs[["train_seconds", "device", "peak_memory"]].isna().all()


def test_names_that_look_like_numbers_are_read_from_costs_csv(saved_experiment):
    """Systems are named NA and 007, which pandas would read as a missing value and as 7."""
    root = saved_experiment.root
    runs = load(root).runs.replace({"tiny": "NA", "small": "007", "news-en-de": "4000"})
    (root / COSTS_CSV).write_text(costs_csv(runs))

    read_runs = with_training_costs(runs[RUN_COLUMNS], root)

    assert list(read_runs.train_seconds) == list(runs.train_seconds)


@pytest.fixture
def colleague_runs(saved_experiment):
    """Return the runs with the costs that a colleague measured.

    One training was resumed with another number of threads.
    """
    root = saved_experiment.root
    run = Run("small", "news-en-de", 3)
    timing = {**trees.timing_of(run), "threads": "1 + 2"}
    write_json(trees.timing_file(root, run), timing)
    runs = load(root).runs
    assert set(runs.threads) == {"2", "1 + 2"}
    return runs


@pytest.fixture
def cloned_root(saved_experiment, colleague_runs):
    """Return the folder of a clone, with the colleague's costs.csv and without timings."""
    root = saved_experiment.root
    (root / COSTS_CSV).write_text(costs_csv(colleague_runs))
    shutil.rmtree(root / "timings")
    return root


@pytest.fixture
def root_with_own_timing(cloned_root):
    """Return the clone after the first training ran there, too, in one second."""
    run = Run("tiny", "news-en-de", 3)
    timing = {**trees.timing_of(run), "seconds": 1.0, "device": "Here"}
    write_json(trees.timing_file(cloned_root, run), timing)
    return cloned_root


def test_costs_of_a_colleague_are_shown_if_nothing_was_measured_here(cloned_root, colleague_runs):
    columns = list(colleague_runs.columns)

    assert_frame_equal(load(cloned_root).runs[columns], colleague_runs[columns])


def test_costs_that_were_measured_here_replace_those_of_a_colleague(
    root_with_own_timing, colleague_runs
):
    """A clone contains the colleague's costs.csv; the first training was repeated here, in 1 s.

    It has two rows, one for each test set. All other trainings keep the colleague's costs.
    """
    runs = load(root_with_own_timing).runs

    assert list(runs.train_seconds[:2]) == [1.0, 1.0]
    assert runs.device[0] == "Here"
    assert list(runs.train_seconds[2:]) == list(colleague_runs.train_seconds[2:])


def test_costs_of_one_training_are_all_from_one_machine(root_with_own_timing, colleague_runs):
    """The first training was repeated here; mixing its time with a colleague's MFU would mislead.

    MFU is the share of a device's peak that a training uses; the colleague reports 0.35.
    """
    (root_with_own_timing / COSTS_CSV).write_text(costs_csv(colleague_runs.assign(mfu=0.35)))

    utilization = list(load(root_with_own_timing).runs.mfu)

    first_run_here = utilization[0]
    run_of_colleague = utilization[2]  # The first training has the rows 0 and 1.
    assert first_run_here != 0.35
    assert run_of_colleague == 0.35


def test_costs_of_a_colleagues_other_training_are_not_shown(cloned_root, colleague_runs):
    """Costs.csv names trainings by their fingerprint; the last one is of other settings here."""
    last_training = colleague_runs.training_sha256.iloc[-1]
    text = (cloned_root / COSTS_CSV).read_text()
    (cloned_root / COSTS_CSV).write_text(text.replace(last_training, "0" * 64))

    costs = load(cloned_root).runs.iloc[-1]

    assert math.isnan(costs.train_seconds)
