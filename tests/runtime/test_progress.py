"""Progress: lines and bars of what can be counted, and of what cannot."""

import re
import sys
from threading import active_count
from time import sleep
from types import SimpleNamespace

import pytest

import bars
from bleuprint.runtime import progress
from bleuprint.runtime.progress import SHARED_TERMINAL, Progress, show_elapsed_time, track
from corpora import PAIRS
from prepared import prepare


def test_it_is_said_until_the_block_ends(capsys):
    threads = active_count()
    with show_elapsed_time("reading \x1b[2Jall", 0.01):
        err = ""
        while err.count("\n") < 3:
            sleep(0.01)
            err += capsys.readouterr().err
    assert all(re.fullmatch(r"reading \\x1b\[2Jall: \d+ s", line) for line in err.splitlines())
    with pytest.raises(KeyError), show_elapsed_time("never said", 60):
        raise KeyError
    assert active_count() == threads and "never" not in capsys.readouterr().err


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets: `clock.now`, in seconds."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_a_log_has_a_line_every_thirty_seconds_with_rate_and_time_left(clock, capsys):
    pairs = Progress("split own", 1500, "pairs", start=300)
    clock.now += 30
    pairs.advance(100)
    assert capsys.readouterr().err == ""
    clock.now += 20
    pairs.advance(200, "loss 2.5")
    # 300 of 1,200 in 50 s: 6 a second, so that 900 take 150 s; the 300 before are not counted
    assert capsys.readouterr().err == (
        "split own: 600 of 1,500 pairs, 6 a second, 0:02:30 left, loss 2.5\n"
    )
    clock.now += 30
    pairs.advance(100)
    assert capsys.readouterr().err == ""
    clock.now += 1
    pairs.advance(1)
    assert capsys.readouterr().err.startswith("split own: 701 of 1,500 pairs, ")


def test_without_a_total_a_line_has_no_time_left(clock, capsys):
    lines = Progress("read own", None, "lines")
    clock.now += 40
    lines.advance(2000)
    assert capsys.readouterr().err == "read own: 2,000 lines, 50 a second\n"


def test_another_process_shows_it(clock, capsys):
    silent = Progress("translate", 10, "sentences", silent=True)
    clock.now += 100
    silent.advance(5)
    silent.say("not shown")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("is_beside_others", [True, False])
def test_beside_other_processes_a_terminal_has_lines_every_five_seconds(
    clock, capsys, monkeypatch, is_beside_others
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    shown = []
    monkeypatch.setattr(progress, "_bar", lambda *given: shown.append(given))
    if is_beside_others:
        monkeypatch.setenv(SHARED_TERMINAL, "1")
    else:
        monkeypatch.delenv(SHARED_TERMINAL, raising=False)
    updates = Progress("train own", 100, "updates", start=20)
    clock.now += 5.5
    updates.advance(11)
    lines = capsys.readouterr().err
    if is_beside_others:
        assert lines == "train own: 31 of 100 updates, 2 a second, 0:00:34 left\n"
        assert shown == []
    else:
        assert lines == ""
        assert shown == [("train own", 100, "updates", 20)]


class Bar:
    """In place of a bar of tqdm: what it was told."""

    def __init__(self):
        self.told = []

    def set_postfix_str(self, note, refresh):
        self.told.append(("note", note, refresh))

    def update(self, count):
        self.told.append(("update", count))

    def write(self, message, file):
        self.told.append(("write", message, file))

    def close(self):
        self.told.append("close")


def test_a_bar_shows_counts_notes_and_messages_until_all_is_done(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv(SHARED_TERMINAL, raising=False)
    bar = Bar()
    monkeypatch.setattr(progress, "_bar", lambda *_: bar)
    updates = Progress("train own", 5, "updates")
    updates.advance(3, "loss 2.5")
    updates.say("saved \x1b[2J")
    updates.advance(2)
    assert bar.told == [
        ("note", "loss 2.5", False),
        ("update", 3),
        ("write", "saved \\x1b[2J", progress.raw_stderr()),
        ("note", "", False),
        ("update", 2),
        "close",
    ]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("unit", "is_scaled"), [("pairs", False), ("B", True)])
def test_a_bar_leaves_nothing_and_scales_bytes(unit, is_scaled):
    bar = progress._bar("read own", 10, unit, 2)
    try:
        assert (bar.desc, bar.total, bar.n, bar.unit) == ("read own", 10, 2, f" {unit}")
        assert bar.unit_scale == is_scaled
        assert not bar.leave
    finally:
        bar.close()


def test_tracked_items_are_counted_one_by_one(monkeypatch):
    shown = bars.recorded(monkeypatch)
    done = []
    for item in track("abc", "read", 3, "letters"):
        done.append((item, shown[0].done))
    assert done == [("a", 0), ("b", 1), ("c", 2)]
    assert shown == [bars.Bar("read", 3, 3)]


def test_the_bars_of_the_data_stages_end_at_their_totals(tmp_path, monkeypatch):
    shown = bars.recorded(monkeypatch)
    pairs = [(f"{source} {n}", f"{target} {n}") for n in range(30) for source, target in PAIRS]
    prepare(tmp_path, {"train": pairs})
    titles = {bar.title.split()[0] for bar in shown}
    assert titles >= {"clean", "hash", "filter", "split", "tokenize", "binarize"}
    for bar in shown:
        # valid and test were drawn from train, so that their sizes are not known
        is_counted = bar.total is not None
        assert is_counted == (not bar.title.endswith(("valid", "test.held-out"))), bar.title
        assert bar.done == bar.total or not is_counted, bar.title
