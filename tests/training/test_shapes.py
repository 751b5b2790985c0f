"""Batches of many sizes are of few shapes, so that oneDNN compiles each product once.

On Intel's processors MKL multiplies, which compiles nothing.
"""

import os
import subprocess
import sys

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

PATHS = [str(ROOT / "src"), str(ROOT / "tests" / "support")]


def train(*lengths):
    """The gradients of batches of 600 to 900 rows, of sentences of each of these lengths."""
    torch.manual_seed(1)
    model = Transformer(systems.model(d_model=32, d_ff=48), 31, 31)
    for length in lengths:
        for pairs in range(600 // length, 900 // length):
            ids = [[*range(5, 4 + length), 2]] * pairs
            loss = batch_loss(model, Batch.from_ids(PairIds(ids, ids)), 0.1)
            torch.autograd.backward(loss)


def compiled(vendor, lengths, **variables):
    """How many products oneDNN compiles for it on a processor of this vendor."""
    variables |= {"PYTHONPATH": os.pathsep.join(PATHS), "ONEDNN_VERBOSE": "profile_create"}
    command = [sys.executable, __file__, vendor, *map(str, lengths)]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.count("create:cache_miss")


@needs(ONEDNN, backends.HAS_ONEDNN)
def test_a_batch_of_another_size_has_products_that_are_known():
    known = compiled("AMD", [15])  # in steps that are smaller than those of padded rows
    assert 0 < known == compiled("AMD", [15, 17])
    few = {"LRU_CACHE_CAPACITY": "4", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4"}
    assert compiled("AMD", [15], **few) > known


def test_on_intel_onednn_compiles_no_product():
    assert compiled("Intel", [15, 17]) == 0


if __name__ == "__main__":
    processor.THIS = ALL[sys.argv[1]]
    train(*map(int, sys.argv[2:]))
