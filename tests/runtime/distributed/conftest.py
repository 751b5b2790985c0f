"""No test leaves a process behind."""

import pytest

from process_groups import wait_until_no_process_is_left


@pytest.fixture(autouse=True)
def no_process_is_left(tmp_path):
    """After each test, wait until all processes in its folder have ended; fail if one remains."""
    yield
    wait_until_no_process_is_left(tmp_path)
