"""The progress of long work: lines in a log, bars on a terminal, and the elapsed time."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from threading import active_count
from time import sleep
from types import SimpleNamespace

import pytest

import bars
from bleuprint.runtime import progress
from bleuprint.runtime.progress import SHARED_TERMINAL, Progress, show_elapsed_time, track
from corpora import PAIRS
from prepared import prepare


def test_the_elapsed_time_is_printed_at_intervals_until_the_block_ends(capsys):
    r"""The label contains a control sequence (\x1b[2J clears the screen), which must be escaped."""
    with show_elapsed_time("reading \x1b[2Jall", interval_seconds=0.01):
        printed = ""
        while printed.count("\n") < 3:
            sleep(0.01)
            printed += capsys.readouterr().err
    capsys.readouterr()
    sleep(0.05)
    printed_after_the_block = capsys.readouterr().err

    for line in printed.splitlines():
        assert re.fullmatch(r"reading \\x1b\[2Jall: \d+ s", line)
    assert printed_after_the_block == ""


def test_an_error_ends_the_thread_that_prints_the_elapsed_time(capsys):
    """The error comes long before the first line; waiting for the line would delay its message."""
    threads_before = active_count()

    with pytest.raises(KeyError), show_elapsed_time("reading all", interval_seconds=60):
        raise KeyError

    assert active_count() == threads_before
    assert capsys.readouterr().err == ""


@pytest.fixture
def clock(monkeypatch):
    """A clock in place of the real one; a test advances it: `clock.now`, in seconds."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_a_log_line_shows_count_rate_remaining_time_and_note(clock, capsys):
    """The 300 pairs that an earlier process has finished do not count for the rate."""
    pairs = Progress("split own", total=1500, unit="pairs", start=300)

    clock.now += 50
    pairs.advance(300, "loss 2.5")

    # 300 pairs in 50 s are 6 pairs a second; the remaining 1500 - 600 = 900 pairs take 150 s.
    expected = "split own: 600 of 1,500 pairs, 6 a second, 0:02:30 left, loss 2.5\n"
    assert capsys.readouterr().err == expected


def test_a_log_has_a_line_only_after_more_than_thirty_seconds(clock, capsys):
    pairs = Progress("split own", total=1500, unit="pairs")

    clock.now += 30
    pairs.advance(100)
    assert capsys.readouterr().err == ""

    clock.now += 1
    pairs.advance(200)
    assert capsys.readouterr().err.startswith("split own: 300 of 1,500 pairs, ")

    # The time is counted from the last line.
    clock.now += 30
    pairs.advance(100)
    assert capsys.readouterr().err == ""

    clock.now += 1
    pairs.advance(1)
    assert capsys.readouterr().err.startswith("split own: 401 of 1,500 pairs, ")


def test_without_a_total_a_line_shows_only_count_and_rate(clock, capsys):
    lines = Progress("read own", total=None, unit="lines")

    clock.now += 40
    lines.advance(2000)

    # 2,000 lines in 40 s.
    assert capsys.readouterr().err == "read own: 2,000 lines, 50 a second\n"


def test_a_silent_progress_prints_nothing(clock, capsys):
    """With several processes for one work, a single process shows the progress."""
    sentences = Progress("translate", total=10, unit="sentences", is_silent=True)

    clock.now += 100
    sentences.advance(5)
    sentences.say("message")

    assert capsys.readouterr().err == ""


def use_terminal(monkeypatch):
    """Let standard error be a terminal, and record the bars that are created.

    Returns:
        The arguments of each new bar: label, total, unit and the count at its start. The list grows
        with each bar.
    """
    created_bars = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "_bar", lambda *arguments: created_bars.append(arguments))
    return created_bars


def test_a_terminal_of_one_program_shows_a_bar(clock, capsys, monkeypatch):
    """Of 100 updates, 20 were finished by an earlier process, so the bar begins at 20."""
    created_bars = use_terminal(monkeypatch)
    monkeypatch.delenv(SHARED_TERMINAL, raising=False)

    updates = Progress("train own", total=100, unit="updates", start=20)

    clock.now += 5.5
    updates.advance(11)

    assert created_bars == [("train own", 100, "updates", 20)]
    assert capsys.readouterr().err == ""


def test_a_terminal_that_programs_share_shows_a_line_every_five_seconds(clock, capsys, monkeypatch):
    """Bars of several programs would overwrite each other."""
    created_bars = use_terminal(monkeypatch)
    monkeypatch.setenv(SHARED_TERMINAL, "1")

    updates = Progress("train own", total=100, unit="updates", start=20)

    clock.now += 5.5
    updates.advance(11)

    # 11 updates in 5.5 s are 2 a second; the remaining 100 - 31 = 69 updates take 34.5 s.
    expected = "train own: 31 of 100 updates, 2 a second, 0:00:34 left\n"
    assert capsys.readouterr().err == expected
    assert created_bars == []


class RecordingBar:
    """Stands in for a bar of tqdm, and records the calls of its methods in `calls`."""

    def __init__(self):
        self.calls = []

    def set_postfix_str(self, note, refresh):
        self.calls.append(("note", note, refresh))

    def update(self, count):
        self.calls.append(("update", count))

    def write(self, message, file):
        self.calls.append(("write", message, file))

    def close(self):
        self.calls.append("close")


def test_a_bar_shows_counts_notes_and_messages_and_is_closed_at_the_total(monkeypatch, capsys):
    r"""Control sequences in a message, such as \x1b[2J, which clears the screen, are escaped."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv(SHARED_TERMINAL, raising=False)
    bar = RecordingBar()
    monkeypatch.setattr(progress, "_bar", lambda *_: bar)
    updates = Progress("train own", total=5, unit="updates")

    updates.advance(3, "loss 2.5")
    updates.say("saved \x1b[2J")
    updates.advance(2)

    # The third item of a note: whether tqdm draws the bar again at once.
    assert bar.calls == [
        ("note", "loss 2.5", False),
        ("update", 3),
        ("write", "saved \\x1b[2J", progress.raw_stderr()),
        ("note", "", False),
        ("update", 2),
        "close",
    ]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("unit", "is_scaled"), [("pairs", False), ("B", True)])
def test_the_bar_of_tqdm_gets_label_counts_and_unit(unit, is_scaled):
    """Only bytes (B) are scaled, to kB and MB; a finished bar is removed from the terminal."""
    bar = progress._bar("read own", total=10, unit=unit, start=2)
    bar.close()

    assert bar.desc == "read own"
    assert bar.total == 10
    assert bar.n == 2
    assert bar.unit == f" {unit}"
    assert bar.unit_scale == is_scaled
    assert not bar.leave


@pytest.fixture
def terminal_file():
    """Return the file of a pseudo-terminal, to which programs write."""
    our_end, program_end = pty.openpty()
    with os.fdopen(our_end, "rb"), os.fdopen(program_end, "w") as file:
        yield file


def set_columns(terminal_file, columns):
    """Give a terminal 24 lines and a number of columns."""
    # The kernel's struct winsize: lines, columns, and two unused numbers.
    size = struct.pack("HHHH", 24, columns, 0, 0)
    fcntl.ioctl(terminal_file, termios.TIOCSWINSZ, size)


def test_a_bar_follows_the_width_of_the_terminal(terminal_file, monkeypatch):
    """A user makes the window smaller, from 100 columns to 50, while the bar is drawn."""
    monkeypatch.setattr(progress, "raw_stderr", lambda: terminal_file)
    set_columns(terminal_file, 100)
    bar = progress._bar("read own", total=10, unit="pairs", start=0)
    width_before = len(str(bar))
    set_columns(terminal_file, 50)
    width_after = len(str(bar))
    bar.close()

    # tqdm leaves the last column free.
    assert width_before == 99
    assert width_after == 49


def test_an_item_counts_as_finished_when_the_next_one_is_asked_for(monkeypatch):
    shown_bars = bars.record_bars(monkeypatch)

    counts = []
    for letter in track("abc", "read", 3, "letters"):
        counts.append((letter, shown_bars[0].done))

    assert counts == [("a", 0), ("b", 1), ("c", 2)]
    assert shown_bars == [bars.Bar(title="read", total=3, done=3)]


def test_the_bars_of_the_data_stages_end_at_their_totals(tmp_path, monkeypatch):
    """A bar that stops below its total, or goes beyond it, would show a wrong remaining time."""
    shown_bars = bars.record_bars(monkeypatch)
    pairs = []
    for number in range(30):
        for source, target in PAIRS:
            pairs.append((f"{source} {number}", f"{target} {number}"))

    prepare(tmp_path, {"train": pairs})

    stages = {bar.title.split()[0] for bar in shown_bars}
    assert stages >= {"clean", "hash", "filter", "split", "tokenize", "binarize"}
    for bar in shown_bars:
        # The pairs of valid and test are drawn from train, so their number is unknown before.
        if bar.title.endswith(("valid", "test.held-out")):
            assert bar.total is None, bar.title
        else:
            assert bar.total is not None, bar.title
            assert bar.done == bar.total, bar.title
