"""What the suite of faults has tried, for docs/faults.md: pytest tests/faults --faults-report."""

import pytest

import syscalls

TRIED: dict[str, dict[str, int]] = {}


@pytest.fixture
def tried():
    """The points at which each fault was tried, by operation; a test adds its own."""
    if not syscalls.available():
        pytest.skip("no seccomp notifications here (Linux 5.6 on x86-64)")
    return TRIED
