"""Fixtures of the tests of training."""

import pytest
import torch


@pytest.fixture
def one_thread():
    """Trainings in this process use one thread, like those in other processes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
