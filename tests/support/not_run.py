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
# The numbers by kind, of this process; with pytest-xdist its workers have them and send them here.
_NOT_RUN = pytest.StashKey[Counter]()
_SENT = "not_run"


def pytest_configure(config):
    config.stash[_NOT_RUN] = Counter()


def pytest_deselected(items):
    config = items[0].config
    if not config.option.keyword and not config.option.deselect:
        config.stash[_NOT_RUN].update(map(kind_of, items))


def kind_of(item):
    """The mark by which a test belongs to a command of its own; OTHERS if to `make test`."""
    for kind in COMMANDS:
        if item.get_closest_marker(kind):
            return kind
    return OTHERS


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
    parts = []
    for kind, command in {**COMMANDS, OTHERS: "make test"}.items():
        if not_run[kind]:
            parts.append(f"{not_run[kind]} {kind} ({command})")
    if skipped:
        parts.append(f"{skipped} skipped for the reasons above")
    return f"Not run: {', '.join(parts)}." if parts else ""
