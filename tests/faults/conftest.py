"""Counts what the suite of faults tries, for docs/faults.md.

`pytest tests/faults -n 0 -m "" --faults-report docs/faults.md` writes the counts of
a run into the page's table; rows of tests that did not run stay as they are.
"""

import re
from datetime import date
from pathlib import Path

import pytest

import syscalls

COLUMNS = ("SIGKILL", "short write", "ENOSPC", "EDQUOT", "EROFS", "EFBIG", "EMFILE", "EIO")
COLUMNS += ("ESTALE", "ENOMEM", "memory limit", "history", "date")
HEAD = f"| fault in | {' | '.join(COLUMNS)} |"
_tried: dict[str, dict[str, int]] = {}


def pytest_addoption(parser):
    parser.addoption("--faults-report", metavar="FILE", help="write the counts into this page")


@pytest.fixture
def counts():
    """The points at which each fault was tried, by what it was tried in; a test adds its own."""
    return _tried


@pytest.fixture
def tried(counts):
    """The same for tests that hold system calls."""
    if not syscalls.available():
        pytest.skip("no seccomp notifications here (Linux 5.6 on x86-64)")
    return counts


def pytest_sessionfinish(session):
    if name := session.config.getoption("--faults-report"):
        page = Path(name)
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")


def updated(page):
    """The page with the counts of this run in its table, which follows HEAD, and their sum."""
    before, _, rest = page.partition(HEAD)
    rows, _, after = rest.lstrip("\n").partition("\n\n")
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows.splitlines()[1:]]
    table = {row[0]: row[1:] for row in cells if row}
    for what, points in _tried.items():
        today = {**points, "date": date.today().isoformat()}
        table[what] = [str(today.get(column, "")) for column in COLUMNS]
    lines = [f"| {what} | {' | '.join(row)} |" for what, row in table.items()]
    total = sum(int(cell) for row in table.values() for cell in row if cell.isdecimal())
    before = re.sub(r"[\d,]+ points", f"{total:,} points", before)
    ruler = f"|{'---|' * (len(COLUMNS) + 1)}"
    return "\n".join([before + HEAD, ruler, *lines, "", after])
