"""Batches of many sizes are of few shapes, so that oneDNN compiles each product once.

On Intel's processors MKL multiplies, which compiles nothing. This file is also a script, which
trains on batches of some sizes, since oneDNN counts what it compiles in a process.
"""

import os
import subprocess
import sys

import pytest
import torch

import systems
from bleuprint.dataset.batch import Batch, PairIds
from bleuprint.model import backends
from bleuprint.model.transformer import Transformer
from bleuprint.runtime import processor
from bleuprint.training.loss import batch_loss
from processors import ALL
from requirements import ONEDNN, needs
from root import ROOT

IMPORT_FOLDERS = [str(ROOT / "src"), str(ROOT / "tests" / "support")]


def train_on_lengths(sentence_lengths):
    """Compute the gradients of batches of 600 to 900 tokens, one of each number of sentences.

    Args:
        sentence_lengths: The number of tokens of the sentences, EOS included; the sentences of a
            batch are equally long.
    """
    torch.manual_seed(1)
    model = Transformer(systems.model(d_model=32, d_ff=48), 31, 31)
    for length in sentence_lengths:
        sentence = [*range(5, 4 + length), 2]
        for sentence_count in range(600 // length, 900 // length):
            sentences = [sentence] * sentence_count
            batch = Batch.from_ids(PairIds(sentences, sentences))
            batch_loss(model, batch, 0.1).backward()


def count_compiled_products(vendor, sentence_lengths, **variables):
    """Run this script, and return how many products oneDNN compiles for it.

    Args:
        vendor: The vendor of the processor on which the script believes to run: AMD or Intel.
        sentence_lengths: The lengths of the sentences that the script trains on.
        variables: Environment variables.
    """
    script_environment = {
        **os.environ,
        **variables,
        "PYTHONPATH": os.pathsep.join(IMPORT_FOLDERS),
        "ONEDNN_VERBOSE": "profile_create",
    }
    command = [sys.executable, __file__, vendor, *map(str, sentence_lengths)]
    done = subprocess.run(
        command, env=script_environment, capture_output=True, text=True, check=True
    )
    return done.stdout.count("create:cache_miss")


@pytest.fixture(scope="module")
def count_of_one_length():
    """Return how many products are compiled for sentences of 15 tokens."""
    return count_compiled_products("AMD", [15])


@needs(ONEDNN, backends.HAS_ONEDNN)
def test_batches_of_sentences_of_another_length_need_no_new_products(count_of_one_length):
    """OneDNN compiles a matrix product for each new number of rows, which takes time.

    Rows of zeros fill batches up to few different numbers of rows, so sentences of 17 tokens use
    the products compiled for 15.
    """
    count_of_two_lengths = count_compiled_products("AMD", [15, 17])

    assert count_of_one_length > 0
    assert count_of_two_lengths == count_of_one_length


@needs(ONEDNN, backends.HAS_ONEDNN)
def test_without_room_for_compiled_products_they_are_compiled_again(count_of_one_length):
    """This confirms that the other tests count compiled products: without caches, there are more.

    The two environment variables limit the caches of PyTorch and oneDNN to 4 products.
    """
    count_with_small_caches = count_compiled_products(
        "AMD", [15], LRU_CACHE_CAPACITY="4", ONEDNN_PRIMITIVE_CACHE_CAPACITY="4"
    )

    assert count_with_small_caches > count_of_one_length


def test_on_intel_onednn_compiles_no_product():
    assert count_compiled_products("Intel", [15, 17]) == 0


if __name__ == "__main__":
    processor.THIS = ALL[sys.argv[1]]
    train_on_lengths([int(length) for length in sys.argv[2:]])
