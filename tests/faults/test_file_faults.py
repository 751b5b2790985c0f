"""Whole files and folders, and what is made of them, at a fault of each file operation."""

from functools import partial

import pytest

import fault_sweep
import syscalls
from bleuprint.corpus.download import lockfile
from bleuprint.corpus.steps.ledger import Ledger, read_ledger
from bleuprint.runtime.files import whole_file, whole_folder
from fault_sweep import contents, sweep

RENAMES = {"renameat2"}  # NFS does not exchange


def write_file(place):
    with whole_file(place / "x") as partial:
        partial.write_text("new" * 5000)


def write_folder(place):
    with whole_folder(place / "x") as partial:
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


OPERATIONS = [
    ("a file", write_file, old_file),
    ("a folder", write_folder, old_folder),
    pytest.param("a folder that is a link", write_folder, old_link, marks=pytest.mark.slow),
    pytest.param("a new file", write_file, nothing, marks=pytest.mark.slow),
    pytest.param("a new folder", write_folder, nothing, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("what", "operation", "before"), OPERATIONS)
def test_whole_files_and_folders(tmp_path, tried, what, operation, before):
    tried[what] = sweep(tmp_path, operation, before, contents)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({*fault_sweep.ALL_KINDS} - {*fault_sweep.KINDS}))
def test_whole_folders_at_further_errors(tmp_path, tried, kind):
    points = sweep(tmp_path, write_folder, old_folder, contents, [kind])
    tried.setdefault("a folder", {}).update(points)


def test_a_folder_where_two_cannot_be_exchanged_in_one_step(tmp_path, tried):
    """A process that cannot put the old one back leaves it hidden, and the next run takes it."""

    def found(place):
        hidden = [*place.glob(".x.partial-*.old")] if not (place / "x").exists() else []
        return contents(hidden[0]) if hidden else contents(place / "x")

    kinds = ("ENOSPC", "EIO")
    points = sweep(tmp_path, write_folder, old_folder, found, kinds, without=RENAMES)
    tried["a folder, where renameat2 is missing"] = points


def test_a_folder_comes_back_after_a_kill_where_two_cannot_be_exchanged(tmp_path, tried):
    place, points = tmp_path / "place", 0
    while True:
        points += 1
        place.mkdir()
        old_folder(place)
        old = contents(place)
        fault = syscalls.Fault("SIGKILL", points, without=frozenset(RENAMES))
        outcome = syscalls.run_with(fault, place, partial(write_folder, place))
        if outcome.status == 0:
            break
        with pytest.raises(ZeroDivisionError), whole_folder(place / "x"):
            raise ZeroDivisionError
        found = contents(place)
        assert found == old or b"old" not in found.values(), found
        assert {path.name for path in place.iterdir()} == {"x"}
        place.rename(tmp_path / f"done{points}")
    tried.setdefault("a folder, where renameat2 is missing", {})["SIGKILL"] = points - 1


@pytest.mark.parametrize(
    ("operation", "before"), [(write_file, old_folder), (write_folder, old_folder)]
)
@pytest.mark.usefixtures("tried")
def test_what_is_renamed_has_reached_the_disk(tmp_path, operation, before):
    if operation is write_folder:
        before(tmp_path)
    outcome = syscalls.run_with(syscalls.Fault("none"), tmp_path, partial(operation, tmp_path))
    assert outcome.status == 0
    assert fault_sweep.unsynced(outcome.calls) == []


def test_ledgers(tmp_path, tried):
    def write(place, dropped):
        ledger = Ledger("filter", "own", "f", rules=("length",))
        counts = ledger.open("train")
        counts.keep(7)
        for _ in range(dropped):
            counts.leave_out("length")
        ledger.write(place / "filter.json")

    def state(place):
        return read_ledger(place / "filter.json")["train"].dropped

    tried["a ledger"] = sweep(tmp_path, partial(write, dropped=3), partial(write, dropped=2), state)


def test_downloads_lock(tmp_path, tried):
    """The sums of downloads, which processes change at once under a lock."""

    def record(place, url):
        (place / "download").write_text(url)
        lockfile.record(place / "downloads.lock", url, place / "download", place / ".guard")

    def state(place):
        return sorted(lockfile.read_lock(place / "downloads.lock"))

    before, after = partial(record, url="http://a"), partial(record, url="http://b")
    tried["downloads.lock"] = sweep(tmp_path, after, before, state)
