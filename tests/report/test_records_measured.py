"""Measured columns: of the same training and settings, here or at a colleague's."""

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import result_trees as trees
from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.report.frame import COSTS, costs_csv, load
from bleuprint.report.records import collect
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.files import write_json


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("content", "message"), [("{", "damaged: Expecting"), ("{}", "holds no 'seconds'")]
)
def test_a_damaged_timing_names_the_file(
    copy: tuple[Path, Settings], number: int, content: str, message: str
) -> None:
    root, settings = copy
    path = trees.timing_files(root, settings, Cell("tiny", "news-en-de", 1))[number]
    path.write_text(content)
    with pytest.raises(UserError, match=rf"/{re.escape(path.name)}: {message}"):
        collect(settings, root)


def test_measured_columns_are_of_the_same_training_and_settings(
    saved: tuple[Path, Settings],
) -> None:
    root, settings = saved
    cell = Cell("tiny", "news-en-de", 3)
    training, translation = trees.timing_files(root, settings, cell)

    def measured() -> list[Any]:
        row = load(root).cells.iloc[0]
        assert (row.system, row.corpus, row.seed) == cell
        return row[["train_seconds", "device", "peak_memory", "translate_seconds"]].tolist()

    assert measured() == [3725.0, "Test CPU", 1_500_000_000, 2.5]
    translation.rename(translation.with_name("translate-of-other-settings.json"))
    assert measured()[:3] == [3725.0, "Test CPU", 1_500_000_000] and math.isnan(measured()[3])
    training.rename(training.with_name("train-of-other-code.json"))
    assert all(pd.isna(value) for value in measured())


def test_what_a_colleague_measured_is_shown_until_it_is_measured_here(
    saved: tuple[Path, Settings],
) -> None:
    root, settings = saved
    resumed, _ = trees.timing_files(root, settings, Cell("small", "news-en-de", 3))
    write_json(resumed, {**trees.timing_of(Cell("small", "news-en-de", 3)), "threads": "1 + 2"})
    there = load(root).cells
    assert set(there.threads) == {"2", "1 + 2"}
    write_text(root / COSTS, costs_csv(there))
    shutil.rmtree(root / "timings")
    pulled = load(root).cells
    columns = list(there.columns)
    assert_frame_equal(pulled[columns], there[columns])
    cell = Cell("tiny", "news-en-de", 3)
    training, _ = trees.timing_files(root, settings, cell)
    write_json(training, {**trees.timing_of(cell), "seconds": 1.0, "device": "Here"})
    here = load(root).cells
    assert list(here.train_seconds[:2]) == [1.0, 1.0] and here.device[0] == "Here"
    assert list(here.train_seconds[2:]) == list(there.train_seconds[2:])
    assert list(here.translate_seconds) == list(there.translate_seconds)
    # of another training, or other settings, there is nothing to show
    text = (root / COSTS).read_text()
    write_text(root / COSTS, text.replace(there.training_sha256.iloc[-1], "0" * 64))
    assert pd.isna(load(root).cells.train_seconds.iloc[-1])
    write_text(root / COSTS, text.replace(there.settings_sha256.iloc[-1], "0" * 64))
    last = load(root).cells.iloc[-1]
    assert last.train_seconds > 0 and pd.isna(last.translate_seconds)


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
