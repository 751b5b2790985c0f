"""Whole files and folders, and what is made of them, at a fault of each file operation."""

from functools import partial

import pytest

import fault_sweep
import syscalls
from bleuprint.corpus.steps.filter_stats import FilterStats, read_filter_stats
from bleuprint.runtime.files import atomic_file, atomic_folder
from fault_sweep import KINDS, contents, sweep

pytestmark = fault_sweep.NEEDS_SECCOMP


def write_file(place):
    with atomic_file(place / "x") as partial:
        partial.write_text("new" * 5000)


def write_folder(place):
    with atomic_folder(place / "x") as partial:
        (partial / "a").write_text("new" * 5000)
        (partial / "below").mkdir()
        (partial / "below" / "b").write_text("new")


def old_folder(place):
    (place / "x").mkdir()
    for name in ("a", "c"):
        (place / "x" / name).write_text("old")


def old_link(place):
    old_folder(place)
    (place / "x").rename(place / "elsewhere")
    (place / "x").symlink_to("elsewhere")


def old_file(place):
    (place / "x").write_text("old")


def nothing(place):
    assert not list(place.iterdir())


def found(place):
    """The folder `x`, or the old one under the name that it has for a moment."""
    hidden = [*place.glob(".x.partial-*.old")] if not (place / "x").exists() else []
    return contents(hidden[0] if hidden else place / "x")


@pytest.mark.parametrize(
    ("operation", "before", "state", "kinds"),
    [
        (write_file, old_file, contents, KINDS),
        (write_folder, old_folder, found, KINDS),
        pytest.param(write_folder, old_link, found, KINDS, marks=pytest.mark.slow),
        pytest.param(write_file, nothing, contents, KINDS, marks=pytest.mark.slow),
        pytest.param(write_folder, nothing, found, KINDS, marks=pytest.mark.slow),
    ],
)
def test_whole_files_and_folders(tmp_path, operation, before, state, kinds):
    sweep(tmp_path, operation, before, state, kinds)


def test_a_folder_comes_back_after_a_kill(tmp_path):
    place, at = tmp_path / "place", 0
    while True:
        at += 1
        place.mkdir()
        old_folder(place)
        old = contents(place)
        kill = syscalls.Fault("SIGKILL", at)
        if syscalls.run_with(kill, place, partial(write_folder, place)).status == 0:
            break
        with pytest.raises(ZeroDivisionError), atomic_folder(place / "x"):
            raise ZeroDivisionError
        after = contents(place)
        assert after == old or b"old" not in after.values(), after
        assert {path.name for path in place.iterdir()} == {"x"}
        place.rename(tmp_path / f"done{at}")


@pytest.mark.parametrize("operation", [write_file, write_folder])
def test_what_is_renamed_has_reached_the_disk(tmp_path, operation):
    if operation is write_folder:
        old_folder(tmp_path)
    outcome = syscalls.run_with(syscalls.Fault("none"), tmp_path, partial(operation, tmp_path))
    assert outcome.status == 0
    assert fault_sweep.unsynced(outcome.calls) == []


def test_filter_stats(tmp_path):
    def write(place, dropped):
        filter_stats = FilterStats("filter", "own", "f", rules=("length",))
        counts = filter_stats.add_set("train")
        counts.count_kept(7)
        for _ in range(dropped):
            counts.count_dropped("length")
        filter_stats.write(place / "filter.json")

    def state(place):
        return read_filter_stats(place / "filter.json")["train"].dropped

    sweep(tmp_path, partial(write, dropped=3), partial(write, dropped=2), state)
