"""Counts agree with their nouns."""

import pytest

from bleuprint.report.frame import machine_text
from bleuprint.runtime.wording import counted


@pytest.mark.parametrize(
    ("number", "noun", "plural", "expected"),
    [
        (0, "sentence", None, "0 sentences"),
        (1, "sentence", None, "1 sentence"),
        (1000, "target token", None, "1,000 target tokens"),
        (1, "corpus", "corpora", "1 corpus"),
        (2, "corpus", "corpora", "2 corpora"),
    ],
)
def test_a_count_of_one_has_the_singular(number, noun, plural, expected):
    assert counted(number, noun, plural) == expected


@pytest.mark.parametrize(
    ("threads", "expected"),
    [(1, "CPU, 1 x 1 thread"), ("1", "CPU, 1 x 1 thread"), ("1 + 2", "CPU, 1 x 1 + 2 threads")],
)
def test_a_machine_of_one_thread_has_the_singular(threads, expected):
    assert machine_text("CPU", 1, threads) == expected
