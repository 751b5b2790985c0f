"""Fixtures of the tests of training."""

import pytest
import torch

from prepared import prepare
from shared_folders import left_unchanged
from trainings import bpe_units, toy_pairs


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Make a binarized toy corpus of 200 training pairs. Not to be changed."""
    sets = {"train": toy_pairs(200, 1), "valid": toy_pairs(9, 2), "test.x": toy_pairs(9, 3)}
    prepared = prepare(tmp_path_factory.mktemp("toy"), sets, units=bpe_units(40))
    with left_unchanged(prepared.root):
        yield prepared.binary


@pytest.fixture(scope="module")
def one_thread():
    """Let trainings in this process use one thread, like those in other processes."""
    usual_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(usual_threads)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Prepare two corpora of the same languages whose vocabularies share some tokens."""
    folder = tmp_path_factory.mktemp("corpora")
    corpora = []
    for name, merge_count in (("first", 60), ("second", 20)):
        texts = {"train": toy_pairs(300, seed=merge_count), "valid": toy_pairs(20, seed=2)}
        corpora.append(prepare(folder / name, texts, units=bpe_units(merge_count, joint=False)))
    return corpora
