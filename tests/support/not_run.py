"""A plugin of pytest: a line at the end says which tests were not run, and how to run them.

Tests that were left out by name (`-k`, `--deselect`) are not counted: the user knows of them.
"""

from collections import Counter

import pytest

COMMANDS = {
    "slow": "make test-slow",
    "long": "make test-long",
    "cluster": "make test-cluster",
    "gpu": "python benchmarks/gpu.py tests",
}
OTHERS = "others"
# The numbers of tests by kind. With pytest-xdist, the workers count and send them to this process.
_NOT_RUN = pytest.StashKey[Counter]()
_SENT = "not_run"


def pytest_configure(config):
    """Begin to count, before tests are collected; pytest calls this function."""
    config.stash[_NOT_RUN] = Counter()


def pytest_deselected(items):
    """Count tests that were not selected by their mark; pytest calls this function."""
    config = items[0].config
    if not config.option.keyword and not config.option.deselect:
        config.stash[_NOT_RUN].update(map(kind_of, items))


def kind_of(item):
    """Return the mark by which a command of COMMANDS runs a test; OTHERS if `make test` does."""
    for kind in COMMANDS:
        if item.get_closest_marker(kind):
            return kind
    return OTHERS


def pytest_sessionfinish(session):
    """Let a worker of pytest-xdist send its numbers to the main process; pytest calls this."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_SENT] = dict(session.config.stash[_NOT_RUN])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take a worker's numbers. All workers collect all tests, so that their numbers are equal."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[_NOT_RUN] |= Counter(output.get(_SENT, {}))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter, config):
    """Print the line at the end of pytest's output; pytest calls this function."""
    yield  # The reasons of skipped tests are printed first.
    line = summary(config.stash[_NOT_RUN], len(terminalreporter.getreports("skipped")))
    if line:
        terminalreporter.write_line(line)


def summary(not_run, skipped):
    """Return the line that says which tests were not run; "" if all were.

    Args:
        not_run: The numbers of tests that were not selected, by kind.
        skipped: The number of skipped tests.
    """
    parts = []
    for kind, command in {**COMMANDS, OTHERS: "make test"}.items():
        if not_run[kind]:
            parts.append(f"{not_run[kind]} {kind} ({command})")
    if skipped:
        parts.append(f"{skipped} skipped for the reasons above")
    return f"Not run: {', '.join(parts)}." if parts else ""
