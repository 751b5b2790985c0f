"""Files and folders are written whole or not at all, at a fault of each file operation."""

from functools import partial

import pytest

import fault_sweep
import syscalls
from bleuprint.corpus.steps.filter_stats import FilterStats, read_filter_stats
from bleuprint.runtime.atomic_files import atomic_file, atomic_folder
from fault_sweep import read_contents, sweep_faults

pytestmark = fault_sweep.NEEDS_SECCOMP


def write_file(folder):
    """Write the file `x`, in place of an old one."""
    with atomic_file(folder / "x") as partial_file:
        partial_file.write_text("new" * 5000)


def write_folder(folder):
    """Write the folder `x` with a file and a folder in it, in place of an old one."""
    with atomic_folder(folder / "x") as partial_folder:
        (partial_folder / "a").write_text("new" * 5000)
        (partial_folder / "below").mkdir()
        (partial_folder / "below" / "b").write_text("new")


def make_old_folder(folder):
    """Make an old folder `x` with two files."""
    (folder / "x").mkdir()
    for name in ("a", "c"):
        (folder / "x" / name).write_text("old")


def make_old_link(folder):
    """Make a link `x` to an old folder elsewhere."""
    make_old_folder(folder)
    (folder / "x").rename(folder / "elsewhere")
    (folder / "x").symlink_to("elsewhere")


def make_old_file(folder):
    """Make an old file `x`."""
    (folder / "x").write_text("old")


def make_nothing(folder):
    """Leave the folder empty."""
    assert not list(folder.iterdir())


def read_folder(folder):
    """Return the contents of folder `x`, or of the old one while it is being replaced.

    The old folder has a hidden name for a moment, since no system call replaces a whole folder. The
    next command gives it its name back.
    """
    if (folder / "x").exists():
        return read_contents(folder / "x")
    for hidden_folder in folder.glob(".x.partial-*.old"):
        return read_contents(hidden_folder)
    return read_contents(folder / "x")


@pytest.mark.parametrize(
    ("operation", "prepare_folder", "read_state"),
    [
        pytest.param(write_file, make_old_file, read_contents, id="file over file"),
        pytest.param(write_folder, make_old_folder, read_folder, id="folder over folder"),
        pytest.param(
            write_folder, make_old_link, read_folder, id="folder over link", marks=pytest.mark.slow
        ),
        pytest.param(
            write_file, make_nothing, read_contents, id="new file", marks=pytest.mark.slow
        ),
        pytest.param(
            write_folder, make_nothing, read_folder, id="new folder", marks=pytest.mark.slow
        ),
    ],
)
def test_a_fault_leaves_the_old_file_or_folder_or_the_new_one(
    tmp_path, operation, prepare_folder, read_state
):
    """`sweep_faults` repeats an operation with a fault at each of its system calls on files.

    The process is killed, for example, or the disk is full. After each fault, `read_state` must
    find the old content or the whole new content.
    """
    sweep_faults(tmp_path, operation, prepare_folder, read_state)


def test_a_folder_comes_back_after_a_kill_while_it_is_replaced(tmp_path):
    """A process that replaces the folder x is killed at its first system call, then at the second.

    And so on, up to its last call. After each kill, another process begins to write x and fails.
    Then x must have its old files or the new ones, without temporary folders beside it.
    """
    folder = tmp_path / "project"
    call = 0
    while True:
        call += 1
        folder.mkdir()
        make_old_folder(folder)
        old_contents = read_contents(folder)

        kill = syscalls.Fault("SIGKILL", call)
        outcome = syscalls.run_with(kill, folder, partial(write_folder, folder))
        has_fewer_calls = outcome.status == 0
        if has_fewer_calls:
            break
        with pytest.raises(ZeroDivisionError), atomic_folder(folder / "x"):
            raise ZeroDivisionError

        contents = read_contents(folder)
        is_whole_new_folder = b"old" not in contents.values()
        assert contents == old_contents or is_whole_new_folder, contents
        names = [path.name for path in folder.iterdir()]
        assert names == ["x"]
        folder.rename(tmp_path / f"done{call}")


@pytest.mark.parametrize("operation", [write_file, write_folder])
def test_content_is_flushed_to_the_disk_before_it_gets_its_name(tmp_path, operation):
    """New content is written under a temporary name, flushed by fsync, and then renamed.

    Without fsync, a power failure could leave an empty file of the right name. `unsynced` returns
    the files that were renamed before they were flushed, from a list of all system calls.
    """
    if operation is write_folder:
        make_old_folder(tmp_path)

    no_fault = syscalls.Fault("none")
    outcome = syscalls.run_with(no_fault, tmp_path, partial(operation, tmp_path))

    assert outcome.status == 0
    assert fault_sweep.unsynced(outcome.calls) == []


def test_a_fault_leaves_the_old_filtering_statistics_or_the_new_ones(tmp_path):
    """The old statistics count 2 dropped pairs, the new ones 3.

    `sweep_faults` writes the new ones with a fault at each system call on a file, such as a kill or
    a full disk, and reads the counts afterwards.
    """

    def write_statistics(folder, dropped):
        filter_stats = FilterStats("filter", "own", "f", rules=("length",))
        counts = filter_stats.add_set("train")
        counts.count_kept(7)
        for _ in range(dropped):
            counts.count_dropped("length")
        filter_stats.write(folder / "filter.json")

    def read_dropped_counts(folder):
        return read_filter_stats(folder / "filter.json")["train"].dropped

    sweep_faults(
        tmp_path,
        operation=partial(write_statistics, dropped=3),
        prepare_folder=partial(write_statistics, dropped=2),
        read_state=read_dropped_counts,
    )
