"""No test leaves a process behind."""

import pytest

from process_groups import wait_until_none_is_left


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):
    yield
    wait_until_none_is_left(tmp_path)
