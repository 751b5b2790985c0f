"""What cannot be counted says that it goes on, until it has ended."""

import re
from threading import active_count
from time import sleep

import pytest

from bleuprint.runtime.progress import working


def test_it_is_said_until_the_block_ends(capsys):
    threads = active_count()
    with working("reading \x1b[2Jall", 0.01):
        err = ""
        while err.count("\n") < 3:
            sleep(0.01)
            err += capsys.readouterr().err
    assert all(re.fullmatch(r"reading \\x1b\[2Jall: \d+ s", line) for line in err.splitlines())
    with pytest.raises(KeyError), working("never said", 60):
        raise KeyError
    assert active_count() == threads and "never" not in capsys.readouterr().err
