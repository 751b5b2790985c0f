"""No test leaves a process behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from process_groups import wait_until_none_is_left


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    wait_until_none_is_left(tmp_path)
