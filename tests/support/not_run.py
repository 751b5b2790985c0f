"""A line at the end of the tests: which kinds of tests were not run, and how to run them."""

from collections import Counter

import pytest

COMMANDS = {
    "slow": "make test-slow",
    "long": "make test-long",
    "cluster": "make test-cluster",
    "gpu": "python benchmarks/gpu.py tests",
    # last: a test of processes that is also slow is not run by `make test`
    "processes": "make test",
}
# The numbers by kind, of this process; with pytest-xdist its workers have them and send them here.
_NOT_RUN = pytest.StashKey[Counter]()
_SENT = "not_run"


def pytest_configure(config):
    config.stash[_NOT_RUN] = Counter()


def pytest_deselected(items):
    for item in items:
        item.config.stash[_NOT_RUN].update(kind_of(item))


def kind_of(item):
    """The mark by which a test belongs to a command of its own, in a list; empty if it has none."""
    return [kind for kind in COMMANDS if item.get_closest_marker(kind)][:1]


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_SENT] = dict(session.config.stash[_NOT_RUN])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take a worker's numbers; each has collected all tests, so that any worker's are the run's."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[_NOT_RUN] |= Counter(output.get(_SENT, {}))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter, config):
    yield  # the reasons of the skips come first
    line = summary(config.stash[_NOT_RUN], len(terminalreporter.getreports("skipped")))
    if line:
        terminalreporter.write_line(line)


def summary(not_run, skipped):
    """The line for these numbers of tests by kind, and this number of skipped tests; or nothing."""
    parts = [f"{not_run[kind]} {kind} ({COMMANDS[kind]})" for kind in COMMANDS if not_run[kind]]
    if skipped:
        parts.append(f"{skipped} skipped for the reasons above")
    return f"Not run: {', '.join(parts)}." if parts else ""
